/* SPDX-License-Identifier: MIT */
/*
 * The inside of a session of the extension, for the files that are its parts: README.md here
 * says what each is about. What a part lends to the others stands below, under its name.
 *
 * Control is never queued. What has to be said is state (an offset, a flag), and
 * becomes a message when a pipe takes one; so no peer makes a queue grow.
 */
#ifndef TM3_EXTENDED_H
#define TM3_EXTENDED_H

#include "../base/route.h"
#include "../conn/channel.h"
#include "../extension/admission.h"
#include "../extension/again.h"
#include "../extension/kept.h"
#include "../extension/promptness.h"
#include "../extension/tally.h"
#include "../wire/wire_ext.h"
#include "greeting.h"
#include "reverse.h"
#include "session_inside.h"

/*
 * The last message that a pipe brought, where it and the next one may belong together: as long as
 * what was read has not come to its end.
 */
struct last {
	enum {
		LAST_ANY,
		LAST_OPEN,
		LAST_HINT,		/* the leg's, which the next one tells the use of */
	} what;
	uint16_t id;		/* of an OPEN, */
	uint32_t number;	/* as well */
};

/* What was known of a pipe when it was found silent. */
struct leg_silence {
	int64_t at;		/* 0: it was not yet */
	int64_t round_trip, patience;
	uint64_t until;		/* it lasts until so many bytes are acknowledged */
	bool of_path;		/* no pipe of its path was heard of */
	int64_t asked_at;	/* by PING, whether it is over */
};

/* A pipe's place: incarnations of the pipe with an index come and go. */
struct leg {
	uint32_t incarnation;	/* the present one, or the last */
	bool known;		/* there was one */
	uint8_t path;		/* that it is on; RP: was on the last time */
	struct greeting *joining;	/* LP: the next one awaits WELCOME */
	struct route route;	/* LP: of its packets, when it began */
	struct tally tally;	/* messages of it that count and were parsed, */
	uint64_t told;		/* and of them, as the last ACK said */
	struct kept kept;
	struct last last;
	struct wire_hint hint;	/* that is, or none */
	bool pong_due;
	struct wire_ping pong;
	bool ping_due, pinged;	/* PING is to be sent; was, without answer */
	uint64_t token;
	int64_t pinged_at;	/* PONG may stand behind other bytes, which come first */
	uint64_t heard;		/* the largest count that an ACK told, */
	int64_t progress_at;	/* and when it grew, or the pipe began */
	int64_t suspect_since;	/* 0: it is not */
	uint64_t suspect_at;	/* so many bytes its kernel had acknowledged then; UINT64_MAX: all */
	int64_t written_at;	/* the last message that counts, */
	bool left_at_once;	/* and the window allowed for it */
	uint64_t copied;	/* bytes of its stream up to here are copied */
	uint64_t twice_to;	/* of them, so far as copies were sent, not left to TCP */
	uint64_t doubted_at;	/* so many were acknowledged when it became doubtful */
	struct leg_silence silence;	/* that --reinject found, the last one */
	struct sample sample;	/* of how promptly messages are acknowledged */
};

/* What is known of a path of the session, beside its pipes. */
struct way {
	struct extended *x;
	struct timer lack_timer;	/* LP: to say that pipes are lacking */
	int64_t lack_pause;		/* before that is said again */
	int64_t ack_takes;		/* from sending to ACK, lately */
	int64_t probing_since;	/* LP: one pipe is dialled for all; 0: none */
	struct sockaddr_storage from;	/* LP: this host's, of the pipe that RP took last */
	bool down;		/* LP: it lost all pipes with its device or address */
	bool untold;		/* LP: no pipe is dialled before RP may have heard of it */
	bool due;		/* LP: PATH is to be sent, with this serial; */
	uint32_t serial;	/* RP: the last that came, or 0 */
};

/* What is to be said of a listener. */
struct listener_state {
	const struct destination *at;	/* LP */
	uint16_t port;			/* RP */
	uint8_t result;
};

