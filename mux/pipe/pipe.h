/* SPDX-License-Identifier: MIT */
/*
 * One pipe: a long-lived stream socket that carries messages. What it is made
 * of, and so how bytes become messages, is its carrier's.
 *
 * In: ops->readable() says that there is something to read, and pipe_read()
 * reads it: bytes become messages, given to ops->message() where they lie in
 * the shared read buffer. What comes next is known as soon as its header was
 * read. Out: runs, written in the order they came; what the socket does not
 * take stays here.
 *
 * How much a pipe takes is the binding. Late: nothing while a run waits, and
 * no more unsent bytes in the socket than its allowance, a few milliseconds' worth
 * of its rate. Early: as much as the socket takes, and app_buffer bytes more.
 */
#ifndef TM3_PIPE_H
#define TM3_PIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/list.h"
#include "../base/loop.h"
#include "../settings/settings.h"
#include "../wire/run.h"
#include "../wire/wire.h"
#include "acks.h"
#include "carrier.h"
#include "conduit.h"
#include "gathering.h"
#include "partial.h"

struct path;
struct pipe;

struct pipe_ops {
	/*
	 * One message, framing sound. @offset: of its first byte in the pipe's
	 * stream. Returns false to stop reading (the pipe may be gone).
	 */
	bool (*message)(struct pipe *p, const struct wire_msg *msg,
			uint64_t offset);
	/*
	 * Something can be read, or its end: call pipe_read(), now or later. The
	 * loop says so again as long as that is so.
	 */
	void (*readable)(struct pipe *p);
	/*
	 * It cannot be read on. @what it brought, and where and how that is wrong
	 * in @detail.
	 */
	void (*broken)(struct pipe *p, const char *what, const char *detail);
	/* The other end closed it (0) or it failed (-errno). */
	void (*ended)(struct pipe *p, int err);
	/* It was full and may take something again. */
	void (*writable)(struct pipe *p);
	/*
	 * A run that pipe_ask() was called for was acknowledged, @at by
	 * loop_clock().
	 */
	void (*acked)(struct pipe *p, const struct ack_asked *what,
		      int64_t at);
	/* Bytes under way on its path now: some of such a run left that had waited in its socket. */
	size_t (*in_flight)(const struct pipe *p);
};

struct sctp_sent;

struct pipe_info {		/* as the kernel says */
	double rtt_ms, rttmin_ms;
	double patience_ms;	/* srtt + 4 rttvar; 0: not known */
	double unheard_ms;	/* since the last acknowledgement */
	double rate;		/* bytes a second */
	uint32_t cwnd, mss;
	uint32_t retransmits;	/* segments, or SCTP's chunks of data, */
	uint64_t segments;	/* of all that were sent */
	bool timed_out;		/* retransmission is by its timer, and nothing was acknowledged since */
	uint32_t subflows;	/* MPTCP: 0 when it fell back to TCP */
	size_t unsent, in_flight;
	size_t astray;		/* not acknowledged, yet not under way */
	size_t stuck;		/* unsent, though nothing is in flight */
	size_t unfilled;	/* what segments in flight could carry more: windows count segments */
	size_t space;		/* early: bytes that its socket takes, about */
};

/* What the pipes of a session share. */
struct pipe_shared {
	struct loop *loop;
	const struct settings *settings;
	struct run_pool pool;
	uint8_t *scratch;	/* what all read into, one after another */
	size_t scratch_size;
	/*
	 * So many bytes of it are in use: a read begins behind them, and
	 * moves the mark behind its own. Who needs them no longer sets it to 0.
	 */
	size_t scratch_used;
	bool large;		/* data of a connection may make messages of WIRE_LARGE_MAX */
	struct gathering gathering;
};

/* The largest message that may come on its pipes, or go. */
static inline size_t pipe_largest(const struct pipe_shared *shared)
{
	return shared->large ? WIRE_LARGE_MAX : WIRE_MESSAGE_MAX;
}

enum {
	PIPE_MARKS = 64,
	PIPE_FAST = 32 * 1024,	/* an allowance: from here on messages are full-sized */
};

struct pipe {
	const struct pipe_ops *ops;
	void *owner;
	struct pipe_shared *shared;
	const struct settings *settings;
	struct loop *loop;
	struct watch watch;
	enum transport transport;
	const struct carrier *carrier;
	struct sctp_sent *sctp;	/* the carrier's */
	int fd;
	struct layer *layer;	/* of its conduit; NULL: bytes go as they are */
	/* So many runs, the first ones, the layer has made records of, and of so many bytes. */
	unsigned int sealed;
	size_t sealed_len;
	/*
	 * SCTP: why it has ended, as a write was told or a look has found; 0: not known. The kernel
	 * tells whoever asks first, and it is for reading to say, behind what came before. Poll may
	 * say nothing of it.
	 */
	int end_error;
	struct task unpolled;	/* the layer has what can be read, or it has ended */
	struct path *path;	/* that it is on */
	unsigned int index;	/* in its session */
	uint32_t serial;	/* there, too: no two pipes have the same */
	struct list lost;	/* the owner's, of those to be freed */

