/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "guest.h"

#include <stdlib.h>
#include <string.h>

#include "../mux/base/addr.h"
#include "../mux/base/log.h"
#include "../mux/base/plural.h"
#include "../mux/base/sock.h"
#include "../mux/conn/conn.h"
#include "../mux/session/greeting.h"
#include "../mux/session/session.h"
#include "../mux/settings/incident.h"
#include "guests.h"
#include "options.h"
#include "worker.h"

static struct engine *engine_of(const struct guest *guest)
{
	return guest->worker->engine;
}

/* --- what its session asks for --- */

static void open_conn(struct session *s, struct conn *c)
{
	struct guest *guest = session_owner(s);

	connector_add(&guest->connector, c);
}

static void open_flow(struct session *s, struct conn *c)
{
	struct guest *guest = session_owner(s);

	outlet_open(&guest->outlets, c);
}

static void has_moved(struct session *s, struct conn *c, int from)
{
	struct guest *guest = session_owner(s);

	connector_moved(&guest->connector, c, from);
}

static void listen_for(struct session *s, uint16_t listener,
		       const struct destination *at)
{
	struct guest *guest = session_owner(s);

	lent_ports_open(&guest->lent, s, listener, at);
}

/* A local proxy that was started anew need not wait until its old session ends. */
static int another_gives_way(struct lent_ports *l, uint16_t listener,
			     const struct sockaddr_storage *addr)
{
	return guests_give_way(container_of(l, struct guest, lent), listener,
			       addr);
}

static void path_told(struct session *session, unsigned int path)
{
	struct guest *guest = session_owner(session);

	doors_open(&guest->doors, path, loop_now(engine_of(guest)->loop));
}

static void is_alone(struct session *session)
{
	guests_alone(session_owner(session));
}

/* --- it goes --- */

void guest_drop_share(struct guest *guest)
{
	if (guest->session)
		session_takes_time_of(guest->session, NULL);
	connector_releases(&guest->connector);
	quota_drop(&guest->worker->quota, &guest->share);
}

static void leave(struct guest *guest)
{
	lent_ports_fini(&guest->lent);
	outlets_fini(&guest->outlets);
	connector_fini(&guest->connector);
	guest_drop_share(guest);
	guest->session = NULL;
	guests_leave(guest);
}

static void has_ended(struct session *session)
{
	struct guest *guest = session_owner(session);

	if (guest->told)
		log_info(engine_of(guest)->log, "session %u of %s ended: %s",
			 session_number(session), session_peer(session),
			 session_why(session));
	leave(guest);
}

static const struct session_role role = {
	.path = path_told,
	.open = open_conn,
	.open_flow = open_flow,
	.listen = listen_for,
	.moved = has_moved,
	.alone = is_alone,
	.ended = has_ended,
};

/* --- it comes --- */

/* A descriptor's number tells whether sockets to servers had left one. */
static void make_room_for_pipes(struct guest *guest)
{
	unsigned int i;

	if (!guest->nfds)
		connector_makes_room(&guest->connector, guest->conduit.fd);
	for (i = 0; i < guest->nfds; i++)
		connector_makes_room(&guest->connector, guest->fds[i]);
}

/* What is charged to its session, and its incidents, count as its address's. */
static bool has_begun(struct guest *guest, struct session *session)
{
	guest->session = session;
	if (!session)
		return false;
	session_counts_in(session, quota_hoard(&guest->share));
	session_takes_time_of(session, quota_budget(&guest->share));
	session_pays_as(session, &guest->peer);
	guest->told = session_notes(session, INCIDENT_BEGUN);
	return true;
}

/* Memory is short. */
static bool may_say_none(struct guest *guest)
{
	return incidents_note_peer(engine_of(guest)->limits, INCIDENT_MEMORY,
				   &guest->peer);
}

static void say_none(struct guest *guest, const char *host)
{
	if (may_say_none(guest))
		log_warn(engine_of(guest)->log, "no session could be made for %s: memory is short",
			 host);
}

static bool begin_baseline(struct guest *guest, const char *host)
{
	struct engine *engine = engine_of(guest);
	unsigned int n = guest->nfds;

	if (!has_begun(guest, greet_baseline(engine, &role, guest, host,
					     guest->fds, n))) {
		if (may_say_none(guest))
			log_warn(engine->log, "%u pipe%s from %s %s reset: memory is short",
				 n, plural(n), host, n == 1 ? "was" : "were");
		return false;
	}
	if (guest->told)
		log_info(engine->log, "session %u: %u pipe%s from %s",
			 session_number(guest->session), n, plural(n), host);
	return true;
}

static bool begin_extended(struct guest *guest, const char *host)
{
	struct engine *engine = engine_of(guest);

	if (!has_begun(guest, greet_new(engine, &role, guest, host,
					&guest->hello, guest->conduit))) {
		say_none(guest, host);
		return false;
	}
	if (guest->told)
		log_info(engine->log, "session %u: the first of %u pipe%s from %s%s%s",
			 session_number(guest->session), guest->hello.pipes,
			 plural(guest->hello.pipes), host,
			 *guest->key.name ? ", with the key of " : "",
			 guest->key.name);
	return true;
}

static bool begin_session(struct guest *guest)
{
	char host[ADDR_TEXT];

	addr_host(&guest->peer, host);
	engine_of(guest)->sessions = guest->number - 1;
	if (guest->nfds)
		return begin_baseline(guest, host);
	connector_reserves(&guest->connector);
	conduit_move(guest->conduit, engine_of(guest)->layers);
	return begin_extended(guest, host);
}

