/* SPDX-License-Identifier: MIT */
#include "reception.h"

#include <stdlib.h>
#include <string.h>

#include "../mux/base/addr.h"
#include "../mux/base/log.h"
#include "../mux/base/plural.h"
#include "../mux/base/sock.h"
#include "../mux/options/key_file.h"
#include "../mux/session/greeting.h"
#include "../mux/settings/incident.h"
#include "access.h"

struct caller {			/* a pipe whose HELLO is awaited */
	struct reception *reception;
	struct list member;
	struct list due;
	struct place place;
	struct sockaddr_storage peer;
	struct greeting *greeting;
};

static struct caller *caller_at(const struct list *pos)
{
	return list_entry(pos, struct caller, member);
}

/* Its descriptor is not looked at. */
static void caller_free(struct caller *c)
{
	list_del(&c->member);
	list_del(&c->due);
	places_leave(&c->reception->waiting, &c->place);
	free(c);
}

static void dismiss(struct caller *c)
{
	greeting_free(c->greeting);
	caller_free(c);
}

static void hello_came(struct greeting *g, const struct wire_ext *said)
{
	struct caller *c = greeting_owner(g);
	struct reception *r = c->reception;
	struct sockaddr_storage peer = c->peer;
	struct wire_hello hello = said->hello;
	struct conduit conduit = greeting_take(g);

	caller_free(c);
	r->greeted(r, &peer, &hello, conduit);
}

/* A handshake of TLS, whose records begin so. */
static bool is_tls(const struct greeting *g)
{
	size_t len;
	const uint8_t *said = greeting_heard(g, &len);

	return len > 1 && said[0] == 22 && said[1] == 3;
}

static const char *instead_of_hello(const struct reception *r,
				    const struct greeting *g)
{
	return !r->layers && is_tls(g) ?
	       "it began with TLS, as an lp with a key does, and this rp has none (--key-file)" :
	       "it began with something else than HELLO; pipes of the baseline go to another port";
}

static void say_short(const struct reception *r,
		      const struct sockaddr_storage *peer)
{
	char text[ADDR_TEXT];

	if (incidents_note_peer(r->incidents, INCIDENT_MEMORY, peer))
		log_warn(r->log, "a pipe from %s was closed: memory is short",
			 addr_text(peer, text));
}

static void no_hello(struct greeting *g, enum greeting_failure why)
{
	struct caller *c = greeting_owner(g);
	struct incidents *incidents = c->reception->incidents;
	struct log *log = c->reception->log;
	char text[ADDR_TEXT];

	addr_text(&c->peer, text);
	switch (why) {
	case GREETING_CLOSED:
		log_debug(log, "a pipe from %s was closed before it said "
			  "HELLO", text);
		break;
	case GREETING_SILENT:
		if (incidents_note_peer(incidents, INCIDENT_HELLO, &c->peer))
			log_warn(log, "a pipe from %s was closed: it did not say "
				 "HELLO within %g s", text,
				 (double)c->reception->patience /
				 (double)NS_PER_SEC);
		break;
	case GREETING_WRONG:
		if (incidents_note_peer(incidents, INCIDENT_HELLO, &c->peer))
			log_warn(log, "a pipe from %s was closed: %s", text,
				 instead_of_hello(c->reception, g));
		break;
	case GREETING_STRANGER:
		if (incidents_note_peer(incidents, INCIDENT_HELLO, &c->peer))
			log_warn(log, "a pipe from %s was closed: %s", text,
				 greeting_why(g));
		break;
	case GREETING_SHORT:
		say_short(c->reception, &c->peer);
		break;
	}
	dismiss(c);
}

/* --- whose turn it is to be read --- */

static void has_come(struct greeting *g)
{
	struct caller *c = greeting_owner(g);
	struct reception *r = c->reception;

	if (list_empty(&c->due))
		list_add_tail(&r->due, &c->due);
	loop_after(r->loop, &r->turn);
}

static void take_turn(struct task *t)
{
	struct reception *r = container_of(t, struct reception, turn);
	int64_t until = loop_clock() + RECEPTION_TURN_US * NS_PER_US;

	while (!list_empty(&r->due) && loop_clock() < until) {
		struct caller *c = list_first(&r->due, struct caller, due);

		list_del(&c->due);
		greeting_go_on(c->greeting);
	}
	if (!list_empty(&r->due))
		loop_after(r->loop, t);
}

