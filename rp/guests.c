/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "guests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../mux/base/addr.h"
#include "../mux/base/log.h"
#include "../mux/base/plural.h"
#include "../mux/base/sock.h"
#include "../mux/session/session.h"
#include "../mux/settings/incident.h"
#include "guest.h"
#include "options.h"

enum {
	/* Pipes that one local proxy dials at once come within so much time, or not at all. */
	BURST_S = 5,
	/* Pipes of sessions may have a part in so many of the descriptors. */
	PIPES_SHARE = 2,
};

static struct guest *guest_at(const struct list *pos)
{
	return list_entry(pos, struct guest, member);
}

static struct guest *guest_of(const struct quota_share *place)
{
	return container_of(place, struct guest, place);
}

/* --- who gets a place --- */

static bool is_idle(const struct quota_share *place)
{
	return guest_is_idle(guest_of(place));
}

/* Who has to go is found out only where there is no place: among all, in a halt. */
static struct halt *halt_if_full(struct guests *all, unsigned int pipes)
{
	return quota_is_full(&all->quota, pipes) ? &all->workers.halt : NULL;
}

/* @victim: who would have to go for it, now. */
static struct denial objection(struct guests *all,
			       const struct sockaddr_storage *peer,
			       const char *key, unsigned int pipes,
			       struct quota_share **victim)
{
	struct denial sessions = { .what = INCIDENT_SESSIONS };
	struct denial descriptors = { .what = INCIDENT_DESCRIPTORS };
	struct quota_share *most;

	sessions.why = quota_objection(&all->quota, peer, key, victim);
	if (sessions.why && !*victim)
		return sessions;
	descriptors.why = quota_objection_to_pipes(&all->quota, peer, key,
						   pipes, &most);
	if (!descriptors.why)
		return sessions;
	*victim = most;
	return descriptors;
}

/* Somebody may have to go for it, but not before all of its pipes are there. */
struct denial guests_objection(struct guests *all,
			       const struct sockaddr_storage *peer)
{
	unsigned int pipes = all->options->pipes;
	struct halt *halt = halt_if_full(all, pipes);
	struct quota_share *victim;
	struct denial denial;

	halt_begin(halt);
	denial = objection(all, peer, "", pipes, &victim);
	halt_end(halt);
	if (victim)
		denial.why = NULL;
	return denial;
}

static const char *reason_to_go(const struct guest *guest, enum incident what)
{
	if (what == INCIDENT_DESCRIPTORS)
		return *guest->key.name ?
		       "its key has most pipes, and another one needs descriptors" :
		       "its address has most pipes, and another one needs descriptors";
	if (guest_is_idle(guest))
		return "it had no connections, and another one needs its place";
	return *guest->key.name ?
	       "its key has most sessions, and another one needs its place" :
	       "its address has most sessions, and another one needs its place";
}

/* What is told to go counts no longer, although it takes a moment to end. */
static void send_away(struct guests *all, struct guest *guest, enum incident what)
{
	const char *why = reason_to_go(guest, what);
	char host[ADDR_TEXT];

	quota_drop(&all->quota, &guest->place);
	if (!guest->session)
		return;
	if (incidents_note_peer(&all->engine->incidents, what, &guest->peer))
		log_warn(all->engine->log, "session %u of %s has to go: %s",
			 guest->number, addr_host(&guest->peer, host), why);
	guest_drop_share(guest);
	session_stop(guest->session, why);
}

static struct denial make_room(struct guests *all,
			       const struct sockaddr_storage *peer,
			       const char *key, unsigned int pipes)
{
	struct halt *halt = halt_if_full(all, pipes);
	struct quota_share *victim;
	struct denial denial;

	halt_begin(halt);
	denial = objection(all, peer, key, pipes, &victim);
	while (victim) {
		send_away(all, guest_of(victim), denial.what);
		denial = objection(all, peer, key, pipes, &victim);
	}
	halt_end(halt);
	return denial;
}

static struct guest *guest_new(struct guests *all,
			       const struct sockaddr_storage *peer,
			       const struct key *key, unsigned int pipes)
{
	struct guest *guest = calloc(1, sizeof(*guest));

	if (!guest)
		return NULL;
	guest->all = all;
	guest->peer = *peer;
	if (key)
		guest->key = *key;
	guest->began_at = loop_clock();
	guest->place.pipes = pipes;
	if (quota_take(&all->quota, &guest->place, peer, guest->key.name)) {
		free(guest);
		return NULL;
	}
	guest->number = ++all->numbers;
	guest->worker = workers_least_busy(&all->workers);
	guest->worker->guests++;
	list_add_tail(&all->all, &guest->member);
	all->n++;
	return guest;
}

