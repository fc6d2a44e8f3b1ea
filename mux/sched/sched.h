/* SPDX-License-Identifier: MIT */
/*
 * The seam for policies: which connection's bytes go next, and on which pipe.
 *
 * A pipe policy orders the pipes that could send. For the pipe it picks, the
 * connection policy's next() answers: new bytes of this connection (SCHED_NEW), or
 * nothing for this pipe now (SCHED_WAIT). A policy is one small file, named in the
 * lists at the end of sched.c; it sees every pipe's info and every ready connection.
 * Where there are several paths a third policy comes before both (path_policy.h).
 * next.h makes one decision of all.
 *
 * No sockets, no clock: struct pipe and struct conn are only looked at.
 */
#ifndef TM3_SCHED_H
#define TM3_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/list.h"
#include "path_policy.h"

struct conn;
struct pipe;
struct sched;

enum { SCHED_CLASSES = 2 };

enum sched_act { SCHED_WAIT, SCHED_NEW };

struct sched_choice {
	enum sched_act act;
	struct conn *conn;	/* SCHED_NEW */
	size_t budget;		/* bytes it may send now */
	bool ahead;		/* it goes ahead of those that take turns */
};

struct conn_policy {
	const char *name, *summary;
	void (*init)(struct sched *s);	/* or NULL */
	/* @c has something to send; it had not before. */
	void (*ready)(struct sched *s, struct conn *c, int64_t now);
	/* @c has nothing any more (or leaves for good). */
	void (*idle)(struct sched *s, struct conn *c, int64_t now);
	/* What shall @p carry, of at most @room bytes? */
	struct sched_choice (*next)(struct sched *s, struct pipe *p,
				    size_t room, int64_t now);
	/* @c sent @bytes. */
	void (*sent)(struct sched *s, struct conn *c, size_t bytes);
	/* So many bytes were sent again, in place of those that take turns. Or NULL. */
	void (*sent_again)(struct sched *s, size_t bytes);
	/* New bytes of @c's application are on their way over @path. Or NULL. */
	void (*gave)(struct sched *s, struct conn *c, const struct path *path,
		     size_t bytes);
	/*
	 * Bytes that go before the last one that @c has left, it included; UINT64_MAX: nobody
	 * knows. NULL: as many of each connection that has something to send.
	 */
	uint64_t (*ahead)(const struct sched *s, const struct conn *c);
	bool by_size;		/* it asks how much connections have left */
};

struct pipe_policy {
	const char *name, *summary;
	/* The best of @n (at least one) pipes that could send: its place. */
	unsigned int (*pick)(struct sched *s, struct pipe *const *able,
			     unsigned int n);
	/* May @p carry bytes of @c, whatever its path? NULL: any pipe may. */
	bool (*carries)(const struct sched *s, const struct pipe *p,
			const struct conn *c);
};

struct sched {
	const struct conn_policy *conns;
	const struct pipe_policy *pipes;
	struct path_choice path;
	unsigned int npipes;
	unsigned int ready;	/* connections with something to send */
	bool again;		/* something waits that is to be sent again */
	unsigned int turn;	/* round robin over pipes */
	uint64_t random;
	int64_t round_trip;	/* of the path, ns; 0: not known yet */

	/* drr, and las for those that are not young */
	struct list newcomers;	/* became active just now: served first */
	struct list round;	/* the others, in turn; of other policies all */
	/* las */
	struct list young[SCHED_CLASSES];
	unsigned int nyoung;
	/* bytes that a class and those before it may send while others behind them wait */
	int64_t credit[SCHED_CLASSES];
	/* srpt */
	bool ordered;		/* round is */
	bool looked;		/* what goes before whom is known, for the decision under way */
};

void sched_init(struct sched *s, const struct conn_policy *conns,
		const struct pipe_policy *pipes, unsigned int npipes,
		uint64_t seed);

/* Over which paths, where there are several; else as path_policies[0] says. */
void sched_set_paths(struct sched *s, const struct path_policy *policy,
		     unsigned int number, double share);

/* These keep count and pass on to the policy. */
void sched_ready(struct sched *s, struct conn *c, int64_t now);
void sched_idle(struct sched *s, struct conn *c, int64_t now);
void sched_forget(struct sched *s, struct conn *c, int64_t now);
/* @c was framed @len bytes for @p, of which @bytes are its application's. */
void sched_sent(struct sched *s, struct conn *c, const struct pipe *p,
		size_t len, size_t bytes);

/*
 * For policies that have one line, the round: @c becomes its last, or leaves it; and the first of
 * whom @p may carry bytes, or NULL.
 */
void sched_line_up(struct sched *s, struct conn *c, int64_t now);
void sched_leave_line(struct sched *s, struct conn *c, int64_t now);
struct conn *sched_first_for(struct sched *s, const struct pipe *p);
/* For policies: the bytes of a turn, of a pipe with so much room. */
size_t sched_turn(const struct sched *s, size_t room);

bool sched_carries(const struct sched *s, const struct pipe *p,
		   const struct conn *c);

/* NULL-terminated lists, the default first; and by name, or NULL. */
extern const struct conn_policy *const conn_policies[];
extern const struct pipe_policy *const pipe_policies[];
const struct conn_policy *conn_policy_named(const char *name);
const struct pipe_policy *pipe_policy_named(const char *name);

extern const struct conn_policy sched_las, sched_drr, sched_fifo, sched_turns,
	sched_srpt;
extern const struct pipe_policy sched_least, sched_soonest, sched_rr, sched_random,
	sched_fixed;

#endif
