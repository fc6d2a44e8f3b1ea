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

/* Pipes that one local proxy dials at once come within so much time. */
enum { BURST_MS = 200 };

/* A local proxy that has its session. */
struct guest {
	struct server *server;
	struct list member;
	struct session *session;
	struct connector connector;
	struct quota_share share;
	int64_t began_at;
};

/* --- connections to servers --- */

static void server_open_conn(struct session *s, struct conn *c)
{
	struct guest *guest = session_owner(s);

	connector_add(&guest->connector, c);
}

static void server_moved(struct session *s, struct conn *c, int from)
{
	struct guest *guest = session_owner(s);

	connector_moved(&guest->connector, c, from);
}

/* --- sessions --- */

static void finish_if_done(struct server *s)
{
	if (s->stopping && !s->sessions)
		loop_stop(s->engine->loop);
}

static void guest_free(struct guest *guest)
{
	connector_fini(&guest->connector);
	quota_drop(&guest->server->quota, &guest->share);
	guest->server->sessions--;
	list_del(&guest->member);
	free(guest);
}

static void server_ended(struct session *session)
{
	struct guest *guest = session_owner(session);
	struct server *s = guest->server;

	log_info(s->engine->log, "session %u of %s ended: %s",
		 session_number(session), session_peer(session),
		 session_why(session));
	guest_free(guest);
	finish_if_done(s);
}

static const struct session_role role = {
	.open = server_open_conn,
	.moved = server_moved,
	.ended = server_ended,
};

static struct guest *guest_of(const struct quota_share *share)
{
	return container_of(share, struct guest, share);
}

static bool is_idle(const struct quota_share *share)
{
	return !session_connections(guest_of(share)->session);
}

/* Somebody may have to go for it, but not before all of its pipes are there. */
static const char *lobby_objection(struct lobby *l,
				   const struct sockaddr_storage *peer)
{
	struct server *s = container_of(l, struct server, lobby);
	struct quota_share *victim;
	const char *why = quota_objection(&s->quota, peer, &victim);

	return victim ? NULL : why;
}

/* What is told to go counts no longer, although it takes a moment to end. */
static const char *make_room(struct server *s,
			     const struct sockaddr_storage *peer)
{
	struct quota_share *victim;
	const char *why = quota_objection(&s->quota, peer, &victim);

	if (!victim)
		return why;
	quota_drop(&s->quota, victim);
	session_stop(guest_of(victim)->session,
		     "it had no connections, and another one needs its place");
	return NULL;
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
	connector_init(&guest->connector, &s->connects,
		       host_has(&s->host, peer));
	guest->began_at = loop_clock();
	if (quota_take(&s->quota, &guest->share, peer)) {
		free(guest);
		return NULL;
	}
	list_add_tail(&s->guests, &guest->member);
	s->sessions++;
	return guest;
}

/*
 * With one pipe a session, nothing tells a local proxy that was started for more
 * from several local proxies. But then its sessions begin at once.
 */
static void say_if_in_one_burst(struct server *s, const struct guest *guest)
{
	const struct guest *before;

	if (quota_of_address(&guest->share) < 2)
		return;
	before = guest_of(list_entry(guest->share.member.prev,
				     struct quota_share, member));
	if (guest->began_at - before->began_at > BURST_MS * NS_PER_MS)
		return;
	log_warn(s->engine->log, "sessions %u and %u of %s began at once, and "
		 "rp was started for 1 pipe: if lp was started for more, its "
		 "connections will not work", session_number(before->session),
		 session_number(guest->session), session_peer(guest->session));
}

static void lobby_complete(struct lobby *l, const struct sockaddr_storage *peer,
			   const int *fds, unsigned int n)
{
	struct server *s = container_of(l, struct server, lobby);
	struct log *log = s->engine->log;
	char host[ADDR_TEXT];
	struct guest *guest;
	const char *why;

	addr_host(peer, host);
	why = make_room(s, peer);
	if (why) {
		reset_all(fds, n);
		log_warn(log, "%u pipes from %s were reset: %s", n, host, why);
		return;
	}
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
	if (n == 1)
		say_if_in_one_burst(s, guest);
}

static const struct lobby_ops lobby_ops = {
	.objection = lobby_objection,
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
	quota_init(&s->quota, options->max_sessions, options->max_sessions_each,
		   is_idle);
	s->reach = (struct reach){ &options->access, &s->host, &s->lobby };
	err = connects_init(&s->connects, engine, options, &s->reach);
	host_open(&s->host, engine->loop, engine->log);
	lobby_init(&s->lobby, &lobby_ops, engine->loop, engine->log,
		   &options->access, options->pipes);
	if (err)
		log_error(engine->log, "names cannot be looked up: %s",
			  strerror(-err));
	for (i = 0; !err && i < options->listens; i++)
		err = listen_on(s, &options->listen[i]);
	return err;
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
	connects_fini(&s->connects);
	host_close(&s->host);
}

void server_print(struct server *s, FILE *out)
{
	struct list *pos, *tmp;

	fprintf(out, "%u of %u sessions; ", s->sessions,
		s->options->max_sessions);
	lobby_print(&s->lobby, out);
	list_each(pos, tmp, &s->guests) {
		struct guest *guest = list_entry(pos, struct guest, member);

		session_print(guest->session, out);
		if (guest->connector.under_way)
			fprintf(out, "  connects under way: %u of %u\n",
				guest->connector.under_way,
				s->options->max_connects);
	}
}