static const struct greeting_ops greeting_ops = {
	.came = hello_came,
	.failed = no_hello,
	.due = has_come,
};

/* --- not too many --- */

static struct caller *caller_of(const struct place *p)
{
	return container_of(p, struct caller, place);
}

/* Its HELLO may be there, and its turn to be read comes in this batch. */
static bool is_silent(const struct place *p)
{
	return !sock_unread(greeting_fd(caller_of(p)->greeting));
}

static void turn_out(struct caller *c, unsigned int waiting)
{
	struct reception *r = c->reception;
	char text[ADDR_TEXT];

	if (incidents_note_peer(r->incidents, INCIDENT_WAITING, &c->peer))
		log_warn(r->log, "a pipe from %s was closed: %u pipe%s "
			 "not said HELLO yet", addr_text(&c->peer, text),
			 waiting, waiting == 1 ? " has" : "s have");
	dismiss(c);
}

static void make_place(struct reception *r,
		       const struct sockaddr_storage *newcomer)
{
	unsigned int n = places_of(&r->waiting, newcomer);

	if (n >= RECEPTION_EACH)
		turn_out(caller_of(places_oldest_of(&r->waiting, newcomer,
						    is_silent)), n);
	if (r->waiting.n >= r->max)
		turn_out(caller_of(places_victim(&r->waiting, is_silent)),
			 r->waiting.n);
}

/* If memory is short @fd is closed. */
static void caller_new(struct reception *r, int fd,
		       const struct sockaddr_storage *peer)
{
	struct caller *c = calloc(1, sizeof(*c));
	struct conduit conduit;

	if (!c || places_take(&r->waiting, &c->place, peer)) {
		say_short(r, peer);
		free(c);
		sock_reset(fd);
		return;
	}
	c->reception = r;
	c->peer = *peer;
	list_init(&c->due);
	list_add_tail(&r->callers, &c->member);
	if (!conduit_open(&conduit, r->layers, fd, true))
		c->greeting = greeting_await(r->loop, conduit, r->patience,
					     &greeting_ops, c);
	if (c->greeting)
		return;
	say_short(r, peer);
	caller_free(c);
}

static void pipe_accepted(struct listener *listener, int fd,
			  const struct sockaddr_storage *peer)
{
	struct reception *r = listener_owner(listener);
	char text[ADDR_TEXT];

	if (!access_admits(r->access, peer)) {
		if (incidents_note_peer(r->incidents, INCIDENT_ALLOW, peer))
			log_warn(r->log, "a pipe from %s was reset: no --allow "
				 "covers it", addr_text(peer, text));
		sock_reset(fd);
		return;
	}
	make_place(r, peer);
	caller_new(r, fd, peer);
}

void reception_init(struct reception *r, greeted_fn greeted, struct loop *loop,
		    struct log *log, struct incidents *incidents,
		    const struct access *access)
{
	memset(r, 0, sizeof(*r));
	r->loop = loop;
	r->log = log;
	r->incidents = incidents;
	r->access = access;
	r->greeted = greeted;
	r->max = RECEPTION_MAX;
	places_init(&r->waiting, RECEPTION_FAIR);
	r->patience = RECEPTION_PATIENCE_S * NS_PER_SEC;
	entrances_init(&r->entrances, loop, log, incidents, pipe_accepted, r);
	list_init(&r->callers);
	list_init(&r->due);
	loop_task_init(&r->turn, take_turn);
}

void reception_dismiss(struct reception *r, const struct keys *gone)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &r->callers) {
		const char *key = greeting_key(caller_at(pos)->greeting);

		if (key && keys_find(gone, key, strlen(key)))
			dismiss(caller_at(pos));
	}
}

void reception_close(struct reception *r)
{
	entrances_close(&r->entrances);
	while (!list_empty(&r->callers))
		dismiss(caller_at(r->callers.next));
}

void reception_print(const struct reception *r, FILE *out)
{
	if (list_empty(&r->entrances.all))
		return;
	fprintf(out, "waiting for their HELLO: %u pipe%s%s\n", r->waiting.n,
		plural(r->waiting.n), entrances_are_short(&r->entrances) ?
		" (no descriptors for more)" : "");
}
