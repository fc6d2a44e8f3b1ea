/* SPDX-License-Identifier: MIT */
/*
 * One relayed connection: a socket on one side, numbered messages on the other.
 *
 * Towards the pipes bytes stay in the socket until somebody sends them:
 * conn_frame() reads and frames in one go. From the pipes messages go through
 * the reorder queue (the session's doing) and arrive here in order, to be
 * written at once or to wait in a queue.
 *
 * The socket's states:
 *
 *	CONN_WAIT	no socket yet: messages came before their SYN, or the
 *			name of the other end is still being looked for
 *	CONN_CONNECTING	connect() is under way, or waits for its turn; what
 *			arrives is queued
 *	CONN_OPEN	both ways
 *	CONN_DRAINING	ended for the pipes; the queue is still being written
 *	CONN_HEEDING	all written, and our application ended first: whether its end is
 *			an orderly one depends on what may still come for it
 *	CONN_LINGERING	all written and FIN sent; waiting for the peer's FIN or
 *			the last acknowledgement, LINGER_MS at most
 *	CONN_CLOSED	no socket any more
 *
 * A flow of datagrams (conn->flow) is a connection that never has a socket: it stays in
 * CONN_WAIT until it is closed, and only opens, answers and ends by its numbers.
 *
 * The pipes' side ends once: conn->ended. Then nothing is read or delivered any
 * more; only what is queued still goes out. Baseline knows no half-open
 * connections, so a FIN in either direction is its end. In the extension each
 * direction ends by itself (in_ended, out_ended), and a reset ends both.
 *
 * Every socket carries linger 0 until its orderly end begins: if this process
 * dies, the peer sees a reset, not a clean end of truncated data.
 *
 * What all connections of an owner have in common is said once, in conn_owner. It learns
 * of them through conn_ops. A connection that has ended and is closed is given back with
 * ops->gone() after the batch, never earlier.
 */
#ifndef TM3_CONN_H
#define TM3_CONN_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "../base/list.h"
#include "../base/loop.h"
#include "../settings/path_bits.h"
#include "../wire/destination.h"
#include "../wire/wire.h"
#include "backlog.h"
#include "chunk.h"
#include "conn_owner.h"
#include "hint.h"
#include "outlook.h"
#include "reorder.h"
#include "waits.h"

struct channel;
struct flow;
struct run;

enum conn_state {
	CONN_WAIT,
	CONN_CONNECTING,
	CONN_OPEN,
	CONN_DRAINING,
	CONN_HEEDING,
	CONN_LINGERING,
	CONN_CLOSED,
};

/* How it ended, for the record. */
enum conn_end {
	CONN_END_NONE,
	CONN_END_LOCAL_FIN,
	CONN_END_LOCAL_RESET,
	CONN_END_PEER_FIN,
	CONN_END_PEER_RESET,
	CONN_END_REFUSED,
	CONN_END_UNREACHABLE,
	CONN_END_TIMEOUT,
	CONN_END_DENIED,
	CONN_END_NO_NAME,
	CONN_END_LIMIT,
	CONN_END_PROTOCOL,
	CONN_END_SESSION,
	CONN_END_SHUTDOWN,
	CONN_END_IDLE,
};

/*
 * Ten thousand of them may do nothing. So what a connection needs only while it has something
 * under way is made when it has, and until then the pointer to it is NULL.
 */
struct conn {
	struct conn_owner *owner;
	struct list member;	/* of the owner's list of all, and at last of those that are done */
	struct list place;	/* in owner->sockets until it is closed; while in_line, in the proxy's line */
	struct watch watch;
	struct timer timer;	/* connecting: its end; lingering: next look; half closed: asking */
	int64_t until;		/* draining: see conn_limit_time(), 0 for no limit; lingering: its end */

	uint16_t id;
	uint8_t state;		/* enum conn_state */
	uint8_t end;		/* enum conn_end */
	uint8_t fin_pending;	/* enum wire_reason to be framed last, or 0 */
	uint8_t urgency;	/* of what it sends: the higher, the more urgent */
	uint8_t paths;		/* bits: it goes over these alone; 0: over any */
	uint8_t slot;		/* the slab's */
	bool on_all : 1;	/* and over each of them, whichever is first */
	bool ended : 1;		/* for the pipes */
	bool ready : 1;		/* the owner was told so */
	bool readable : 1;	/* a read may bring something */
	bool read_on : 1;	/* a short read is not the end: a FIN follows,
				 * or a mark of urgent data was in the way */
	bool writable : 1;	/* a write may take something */
	bool bulky : 1;		/* the last read brought all that was asked for */
	bool syn_pending : 1;	/* SYN or OPEN is to be framed first */
	bool in_ended : 1;	/* the other end sends no more of it */
	bool out_ended : 1;	/* nor does this end: its FIN was framed */
	bool ends : 1;		/* nothing comes behind what is in its socket */
	bool eof : 1;		/* nothing comes: the end was read */
	bool shut : 1;		/* the socket was told that no more comes */
	bool ours : 1;		/* opened by this end */
	bool had_syn : 1;	/* the SYN was received, or is ours to send */
	bool complete : 1;	/* nothing of it is under way to us any more */
	bool lost_early : 1;	/* its early data was dropped: refuse its SYN */
	bool broken : 1;	/* a write failed: it will end as a reset */
	bool sent_late : 1;	/* the peer went on sending after its end */
	bool unanswered : 1;	/* it sent something, and nothing came since */
	bool lost : 1;		/* what came behind its end: it ends as a reset */
	bool told_lost : 1;	/* the owner was told of what the socket brought */
	bool queue_full : 1;	/* its backlog is above QUEUE_MAX */
	bool in_turn : 1;	/* the scheduler's */
	bool in_line : 1;	/* the proxy's: its connect() waits for its turn */
	bool turned_away : 1;	/* the owner's: it was refused for want of a place */
	bool unseen : 1;	/* the owner is to see its first bytes before they are read */
	uint32_t tx_number;	/* of its next message to the pipes; in the extension, the channel's */

