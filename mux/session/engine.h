/* SPDX-License-Identifier: MIT */
/*
 * An engine: what all sessions of a thread share. A process has one, or one for each of
 * its threads that have sessions: then they are chained behind the first one, whose thread
 * can have the others halt.
 */
#ifndef TM3_ENGINE_H
#define TM3_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/budget.h"
#include "../base/list.h"
#include "../base/loop.h"
#include "../base/incidents.h"
#include "../conn/conn_owner.h"
#include "figures.h"
#include "hoard.h"
#include "reader.h"

struct halt;
struct layers;
struct log;
struct settings;
struct stats;
struct udp_out;

/* Bytes of engine->scratch: what one read brings, and the longest message in front of it and behind it. */
enum { ENGINE_SCRATCH = READER_MAX + 2 * WIRE_LARGE_MAX };

struct engine {
	struct loop *loop;
	const struct settings *settings;
	struct log *log;
	struct stats *stats;	/* or NULL */
	uint8_t *scratch;	/* what pipes read into */
	struct udp_out *udp_out;	/* datagrams of flows, on their way to sockets */
	struct slab room;	/* that connections are made in */
	struct conn_owner orphanage;	/* of connections that outlive their session: */
	struct list orphans;	/* these, */
	size_t orphaned;	/* and bytes that wait in their queues */
	struct hoard hoard;	/* what sessions have charged for applications, */
	struct task relief;	/* where that is too much */
	struct budgets budgets;	/* of the loop's time, of sessions or what they share */
	size_t kept;		/* sent and not acknowledged, by all sessions, */
	struct task kept_relief;	/* where little is left for others */
	bool idle;		/* a session has become so: memory is to go back, */
	int64_t gave_back_at;	/* as it did then */
	unsigned int conns;	/* of all sessions, those apart that have no place */
	unsigned int sessions;	/* the number of the last; from 1 */
	struct list all;	/* sessions, the oldest first */
	struct list extended;	/* sessions that a HELLO can name */
	struct layers *layers;	/* for pipes of the extension; NULL: plain */
	struct sums gone;	/* of pipes, connections, sessions that have ended */
	struct incidents incidents;	/* which limits were met, and by whom: its own, */
	struct incidents *limits;	/* or those of the first */
	struct engine *next;
	struct halt *halt;	/* of the first, if there are others */
	unsigned int parts;	/* memory is for so many engines, in equal parts */
};

int engine_init(struct engine *engine, const struct settings *settings,
		struct log *log);
/*
 * The same for another thread of the process of @first, one of @parts that have a part of
 * its memory. Its layers are the caller's to set. To be called before @first's loop runs.
 */
int engine_init_beside(struct engine *engine, struct engine *first,
		       unsigned int parts);
void engine_fini(struct engine *engine);
/* What its sessions may have of memory. */
size_t engine_memory(const struct engine *engine);
/*
 * What is kept, what is orphaned, or the number of connections has changed: the hoard
 * may have what is left of the memory, and who has most of it sheds where that is less.
 */
void engine_balance(struct engine *engine);

/* Of @most pipes, how many may await their HELLO at once, by what their layers take. */
unsigned int engine_may_wait(const struct engine *engine, unsigned int most);

#endif
