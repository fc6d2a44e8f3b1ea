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
#include "../mux/base/sock.h"
#include "../mux/conn/conn.h"
#include "../mux/session/greeting.h"
#include "../mux/settings/refusal.h"
#include "access.h"
#include "lent_ports.h"
#include "listening.h"
#include "outlet.h"

/* Pipes that one local proxy dials at once come within so much time, or not at all. */
enum { BURST_S = 5 };

/* In the lobby, and in the reception, a part in so many of the descriptors may wait. */
enum { WAITING_SHARE = 8 };

/* A local proxy that has its session. */
struct guest {
	struct server *server;
	struct list member;
	struct session *session;
	struct sockaddr_storage peer;
	struct key key;		/* whose it is; the name is "": pipes have none */
	struct connector connector;
	struct outlets outlets;
	struct lent_ports lent;
	struct quota_share share;
	int64_t began_at;
};

/* --- connections to servers --- */

static void server_open_conn(struct session *s, struct conn *c)
{
	struct guest *guest = session_owner(s);

	connector_add(&guest->connector, c);
}

static void server_open_flow(struct session *s, struct conn *c)
{
	struct guest *guest = session_owner(s);

	outlet_open(&guest->outlets, c);
}

static void server_moved(struct session *s, struct conn *c, int from)
{
	struct guest *guest = session_owner(s);

	connector_moved(&guest->connector, c, from);
}

/* --- connections to rp --- */

static bool is_same_owner(const struct guest *a, const struct guest *b)
{
	return !strcmp(a->key.name, b->key.name) &&
	       (*a->key.name || addr_same_host(&a->peer, &b->peer));
}

/* A local proxy that was started anew need not wait until its old session ends. */
static bool another_gives_way(struct lent_ports *l,
			      const struct sockaddr_storage *addr)
{
	struct guest *guest = container_of(l, struct guest, lent);
	struct list *pos, *tmp;

	list_each(pos, tmp, &guest->server->guests) {
		struct guest *other = list_entry(pos, struct guest, member);

		if (other != guest && is_same_owner(guest, other) &&
		    session_alone_since(other->session) &&
		    lent_ports_give_way(&other->lent, addr))
			return true;
	}
	return false;
}

static void server_listen(struct session *s, uint16_t listener,
			  const struct destination *at)
{
	struct guest *guest = session_owner(s);

	lent_ports_open(&guest->lent, s, listener, at);
}

/* --- sessions --- */

static void finish_if_done(struct server *s)
{
	if (s->stopping && !s->sessions)
		loop_stop(s->engine->loop);
}

static void guest_free(struct guest *guest)
{
	lent_ports_fini(&guest->lent);
	outlets_fini(&guest->outlets);
	connector_fini(&guest->connector);
	quota_drop(&guest->server->quota, &guest->share);
	guest->server->sessions--;
	list_del(&guest->member);
	explicit_bzero(&guest->key, sizeof(guest->key));
	free(guest);
}