	struct channel *channel;	/* in the extension: its id's */
	struct flow *flow;	/* it is one of datagrams; freed with it */
	void *asker;		/* the proxy's: who waits for its connect(), or
				 * called session_ask() */
	const struct destination *dst;	/* kept, see conn_set_destination(), */
	struct destination_place dst_place;	/* here if it is small */

	/* What it sends. */
	struct outlook *outlook;	/* on what is to come; NULL: nothing is known, see conn_outlook() */
	struct list turn, ahead;	/* the scheduler's */
	int64_t silent_since;
	uint32_t served;	/* bytes, since it was last silent for long, as far as las asks */
	int32_t deficit;	/* drr's, bytes */
	/* thin.h: its last message ends at this byte of the pipe with this serial; 0: none went yet. */
	uint64_t last_end;
	/* Its round began with what ends at this byte of this pipe, and had so much. */
	uint64_t round_end;
	uint32_t last_pipe, round_pipe;
	uint32_t in_round, in_last_round;

	/* What it receives. */
	struct reorder reorder;	/* from the pipes; in the extension, the channel's */
	struct backlog *backlog;	/* in order, to be written to the socket; NULL: nothing is */

	/* For its record. */
	struct waits *waits;	/* of messages that came early; or NULL */
	int64_t opened_at, connected_at;	/* ns, monotonic; 0 not yet */
	uint64_t tx_bytes, rx_bytes, tx_messages, rx_messages;
};

struct conn *conn_new(struct conn_owner *owner, uint16_t id);
void conn_free(struct conn *c);

/*
 * It is to go to @to, of which it keeps a copy (destination_keep()); until it is
 * told, to nowhere. 0 or -ENOMEM.
 */
int conn_set_destination(struct conn *c, const struct destination *to);

/*
 * The options of a connection's socket: linger 0 among them. A socket that listens hands
 * them on to those it accepts.
 */
void conn_prepare(int fd);

/*
 * Give it its socket (non-blocking; owned from here on, also on failure).
 * conn_attach(): one that has the options of conn_prepare().
 * conn_connecting(): a connect() is under way and may take @timeout_ns.
 */
int conn_attach(struct conn *c, int fd);
int conn_connecting(struct conn *c, int fd, int64_t timeout_ns);
/*
 * Its connect() waits for its turn, @timeout_ns at most; conn_connecting() is
 * called then.
 */
int conn_await_connect(struct conn *c, int64_t timeout_ns);

/*
 * Its owner looks at the first bytes from its socket before they are read: ops->filled() is
 * called first. To be said of one that was just attached.
 */
void conn_show_first(struct conn *c);

/*
 * Its SYN or OPEN goes now, and its socket is still to come; or the answer to an OPEN,
 * where it is to have no socket.
 */
void conn_ask(struct conn *c);
/* One without a socket ends in order, for its part. */
void conn_end(struct conn *c, enum conn_end why);

/*
 * Frame what it has for the pipes into @run (empty): the SYN, then bytes read
 * from the socket, @budget of them at most in messages of up to @payload, then
 * the FIN when the end is reached. Returns true when there may be more.
 */
bool conn_frame(struct conn *c, struct run *run, size_t budget, size_t payload);

/*
 * What is in its socket, from @least to @most bytes, becomes its chunk: conn_frame() takes the
 * front of that from now on, and conn_frame_last() one message from its end. Nothing is cut where
 * there is less, or something to be framed first.
 */
void conn_cut(struct conn *c, size_t least, size_t most, size_t payload);
bool conn_frame_last(struct conn *c, struct run *run);

/*
 * It waits for its SYN, REST_SECONDS at most; then what came is dropped, and
 * the SYN refused should it come in as much time again.
 */
void conn_await_syn(struct conn *c);

/*
 * If it still connects or drains after that time it is reset. It must be over,
 * and this is called once.
 */
void conn_limit_time(struct conn *c, int64_t ns);

/* It is in line no more. */
void conn_leave_line(struct conn *c);