	struct partial partial;	/* a message of which more is to come */
	uint32_t ppid;		/* SCTP: that of the message that came last */
	bool paused;

	struct run *queue, **queue_end;
	size_t queued;		/* bytes in it */
	unsigned int gathered;	/* runs in it; 0: what is in it waits for the socket */
	bool of_conns;		/* some of these are connections' */
	struct list gathering;	/* the session's, of those that have gathered something */
	bool wanted;		/* tell when it may take something again */
	bool tells;		/* the socket reports that unsent fell to the allowance */
	bool is_short;		/* there was no memory for what it was given last */
	struct timer look_again;	/* where nobody tells */
	struct acks acks;
	bool asking;		/* the next run shall report its end */
	bool asking_clear;	/* nothing is in front of it */
	size_t asking_held;	/* by all pipes, it included */
	size_t asking_len;	/* by it alone */

	bool prompt;		/* TCP: what comes alone is acknowledged in the same batch */
	struct passing *passing;	/* on its path, or NULL */
	struct {
		struct task task;
		uint64_t sent;	/* tx_bytes as it came: what is sent behind it acknowledges it */
	} owed;
	bool in_order;		/* SCTP: no message may overtake another yet */
	bool standby;		/* it carries nothing new for now */
	bool relieved;		/* what is under way on it goes on others, too */
	bool overdue;		/* its last messages are: it takes no copies, */
	bool doubtful;		/* nor anything else, until one of them is acknowledged */
	size_t allowance;	/* late: unsent bytes it may have */
	size_t lowat;		/* TCP_NOTSENT_LOWAT as set */
	int64_t looked_at;	/* when info was fetched */
	struct {
		uint64_t bytes;	/* tx_bytes, all of which a look saw acknowledged */
		bool told;	/* info is as of then */
	} idle;
	int64_t waiting_since;	/* seen with bytes to be acknowledged */
	struct pipe_info info;

	int64_t heard_at;	/* something came */
	/* tx_bytes: those of the socket, so with what the layer adds. */
	uint64_t tx_bytes, rx_bytes, tx_messages, rx_messages;
	bool rx_small;		/* the last messages that came were small, or none came yet */
	size_t rx_most;		/* bytes to be read at once where others wait */
	uint64_t tx_control;	/* messages of no connection, of those sent, */
	uint64_t tx_joined;	/* and others that went in one segment with those before */
	uint64_t tx_acks, tx_ack_bytes;	/* of these ACKs, and their bytes */
	uint64_t tx_copies;	/* messages that were overdue on another */
	struct {
		uint64_t sent, again;	/* segments that losses were judged by */
	} judged;
	/* So much of it had been written when the session had sent so much. */
	struct pipe_mark {
		uint64_t bytes, total;
	} marks[PIPE_MARKS];
	unsigned int first_mark, nmarks;
	struct pipe_mark passed;	/* the last one acknowledged */
};

/*
 * Takes over @conduit, whose socket is set up here (cc, options, binding). What
 * it is of a session, its index, is given to it by whoever takes it in. NULL: the
 * conduit is still the caller's.
 */
struct pipe *pipe_new(struct pipe_shared *shared, const struct pipe_ops *ops,
		      void *owner, struct conduit conduit);
void pipe_free(struct pipe *p);		/* resets it unless pipe_shut() came first */

/* Bytes it would take now, as one run or less; 0 when it is blocked. */
size_t pipe_room(struct pipe *p);

/* The largest payload that a message on it should have. */
size_t pipe_payload(const struct pipe *p);

/*
 * The next run, of @len bytes, is to report its acknowledgement (ops->acked()), with what all
 * pipes held @before it, and when it left, should it have to wait in its socket. Does nothing
 * where the kernel reports no such thing.
 */
void pipe_ask(struct pipe *p, size_t before, size_t len);

/*
 * Bytes that it holds: waiting for the socket, unsent, in flight. What was stuck behind a closed
 * window when it was looked, and the queue that waits for the socket behind those bytes, delay
 * this pipe, and shall no other.
 */
static inline size_t pipe_held(const struct pipe *p)
{
	return p->info.unsent + p->info.in_flight - p->info.stuck +
	       (p->info.stuck ? 0 : p->queued);
}

/* Bytes given to it that the other end's kernel has not acknowledged yet. */
static inline uint64_t pipe_outstanding(const struct pipe *p)
{
	return p->queued + p->info.unsent + p->info.in_flight + p->info.astray;
}

/* Bytes given to it that the other end's kernel has acknowledged. */
static inline uint64_t pipe_arrived(const struct pipe *p)
{
	uint64_t outstanding = pipe_outstanding(p), all = p->tx_bytes + p->queued;

	return outstanding < all ? all - outstanding : 0;
}

/*
 * Where in the stream of its socket @len bytes end that it is given now, at the least: of what
 * waits it is not known yet how many records it becomes.
 */
