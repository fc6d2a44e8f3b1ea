/* SPDX-License-Identifier: MIT */
/*
 * A session: n pipes to one peer, and the connections they carry.
 *
 * This is where the rooms meet: pipes bring messages, the table says whose they
 * are, reorder queues put them in order, connections get the bytes; and the
 * other way round the scheduler picks, connections frame, pipes write. What is specific to
 * a proxy enters by session_role.
 *
 * A session ends as a whole: when it loses a pipe (baseline cannot know what
 * was lost with it), or on session_stop(). Then its connections are reset, the
 * pipes closed, and role->ended() is told, after the batch. Only what had ended
 * in order before, and is still being written out, goes on as an orphan.
 */
#ifndef TM3_SESSION_H
#define TM3_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "../base/list.h"
#include "../base/loop.h"
#include "../settings/refusal.h"
#include "../settings/settings.h"
#include "../wire/destination.h"
#include "figures.h"
#include "hoard.h"

struct conn;
struct dialect;
struct host;
struct log;
struct pipe;
struct session;
struct stats;

/* What all sessions of a process share. */
struct engine {
	struct loop *loop;
	const struct settings *settings;
	struct log *log;
	struct stats *stats;	/* or NULL */
	uint8_t *scratch;	/* what pipes read into */
	struct udp_out *udp_out;	/* datagrams of flows, on their way to sockets */
	struct list orphans;	/* connections that outlive their session */
	size_t orphaned;	/* bytes that wait in their queues */
	struct hoard hoard;	/* all that sessions hold for applications, */
	struct task relief;	/* where that is too much */
	size_t kept;		/* sent and not acknowledged, by all sessions, */
	struct task kept_relief;	/* where little is left for others */
	unsigned int conns;	/* of all sessions */
	unsigned int sessions;	/* numbered from 1 */
	struct list all;	/* sessions, the oldest first */
	struct list extended;	/* sessions that a HELLO can name */
	struct layers *layers;	/* for pipes of the extension; NULL: plain */
	struct sums gone;	/* of pipes, connections, sessions that are over */
	struct refusals refusals;	/* which limits were met, and by whom */
};

int engine_init(struct engine *engine, const struct settings *settings,
		struct log *log);
void engine_fini(struct engine *engine);
/*
 * What is kept, what is orphaned, or the number of connections has changed: the hoard
 * may have the rest of the memory, and who holds most of it sheds where that is less.
 */
void engine_balance(struct engine *engine);

/* Of @most pipes, how many may await their HELLO at once, by what their layers take. */
unsigned int engine_may_wait(const struct engine *engine, unsigned int most);

struct session_role {
	/*
	 * A SYN or OPEN arrived: connect @c to c->dst (conn_connecting(), conn_attach(),
	 * or conn_refuse()). NULL: this end opens connections itself, with
	 * session_open(), and what arrives is downlink.
	 */
	void (*open)(struct session *s, struct conn *c);
	/*
	 * RP, in the extension: an OPEN of a flow of datagrams arrived. Take it
	 * (flow_take()) or refuse it (conn_refuse()). NULL: none are taken.
	 */
	void (*open_flow)(struct session *s, struct conn *c);
	/*
	 * RP, in the extension: it shall listen on @at, an address, unless it does so
	 * already for @listener: see session_listening(). NULL: none is asked for.
	 */
	void (*listen)(struct session *s, uint16_t listener,
		       const struct destination *at);
	/*
	 * LP, in the extension: RP listens for @listener, on @port, or it does not, or
	 * no more: @result is an enum wire_listening_result. And @c came to a listener:
	 * c->dst says to which, and from whom. Connect it, as open() does. May be NULL.
	 */
	void (*listening)(struct session *s, uint16_t listener, uint8_t result,
			  uint16_t port);
	void (*accepted)(struct session *s, struct conn *c);
	/*
	 * LP, in the extension: RP answered @c's OPEN with @result, an enum
	 * wire_synack_result, and with WIRE_SYNACK_CONNECTED all is well. Else @c
	 * is reset next, unless its socket is not there yet: see session_ask().
	 * May be NULL.
	 */
	void (*answered)(struct session *s, struct conn *c, uint8_t result);
	/*
	 * LP, in the extension: pipes are lacking, see session_lacks(). May be NULL.
	 */
	void (*lacks)(struct session *s);
	/* One that was lacking is there, and RP has welcomed it. May be NULL. */
	void (*joined)(struct session *s);
	/*
	 * RP, in the extension: its last pipe is gone, and it is kept for a while. May
	 * be NULL.
	 */
	void (*alone)(struct session *s);
	/* See conn_ops.moved; @from is an enum conn_state. May be NULL. */
	void (*moved)(struct session *s, struct conn *c, int from);
	/* An id became free, or a connection went: there is room again. */
	void (*room)(struct session *s);
	/* It is over, and freed as soon as this returns. */
	void (*ended)(struct session *s);
};