struct sent_run;

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
	struct layers *layers;	/* of its pipes, as they were then; NULL: plain */
	struct admission admission;
	struct leg leg[PIPES_MAX];
	int64_t alone_since;	/* it has had no pipe; 0: it has */
	struct timer alone_timer;	/* the session's end then */
	struct way way[PATHS_MAX];
	uint32_t serial;		/* LP: of the last PATH */
	bool unknown;		/* LP: RP does not know it, or not from here */

	/* ids and their uses */
	struct channel *channel[WIRE_ID_MAX + 1];	/* those in use so far */
	struct slab room;	/* that they are made in */
	unsigned int channels;
	size_t remembered;	/* bytes of them, as told with inbound_charge() */
	struct list spare;	/* of own ids, between two uses, */
	struct list resting;	/* and those that may not be used yet, */
	unsigned int nresting;	/* so many, */
	struct timer rest_timer;	/* until then */
	uint16_t last_id;	/* own ids up to it have a channel */
	struct early_pool pool, pool_of_rp;	/* by who opens */
	struct reverse reverse;

	/* windows and hints */
	uint64_t promised;	/* bytes that the other end may send, */
	uint64_t idle;		/* and on ids without a connection */
	uint32_t window;	/* that connections begin with, where there is memory */
	struct list windows_due, hints_due;
	struct list hints_waiting;	/* that came, each beside a message that waits, */
	unsigned int nhints_waiting;	/* so many */
	int64_t hint_said_at;	/* that one was for nobody was logged */
	struct task hints_task;	/* what was read, and a leg's last, has come to its end */
	struct timer window_timer;
	struct task window_task;	/* where more waits than may */

	/* what is kept, and what of it goes again */
	uint64_t order;		/* of the last run that was kept for the first time */
	struct again again;	/* runs whose pipe has ended, or suspect */
	size_t kept;		/* bytes of memory, those of again included, */
	size_t cut;		/* and so many of chunks */
	size_t early_there;	/* what is out of order at the other end, by its last ACK, */
	uint64_t acked_us;	/* made at that time of its clock */
	struct list twins[PATHS_MAX];	/* what goes there as well, as it was sent, */
	struct list on_all[PATHS_MAX];	/* of connections that go over all, */
	struct sent_run *twin_of;	/* and what is about to */
	struct task unkept;	/* once a run had no memory to be kept */
	struct timer suspects_timer;	/* runs while anything is kept */

	/* tails, of which copies go */
	uint64_t sent;		/* bytes of messages that count, */
	uint64_t copies;	/* and of them, copies of tails */
	bool tails_due;		/* a copy is to be sent, */
	struct pipe *tail_of;	/* of what this one holds, NULL: of none, */
	uint64_t tail_from;	/* from there on, as the decision was told */
	bool doubts;		/* a pipe may be doubtful */
	struct promptness promptness;	/* of the other end, in acknowledging */
	struct timer tails_timer;	/* runs while something may be overdue */

	/* reinjecting */
	uint64_t reinjected;	/* bytes of sent, as --reinject has it, */
	bool owed;		/* the last ACK asks for a message */
	bool reinjects;		/* one may be due to go again */
	struct timer reinjects_timer;	/* runs while anything is kept */

	/* control */
	int64_t lost_at;	/* the last pipe ended; 0: none has */
	bool ack_due;
	bool ack_all;		/* of all pipes: one may have been lost */
	unsigned int ack_path;	/* that the last one went on */
	uint64_t unacked;	/* bytes of messages since the last ACK */
	struct timer ack_timer, ping_timer;

	/* flows of datagrams */
	struct list flows;	/* those with datagrams that wait, by turns */
	unsigned int nflows;	/* all there are, */
	size_t flows_bytes;	/* and what their queues take of memory */
	bool large_said;	/* that a datagram was dropped as no message can carry it */
	struct list narrow;	/* RP: those whose path's MTU is to be told */

	uint8_t goodbye;	/* the reason, when it comes to that */
};

/* ids */
void ids_init(struct extended *x);
/* They are LP's; until that is said, RP's. */
void ids_are_of_lp(struct extended *x);
struct channel *ids_channel(struct extended *x, uint16_t id);
/* The use of @ch may be over: its id can be used again then. */
void ids_settle(struct extended *x, struct channel *ch);
/* A connection with an id of its own, and nothing granted; or NULL. */
struct conn *ids_open(struct session *s);
/* Every connection has ended: they are forgotten, with all that came for them out of order. */
void ids_fini(struct extended *x);
/* As dialect.has_id, .ids and .give_up. */
bool ids_has_one(const struct session *s);
unsigned int ids_known(const struct session *s);
void ids_give_up(struct session *s);

