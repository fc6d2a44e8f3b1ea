/* SPDX-License-Identifier: MIT */
/*
 * The inside of a session of the extension, for the files that are its parts:
 * extended (pipes come and go), ids (what connections begin with), joining (LP's pipes, that are
 * dialled), arrivals (what pipes bring), windows (what the other end may send), keeping
 * (what may have to be sent again), suspects (pipes that look dead), tails (last
 * messages that look lost), flows (of datagrams), reverse (what RP opens), roaming (pipes whose way is another), control (what is
 * said of the session).
 *
 * Control is never queued. What has to be said is state (an offset, a flag), and
 * becomes a message when a pipe takes one; so no peer makes a queue grow.
 */
#ifndef TM3_EXTENDED_H
#define TM3_EXTENDED_H

#include "../base/route.h"
#include "../conn/channel.h"
#include "../extension/admission.h"
#include "../extension/kept.h"
#include "../extension/tally.h"
#include "../wire/wire_ext.h"
#include "greeting.h"
#include "reverse.h"
#include "session_inside.h"

/* A pipe's place: incarnations of the pipe with an index come and go. */
struct leg {
	uint32_t incarnation;	/* the present one, or the last */
	bool known;		/* there was one */
	struct greeting *joining;	/* LP: the next one awaits WELCOME */
	struct route route;	/* LP: of its packets, when it began */
	struct tally tally;	/* messages of it that count and were parsed, */
	uint64_t told;		/* and of them, as the last ACK said */
	struct kept kept;
	bool pong_due;
	struct wire_ping pong;
	bool ping_due, pinged;	/* PING is to be sent; was, without answer */
	uint64_t token;
	int64_t pinged_at;
	uint64_t heard;		/* the largest count that an ACK told, */
	int64_t progress_at;	/* and when it grew, or the pipe began */
	int64_t suspect_since;	/* 0: it is not */
	int64_t written_at;	/* the last message that counts, */
	bool left_at_once;	/* and the window allowed for it */
	uint64_t copied;	/* bytes of its stream up to here are copied */
	uint64_t doubted_at;	/* so many were acknowledged when it became doubtful */
};

/* What is to be said of a listener. */
struct listener_state {
	const struct destination *at;	/* LP */
	uint16_t port;			/* RP */
	uint8_t result;
};

struct reverse {
	uint64_t due;		/* bits: of these listeners something is */
	unsigned int conns;	/* that RP opened, until they are gone */
	struct listener_state listener[LISTENERS_MAX];
};

struct extended {
	struct session *s;
	struct list member;	/* of the engine's */
	bool lp;
	struct wire_hello hello;	/* that began the session */
	struct wire_welcome welcome;	/* that answered it */
	struct admission admission;
	struct leg leg[PIPES_MAX];
	int64_t alone_since;	/* it has had no pipe; 0: it has */
	struct timer alone_timer;	/* the session's end then */
	struct timer lack_timer;	/* LP: to say that pipes are lacking */
	int64_t lack_pause;		/* before that is said again */
	struct sockaddr_storage from;	/* LP: this host's, where it began */
	bool unknown;		/* LP: RP does not know it, or not from here */

	struct channel *channel[WIRE_ID_MAX + 1];	/* those in use so far */
	unsigned int channels;
	size_t remembered;	/* bytes of them, as told with inbound_holds() */
	struct list spare;	/* of own ids, between two uses, */
	struct list resting;	/* and those that may not be used yet, */
	unsigned int nresting;	/* so many, */
	struct timer rest_timer;	/* until then */
	uint16_t last_id;	/* own ids up to it have a channel */
	struct early_pool pool, pool_of_rp;	/* by who opens */
	struct reverse reverse;

	uint64_t promised;	/* bytes that the other end may send, */
	uint64_t idle;		/* and on ids without a connection */
	struct list windows_due;
	struct timer window_timer;
	struct task window_task;	/* where more waits than may */

	struct kept_item *again, **again_end;
	size_t kept;		/* bytes of memory, those of again included */
	struct task unkept;	/* once a run had no memory to be kept */
	int64_t ack_takes;	/* from sending to ACK, lately */
	struct timer suspects_timer;	/* runs while anything is kept */
	int64_t probing_since;	/* LP: one pipe is dialled for all; 0: none */
	uint64_t sent;		/* bytes of messages that count, */
	uint64_t copies;	/* and of them, copies of tails */
	bool tails_due;		/* a copy is to be sent */
	bool doubts;		/* a pipe may be doubtful */
	struct timer tails_timer;	/* runs while something may be overdue */

	bool ack_due;
	bool ack_all;		/* of all pipes: one may have been lost */
	uint64_t unacked;	/* bytes of messages since the last ACK */
	struct timer ack_timer, ping_timer;
	struct list flows;	/* those with datagrams that wait, by turns */
	unsigned int nflows;	/* all there are, */
	size_t flows_bytes;	/* and what their queues take of memory */
	uint8_t goodbye;	/* the reason, when it comes to that */
};

/* ids */
void ids_init(struct extended *x);
/* They are LP's; until that is said, RP's. */
void ids_are_of_lp(struct extended *x);
void ids_fini(struct extended *x);
struct channel *extended_channel(struct extended *x, uint16_t id);
/* The use of @ch may be over: its id can be used again then. */
void extended_settle(struct extended *x, struct channel *ch);
/* A connection with an id of its own, and nothing granted; or NULL. */
struct conn *extended_open(struct session *s);
/* As dialect.has_id, .ids and .give_up. */
bool ids_has_one(const struct session *s);
unsigned int ids_known(const struct session *s);
void ids_give_up(struct session *s);