/* In order from the pipes: bytes, or the end of them. */
void conn_deliver(struct conn *c, struct iovec *iov, int n, size_t len);
void conn_finish(struct conn *c, enum wire_reason reason);

/*
 * End it from here: the socket is reset, and the other end told by a FIN 0x99
 * unless it has ended already. conn_abort() does not tell.
 */
void conn_reset(struct conn *c, enum conn_end why);
void conn_abort(struct conn *c, enum conn_end why);

/*
 * For conn_frame(), which has a file of its own. The FIN is on its way, so the
 * connection has ended, the socket perhaps not; or there is nothing to send.
 */
void conn_fin_framed(struct conn *c, enum wire_reason reason);
void conn_idle(struct conn *c);

/* It may send more bytes than before. */
void conn_credited(struct conn *c);

/* It has bytes to send, and may send none of them. */
bool conn_starves(const struct conn *c);

/*
 * @msg came for it, though its application ended it before. Bytes: they are
 * lost, so it shall not see an orderly end.
 */
void conn_heed(struct conn *c, const struct wire_msg *msg);

/* Count what is in its socket, and look what is known of the bytes to come. */
void conn_measure(struct conn *c);
/* Bytes came from its application, which may be through only when it was silent for a while. */
void conn_wrote(struct conn *c, int64_t now);
/* What it sends may be HTTP answers, which say how large they are. To be said before any is. */
void conn_read_sizes(struct conn *c);
/* For conn_frame(): @len bytes from its socket, the first in @iov, were framed. */
void conn_passes(struct conn *c, const struct iovec *iov, int n, size_t len);
/* The same: its socket ended in order. */
void conn_size_ends(struct conn *c);

/* Bytes that wait for its application. */
static inline size_t conn_queued(const struct conn *c)
{
	return c->backlog ? c->backlog->bytes.len : 0;
}

/* Bytes that came for its application and wait no more. */
static inline uint64_t conn_taken(const struct conn *c)
{
	return c->rx_bytes - conn_queued(c);
}

/* What waits for it in @q, the order of its messages, will not be taken. */
static inline void conn_waits_in_vain(struct conn *c, const struct reorder *q)
{
	if (c->owner->records)
		waits_dropped(&c->waits, q);
}

/* May its bytes go over path @number? */
static inline bool conn_may_use(const struct conn *c, unsigned int number)
{
	return path_bits_have(c->paths, number);
}

/* What is known of the bytes that it has to send. */
static inline const struct outlook *conn_outlook(const struct conn *c)
{
	return c->outlook ? c->outlook : &outlook_none;
}

/* For who knows something. NULL: no memory. */
struct outlook *conn_outlook_new(struct conn *c);
void conn_outlook_free(struct conn *c);

/* So many bytes remain of what it sends; 0: nobody knows. */
void conn_tell_size(struct conn *c, uint64_t bytes);

/* Bytes of its chunk that are not sent yet. */
static inline uint64_t conn_cut_left(const struct conn *c)
{
	const struct chunk *chunk = conn_outlook(c)->chunk;

	return chunk ? chunk_left(chunk) : 0;
}

/* Those and what waits in its socket, as far as that was measured. */
static inline uint64_t conn_waiting(const struct conn *c)
{
	uint64_t waiting = hint_left(conn_outlook(c)->ready_to, c->tx_bytes);
	uint64_t cut = conn_cut_left(c);

	return waiting < cut ? cut : waiting;	/* it came since it was measured */
}

/*
 * Bytes of what it sends that remain, where that is certain or was told: its end was seen, or
 * its size is known. What waits in its socket remains whatever was told. UINT64_MAX: nobody
 * knows how many.
 */
static inline uint64_t conn_size(const struct conn *c)
{
	uint64_t told = hint_left(conn_outlook(c)->told_to, c->tx_bytes);
	uint64_t waiting = conn_waiting(c);

	if (conn_outlook(c)->ready_to && c->ends)
		return waiting;
	if (!told)
		return UINT64_MAX;
	return told > waiting ? told : waiting;
}

/*
 * The same, and where the size is not known, as far as bytes came: an application that writes
 * more than the network takes is seen by what waits. UINT64_MAX: it was never measured, or its
 * socket is so full that its application may be waiting with more.
 */
static inline uint64_t conn_left(const struct conn *c)
{
	uint64_t size = conn_size(c), waiting = conn_waiting(c);
	const struct outlook *o = conn_outlook(c);

	if (size < UINT64_MAX)
		return size;
	return o->ready_to && waiting < o->brim + conn_cut_left(c) ?
		waiting : UINT64_MAX;
}

/* Bytes of its chunk, those that were sent among them. */
static inline size_t conn_chunk_size(const struct conn *c)
{
	const struct chunk *chunk = conn_outlook(c)->chunk;

	return chunk ? chunk->size : 0;
}

/* Drop what came out of order. */
void conn_drop_early(struct conn *c);

const char *conn_end_name(enum conn_end end);
const char *conn_state_name(enum conn_state state);

#endif
