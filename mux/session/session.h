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

#include "../conn/hint.h"
#include "../settings/incident.h"
#include "../wire/destination.h"
#include "engine.h"

struct conn;
struct dialect;
struct host;
struct pipe;
struct session;

struct session_role {
	/*
	 * A SYN or OPEN arrived: connect @c to c->dst (conn_connecting(), conn_attach(),
	 * or conn_reset()). NULL: this end opens connections itself, with
	 * session_open(), and what arrives is downlink.
	 */
	void (*open)(struct session *s, struct conn *c);
	/*
	 * RP, in the extension: an OPEN of a flow of datagrams arrived. Take it
	 * (flow_take()) or refuse it (conn_reset()). NULL: none are taken.
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
	 * LP, in the extension: pipes of @path are lacking, see session_lacks(). May be
	 * NULL.
	 */
	void (*lacks)(struct session *s, unsigned int path);
	/* One that was lacking is there, and RP has welcomed it. May be NULL. */
	void (*joined)(struct session *s, unsigned int path);
	/*
	 * RP, in the extension: LP told of @path, whose pipes may come from another
	 * address from now on. May be NULL.
	 */
	void (*path)(struct session *s, unsigned int path);
	/*
	 * RP, in the extension: its last pipe is gone, and it is kept for a while. May
	 * be NULL.
	 */
	void (*alone)(struct session *s);
	/* See conn_ops.moved; @from is an enum conn_state. May be NULL. */
	void (*moved)(struct session *s, struct conn *c, int from);
	/*
	 * LP: what comes first on @c is in its socket, and was not read yet. Called once, for
	 * those that session_open() was asked to show so.
	 */
	void (*first_bytes)(struct session *s, struct conn *c);
	/* An id became free, or a connection went: there is room again. */
	void (*room)(struct session *s);
	/* It has ended, and is freed as soon as this returns. */
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

/* What waits for its applications is charged there, too. */
void session_counts_in(struct session *s, struct hoard *h);
/*
 * Of how much memory in all @layers, of the pipes of the only session, are such a part
 * that nothing else takes it.
 */
size_t session_memory_for(size_t layers);
/* What it takes of the loop's time is taken of @b. NULL: of a budget of its own, as before. */
void session_takes_time_of(struct session *s, struct budget *b);
/*
 * Its incidents count for whom @addr counts for (base/payer.h), as do those that know no
 * session. Else for the name of its peer.
 */
void session_pays_as(struct session *s, const struct sockaddr_storage *addr);
/* It met the limit @what, or did what is @what: counts it, and says whether to log it. */
bool session_notes(struct session *s, enum incident what);
/*
 * @c, which the other end asks for, gets no place: the caller refuses it, or what comes
 * for it. From here on it is charged to the session, until it is gone.
 */
void session_turn_away(struct session *s, struct conn *c);
void session_turned_away_gone(struct session *s);
/* Its oldest connection that has a socket is reset; false: there is none. */
bool session_gives_up(struct session *s);
void session_free(struct session *s);

/* Which paths a connection may use. */
struct bounds {
	uint8_t paths;		/* bits; 0: any */
	bool by_first_bytes;	/* these may say otherwise: role->first_bytes() */
};

/*
 * Opens a connection for @fd, an application's accepted socket, to @to. Takes the
 * socket on success; -EAGAIN when no id or place is free, -EAFNOSUPPORT when the
 * other end cannot be told such a destination: a SYN can name IPv4 addresses
 * alone. @bounds: NULL for none.
 */
int session_open(struct session *s, int fd, const struct destination *to,
		 const struct bounds *bounds);
/*
 * The same for an application that must hear first whether it worked. There is
 * no socket yet: role->answered() tells when to conn_attach() it, or that there will
 * be nothing to attach it to. c->asker is the caller's to use. conn_reset() ends
 * it before, and tells RP. NULL when no id or place is free. In the extension only.
 */
struct conn *session_ask(struct session *s, const struct destination *to);
/*
 * From here on @c's bytes go over @paths alone (bits; 0: any), both ways if the other end
 * can be told. Without any that works they wait, as those of a session without pipes.
 */
void session_bind(struct session *s, struct conn *c, uint8_t paths);
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
/* That its pipes have, those to come among them; or NULL. */
const struct layers *session_layers(const struct session *s);
/*
 * LP, in the extension: @fd, a connected socket, becomes pipe @index, which
 * it lacks, once RP has welcomed it. @fd is the session's from here on. 0, or
 * -errno: that pipe was not lacking, or no memory.
 */
int session_join(struct session *s, unsigned int index, int fd);
/* Pipes that it should have, does not, and that do not join just now: so many, */
unsigned int session_lacks(const struct session *s);
/* of these on @path, */
unsigned int session_lacks_on(const struct session *s, unsigned int path);
/* and is this one of them? */
bool session_lacks_pipe(const struct session *s, unsigned int index);
/* Has it all pipes that it should have on @path, each welcomed by RP? */
bool session_is_complete(const struct session *s, unsigned int path);
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
 * an address or another route are ended, and dialled again at once; all others are
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

/* What a session has on one of its paths. */
struct path_figures {
	unsigned int pipes;
	bool standby;		/* nothing new goes on it now */
	bool down;		/* LP: it lost all pipes with its device or address */
	double rtt_ms;		/* the least of its pipes; 0: it has none */
	size_t held;		/* bytes that its pipes hold, */
	uint64_t written;	/* and those they were given */
};

void session_look_at_path(struct session *s, unsigned int path,
			  struct path_figures *at);
/*
 * LP: how @path is used from now on, an enum wire_path_state. RP is told, and what is under
 * way on one that is off goes again on others.
 */
void session_use_path(struct session *s, unsigned int path, uint8_t state);

/* The connection with that id, or whose application is at @peer; NULL: there is none. */
struct conn *session_conn(const struct session *s, uint16_t id);
struct conn *session_conn_from(const struct session *s,
			       const struct sockaddr_storage *peer);
/*
 * Tells the other end @what of the bytes that it sends on @c, in place of what it was told
 * before. 0; -EPROTONOSUPPORT: the other end does not understand it; -ENOTCONN: nothing comes
 * on @c any more, or it is a flow; -EOVERFLOW: so many bytes cannot be said to remain; -ENOMEM.
 */
int session_hint(struct session *s, struct conn *c, const struct hint *what);
/* What is told of @c now; all zeros: nothing is. */
struct hint session_hinted(const struct conn *c);
/* LP: its urgency and paths are for what this end sends on @c, too. */
void session_steer(struct session *s, struct conn *c, const struct hint *what);

/* A table of pipes and connections, for a person. */
void session_print(struct session *s, FILE *out);

#endif