struct guest *guests_admit(struct guests *all,
			   const struct sockaddr_storage *peer,
			   const struct key *key, unsigned int pipes,
			   struct denial *denial)
{
	struct guest *guest;

	*denial = make_room(all, peer, key ? key->name : "", pipes);
	if (denial->why)
		return NULL;
	guest = guest_new(all, peer, key, pipes);
	if (!guest)
		*denial = (struct denial){ INCIDENT_MEMORY, "memory is short" };
	return guest;
}

/* The last: of one that is ending, its local proxy may have begun another already. */
struct guest *guests_find(const struct guests *all, const struct wire_hello *hello)
{
	struct list *pos;

	for (pos = all->all.prev; pos != &all->all; pos = pos->prev) {
		struct guest *guest = guest_at(pos);

		if (!guest->nfds && !memcmp(guest->hello.session, hello->session,
					    sizeof(hello->session)))
			return guest;
	}
	return NULL;
}

/*
 * A local proxy that was started for more pipes gets several sessions where its
 * pipes do not come all at once: with one pipe a session, or when SYNs were lost.
 * Nothing tells them from those of several local proxies behind one address. But
 * they begin soon after one another.
 */
void guests_say_if_in_one_burst(struct guests *all, unsigned int number,
				unsigned int pipes)
{
	const struct guest *guest = guest_at(all->all.prev), *before;
	char host[ADDR_TEXT];

	if (list_empty(&all->all) || guest->number != number ||
	    quota_of_address(&guest->place) < 2)
		return;
	before = guest_of(list_entry(guest->place.member.prev,
				     struct quota_share, member));
	if (!before->nfds ||
	    guest->began_at - before->began_at > BURST_S * NS_PER_SEC)
		return;
	if (!incidents_note_peer(&all->engine->incidents, INCIDENT_GROUP,
				 &guest->peer))
		return;
	log_warn(all->engine->log, "sessions %u and %u of %s began within %u s, "
		 "and rp was started for %u pipe%s: if both are of one lp that was "
		 "started for more, its connections will not work",
		 before->number, number, addr_host(&guest->peer, host), BURST_S,
		 pipes, plural(pipes));
}

/* --- who goes --- */

static void has_left(struct errand *e)
{
	struct guest *guest = container_of(e, struct guest, errand);
	struct guests *all = guest->all;

	quota_drop(&all->quota, &guest->place);
	guest->worker->guests--;
	all->n--;
	list_del(&guest->member);
	explicit_bzero(&guest->key, sizeof(guest->key));
	free(guest);
	all->left(all);
}

void guests_leave(struct guest *guest)
{
	guest->errand.run = has_left;
	workers_tell_first(&guest->all->workers, &guest->errand);
}

static bool is_waiting_too(const struct guest *guest, const struct guest *other)
{
	return other->place.address == guest->place.address &&
	       other->session && session_is_up(other->session) &&
	       session_alone_since(other->session);
}

static void relieve_of_one(struct guest *guest)
{
	struct guest *first = guest;
	unsigned int waiting = 0;
	struct list *pos, *tmp;

	list_each(pos, tmp, &guest->all->all) {
		struct guest *other = guest_at(pos);

		if (!is_waiting_too(guest, other))
			continue;
		waiting++;
		if (session_alone_since(other->session) <
		    session_alone_since(first->session))
			first = other;
	}
	if (waiting > ALONE_EACH)
		session_stop(first->session, "it had no pipe, as others of its "
			     "address or key");
}

static void hears_alone(struct errand *e)
{
	struct guest *guest = container_of(e, struct guest, alone);
	struct halt *halt = &guest->all->workers.halt;

	halt_begin(halt);
	guest->tells_alone = false;
	if (guest->session && is_waiting_too(guest, guest))
		relieve_of_one(guest);
	halt_end(halt);
}

void guests_alone(struct guest *guest)
{
	if (guest->tells_alone)
		return;
	guest->tells_alone = true;
	guest->alone.run = hears_alone;
	workers_tell_first(&guest->all->workers, &guest->alone);
}

