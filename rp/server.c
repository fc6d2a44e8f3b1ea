/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "server.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../mux/base/log.h"
#include "../mux/base/seldom.h"
#include "../mux/base/sock.h"
#include "../mux/conn/conn.h"
#include "../mux/session/greeting.h"
#include "access.h"

enum { CONN_TEXT = 80 };

/* A local proxy that has its session. */
struct guest {
	struct server *server;
	struct list member;
	struct session *session;
	bool local;		/* it came over loopback */
};

/* --- connections to servers --- */

/* "session 1: connection 7 to 192.0.2.1:80", for a line about it. */
static const char *conn_text(const struct session *s, const struct conn *c,
			     char text[CONN_TEXT])
{
	snprintf(text, CONN_TEXT, "session %u: connection %u to %u.%u.%u.%u:%u",
		 session_number(s), c->id, c->dst[0], c->dst[1], c->dst[2],
		 c->dst[3], c->dst_port);
	return text;
}

/*
 * What a failed socket() or connect() means. EPERM and EACCES come from a local
 * packet filter, so the destination counts as unreachable.
 */
static enum conn_end end_of(int err)
{
	if (sock_is_shortage(err))
		return CONN_END_LIMIT;
	switch (err) {
	case ECONNREFUSED:
		return CONN_END_REFUSED;
	case ETIMEDOUT:
		return CONN_END_TIMEOUT;
	case EAGAIN:
	case EADDRNOTAVAIL:
		return CONN_END_LIMIT;
	default:
		return CONN_END_UNREACHABLE;
	}
}

/* While a shortage lasts it meets every connection, so it is logged seldom. */
static void say_short(struct session *s, const struct conn *c, int err)
{
	struct guest *guest = session_owner(s);
	struct log *log = session_engine(s)->log;
	char text[CONN_TEXT];

	if (!seldom(&guest->server->said_at, session_engine(s)->loop))
		return;
	conn_text(s, c, text);
	if (err == EMFILE)
		log_warn(log, "%s and others were refused: no descriptor is left; "
			 "more: ulimit -n (now %lu)", text, sock_limit());
	else if (err == EADDRNOTAVAIL || err == EAGAIN)
		log_warn(log, "%s and others were refused: no local port is left",
			 text);
	else
		log_warn(log, "%s and others were refused: %s", text, strerror(err));
}

static void cannot_connect(struct session *s, struct conn *c, int err)
{
	enum conn_end end = end_of(err);
	char text[CONN_TEXT];

	if (end == CONN_END_LIMIT)
		say_short(s, c, err);
	else
		log_debug(session_engine(s)->log, "%s: %s",
			  conn_text(s, c, text), strerror(err));
	conn_refuse(c, end);
}

/* A socket on its way to the connection's destination, or -errno. */
static int dial(const struct conn *c)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(c->dst_port),
	};
	int fd, err;

	memcpy(&to.sin_addr, c->dst, sizeof(c->dst));
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&to, sizeof(to)) ||
	    errno == EINPROGRESS)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static void server_syn(struct session *s, struct conn *c)
{
	struct guest *guest = session_owner(s);
	const struct options *options = guest->server->options;
	char why[ACCESS_WHY], text[CONN_TEXT];
	int fd, err;

	if (!access_reaches(&options->access, c->dst, guest->local, why)) {
		log_warn(session_engine(s)->log, "%s denied: %s",
			 conn_text(s, c, text), why);
		conn_refuse(c, CONN_END_DENIED);
		return;
	}
	fd = dial(c);
	err = fd < 0 ? fd : conn_connecting(c, fd, options->connect_timeout);
	if (err)
		cannot_connect(s, c, -err);
}

/* --- sessions --- */

static void finish_if_done(struct server *s)
{
	if (s->stopping && !s->sessions)
		loop_stop(s->engine->loop);
}

static void server_ended(struct session *session)
{
	struct guest *guest = session_owner(session);
	struct server *s = guest->server;

	log_info(s->engine->log, "session %u of %s ended: %s",
		 session_number(session), session_peer(session),
		 session_why(session));
	list_del(&guest->member);
	free(guest);
	s->sessions--;
	finish_if_done(s);
}

static const struct session_role role = {
	.syn = server_syn,
	.ended = server_ended,
};

static bool lobby_room(struct lobby *l)
{
	struct server *s = container_of(l, struct server, lobby);

	return s->sessions < s->options->max_sessions;
}

static void reset_all(const int *fds, unsigned int n)
{
	while (n)
		sock_reset(fds[--n]);
}

static struct guest *guest_new(struct server *s,
			       const struct sockaddr_storage *peer)
{
	struct guest *guest = calloc(1, sizeof(*guest));

	if (!guest)
		return NULL;
	guest->server = s;
	guest->local = addr_is_loopback(peer);
	list_add_tail(&s->guests, &guest->member);
	s->sessions++;
	return guest;
}

static void guest_free(struct guest *guest)
{
	guest->server->sessions--;
	list_del(&guest->member);
	free(guest);
}

