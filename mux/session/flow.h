/* SPDX-License-Identifier: MIT */
/*
 * A flow: a use of an id of the extension that carries datagrams, each by itself, in
 * no order, and none of them twice. It goes to one destination, or, if its
 * destination is of kind DESTINATION_NONE, to any: then each datagram says where
 * to, or where from.
 *
 *	LP	flow_open(), and flow_send() at once
 *	RP	role->open_flow(): flow_take() there; flow_answer() once there is a
 *		socket, or flow_refuse()
 *
 * It ends when either end calls flow_close(), when it is refused, or with its session. At
 * RP it also ends when nothing passed for FLOW_IDLE_S. ops->ended() is called once, for
 * every end but one's own; then the flow must not be used any more.
 *
 * A datagram waits in its flow's queue (extension/datagrams.h) for a pipe. It goes ahead
 * of all that connections send.
 */
#ifndef TM3_FLOW_H
#define TM3_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "../conn/conn.h"
#include "../wire/destination.h"

struct flow;
struct session;

struct flow_ops {
	/* A datagram came. @at: kind NONE, or where to (RP) or where from (LP). */
	void (*came)(struct flow *f, const struct destination *at,
		     const uint8_t *payload, size_t len);
	void (*ended)(struct flow *f);
	/*
	 * What flow_put() took could not be sent, because of errno @err, and is counted. The
	 * flow must not be ended here. May be NULL.
	 */
	void (*unsent)(struct flow *f, int err);
	/*
	 * RP: the path takes less in one packet than what flow_put() took; how much, the
	 * socket knows. @whole: what must not be fragmented. The flow must not be ended here.
	 * May be NULL.
	 */
	void (*narrow)(struct flow *f, bool whole);
	/* LP: flow_tell_mtu() was called at RP. The same is true. */
	void (*told_mtu)(struct flow *f, unsigned int mtu);
};

/* Why a flow's owner had to drop a datagram, for the counters. */
enum flow_loss {
	FLOW_DENIED,		/* by a rule */
	FLOW_UNSENT,		/* by its socket, or for want of an address */
	FLOW_NARROW,		/* by its socket: it must not be fragmented */
	FLOW_STRAY,		/* it is nobody's */
	FLOW_LARGE,
};

/* Did both ends of the session agree to carry flows, and is it up? */
bool session_carries_flows(const struct session *s);

/*
 * Are there as many as a session may have? One that ends makes room at once: before RP
 * knows of its end, which may take another pipe than the next OPEN. So RP takes
 * FLOWS_LEAVING times as many as LP opens.
 */
bool flows_are_full(const struct session *s);

/* LP: NULL where there is no room, or flows are not carried. */
struct flow *flow_open(struct session *s, const struct destination *to,
		       const struct flow_ops *ops, void *owner);

/* RP: @c is the one that role->open_flow() was called for. */
struct flow *flow_take(struct conn *c, const struct flow_ops *ops,
		       void *owner);
void flow_answer(struct flow *f);
/* It has ended, and ops->ended() is not called. */
void flow_refuse(struct flow *f, enum conn_end why);

/*
 * Queues a datagram for the other end. @at: where it came from (RP) or is to go (LP);
 * NULL where the flow has a destination. It may be dropped now or later, and is counted
 * then.
 */
void flow_send(struct flow *f, const struct destination *at,
	       const uint8_t *payload, size_t len);
void flow_lost(struct flow *f, enum flow_loss why);

/*
 * Has the flow a destination, and did both ends agree that LP says what must not be
 * fragmented, and RP what the path behind it takes? Then LP says so by @at: &flow_whole.
 */
bool flow_tells_mtu(const struct flow *f);
extern const struct destination flow_whole;
/* RP: did it come so? */
bool flow_is_whole(const struct flow *f, const struct destination *at);
/* RP: bytes of a packet, IP's header included. LP hears it at most once in FLOW_MTU_PAUSE_MS. */
void flow_tell_mtu(struct flow *f, unsigned int mtu);

/*
 * What came leaves by the owner's UDP socket, once all that came with it is known: a
 * datagram of @n parts. @to: NULL where @fd is connected, which stays open as long as
 * the flow is there.
 */
void flow_put(struct flow *f, int fd, const struct sockaddr_storage *to,
	      const struct iovec *parts, int n);
/* What flow_put() takes leaves from @source, an address of this host's, which stays. To be said first. */
void flow_leaves_from(struct flow *f, const struct sockaddr_storage *source);
/* What flow_put() takes from now on must not be fragmented; or may. */
void flow_put_whole(struct flow *f, bool whole);

/* It ends in order, and what waits in its queue is dropped. ops->ended() is not called. */
void flow_close(struct flow *f);

/*
 * Its owner takes so much more memory for it (or less): that is charged to its session, and
 * who has most may be ended with CONN_END_LIMIT.
 */
void flow_charge(struct flow *f, int64_t bytes);
size_t flow_charged(const struct flow *f);

/* Its owner has a socket for it now, which goes when the flow ends or is let go. */
void flow_took_socket(struct flow *f);
bool flow_has_socket(const struct flow *f);

void *flow_owner(const struct flow *f);
const struct destination *flow_to(const struct flow *f);
const struct conn *flow_conn(const struct flow *f);

#endif