static inline uint64_t pipe_end_of(const struct pipe *p, size_t len)
{
	return p->tx_bytes + layer_len(p->layer, p->queued + len);
}

/* Does something wait until its socket takes it? */
static inline bool pipe_is_blocked(const struct pipe *p)
{
	return p->queue && !p->gathered;
}

/* It has something that is about to be written, and in the same segment there is room for more. */
static inline bool pipe_gathers_more(const struct pipe *p)
{
	return p->gathered && p->queued < WIRE_MESSAGE_MAX &&
	       layer_len(p->layer, p->queued) < p->info.mss;
}

/*
 * A receiver acknowledges two segments at once, one of its own only after some
 * time, in which it counts as in flight. So the second follows the first. What an end
 * says of the session itself fills no segment, and is no first; what goes in one segment is one.
 */
static inline bool pipe_has_half_a_pair(const struct pipe *p)
{
	return (p->tx_messages - p->tx_control - p->tx_joined) % 2 &&
	       p->info.in_flight + p->info.unsent;
}

/* Would so many bytes leave at once? As far as the window goes. */
static inline bool pipe_has_window(const struct pipe *p, size_t bytes)
{
	return pipe_held(p) + p->info.unfilled + bytes <=
	       (size_t)p->info.cwnd * p->info.mss;
}

/* Would a segment written now leave at once? */
static inline bool pipe_is_clear(const struct pipe *p)
{
	return pipe_has_window(p, p->info.mss) && !p->info.unsent && !p->queued;
}

/*
 * Write @run or queue what is left of it; the run is the pipe's from here, until it
 * is written if it is kept. While the pipes gather, small runs are gathered and written
 * together: when they are a segment, when something larger follows, or by pipe_flush().
 */
void pipe_send(struct pipe *p, struct run *run);
void pipe_flush(struct pipe *p);

/* What waits for the socket will not be written: a part of it may have been. */
void pipe_drop_queue(struct pipe *p);

/* Shall ops->writable() be called once it can take something? */
void pipe_want(struct pipe *p, bool wanted);

/*
 * Reads up to @most bytes (SCTP: up to a few dozen messages) into the shared buffer, behind
 * what of it is in use; as many and the size of a message must be free there. Returns how many
 * came; @most if there may be more. ops->ended() or ops->broken() may be called meanwhile.
 */
size_t pipe_read(struct pipe *p, size_t most);

/* The bytes that came and were not read. */
size_t pipe_unread(const struct pipe *p);

/* The message that comes next on it. False: its header was not read yet. */
bool pipe_head(const struct pipe *p, struct wire_head *head);

/* @paused: ops->readable() is called for a socket that is at its end, and for no other. */
void pipe_pause(struct pipe *p, bool paused);

/*
 * Bring info and the allowance up to date; cheap when done lately, and for nothing when
 * nothing can be new: all was acknowledged, and nothing was written since.
 */
void pipe_look(struct pipe *p, int64_t now);
void pipe_look_closely(struct pipe *p, int64_t now);

/*
 * For a look every few seconds: has the other end, with bytes sent to it, not
 * acknowledged anything for @limit? Keepalive asks only where all is
 * acknowledged, and retransmission gives up after a quarter of an hour.
 * (TCP_USER_TIMEOUT would also hit a peer that answers but pauses.)
 */
bool pipe_is_unheard(struct pipe *p, int64_t now, int64_t limit);

/* What -errno, as ops->ended() is given it, means. */
const char *pipe_failure(const struct pipe *p, int err);

/*
 * Nothing is read from it or written to it any more, and no op is called. It can
 * be freed once no op of it is running.
 */
void pipe_forsake(struct pipe *p);

/* No more from this end: FIN behind what is written. */
void pipe_shut(struct pipe *p);

/*
 * Do messages of a connection arrive on it in the order in which they were
 * sent? Nothing else tells the owners of an id apart so well.
 */
static inline bool pipe_keeps_order(const struct pipe *p)
{
	return p->transport != TRANSPORT_SCTP;
}

/* For carriers. So much more of @run, which is in the queue, was written. */
static inline void pipe_wrote(struct pipe *p, struct run *run, size_t bytes)
{
	run->sent += bytes;
	p->queued -= bytes;
}

/*
 * For carriers. All that was written to the socket is acknowledged. @told: so it was
 * when all that info has was asked for.
 */
void pipe_idles(struct pipe *p, bool told);

/* For carriers. One message came; false: stop reading. */
bool pipe_give(struct pipe *p, const struct wire_msg *msg, uint64_t offset);
/* For carriers. It ended, in order (0) or by -errno. */
void pipe_end(struct pipe *p, int err);
/*
 * For carriers. Its framing is broken: by a length that no message can have, or as @what says,
 * by one that is not the length of what came.
 */
void pipe_break(struct pipe *p, const struct wire_msg *msg, uint64_t offset);
void pipe_tear(struct pipe *p, const char *what, uint64_t offset);

#endif