/* extended */
/* The other end broke the rules: the session ends with GOODBYE. */
void extended_condemn(struct session *s, enum wire_goodbye_reason reason,
		      const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void extended_pipe_ended(struct session *s, struct pipe *p, bool broke,
			 const char *why);
/* What @p brought ends it, and it alone; said seldom, since a peer can do it often. */
void extended_pipe_erred(struct session *s, struct pipe *p, const char *why);
/* Connections that it may have at a time, as both ends say. */
unsigned int extended_places(const struct session *s);
/* @conduit is the pipe that @hello names from here on. NULL: no memory. */
struct pipe *extended_enter(struct session *s, const struct wire_hello *hello,
			    struct conduit conduit);

/* ways */
void ways_init(struct extended *x);
/* LP: the session begins with the pipe that @hello names. */
void ways_begin(struct extended *x, const struct wire_hello *hello);
/* Did both ends agree on several paths? */
bool ways_are_several(const struct extended *x);
/* Of the path that the pipe with this index is on; RP: was on the last time. */
struct way *ways_of(struct extended *x, unsigned int index);
unsigned int ways_number(const struct way *way);
struct path *ways_path(const struct way *way);
/* LP: @hello, of the pipe with this index, names its path. */
void ways_name(struct extended *x, unsigned int index,
	       struct wire_hello *hello);
/* @p came with @hello. */
void ways_enter(struct extended *x, struct pipe *p,
		const struct wire_hello *hello);
/* LP: RP is told of @way again, as that its pipes may come from another address. */
void ways_announce(struct way *way);
/* LP: it has no pipe and gets none for now, which RP is told; or it has one again. */
void ways_down(struct way *way);
void ways_up(struct way *way);
/* Is a PATH due? The next one, which counts as sent on @p then. */
bool ways_are_due(const struct extended *x);
bool ways_next(struct extended *x, const struct pipe *p,
	       struct wire_ext *what);
/* LP: it has no pipe to tell RP of anything: all are dialled. */
void ways_alone(struct extended *x);
/* RP: PATH came. */
void ways_came(struct session *s, const struct wire_path *said);

/* joining */
void joining_init(struct extended *x);
void joining_stop(struct extended *x);
/* Pipes of @way are lacking: that is told after a pause, if tries failed lately; or of all, now. */
void joining_soon(struct way *way);
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
/* @c, which has a channel, listens no more. */
void windows_end(struct session *s, struct conn *c);
/* A message of @ch has come, and is not yet counted. */
void windows_arrival(const struct session *s, struct channel *ch);
/* @len bytes of @ch are due. False: more than it was granted. */
bool windows_spend(struct session *s, struct channel *ch, size_t len);
/* More waits for applications than before. */
void windows_queued(struct session *s);
/* The application of @c took something. */
void windows_taken(struct session *s, struct conn *c);
/* A message of @ch came that waits for another one before it. */
void windows_early(struct session *s, struct channel *ch);

/* hints */
void hints_init(struct extended *x);
void hints_fini(struct extended *x);
/* SYNACK of @ch came: its HINT may have come before its OPEN was due. */
void hints_answered(struct session *s, struct channel *ch);
/* The next that is to be said, which counts as said then. False: none is. */
bool hints_next(struct extended *x, struct wire_ext *what);
/* OPEN came over the pipe of @leg. */
void hints_opened(struct session *s, struct leg *leg, uint16_t id,
		  uint32_t number);
/* HINT did, directly behind @before. */
void hints_came(struct session *s, struct leg *leg, const struct last *before,
		const struct wire_hint *said);
/* @msg did, directly behind the leg's HINT, and is about to be taken. */
void hints_followed(struct session *s, struct leg *leg,
		    const struct wire_msg *msg);
/* The pipe of @leg brings nothing more. */
void hints_pipe_ended(struct session *s, struct leg *leg);
/* Message @number of @ch, which waited, was due and is taken. */
void hints_due(struct session *s, struct channel *ch, uint32_t number);

/* keeping */
void keeping_init(struct extended *x);
void keeping_fini(struct extended *x);
/* Nothing is sent again: it is given back, except what lies in the pipes' queues. */
void keeping_let_go(struct extended *x);
struct run *keeping_add(struct session *s, struct pipe *p, struct run *run);
void keeping_look(struct session *s, struct view *view);
/* It must wait with what would have to be kept. */
bool keeping_is_full(const struct extended *x);
void keeping_sends_again(struct session *s, const struct run *run);
bool keeping_has_again(const struct extended *x);
void keeping_pipe_ended(struct extended *x, struct leg *leg);
void keeping_acked(struct session *s, const struct wire_ack *ack);

/* Bytes that may be kept beside what is, half of what is left. */
size_t keeping_room(const struct extended *x);
/* Chunks have so many @bytes more, or less. */
void keeping_cut(struct extended *x, int64_t bytes);

/* When the oldest was sent that is kept for a pipe; 0: nothing is. */
int64_t keeping_oldest(const struct leg *leg);
/* What is kept for a pipe goes again now; what it says of that comes too late. */
void keeping_suspect(struct extended *x, struct leg *leg);

/* duplicate */
/* The same messages in a run of its own; or NULL. */
struct run *duplicate_run(const struct run *run);
/*
 * The first run kept for a pipe that ends beyond @at in its stream. 0: none; else its end. And
 * when it was sent, 0 as well; and the paths that it is bound to.
 */
uint64_t duplicate_beyond(const struct leg *leg, uint64_t at);
int64_t duplicate_sent_at(const struct leg *leg, uint64_t at);
uint8_t duplicate_paths(const struct leg *leg, uint64_t at);
/*
 * A copy of that run's messages that end beyond @at, of all where they were @sealed. Or
 * NULL without memory.
 */
struct run *duplicate_missing(const struct leg *leg, uint64_t at, bool sealed);
/* Could @p take a copy? */
bool duplicate_may_go_by(const struct pipe *p);

/* cutting */
/* As dialect.frame. */
void cutting_frame(struct session *s, const struct next *next,
		   struct run *run);

/* twins */
void twins_init(struct extended *x);
/* Over so many paths may @run, which is about to be kept, go as well. */
unsigned int twins_paths(const struct extended *x, const struct run *run);
/* It is kept for @p as @sent. If it is what twins_copy() gave, as a twin of that. */
void twins_enter(struct extended *x, const struct pipe *p,
		 struct sent_run *sent);
/* It goes over no other path any more. */
void twins_leave(struct sent_run *sent);
void twins_look(struct extended *x, struct view *view);
/* For @p what goes over its path as well, to be kept next. NULL: no memory. */
struct run *twins_copy(struct session *s, const struct pipe *p);

/* suspects */
void suspects_init(struct extended *x);
void suspects_stop(struct extended *x);
/* Something is kept from now on. */
void suspects_watch(struct extended *x);
/* How long @p may keep silent: @least, or longer where acknowledgements take long. */
int64_t suspects_patience(struct extended *x, const struct pipe *p,
			  int64_t least);
/* A pipe of @way was dialled again, and welcomed. */
void suspects_probed(struct way *way);
/* The other end says that @path is off: its pipes are as good as dead. */
void suspects_off(struct session *s, const struct path *path);

/* roaming */
/* LP: how @fd's packets leave, for roaming to compare. */
void roaming_note(struct leg *leg, int fd);

/* tails */
void tails_init(struct extended *x);
void tails_stop(struct extended *x);
/* A new pipe has the place @leg. */
void tails_enter(struct leg *leg);
/* @run, which is kept, is about to be written to @p, in whose stream it ends at @end. */
void tails_written(struct session *s, struct pipe *p, const struct run *run,
		   uint64_t end);
/* Is a copy to be sent? @paths: bits, over these alone; 0: over any. */
bool tails_wait(struct session *s, uint8_t *paths);
struct run *tails_copy(struct session *s);
/* srtt + 4 rttvar, as tail.h takes it; 0: not known. */
int64_t tails_patience(const struct pipe *p);
/* Before that nothing of @p can be overdue. */
int64_t tails_look_after(const struct pipe *p);

/* reinjecting */
void reinjecting_init(struct extended *x);
void reinjecting_stop(struct extended *x);
/* A new pipe has the place @leg. */
void reinjecting_enter(struct leg *leg);
/* Something that is kept is about to be written to @p. */
void reinjecting_written(struct session *s, const struct pipe *p);
/* It came, and what it covers is kept still. */
void reinjecting_acked(struct session *s, const struct wire_ack *ack);
void reinjecting_look(struct session *s, struct view *view);
/* What is to be sent again, to be kept next. NULL: no memory. */
struct run *reinjecting_copy(struct session *s);

/* flows */
void flows_init(struct extended *x);
/* How many there may be: of LP's, that it opens, or of RP's, that it takes. */
unsigned int flows_most(const struct session *s);
/* @c, opened by the other end, is a flow from here on. False: no memory. */
bool flows_begin(struct session *s, struct conn *c);
/* A DATAGRAM came; or one whose address is not of its kind. */
void flows_came(struct session *s, const struct wire_datagram *what);
void flows_bad(struct session *s, uint16_t id);
/* RP: the next MTU that is to be told, which counts as told then. False: none is. */
bool flows_next_mtu(struct extended *x, struct wire_ext *what);
/* LP: TOO_BIG came. */
void flows_told_mtu(struct session *s, const struct wire_too_big *what);
/* The other end will send no more on it. */
void flows_finished(struct conn *c);

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
/* Asks, even if it owes an answer: the PING may be lost, and one that arrives shows TCP what was. */
void control_ask_again(struct session *s, const struct pipe *p);
/* As control_ask(), of all pipes that were not heard of lately. */
void control_ask_quiet(struct session *s);
void control_farewell(struct session *s);
/* Writes @what to @p at once. False: no memory. */
bool control_say(struct session *s, struct pipe *p,
		 const struct wire_ext *what);

#endif