static void lobby_complete(struct lobby *l, const struct sockaddr_storage *peer,
			   const int *fds, unsigned int n)
{
	struct server *s = container_of(l, struct server, lobby);
	struct log *log = s->engine->log;
	char host[ADDR_TEXT];
	struct guest *guest;

	addr_host(peer, host);
	guest = guest_new(s, peer);
	if (!guest) {
		reset_all(fds, n);
		log_warn(log, "%u pipes from %s were reset: %s", n, host,
			 strerror(ENOMEM));
		return;
	}
	guest->session = greet_baseline(s->engine, &role, guest, host, fds, n);
	if (!guest->session) {
		guest_free(guest);
		log_warn(log, "%u pipes from %s were reset: no session could "
			 "be made of them", n, host);
		return;
	}
	log_info(log, "session %u: %u pipe%s from %s",
		 session_number(guest->session), n, n == 1 ? "" : "s", host);
}

static const struct lobby_ops lobby_ops = {
	.room = lobby_room,
	.complete = lobby_complete,
};

/* --- the server as a whole --- */

static const char *hint(int err)
{
	if (err == EADDRINUSE)
		return "; is another rp running? --listen chooses another port";
	if (err == EADDRNOTAVAIL)
		return "; --listen wants an address of this host";
	if (err == EACCES)
		return "; ports below 1024 are for root";
	if (err == EMFILE)
		return "; more descriptors: ulimit -n";
	return "";
}

/* " over sctp", for a line about pipes of that @kind. */
static const char *over_transport(enum transport kind)
{
	switch (kind) {
	case TRANSPORT_MPTCP:
		return " over mptcp or tcp";
	case TRANSPORT_SCTP:
		return " over sctp";
	case TRANSPORT_TCP:
		break;
	}
	return "";
}

static int listen_for(struct server *s, enum transport kind,
		      const struct sockaddr_storage *addr, socklen_t len)
{
	char text[ADDR_TEXT];
	int err = lobby_open(&s->lobby, kind, addr, len);

	if (err)
		log_error(s->engine->log, "cannot listen on %s%s: %s%s",
			  addr_text(addr, text), over_transport(kind), strerror(-err),
			  hint(-err));
	return err;
}

/*
 * An MPTCP listener accepts TCP connections too. SCTP has ports of its own. If
 * the kernel chose TCP's port, SCTP listens on the same number.
 */
static int listen_on(struct server *s, const struct options_listen *where)
{
	const struct transport_set *set = &s->options->settings.transports;
	bool mptcp = transport_set_has(set, TRANSPORT_MPTCP);
	struct sockaddr_storage addr = where->addr;
	unsigned int before = s->entrances;
	enum transport kind;
	int err = 0;

	if (mptcp || transport_set_has(set, TRANSPORT_TCP)) {
		err = listen_for(s, mptcp ? TRANSPORT_MPTCP : TRANSPORT_TCP,
				 &addr, where->len);
		s->entrances++;
	}
	if (err || !transport_set_has(set, TRANSPORT_SCTP))
		return err;
	if (s->entrances > before)
		addr = *lobby_address(&s->lobby, before, &kind);
	s->entrances++;
	return listen_for(s, TRANSPORT_SCTP, &addr, where->len);
}

static void say_ready(struct server *s)
{
	unsigned int n = s->options->pipes;
	const struct sockaddr_storage *addr;
	char text[ADDR_TEXT];
	enum transport kind;
	unsigned int i;

	for (i = 0; (addr = lobby_address(&s->lobby, i, &kind)); i++)
		log_info(s->engine->log, "listening on %s for %u pipe%s%s",
			 addr_text(addr, text), n, n == 1 ? "" : "s",
			 over_transport(kind));
}

/* Without --allow a warning is due, unless only loopback is listened on. */
static void say_who_may(struct server *s)
{
	unsigned int i;

	if (!access_is_open(&s->options->access))
		return;
	for (i = 0; i < s->options->listens; i++) {
		if (addr_is_loopback(&s->options->listen[i].addr))
			continue;
		log_warn(s->engine->log, "anybody may open pipes and reach the "
			 "network through this proxy; --allow CIDR narrows it");
		return;
	}
}

int server_open(struct server *s, struct engine *engine,
		const struct options *options)
{
	unsigned int i;
	int err;

	memset(s, 0, sizeof(*s));
	s->engine = engine;
	s->options = options;
	list_init(&s->guests);
	lobby_init(&s->lobby, &lobby_ops, engine->loop, engine->log,
		   &options->access, options->pipes);
	for (i = 0; i < options->listens; i++) {
		err = listen_on(s, &options->listen[i]);
		if (err)
			return err;
	}
	return 0;
}

void server_announce(struct server *s)
{
	say_who_may(s);
	say_ready(s);
}

void server_stop(struct server *s)
{
	struct list *pos, *tmp;

	lobby_close(&s->lobby);
	s->stopping = true;
	list_each(pos, tmp, &s->guests)
		session_stop(list_entry(pos, struct guest, member)->session,
			     "rp is ending");
	finish_if_done(s);
}

void server_close(struct server *s)
{
	lobby_close(&s->lobby);
}

void server_print(struct server *s, FILE *out)
{
	struct list *pos, *tmp;

	fprintf(out, "%u of %u sessions; ", s->sessions,
		s->options->max_sessions);
	lobby_print(&s->lobby, out);
	list_each(pos, tmp, &s->guests)
		session_print(list_entry(pos, struct guest, member)->session,
			      out);
}
