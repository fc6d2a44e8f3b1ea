/* SPDX-License-Identifier: MIT */
/*
 * The inside of a session, for the files that are its parts: README.md here says what each is
 * about. What a part lends to the others stands below, under its name.
 */
#ifndef TM3_SESSION_INSIDE_H
#define TM3_SESSION_INSIDE_H

#include "../base/addr.h"
#include "../base/list.h"
#include "../base/loop.h"
#include "../base/payer.h"
#include "../conn/table.h"
#include "../path/paths.h"
#include "../pipe/pipe.h"
#include "../sched/next.h"
#include "../sched/sched.h"
#include "../settings/settings.h"
#include "dialect.h"
#include "inbound.h"
#include "session.h"
#include "stats.h"

/* Of the extension: sessions that keep most, for too long, make room for others. */
void keeping_relieve(struct task *t);

/* The way out. */
struct outbound {
	struct task pump;
	struct timer timer;	/* the end of a wait */
	enum next_wait wait;	/* what nothing was sent for, the last time */
	bool control_waits;	/* control, for a pipe that takes it */
	bool datagrams;		/* some wait for a pipe */
};

/* Of the other end's connections that carried nothing, those that were told of in this @second. */
struct recording {
	int64_t second;
	unsigned int empty;
};

/* What is looked at now and then. */
struct survey {
	struct timer sample_timer, check_timer;
	int64_t queues_due;	/* to be looked at again */
};

struct session {
	struct engine *engine;
	struct list all;	/* of the engine's */
	const struct dialect *dialect;
	const struct session_role *role;
	void *owner;
	unsigned int number;
	char peer[ADDR_TEXT];
	char payer[PAYER_TEXT];	/* whom its incidents count for; "": for @peer */
	char why[160];		/* it ended */
	bool stopping;		/* in order; nothing is relayed any more */
	bool dead;		/* waits for its end task */

	struct pipe_shared shared;
	struct pipe *pipes[PIPES_MAX];	/* by index; NULL: it left */
	unsigned int npipes;		/* the highest index and 1 */
	unsigned int open_pipes;	/* that have not ended */
	struct list lost_pipes;		/* to be freed after the batch */
	struct task bury;
	bool started;
	bool said_unbound;	/* that the other end binds nothing to paths */
	int64_t missized_at;	/* that an answer had another size than it says was logged */

	struct table *table;	/* of the baseline, */
	size_t formers;		/* and what it has of ids that are closed: bytes */
	struct extended *ext;	/* of the extension */
	struct conn_owner conn_owner;	/* of its connections, and those that are done */
	struct list conns;	/* the others, lingering ones too; */
	unsigned int nconns;	/* so many are all, */
	unsigned int nturned_away;	/* and of them, those that have no place */
	struct sched sched;

	struct inbound in;
	struct hoard hoard;	/* what is in there, */
	size_t layered;		/* and what the layers of its pipes take */
	struct budget own, *budget;	/* what it may take of the loop's time is in @budget */

	struct paths paths;	/* each pipe is on one of them */
	struct outbound out;
	struct survey survey;
	struct timer losses_timer;	/* of paths with a mixed set of pipes */
	struct recording recording;
	struct task end;
	struct timer rest_timer, stop_timer;
	struct stats_counts counts;
};

/* Does the other end open connections here? In the baseline LP opens them all. */
static inline bool session_accepts(const struct session *s)
{
	return s->role->open != NULL;
}

/* opens */
/* As session_open(), wherever to. */
int session_open_to(struct session *s, int fd, const struct destination *to,
		    const struct bounds *bounds);
/* What this end sends on @c goes over @paths alone, as a HINT names them. */
void opens_keep_to(struct session *s, struct conn *c, uint8_t paths);

/* session */
struct conn *session_conn_new(struct session *s, uint16_t id);
void session_tell_room(struct session *s);
/* As session_add_pipe(), with the @index and path that it shall have. NULL on failure. */
struct pipe *session_take_pipe(struct session *s, struct conduit conduit,
			       unsigned int index, unsigned int path);
void session_fail(struct session *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* refusing */
/* As conn_ops.missized: that is said, seldom. */
void refusing_missized(struct conn *c, const char *how);

/* layered */
/* The @layer of a pipe (NULL: it has none) counts from now on, or no more. */
void layered_enters(struct session *s, const struct layer *layer);
void layered_leaves(struct session *s, const struct layer *layer);
/* None does: the session is about to end. */
void layered_disregard(struct session *s);
/* What is left of all memory beside those who have not said HELLO. */
size_t layered_leave(const struct engine *engine);

/* baseline */
struct conn *baseline_conn_new(struct session *s, uint16_t id);
void baseline_mind_rest(struct session *s);

/* flows */
void flows_closed(struct conn *c);

/* survey */
void survey_start(struct session *s);
/* @p came when the session had begun. */
void survey_pipe(struct session *s, const struct pipe *p);
void survey_stop(struct session *s);
void survey_sample(struct session *s, const char *state);

/* standby */
void standby_start(struct session *s);
void standby_stop(struct session *s);
/* @path has another pipe. From the first one of another kind on its losses are looked at. */
void standby_watch(struct session *s, struct path *path);
/*
 * Finds out again which pipes carry nothing new: to be called when a pipe went, or began or
 * ceased to look dead, and when a path began or ceased to stand by.
 */
void standby_find(struct session *s);

/* pausing */
void pausing_start(struct session *s);
void pausing_stop(struct session *s);
void pausing_shed(struct hoard *h, size_t bytes);
/* As dialect.queued and .released, of the baseline; and @c has ended for the pipes. */
void pausing_queued(struct session *s, struct conn *c, size_t bytes);
void pausing_released(struct session *s, struct conn *c, size_t queued,
		      size_t early);
void pausing_conn_ended(struct session *s, struct conn *c);
/*
 * The time by which closed ids are remembered. It stands still while pipes pause: what the old
 * owner of an id sent may lie in them unread.
 */
int64_t pausing_reading_time(const struct session *s);

/* gaps */
void gaps_start(struct session *s);
void gaps_stop(struct session *s);
void gaps_note(struct session *s, struct conn *c);

/* recording */
/* @c has ended for the pipes: once. */
void recording_conn_ended(struct session *s, const struct conn *c);

/* reading */
void reading_start(struct session *s);
void reading_stop(struct session *s);
void reading_add(struct session *s, const struct pipe *p);
void reading_remove(struct session *s, const struct pipe *p);
void reading_ready(struct session *s, struct pipe *p);

/* outbound */
void outbound_pump(struct task *t);
void outbound_timer(struct timer *t);
void outbound_say_reset(struct session *s, struct conn *c);
void outbound_acked(struct session *s, struct pipe *p,
		    const struct ack_asked *what, int64_t at);

#endif
