/* SPDX-License-Identifier: MIT */
#include "server.h"

#include <string.h>

#include "../mux/base/addr.h"
#include "../mux/base/halt.h"
#include "../mux/base/log.h"
#include "../mux/base/plural.h"
#include "../mux/base/sock.h"
#include "../mux/session/greeting.h"
#include "../mux/settings/incident.h"
#include "guest.h"
#include "listening.h"
#include "reserve.h"

static void finish_if_done(struct server *s)
{
	if (s->stopping && !s->guests.n)
		loop_stop(s->engine->loop);
}

static void guest_left(struct guests *all)
{
	finish_if_done(container_of(all, struct server, guests));
}

/* --- sessions of the baseline --- */

static const char *lobby_objection(struct lobby *l,
				   const struct sockaddr_storage *peer,
				   enum incident *what)
{
	struct server *s = container_of(l, struct server, lobby);
	struct denial denial = guests_objection(&s->guests, peer);

	*what = denial.what;
	return denial.why;
}

static void reset_all(const int *fds, unsigned int n)
{
	while (n)
		sock_reset(fds[--n]);
}

static void lobby_complete(struct lobby *l, const struct sockaddr_storage *peer,
			   const int *fds, unsigned int n)
{
	struct server *s = container_of(l, struct server, lobby);
	char host[ADDR_TEXT];
	struct denial denial;
	unsigned int number;
	struct guest *guest;

	guest = guests_admit(&s->guests, peer, NULL, n, &denial);
	if (!guest) {
		reset_all(fds, n);
		if (incidents_note_peer(&s->engine->incidents, denial.what,
					peer))
			log_warn(s->engine->log, "%u pipe%s from %s %s reset: %s",
				 n, plural(n), addr_host(peer, host),
				 n == 1 ? "was" : "were", denial.why);
		return;
	}
	number = guest->number;
	memcpy(guest->fds, fds, n * sizeof(*fds));
	guest->nfds = n;
	guest_begin(guest);
	guests_say_if_in_one_burst(&s->guests, number, n);
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
	const struct key *key = NULL;
	struct denial denial;
	char host[ADDR_TEXT];
	struct guest *guest;

	if (conduit.layer) {
		key = keys_find(&s->options->keys, conduit.layer->name,
				strlen(conduit.layer->name));
		if (!key) {
			conduit_close(conduit);
			return;
		}
	}
	guest = guests_admit(&s->guests, peer, key, hello->pipes, &denial);
	if (!guest) {
		greet_decline(conduit, WIRE_WELCOME_BUSY);
		if (incidents_note_peer(&s->engine->incidents, denial.what,
					peer))
			log_warn(s->engine->log, "a session of %s was told to "
				 "come later: %s", addr_host(peer, host),
				 denial.why);
		return;
	}
	guest->hello = *hello;
	guest->conduit = conduit;
	guest_begin(guest);
}

static void say_declined(struct server *s, const struct sockaddr_storage *peer)
{
	char text[ADDR_TEXT];

	if (incidents_note_peer(&s->engine->incidents, INCIDENT_HELLO, peer))
		log_warn(s->engine->log, "a pipe from %s was sent away: the version, features or path of its HELLO will not do",
			 addr_text(peer, text));
}

/* There is no session that it could join. */
static void greet_stranger(struct server *s, const struct sockaddr_storage *peer,
			   const struct wire_hello *hello,
			   struct conduit conduit)
{
	enum wire_welcome_status status = greet_objection(hello);

	if (status == WIRE_WELCOME_NEW) {
		begin_session(s, peer, hello, conduit);
		return;
	}
	if (status == WIRE_WELCOME_REFUSED)
		say_declined(s, peer);
	greet_decline(conduit, status);
}

static void guest_stray(struct guests *all, const struct sockaddr_storage *peer,
			const struct wire_hello *hello, struct conduit conduit)
{
	struct server *s = container_of(all, struct server, guests);

	if (s->stopping)
		conduit_close(conduit);
	else
		greet_stranger(s, peer, hello, conduit);
}

