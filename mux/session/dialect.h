/* SPDX-License-Identifier: MIT */
/*
 * What sessions of the baseline and of the extension do differently. A session
 * has one dialect from its beginning to its end; whoever asks which one it is,
 * instead of calling it, has found something that belongs in here.
 */
#ifndef TM3_DIALECT_H
#define TM3_DIALECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conn;
struct conn_speech;
struct destination;
struct next;
struct pipe;
struct run;
struct session;
struct view;
struct wire_head;
struct wire_msg;

struct dialect {
	/* What of the session is its own. 0 or -errno; fini() in either case. */
	int (*init)(struct session *s);
	void (*fini)(struct session *s);

	/* How its connections talk. */
	const struct conn_speech *speech;

	/* Of pipes: as pipe_ops.message and reader_ops.expects. */
	bool (*message)(struct session *s, struct pipe *p,
			const struct wire_msg *msg, uint64_t offset);
	bool (*expects)(struct session *s, unsigned int pipe,
			const struct wire_head *head, uint32_t *number);
	/*
	 * @p cannot be read any more: it ended, or it @broke the framing. @why, for
	 * the log. Not called while the session is stopping.
	 */
	void (*pipe_ended)(struct session *s, struct pipe *p, bool broke,
			   const char *why);

	/* Can the other end be told of @to? */
	bool (*can_name)(const struct destination *to);
	/* A connection that this end opens, with an id of its own; or NULL. */
	struct conn *(*open)(struct session *s);
	bool (*has_id)(const struct session *s);
	/* Ids of which something is remembered. */
	unsigned int (*ids)(const struct session *s);
	/* @c has ended for the pipes. */
	void (*conn_ended)(struct session *s, struct conn *c);
	/* As conn_ops.queued and conn_ops.released. */
	void (*queued)(struct session *s, struct conn *c, size_t bytes);
	void (*released)(struct session *s, struct conn *c, size_t queued,
			 size_t early);
	/* Memory of what came for @c out of order. */
	size_t (*early)(const struct conn *c);

	/* The others may be NULL. As session_next_id_in(). */
	int64_t (*next_id_in)(const struct session *s);
	/* @c is to be freed; or, see conn_ops.lost, what its socket brought is lost. */
	void (*conn_gone)(struct session *s, struct conn *c);
	void (*conn_lost)(struct session *s, struct conn *c);
	/* @c was refused; what came for it out of order is not given back thereby. */
	void (*let_go)(struct session *s, struct conn *c);
	/* @bytes have to go, and datagrams that wait are what can be missed first. */
	void (*shed_datagrams)(struct session *s, size_t bytes);
	/* @bytes have to go of what no connection has. */
	void (*shed)(struct session *s, size_t bytes);
	/* It has most of all, and nothing that could go: end it. */
	void (*give_up)(struct session *s);
	/* Something was delivered to @c. */
	void (*delivered)(struct session *s, struct conn *c);
	/*
	 * What the session has to say of itself goes ahead of all else. False: some of
	 * it waits for a pipe that takes it.
	 */
	bool (*control)(struct session *s);
	/* Tells the decision what is to be sent again, which datagrams wait, and whether
	 * all is full. */
	void (*look_kept)(struct session *s, struct view *view);
	/* @run, of which look_kept() told, is sent again now. */
	void (*sends_again)(struct session *s, const struct run *run);
	/* The same of a tail: its copy, or NULL without memory. */
	struct run *(*copies_tail)(struct session *s);
	/* The same of what goes over the path of @p as well. */
	struct run *(*copies_twin)(struct session *s, const struct pipe *p);
	/* The same of what another pipe may still deliver. */
	struct run *(*repeats)(struct session *s);
	/* Datagrams for @p, of @bytes or a little more; NULL without memory. */
	struct run *(*datagrams)(struct session *s, struct pipe *p, size_t bytes);
	/* New bytes of a connection become @run. NULL: conn_frame() does it. */
	void (*frame)(struct session *s, const struct next *next,
		      struct run *run);
	/* @run is about to be written to @p; it may move. */
	struct run *(*keep)(struct session *s, struct pipe *p, struct run *run);
	/* The session stops in order: last words to the pipes. */
	void (*farewell)(struct session *s);
};

extern const struct dialect dialect_baseline, dialect_extended;

#endif