/*
 * A session without pipes; @peer: as logs shall name the other end. Which pipes
 * it gets is a greeting's to say (greeting.h): session_add_pipe() for each, then
 * session_start(), or session_free() where it cannot start.
 */
struct session *session_new(struct engine *engine,
			    const struct dialect *dialect,
			    const struct session_role *role, void *owner,
			    const char *peer);
/*
 * Makes a pipe of a connected socket, which is the session's from here on, also
 * on failure. 0 or -ENOMEM and its like.
 */
int session_add_pipe(struct session *s, int fd);
/*
 * @p leaves the session, which goes on. It is freed after the batch. What was
 * under way on it is the dialect's to care for.
 */
void session_lose_pipe(struct session *s, struct pipe *p);
void session_start(struct session *s);

/* What it holds for applications counts there, too. */
void session_counts_in(struct session *s, struct hoard *h);
/*
 * What it is refused counts for whom @addr counts for (base/payer.h), as do refusals
 * that know no session. Else for the name of its peer.
 */
void session_pays_as(struct session *s, const struct sockaddr_storage *addr);
/* It met the limit @what: counts it, and says whether to log it. */
bool session_refuses(struct session *s, enum refusal what);
/* Its oldest connection that has a socket is reset; false: there is none. */
bool session_gives_up(struct session *s);
void session_free(struct session *s);

/*
 * Opens a connection for @fd, an application's accepted socket, to @to. Takes the
 * socket on success; -EAGAIN when no id or place is free, -EAFNOSUPPORT when the
 * other end cannot be told such a destination: a SYN can name IPv4 addresses
 * alone.
 */
int session_open(struct session *s, int fd, const struct destination *to);
/*
 * The same for an application that must hear first whether it worked. There is
 * no socket yet: role->answered() tells when to conn_attach() it, or that there will
 * be nothing to attach it to. c->asker is the caller's to use. conn_refuse() ends
 * it before, and tells RP. NULL when no id or place is free. In the extension only.
 */
struct conn *session_ask(struct session *s, const struct destination *to);
bool session_has_room(const struct session *s);
/*
 * Do its connections take as much memory as is left for those of all sessions? So one
 * session has a half of that, and each of n that want as many as they can get a part
 * in n + 1: who has few can always have another one.
 */
bool session_is_crowded(const struct session *s);
/* How long until an id is free, if all that are not in use must rest; else 0. */
int64_t session_next_id_in(const struct session *s);

/* Does it speak the extension? Then names and IPv6 can be asked for. */
bool session_is_extended(const struct session *s);
/*
 * LP, in the extension: @fd, a connected socket, becomes pipe @index, which
 * it lacks, once RP has welcomed it. @fd is the session's from here on. 0, or
 * -errno: that pipe was not lacking, or no memory.
 */
int session_join(struct session *s, unsigned int index, int fd);
/* Pipes that it should have, does not, and that do not join just now: so many, */
unsigned int session_lacks(const struct session *s);
/* and is this one of them? */
bool session_lacks_pipe(const struct session *s, unsigned int index);
/* Has it all pipes that it should have, each welcomed by RP? */
bool session_is_complete(const struct session *s);
/* In the extension: it has had no pipe for ALONE_SECONDS, and takes nobody. */
bool session_is_alone(const struct session *s);
/* Since when it has had no pipe; 0: it has one, or is not of the extension. */
int64_t session_alone_since(const struct session *s);
/*
 * LP, in the extension: RP knows it no more, or lets nobody go on with it from
 * the address that this host has now. Asked when it ended.
 */
bool session_is_unknown(const struct session *s);
/*
 * LP: addresses, routes or links of @host changed. In the extension pipes that went with
 * an address or another route are over, and dialled again at once; all others are
 * asked whether they are still there. In the baseline it is only said.
 */
void session_roam(struct session *s, const struct host *host);
/* False from its failure, or from session_stop(), to its end. */
bool session_is_up(const struct session *s);

/*
 * End it in order: connections are reset, pipes flushed and closed as soon
 * as the peer closed too, LINGER_MS at most; then role->ended().
 */
void session_stop(struct session *s, const char *why);

void *session_owner(const struct session *s);
const char *session_peer(const struct session *s);
const char *session_why(const struct session *s);	/* it ended */
unsigned int session_number(const struct session *s);
unsigned int session_pipes(const struct session *s);
/* That it has now, those included that are still being closed. */
unsigned int session_connections(const struct session *s);
struct engine *session_engine(const struct session *s);

/* A table of pipes and connections, for a person. */
void session_print(struct session *s, FILE *out);

#endif