/* What its session holds, and is refused, counts as its address's. False: there is no session. */
static bool guest_begins(struct guest *guest, struct session *session)
{
	guest->session = session;
	if (!session) {
		guest_free(guest);
		return false;
	}
	session_counts_in(session, quota_hoard(&guest->share));
	session_pays_as(session, &guest->peer);
	return true;
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

static bool is_waiting_too(const struct guest *guest, const struct guest *other)
{
	return other->share.address == guest->share.address &&
	       session_is_up(other->session) &&
	       session_alone_since(other->session);
}

/* Of those of its address that wait for pipes, the first has to go for a fifth. */
static void server_alone(struct session *session)
{
	struct guest *guest = session_owner(session), *first = guest;
	unsigned int waiting = 0;
	struct list *pos, *tmp;

	list_each(pos, tmp, &guest->server->guests) {
		struct guest *other = list_entry(pos, struct guest, member);

		if (!is_waiting_too(guest, other))
			continue;
		waiting++;
		if (session_alone_since(other->session) <
		    session_alone_since(first->session))
			first = other;
	}
	if (waiting > ALONE_EACH)
		session_stop(first->session, "it had no pipe, as others of its "
			     "address");
}

static const struct session_role role = {
	.open = server_open_conn,
	.open_flow = server_open_flow,
	.listen = server_listen,
	.moved = server_moved,
	.alone = server_alone,
	.ended = server_ended,
};

static struct guest *guest_of(const struct quota_share *share)
{
	return container_of(share, struct guest, share);
}

static bool is_idle(const struct quota_share *share)
{
	return !session_connections(guest_of(share)->session) &&
	       !lent_ports_serve(&guest_of(share)->lent);
}

/* A connection or a lent port of it goes, for one of an address that has fewer. */
static bool give_up(struct quota_share *share)
{
	return session_gives_up(guest_of(share)->session) ||
	       lent_ports_give_up(&guest_of(share)->lent);
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
	struct guest *goes;

	if (!victim)
		return why;
	goes = guest_of(victim);
	why = is_idle(victim) ?
	      "it had no connections, and another one needs its place" :
	      "its address has most sessions, and another one needs its place";
	if (refusals_note_peer(&s->engine->refusals, REFUSAL_SESSIONS,
			       &goes->peer))
		log_warn(s->engine->log, "session %u of %s has to go: %s",
			 session_number(goes->session),
			 session_peer(goes->session), why);
	quota_drop(&s->quota, victim);
	session_stop(goes->session, why);
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
	guest->peer = *peer;
	connector_init(&guest->connector, &s->connects, &guest->share,
		       host_has(&s->host, peer));
	outlets_init(&guest->outlets, &guest->connector, s->connects.names);
	lent_ports_init(&guest->lent, &guest->connector, s->options,
			another_gives_way);
	guest->began_at = loop_clock();
	if (quota_take(&s->quota, &guest->share, peer)) {
		free(guest);
		return NULL;
	}
	list_add_tail(&s->guests, &guest->member);
	s->sessions++;
	return guest;
}

/* A place for another session of @peer. NULL: there is none, and @why. */
static struct guest *admit(struct server *s,
			   const struct sockaddr_storage *peer,
			   const char **why)
{
	struct guest *guest;

	*why = make_room(s, peer);
	if (*why)
		return NULL;
	guest = guest_new(s, peer);
	if (!guest)
		*why = "memory is short";
	return guest;
}

/*
 * A local proxy that was started for more pipes gets several sessions where its
 * pipes do not come all at once: with one pipe a session, or when SYNs were lost.
 * Nothing tells them from those of several local proxies behind one address. But
 * they begin soon after one another.
 */
static void say_if_in_one_burst(struct server *s, const struct guest *guest,
				unsigned int pipes)
{
	const struct guest *before;

	if (quota_of_address(&guest->share) < 2)
		return;
	before = guest_of(list_entry(guest->share.member.prev,
				     struct quota_share, member));
	if (session_is_extended(before->session) ||
	    guest->began_at - before->began_at > BURST_S * NS_PER_SEC)
		return;
	log_warn(s->engine->log, "sessions %u and %u of %s began within %u s, "
		 "and rp was started for %u pipe%s: if both are of one lp that was "
		 "started for more, its connections will not work",
		 session_number(before->session),
		 session_number(guest->session), session_peer(guest->session),
		 BURST_S, pipes, pipes == 1 ? "" : "s");
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
	guest = admit(s, peer, &why);
	if (!guest) {
		reset_all(fds, n);
		if (refusals_note_peer(&s->engine->refusals, REFUSAL_SESSIONS,
				       peer))
			log_warn(log, "%u pipes from %s were reset: %s", n, host,
				 why);
		return;
	}
	if (!guest_begins(guest, greet_baseline(s->engine, &role, guest, host,
						fds, n))) {
		log_warn(log, "%u pipes from %s were reset: no session could be made of them", n, host);
		return;
	}
	log_info(log, "session %u: %u pipe%s from %s",
		 session_number(guest->session), n, n == 1 ? "" : "s", host);
	say_if_in_one_burst(s, guest, n);
}

static const struct lobby_ops lobby_ops = {
	.objection = lobby_objection,
	.complete = lobby_complete,
};

/* --- sessions of the extension --- */

static void begin_session(struct server *s, const struct sockaddr_storage *peer,
			  const struct wire_hello *hello,
			  struct conduit conduit)
{
	struct log *log = s->engine->log;
	char host[ADDR_TEXT];
	struct guest *guest;
	const char *why;

	addr_host(peer, host);
	guest = admit(s, peer, &why);
	if (!guest) {
		greet_refuse(conduit, WIRE_WELCOME_BUSY);
		if (refusals_note_peer(&s->engine->refusals, REFUSAL_SESSIONS,
				       peer))
			log_warn(log, "a session of %s was told to come later: %s",
				 host, why);
		return;
	}
	if (conduit.layer)
		guest->key = *keys_find(&s->options->keys, conduit.layer->name,
					strlen(conduit.layer->name));
	if (!guest_begins(guest, greet_new(s->engine, &role, guest, host, hello,
					   conduit))) {
		log_warn(log, "no session could be made for %s", host);
		return;
	}
	log_info(log, "session %u: the first of %u pipes from %s%s%s",
		 session_number(guest->session), hello->pipes, host,
		 *guest->key.name ? ", with the key of " : "",
		 guest->key.name);
}

/*
 * A session is whose key it began with, wherever pipes come from. Without keys the
 * id of a session is no secret on its way, so pipes have to come from where the
 * session began. For whoever comes from elsewhere there is no such session: an
 * LP whose address changed begins another one then, and need not wait.
 */
static bool is_of(const struct guest *guest,
		  const struct sockaddr_storage *peer, struct conduit conduit)
{
	if (conduit.layer)
		return !strcmp(guest->key.name, conduit.layer->name);
	return !*guest->key.name && addr_same_host(&guest->peer, peer);
}

static void join_session(struct session *session,
			 const struct sockaddr_storage *peer,
			 const struct wire_hello *hello,
			 struct conduit conduit)
{
	struct guest *guest = session_owner(session);
	char host[ADDR_TEXT];

	if (is_of(guest, peer, conduit)) {
		/* What is for those on this host is not for who comes from elsewhere. */
		guest->connector.local &= host_has(&guest->server->host, peer);
		greet_join(session, hello, conduit);
		return;
	}
	if (refusals_note_peer(&guest->server->engine->refusals,
			       REFUSAL_ELSEWHERE, peer))
		log_warn(guest->server->engine->log, "a pipe from %s was sent "
			 "away: it wants session %u, which is of %s%s%s",
			 addr_host(peer, host), session_number(session),
			 session_peer(session),
			 *guest->key.name ? " and the key of " : "",
			 guest->key.name);
	greet_refuse(conduit, WIRE_WELCOME_UNKNOWN);
}

static void reception_greeted(struct reception *r,
			      const struct sockaddr_storage *peer,
			      const struct wire_hello *hello,
			      struct conduit conduit)
{
	struct server *s = container_of(r, struct server, reception);
	struct session *session = greet_find(s->engine, hello);
	enum wire_welcome_status status;

	if (session) {
		join_session(session, peer, hello, conduit);
		return;
	}
	status = greet_objection(hello);
	if (status == WIRE_WELCOME_NEW)
		begin_session(s, peer, hello, conduit);
	else
		greet_refuse(conduit, status);
}

/* --- keys --- */

static bool has_key(const struct keys *keys, const struct key *key)
{
	const struct key *found = keys_find(keys, key->name, strlen(key->name));

	return found && key_same(found, key);
}

/* Who is about to say HELLO may have shown a key that is gone, too. */
static void end_without_key(struct server *s)
{
	unsigned int ended = 0;
	struct list *pos, *tmp;

	if (!s->engine->layers)
		return;
	reception_dismiss(&s->reception);
	list_each(pos, tmp, &s->guests) {
		struct guest *guest = list_entry(pos, struct guest, member);

		if (!*guest->key.name || !session_is_up(guest->session) ||
		    has_key(&s->options->keys, &guest->key))
			continue;
		session_stop(guest->session, "its key was taken away");
		ended++;
	}
	if (ended)
		log_info(s->engine->log, "%u session%s, whose key was taken away",
			 ended, ended == 1 ? " ends" : "s end");
}

/* --- the server as a whole --- */

/* Pipes that wait shall not take the descriptors that others need, nor their memory. */
static void limit_waiting(struct server *s)
{
	unsigned long most = sock_limit() / WAITING_SHARE;
	unsigned int fit = engine_may_wait(s->engine, RECEPTION_MAX);

	if (most < 1)
		most = 1;
	if (s->lobby.max > most)
		s->lobby.max = (unsigned int)most;
	s->reception.max = fit > RECEPTION_FAIR ? fit : RECEPTION_FAIR;
	if (s->reception.max > most)
		s->reception.max = (unsigned int)most;
}

/* A socket of the unit file that nobody accepts from would be silent for good. */
static int all_are_taken(const struct server *s, const struct ports *ports)
{
	const struct handed_socket *left = handed_left(&ports->handed);
	char text[ADDR_TEXT];

	if (!left)
		return 0;
	log_error(s->engine->log, "a socket on %s was handed over by the name "
		  "'%s', which is neither pipes nor extended, and that address "
		  "is not one of --listen or --extended",
		  addr_text(&left->addr, text), left->name);
	return -EINVAL;
}

int server_open(struct server *s, struct engine *engine,
		const struct options *options, struct ports *ports)
{
	struct log *log = engine->log;
	int err;

	memset(s, 0, sizeof(*s));
	s->engine = engine;
	s->options = options;
	list_init(&s->guests);
	quota_init(&s->quota, &engine->hoard, options->max_sessions,
		   options->max_sessions_each, is_idle, give_up);
	s->reach = (struct reach){ &options->access, &s->host,
				   { &s->lobby.entrances,
				     &s->reception.entrances } };
	err = connects_init(&s->connects, engine, options, &s->reach,
			    &s->quota);
	host_open(&s->host, engine->loop, log, NULL);
	lobby_init(&s->lobby, &lobby_ops, engine->loop, log, &engine->refusals,
		   &options->access, options->pipes);
	reception_init(&s->reception, reception_greeted, engine->loop, log,
		       &engine->refusals, &options->access);
	limit_waiting(s);
	s->reception.layers = engine->layers;
	if (err)
		log_error(log, "names cannot be looked up: %s", strerror(-err));
	/* A local proxy that finds the lobby open shall find the reception too. */
	if (!err)
		err = listening_open(&s->reception.entrances, options, true,
				     log, ports);
	if (!err)
		err = listening_open(&s->lobby.entrances, options, false, log,
				     ports);
	return err ? err : all_are_taken(s, ports);
}

void server_announce(struct server *s)
{
	struct log *log = s->engine->log;

	listening_say_who_may(s->options, &s->lobby.entrances,
			      &s->reception.entrances, log);
	listening_say(&s->lobby.entrances, s->options, false, log);
	listening_say(&s->reception.entrances, s->options, true, log);
}

void server_reload(struct server *s)
{
	struct engine *engine = s->engine;
	struct list *pos, *tmp;

	list_each(pos, tmp, &s->guests)
		lent_ports_review(&list_entry(pos, struct guest, member)->lent);
	quota_set(&s->quota, s->options->settings.max_held,
		  s->options->max_sessions, s->options->max_sessions_each);
	loop_after(engine->loop, &engine->relief);
	limit_waiting(s);
	end_without_key(s);
	listening_say_who_may(s->options, &s->lobby.entrances,
			      &s->reception.entrances, engine->log);
}

void server_stop(struct server *s)
{
	struct list *pos, *tmp;

	lobby_close(&s->lobby);
	reception_close(&s->reception);
	s->stopping = true;
	list_each(pos, tmp, &s->guests)
		session_stop(list_entry(pos, struct guest, member)->session,
			     "rp is ending");
	finish_if_done(s);
}

void server_close(struct server *s)
{
	lobby_close(&s->lobby);
	reception_close(&s->reception);
	connects_fini(&s->connects);
	host_close(&s->host);
}

void server_print(struct server *s, FILE *out)
{
	struct list *pos, *tmp;

	fprintf(out, "%u of %u sessions; ", s->sessions,
		s->options->max_sessions);
	lobby_print(&s->lobby, out);
	reception_print(&s->reception, out);
	list_each(pos, tmp, &s->guests) {
		struct guest *guest = list_entry(pos, struct guest, member);

		session_print(guest->session, out);
		lent_ports_print(&guest->lent, out);
		if (guest->connector.under_way)
			fprintf(out, "  connects under way: %u of %u\n",
				guest->connector.under_way,
				s->options->max_connects);
	}
}