/* --- who gives way --- */

/* What a session wants to listen on, and others of its owner may. */
struct wish {
	struct errand errand;
	struct guest *guest;
	uint16_t listener;
	struct sockaddr_storage addr;
};

static bool is_same_owner(const struct guest *a, const struct guest *b)
{
	return !strcmp(a->key.name, b->key.name) &&
	       (*a->key.name || addr_same_host(&a->peer, &b->peer));
}

static bool another_gives_way(struct guest *guest,
			      const struct sockaddr_storage *addr)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &guest->all->all) {
		struct guest *other = guest_at(pos);

		if (other != guest && other->session &&
		    is_same_owner(guest, other) &&
		    session_alone_since(other->session) &&
		    lent_ports_give_way(&other->lent, addr))
			return true;
	}
	return false;
}

static void hears_wish(struct errand *e)
{
	struct wish *wish = container_of(e, struct wish, errand);
	struct guest *guest = wish->guest;
	struct halt *halt = &guest->all->workers.halt;

	halt_begin(halt);
	guest->asked = true;
	if (guest->session && session_is_up(guest->session))
		lent_ports_try(&guest->lent, wish->listener, &wish->addr);
	guest->asked = false;
	halt_end(halt);
	free(wish);
}

int guests_give_way(struct guest *guest, uint16_t listener,
		    const struct sockaddr_storage *addr)
{
	struct workers *workers = &guest->all->workers;
	struct wish *wish;

	if (!workers_are_several(workers) || guest->asked)
		return another_gives_way(guest, addr) ? 0 : EADDRINUSE;
	wish = malloc(sizeof(*wish));
	if (!wish)
		return EADDRINUSE;
	*wish = (struct wish){ { .run = hears_wish }, guest, listener, *addr };
	workers_tell_first(workers, &wish->errand);
	return EINPROGRESS;
}

/* --- all of them --- */

void guests_end_without_key(struct guests *all)
{
	unsigned int ended = 0;
	struct list *pos, *tmp;

	all->keys_gone = all->options->keys_gone;
	list_each(pos, tmp, &all->all) {
		struct guest *guest = guest_at(pos);

		if (!guest->session || !session_is_up(guest->session) ||
		    guest_may_stay(guest))
			continue;
		session_stop(guest->session, "its key was taken away");
		ended++;
	}
	if (ended)
		log_info(all->engine->log, "%u session%s, whose key was taken away",
			 ended, ended == 1 ? " ends" : "s end");
}

void guests_review(struct guests *all)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &all->all) {
		if (guest_at(pos)->session)
			lent_ports_review(&guest_at(pos)->lent);
	}
	quota_set(&all->quota, 0, all->options->max_sessions,
		  all->options->max_sessions_each);
	workers_review(&all->workers);
}

void guests_stop(struct guests *all)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &all->all) {
		if (guest_at(pos)->session)
			session_stop(guest_at(pos)->session, "rp is ending");
	}
}

void guests_print(struct guests *all, FILE *out)
{
	struct list *pos, *tmp;

	workers_print(&all->workers, out);
	list_each(pos, tmp, &all->all) {
		struct guest *guest = guest_at(pos);

		if (!guest->session)
			continue;
		session_print(guest->session, out);
		lent_ports_print(&guest->lent, out);
		if (guest->connector.under_way)
			fprintf(out, "  connects under way: %u of %u\n",
				guest->connector.under_way,
				all->options->max_connects);
	}
}

/* A whole session fits in any case. */
static unsigned long most_pipes(void)
{
	unsigned long most = sock_limit() / PIPES_SHARE;

	return most > PIPES_MAX ? most : PIPES_MAX;
}

int guests_init(struct guests *all, struct engine *engine,
		const struct options *options,
		const struct entrances *const entrances[REACH_ENTRANCES],
		left_fn left, stray_fn stray)
{
	all->engine = engine;
	all->options = options;
	all->left = left;
	all->stray = stray;
	list_init(&all->all);
	quota_init(&all->quota, NULL, NULL, options->max_sessions,
		   options->max_sessions_each, is_idle, NULL);
	all->quota.max_pipes = most_pipes();
	return workers_init(&all->workers, engine, options, entrances);
}

void guests_fini(struct guests *all)
{
	workers_fini(&all->workers);
}