/* extended */
/* The other end broke the rules: the session ends with GOODBYE. */
void extended_condemn(struct session *s, enum wire_goodbye_reason reason,
		      const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void extended_pipe_over(struct session *s, struct pipe *p, bool broke,
			const char *why);
/* What @p brought ends it, and it alone; said seldom, since a peer can do it often. */
void extended_pipe_erred(struct session *s, struct pipe *p, const char *why);
/* Connections that it may have at a time, as both ends say. */
unsigned int extended_places(const struct session *s);
/* @fd is the pipe with this index from here on. NULL: no memory. */
struct pipe *extended_enter(struct session *s, unsigned int index,
			    uint32_t incarnation, struct conduit conduit);

/* joining */
void joining_init(struct extended *x);
void joining_stop(struct extended *x);
/* Pipes are lacking: that is told after a pause, if tries failed lately; or now. */
void joining_soon(struct extended *x);
void joining_now(struct extended *x);

/* arrivals */
bool arrivals_message(struct session *s, struct pipe *p,
		      const struct wire_msg *msg, uint64_t offset);
bool arrivals_expects(struct session *s, unsigned int pipe,
		      const struct wire_head *head, uint32_t *number);
/* What came for @ch out of order takes as little memory as it can. */
void arrivals_let_go(struct session *s, struct channel *ch);
/* @bytes of what is out of order go, whoever they are for. */
void arrivals_shed(struct session *s, size_t bytes);

/* windows */
void windows_init(struct extended *x);
void windows_stop(struct extended *x);
/* @ch has a connection from here on. */
void windows_begin(struct session *s, struct channel *ch);
/* Its connection listens no more. */
void windows_end(struct session *s, struct channel *ch);
/* @len bytes of @ch are due. False: more than it was granted. */
bool windows_spend(struct session *s, struct channel *ch, size_t len);
/* More waits for applications than before. */
void windows_queued(struct session *s);
/* The application of @c took something. */
void windows_taken(struct session *s, struct conn *c);

/* keeping */
void keeping_init(struct extended *x);
void keeping_fini(struct extended *x);
struct run *keeping_add(struct session *s, struct pipe *p, struct run *run);
void keeping_look(struct session *s, struct view *view);
/* It must wait with what would have to be kept. */
bool keeping_is_full(const struct extended *x);
void keeping_sends_again(struct session *s);
void keeping_pipe_over(struct extended *x, struct leg *leg);
void keeping_acked(struct session *s, const struct wire_ack *ack);

/* When the oldest was sent that is kept for a pipe; 0: nothing is. */
int64_t keeping_oldest(const struct leg *leg);
/* What is kept for a pipe goes again now; what it says of that comes too late. */
void keeping_suspect(struct extended *x, struct leg *leg);
/* The first run kept for a pipe that ends beyond @at in its stream. 0: none; else its end. */
uint64_t keeping_beyond(const struct leg *leg, uint64_t at);
/*
 * A copy of that run's messages that end beyond @at, of all where they were @sealed. Or
 * NULL without memory.
 */
struct run *keeping_copy(const struct leg *leg, uint64_t at, bool sealed);

/* suspects */
void suspects_init(struct extended *x);
void suspects_stop(struct extended *x);
/* Something is kept from now on. */
void suspects_watch(struct extended *x);
/* A pipe was dialled again, and welcomed. */
void suspects_probed(struct session *s);

/* roaming */
/* LP: how @fd's packets leave, for roaming to compare. */
void roaming_note(struct leg *leg, int fd);

/* tails */
void tails_init(struct extended *x);
void tails_stop(struct extended *x);
/* A new pipe has the place @leg. */
void tails_enter(struct leg *leg);
/* @run, which is kept, is about to be written to @p. */
void tails_written(struct session *s, struct pipe *p, const struct run *run);
/* Is a copy to be sent? */
bool tails_wait(struct session *s);
struct run *tails_copy(struct session *s);

/* flows */
void flows_init(struct extended *x);
/* How many there may be: of LP's, that it opens, or of RP's, that it takes. */
unsigned int flows_most(const struct session *s);
/* @c, opened by the other end, is a flow from here on. False: no memory. */
bool flows_begin(struct session *s, struct conn *c);
/* A DATAGRAM came; or one whose address is not of its kind. */
void flows_came(struct session *s, const struct wire_datagram *what);
void flows_bad(struct session *s, uint16_t id);
/* The other end will send no more on it. */
void flows_finished(struct conn *c);
/* Datagrams that wait are dropped, @bytes of them or all: of who has many. */
void flows_shed(struct session *s, size_t bytes);
void flows_look(struct session *s, struct view *view);
struct run *flows_frame(struct session *s, struct pipe *p, size_t bytes);

/* reverse */
/* The next that is to be said, which counts as said then. False: nothing is. */
bool reverse_next(struct extended *x, struct wire_ext *what);
/* @c is new, or about to be freed: it counts if it is of RP's ids. */
void reverse_begins(struct session *s, const struct conn *c);
void reverse_gone(struct session *s, struct conn *c);
/* LISTEN or LISTENING came; or RP opened @c. */
void reverse_listen(struct session *s, const struct wire_listen *what);
void reverse_listening(struct session *s, const struct wire_listening *what);
void reverse_open(struct session *s, struct conn *c);

/* control */
void control_init(struct extended *x);
void control_stop(struct extended *x);
/* Messages that count, of so many bytes. */
void control_came(struct session *s, size_t bytes);
bool control_send(struct session *s);
/* Asks a pipe whether it is still there, unless it owes an answer already. */
void control_ask(struct session *s, const struct pipe *p);
/* The same of all pipes that were not heard of lately. */
void control_ask_quiet(struct session *s);
void control_farewell(struct session *s);
/* Writes @what to @p at once. False: no memory. */
bool control_say(struct session *s, struct pipe *p,
		 const struct wire_ext *what);

#endif
