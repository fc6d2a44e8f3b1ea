/* SPDX-License-Identifier: MIT */
#include "reception.h"

#include <stdlib.h>
#include <string.h>

#include "../mux/base/log.h"
#include "../mux/base/sock.h"
#include "../mux/session/greeting.h"
#include "access.h"

struct caller {			/* a pipe whose HELLO is awaited */
	struct reception *reception;
	struct list member;
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
	c->reception->waiting--;
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
	int fd = greeting_take(g);

	caller_free(c);
	r->greeted(r, &peer, &hello, fd);
}

static void no_hello(struct greeting *g, enum greeting_failure why)
{
	struct caller *c = greeting_owner(g);
	struct log *log = c->reception->log;
	char text[ADDR_TEXT];

	addr_text(&c->peer, text);
	switch (why) {
	case GREETING_CLOSED:
		log_debug(log, "a pipe from %s was closed before it said "
			  "HELLO", text);
		break;
	case GREETING_SILENT:
		log_warn(log, "a pipe from %s was closed: it did not say HELLO "
			 "within %g s", text, (double)c->reception->patience /
			 (double)NS_PER_SEC);
		break;
	case GREETING_WRONG:
		log_warn(log, "a pipe from %s was closed: it began with "
			 "something else than HELLO; pipes of the baseline go to "
			 "another port", text);
		break;
	}
	dismiss(c);
}

static const struct greeting_ops greeting_ops = {
	.came = hello_came,
	.failed = no_hello,
};

/* --- not too many --- */

/* The oldest of @peer's, or of all where it is NULL; and how many there are. */
static struct caller *oldest(const struct reception *r,
			     const struct sockaddr_storage *peer,
			     unsigned int *n)
{
	struct caller *found = NULL;
	struct list *pos, *tmp;

	*n = 0;
	list_each(pos, tmp, &r->callers) {
		if (peer && !addr_same_host(&caller_at(pos)->peer, peer))
			continue;
		if (!found)
			found = caller_at(pos);
		++*n;
	}
	return found;
}

static void make_place(struct reception *r,
		       const struct sockaddr_storage *newcomer)
{
	char text[ADDR_TEXT];
	struct caller *goes;
	unsigned int n;

	if (r->waiting < RECEPTION_EACH)
		return;
	goes = oldest(r, newcomer, &n);
	if (n < RECEPTION_EACH) {
		goes = oldest(r, NULL, &n);
		if (n < RECEPTION_MAX)
			return;
	}
	log_warn(r->log, "a pipe from %s was closed: %u pipes have not said "
		 "HELLO yet", addr_text(&goes->peer, text), n);
	dismiss(goes);
}

static void pipe_accepted(struct listener *listener, int fd,
			  const struct sockaddr_storage *peer)
{
	struct reception *r = listener_owner(listener);
	char text[ADDR_TEXT];
	struct caller *c;

	if (!access_admits(r->access, peer)) {
		log_warn(r->log, "a pipe from %s was reset: no --allow covers "
			 "it", addr_text(peer, text));
		sock_reset(fd);
		return;
	}
	make_place(r, peer);
	c = calloc(1, sizeof(*c));
	if (!c) {
		sock_reset(fd);
		return;
	}
	c->reception = r;
	c->peer = *peer;
	list_add_tail(&r->callers, &c->member);
	r->waiting++;
	c->greeting = greeting_await(r->loop, fd, r->patience, &greeting_ops, c);
	if (!c->greeting)
		caller_free(c);
}

void reception_init(struct reception *r, greeted_fn greeted, struct loop *loop,
		    struct log *log, const struct access *access)
{
	memset(r, 0, sizeof(*r));
	r->loop = loop;
	r->log = log;
	r->access = access;
	r->greeted = greeted;
	r->patience = RECEPTION_PATIENCE_S * NS_PER_SEC;
	entrances_init(&r->entrances, loop, log, pipe_accepted, r);
	list_init(&r->callers);
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
	fprintf(out, "waiting for their HELLO: %u pipes%s\n", r->waiting,
		entrances_are_short(&r->entrances) ?
		" (no descriptors for more)" : "");
}
