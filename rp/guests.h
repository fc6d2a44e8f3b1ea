/* SPDX-License-Identifier: MIT */
/*
 * All guests (guest.h): who gets a place, who has to go for another one, and what they
 * have in common. Pipes of all have half of the descriptors, one whole session's in any
 * case. The first thread's, but for what says that it is called by workers.
 */
#ifndef TM3_RP_GUESTS_H
#define TM3_RP_GUESTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "../mux/base/list.h"
#include "../mux/pipe/conduit.h"
#include "../mux/settings/incident.h"
#include "quota.h"
#include "workers.h"

struct engine;
struct guest;
struct guests;
struct key;
struct options;
struct wire_hello;

/* That there is no place for another one: why, and at which limit. */
struct denial {
	enum incident what;
	const char *why;	/* NULL: there is one */
};

/* One of them has left. */
typedef void (*left_fn)(struct guests *all);
/* @conduit is a pipe of a guest that has just left: the callee's from now on. */
typedef void (*stray_fn)(struct guests *all, const struct sockaddr_storage *peer,
			 const struct wire_hello *hello, struct conduit conduit);

struct guests {
	struct engine *engine;
	const struct options *options;
	left_fn left;
	stray_fn stray;
	struct workers workers;
	struct quota quota;	/* of places */
	struct list all;	/* the oldest first */
	unsigned int n;
	unsigned int numbers;	/* of sessions */
	unsigned int keys_gone;	/* see options.h; when sessions were checked by them */
};

/*
 * 0, or -errno after it said what is wrong. Call guests_fini() in either case, once nobody
 * is there. @entrances: see worker_init().
 */
int guests_init(struct guests *all, struct engine *engine,
		const struct options *options,
		const struct entrances *const entrances[REACH_ENTRANCES],
		left_fn left, stray_fn stray);
void guests_fini(struct guests *all);

/* Can there be another guest of the baseline from @peer? Others may have to go for it. */
struct denial guests_objection(struct guests *all,
			       const struct sockaddr_storage *peer);
/*
 * A place for another session of @peer, with so many @pipes, who has shown @key (NULL: none),
 * and a worker for it. Others may be told to go for it. NULL: there is none, see @denial.
 */
struct guest *guests_admit(struct guests *all,
			   const struct sockaddr_storage *peer,
			   const struct key *key, unsigned int pipes,
			   struct denial *denial);
/* The one in the extension whose session @hello names, or NULL. It may just have ended. */
struct guest *guests_find(const struct guests *all, const struct wire_hello *hello);

/*
 * The guest with this session @number is of the baseline, with @pipes pipes, and has just come,
 * or gone again: a warning if its pipes may be of the same local proxy as those of the one that
 * came before.
 */
void guests_say_if_in_one_burst(struct guests *all, unsigned int number,
				unsigned int pipes);

/* By its worker: of those of its address that wait for pipes, the first has to go for a fifth. */
void guests_alone(struct guest *guest);
/* By its worker: see gives_way_fn in lent_ports.h. */
int guests_give_way(struct guest *guest, uint16_t listener,
		    const struct sockaddr_storage *addr);
/* By its worker, which has nothing of it any more. It is freed. */
void guests_leave(struct guest *guest);

/* In a halt: sessions whose key is gone end. */
void guests_end_without_key(struct guests *all);
/* In a halt: other limits and other --permit-listen count from now on. */
void guests_review(struct guests *all);
/* In a halt: all sessions end in order. */
void guests_stop(struct guests *all);
/* In a halt. */
void guests_print(struct guests *all, FILE *out);

#endif