static void reception_greeted(struct reception *r,
			      const struct sockaddr_storage *peer,
			      const struct wire_hello *hello,
			      struct conduit conduit)
{
	struct server *s = container_of(r, struct server, reception);
	struct guest *guest = guests_find(&s->guests, hello);

	if (guest)
		guest_join(guest, peer, hello, conduit);
	else
		greet_stranger(s, peer, hello, conduit);
}

/* --- the server as a whole --- */

/* Pipes that wait shall not take the descriptors that others need, nor their memory. */
static void limit_waiting(struct server *s)
{
	const struct reserve reserve =
		reserve_of(sock_limit(), s->options->pipes);
	unsigned int fit = engine_may_wait(s->engine, RECEPTION_MAX);

	s->lobby.max = reserve.lobby;
	s->reception.max = fit > RECEPTION_FAIR ? fit : RECEPTION_FAIR;
	if (s->reception.max > reserve.reception)
		s->reception.max = reserve.reception;
}

int server_open(struct server *s, struct engine *engine,
		const struct options *options, struct ports *ports)
{
	const struct entrances *const entrances[REACH_ENTRANCES] = {
		&s->lobby.entrances, &s->reception.entrances,
	};
	struct log *log = engine->log;
	int err;

	memset(s, 0, sizeof(*s));
	s->engine = engine;
	s->options = options;
	err = guests_init(&s->guests, engine, options, entrances, guest_left,
			  guest_stray);
	lobby_init(&s->lobby, &lobby_ops, engine->loop, log, &engine->incidents,
		   &options->access, options->pipes);
	reception_init(&s->reception, reception_greeted, engine->loop, log,
		       &engine->incidents, &options->access);
	limit_waiting(s);
	s->reception.layers = engine->layers;
	/* A local proxy that finds the lobby open shall find the reception too. */
	if (!err)
		err = listening_open(&s->reception.entrances, options, true,
				     log, ports);
	if (!err)
		err = listening_open(&s->lobby.entrances, options, false, log,
				     ports);
	return err ? err :
	       handed_all_taken(&ports->handed, log, "neither pipes nor extended, and that address is not one of --listen or --extended");
}

/* What is open to too many, or to nobody. */
static void say_what_is_odd(const struct server *s)
{
	const struct entrances *baseline = &s->lobby.entrances;
	const struct entrances *extended = &s->reception.entrances;
	struct log *log = s->engine->log;

	if (s->stopping)
		return;
	listening_say_who_may(s->options, baseline, extended, log);
	listening_say_if_in_vain(s->options, extended, log);
}

int server_start(struct server *s)
{
	struct log *log = s->engine->log;
	int err = workers_start(&s->guests.workers);

	if (err)
		return err;
	say_what_is_odd(s);
	listening_say(&s->lobby.entrances, s->options, false, log);
	listening_say(&s->reception.entrances, s->options, true, log);
	return 0;
}

/*
 * Who is about to say HELLO may have shown a key that is gone, too. Nobody else is sent away: an lp
 * that is back from an outage would take it for the end of its session.
 */
void server_reload(struct server *s)
{
	guests_review(&s->guests);
	limit_waiting(s);
	if (s->guests.keys_gone != s->options->keys_gone) {
		reception_dismiss(&s->reception, &s->options->gone);
		guests_end_without_key(&s->guests);
	}
	say_what_is_odd(s);
}

/* Workers look at the entrances, too: see reach.h. */
void server_stop(struct server *s)
{
	halt_begin(s->engine->halt);
	lobby_close(&s->lobby);
	reception_close(&s->reception);
	s->stopping = true;
	guests_stop(&s->guests);
	halt_end(s->engine->halt);
	finish_if_done(s);
}

void server_close(struct server *s)
{
	s->stopping = true;
	workers_stop(&s->guests.workers);
	lobby_close(&s->lobby);
	reception_close(&s->reception);
	guests_fini(&s->guests);
}

void server_print(struct server *s, FILE *out)
{
	fprintf(out, "%u of %u sessions; ", s->guests.n,
		s->options->max_sessions);
	lobby_print(&s->lobby, out);
	reception_print(&s->reception, out);
	halt_begin(s->engine->halt);
	guests_print(&s->guests, out);
	halt_end(s->engine->halt);
}