static void no_memory(struct guest *guest)
{
	unsigned int n = guest->nfds;
	char host[ADDR_TEXT];

	say_none(guest, addr_host(&guest->peer, host));
	if (!n)
		greet_decline(guest->conduit, WIRE_WELCOME_BUSY);
	while (n)
		sock_reset(guest->fds[--n]);
}

bool guest_may_stay(const struct guest *guest)
{
	return !*guest->key.name ||
	       keys_have(&guest->all->options->keys, &guest->key);
}

/* Its key may have been taken away since it was told to begin. */
static void begin(struct errand *e)
{
	struct guest *guest = container_of(e, struct guest, errand);
	struct worker *w = guest->worker;

	doors_init(&guest->doors, w->engine->log, w->engine->limits,
		   &guest->peer);
	connector_init(&guest->connector, &w->connects, &guest->share,
		       host_has(&w->host, &guest->peer));
	outlets_init(&guest->outlets, &guest->connector);
	lent_ports_init(&guest->lent, &guest->connector, guest->all->options,
			another_gives_way);
	if (!guest_may_stay(guest)) {
		conduit_close(guest->conduit);
		leave(guest);
	} else if (quota_take(&w->quota, &guest->share, &guest->peer,
			      guest->key.name)) {
		no_memory(guest);
		leave(guest);
	} else if (!begin_session(guest)) {
		leave(guest);
	} else {
		make_room_for_pipes(guest);
	}
}

void guest_begin(struct guest *guest)
{
	guest->errand.run = begin;
	worker_tell(guest->worker, &guest->errand);
}

/* --- more pipes of it --- */

/* A pipe that wants to join a session. */
struct joiner {
	struct errand errand;
	struct guests *all;
	struct worker *worker;
	struct sockaddr_storage peer;
	struct wire_hello hello;
	struct conduit conduit;
	struct key key;		/* that it has shown; the name is "": none */
};

static void joiner_free(struct joiner *j)
{
	explicit_bzero(&j->key, sizeof(j->key));
	free(j);
}

/*
 * A session is whose key it began with, wherever pipes come from. Without keys the
 * id of a session is no secret on its way, so pipes have to come from where the
 * session began, or as doors.h has it. For whoever comes from elsewhere there is no such
 * session: an LP whose only address changed begins another one then, and need not wait.
 */
static bool is_of(struct guest *guest, const struct joiner *j)
{
	if (j->conduit.layer)
		return !strcmp(guest->key.name, j->conduit.layer->name);
	return !*guest->key.name &&
	       doors_admit(&guest->doors, greet_path(guest->session, &j->hello),
			   &j->peer, loop_now(engine_of(guest)->loop),
			   session_number(guest->session));
}

static void join(struct session *session, const struct joiner *j)
{
	struct guest *guest = session_owner(session);
	struct engine *engine = engine_of(guest);
	char host[ADDR_TEXT];

	if (is_of(guest, j)) {
		/* What is for those on this host is not for who comes from elsewhere. */
		guest->connector.local &= host_has(&guest->worker->host,
						   &j->peer);
		if (greet_join(session, &j->hello, j->conduit))
			connector_makes_room(&guest->connector, j->conduit.fd);
		return;
	}
	if (incidents_note_peer(engine->limits, INCIDENT_ELSEWHERE, &j->peer))
		log_warn(engine->log, "a pipe from %s was sent "
			 "away: it wants session %u, which is of %s%s%s",
			 addr_host(&j->peer, host), session_number(session),
			 session_peer(session),
			 *guest->key.name ? " and the key of " : "",
			 guest->key.name);
	greet_decline(j->conduit, WIRE_WELCOME_UNKNOWN);
}

/* Its key may have been taken away meanwhile, or be another one of the same name. */
static void come_back(struct errand *e)
{
	struct joiner *j = container_of(e, struct joiner, errand);

	if (j->conduit.layer && !keys_have(&j->all->options->keys, &j->key))
		conduit_close(j->conduit);
	else
		j->all->stray(j->all, &j->peer, &j->hello, j->conduit);
	joiner_free(j);
}

/* The guest may have left since, so the session is looked for by what the pipe said. */
static void try_to_join(struct errand *e)
{
	struct joiner *j = container_of(e, struct joiner, errand);
	struct session *session = greet_find(j->worker->engine, &j->hello);

	if (session) {
		conduit_move(j->conduit, j->worker->engine->layers);
		join(session, j);
		joiner_free(j);
		return;
	}
	j->errand.run = come_back;
	workers_tell_first(&j->all->workers, &j->errand);
}

/* Callers whose key is gone are dismissed at once, so it is the key of that name. */
static void note_key(struct joiner *j)
{
	const struct layer *layer = j->conduit.layer;
	const struct key *key = NULL;

	if (layer)
		key = keys_find(&j->all->options->keys, layer->name,
				strlen(layer->name));
	if (key)
		j->key = *key;
}

void guest_join(struct guest *guest, const struct sockaddr_storage *peer,
		const struct wire_hello *hello, struct conduit conduit)
{
	struct joiner *j = malloc(sizeof(*j));

	if (!j) {
		greet_decline(conduit, WIRE_WELCOME_BUSY);
		return;
	}
	*j = (struct joiner){
		.errand.run = try_to_join,
		.all = guest->all,
		.worker = guest->worker,
		.peer = *peer,
		.hello = *hello,
		.conduit = conduit,
	};
	note_key(j);
	worker_tell(j->worker, &j->errand);
}

/* --- what it can do without --- */

bool guest_is_idle(const struct guest *guest)
{
	return !guest->session ||
	       (!session_connections(guest->session) &&
		!lent_ports_serve(&guest->lent));
}

bool guest_gives_up(struct guest *guest)
{
	return session_gives_up(guest->session) ||
	       lent_ports_give_up(&guest->lent);
}
