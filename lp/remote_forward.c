/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "remote_forward.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../mux/base/addr.h"
#include "../mux/base/list.h"
#include "../mux/base/log.h"
#include "../mux/base/race.h"
#include "../mux/base/resolver.h"
#include "../mux/base/sock.h"
#include "../mux/conn/address.h"
#include "../mux/conn/conn.h"
#include "../mux/session/reverse.h"
#include "../mux/session/session.h"
#include "options.h"
#include "proxy.h"

#define CONNECT_TIME (REMOTE_CONNECT_S * NS_PER_SEC)

enum remote_state { REMOTE_IDLE, REMOTE_ASKED, REMOTE_LISTENS, REMOTE_FAILED };

struct remote {
	const struct rule *rule;
	struct destination at;
	char to[ENDPOINT_TEXT];
	enum remote_state state;
	uint8_t said;		/* the result that was logged; 0: none */
};

struct remote_forwards {
	struct proxy *proxy;
	struct timer again;	/* set while rp is to be asked once more */
	struct list calls;
	unsigned int n;
	struct remote remote[];
};

struct call {			/* a connection that goes to a name */
	struct list member;
	struct remote_forwards *of;
	struct conn *conn;
	struct lookup *lookup;	/* or NULL */
	unsigned int running;	/* addresses in the race; 0: it is not on */
	struct race race;
};

/* --- connections --- */

static enum conn_end end_of(int err)
{
	if (sock_is_shortage(err) || err == EAGAIN || err == EADDRNOTAVAIL)
		return CONN_END_LIMIT;
	switch (err) {
	case ECONNREFUSED:
		return CONN_END_REFUSED;
	case ETIMEDOUT:
		return CONN_END_TIMEOUT;
	default:
		return CONN_END_UNREACHABLE;
	}
}

static void failed(struct remote_forwards *r, struct conn *c, int err)
{
	char to[DESTINATION_TEXT];

	log_debug(r->proxy->log, "connection %u to %s: %s", c->id,
		  destination_text(c->dst, to), strerror(err));
	conn_reset(c, end_of(err));
}

/* A quarter of the descriptors is not for strangers: pipes that are lost, and ways in, need some. */
static int dial_to(const struct sockaddr_storage *to)
{
	unsigned long limit = sock_limit();
	int fd = sock_tcp(to->ss_family);

	if (fd >= 0 && (unsigned long)fd >= limit - limit / 4) {
		close(fd);
		fd = -EMFILE;
	}
	return sock_connect(fd, to);
}

/* @fd is on its way, or -errno. */
static void take_socket(struct remote_forwards *r, struct conn *c, int fd)
{
	int err = fd < 0 ? fd : conn_connecting(c, fd, CONNECT_TIME);

	if (err)
		failed(r, c, -err);
}

static void call_free(struct call *call)
{
	call->conn->asker = NULL;
	if (call->lookup)
		resolver_cancel(call->lookup);
	if (call->running)
		race_stop(&call->race);
	list_del(&call->member);
	free(call);
}

static struct call *call_of(struct race *race)
{
	return container_of(race, struct call, race);
}

static int dial(struct race *race, const struct sockaddr_storage *to)
{
	(void)race;
	return dial_to(to);
}

static void closed(struct race *race)
{
	(void)race;
}

static void won(struct race *race, int fd)
{
	struct call *call = call_of(race);
	struct remote_forwards *r = call->of;
	struct conn *c = call->conn;

	call_free(call);
	take_socket(r, c, fd);
}

static void lost(struct race *race, int err)
{
	struct call *call = call_of(race);
	struct remote_forwards *r = call->of;
	struct conn *c = call->conn;

	call_free(call);
	failed(r, c, err);
}

static const struct race_ops race_ops = {
	.dial = dial,
	.closed = closed,
	.won = won,
	.lost = lost,
};

static void looked_up(void *asker, const struct answer *answer)
{
	struct call *call = asker;
	struct conn *c = call->conn;
	struct sockaddr_storage addr[LOOKUP_ADDRESSES];
	unsigned int i;

	call->lookup = NULL;
	if (answer->error) {
		log_debug(call->of->proxy->log, "connection %u: %s: %s", c->id,
			  (const char *)c->dst->bytes,
			  resolver_error_text(answer->error));
		call_free(call);
		conn_reset(c, CONN_END_NO_NAME);
		return;
	}
	for (i = 0; i < answer->count; i++) {
		addr[i] = answer->addr[i];
		addr_set_port(&addr[i], c->dst->port);
	}
	call->running = answer->count;
	race_init(&call->race, &race_ops, call->of->proxy->loop, addr,
		  answer->count);
	race_start(&call->race);
}

/* 0 or -errno. */
static int look_up(struct remote_forwards *r, struct conn *c)
{
	struct call *call = calloc(1, sizeof(*call));
	int err;

	if (!call)
		return -ENOMEM;
	call->of = r;
	call->conn = c;
	c->asker = call;
	list_add_tail(&r->calls, &call->member);
	err = conn_await_connect(c, CONNECT_TIME);
	if (!err)
		err = resolver_ask(r->proxy->names, (const char *)c->dst->bytes,
				   AF_UNSPEC, looked_up, call, &call->lookup);
	if (err)
		call_free(call);
	return err;
}

void remote_forwards_accepted(struct remote_forwards *r, struct conn *c)
{
	uint16_t listener = destination_listener_of(c->dst);
	struct sockaddr_storage to;
	int err;

	if (listener >= r->n || r->remote[listener].state == REMOTE_IDLE) {
		conn_reset(c, CONN_END_DENIED);
		return;
	}
	err = conn_set_destination(c, &r->remote[listener].rule->dst);
	if (!err && c->dst->kind == DESTINATION_NAME)
		err = look_up(r, c);
	if (err) {
		failed(r, c, -err);
	} else if (c->dst->kind != DESTINATION_NAME) {
		to = destination_address(c->dst);
		take_socket(r, c, dial_to(&to));
	}
}

void remote_forwards_closed(struct conn *c)
{
	if (c->asker)
		call_free(c->asker);
}

/* --- what rp is asked for --- */

static const char *why_not(uint8_t result)
{
	switch (result) {
	case WIRE_LISTENING_IN_USE:
		return "somebody else does";
	case WIRE_LISTENING_NOT_HERE:
		return "its host has no such address";
	case WIRE_LISTENING_DENIED:
		return "it may not (rp --permit-listen)";
	case WIRE_LISTENING_LIMIT:
		return "it has no descriptor or memory for it";
	default:
		return "it cannot, and its log says why";
	}
}

static void ask(struct remote_forwards *r)
{
	unsigned int i;

	for (i = 0; i < r->n; i++) {
		if (r->remote[i].state != REMOTE_IDLE &&
		    r->remote[i].state != REMOTE_FAILED)
			continue;
		r->remote[i].state = REMOTE_ASKED;
		session_listen(r->proxy->session, (uint16_t)i,
			       &r->remote[i].at);
	}
}

static void ask_again(struct timer *t)
{
	struct remote_forwards *r = container_of(t, struct remote_forwards,
						 again);

	if (r->proxy->session && session_reverses(r->proxy->session))
		ask(r);
}

static void listens(struct remote_forwards *r, struct remote *m)
{
	char at[ADDR_TEXT];

	/* It is a late copy, from before rp said no. */
	if (m->state != REMOTE_ASKED)
		return;
	m->state = REMOTE_LISTENS;
	m->said = 0;
	log_info(r->proxy->log, "rp listens on %s for %s",
		 addr_text(&m->rule->addr, at), m->to);
}

void remote_forwards_listening(struct remote_forwards *r, uint16_t listener,
			       uint8_t result, uint16_t port)
{
	struct remote *m;
	char at[ADDR_TEXT];

	(void)port;
	if (listener >= r->n)
		return;
	m = &r->remote[listener];
	if (!result) {
		listens(r, m);
		return;
	}
	/* It has said no already, or takes back what it never gave. */
	if (m->state == REMOTE_IDLE || m->state == REMOTE_FAILED)
		return;
	m->state = REMOTE_FAILED;
	if (m->said != result)
		log_warn(r->proxy->log, "rp does not listen on %s for %s: %s; it is asked again every %d s",
			 addr_text(&m->rule->addr, at), m->to, why_not(result),
			 REMOTE_AGAIN_S);
	m->said = result;
	if (!r->again.slot)
		loop_timer_in(r->proxy->loop, &r->again,
			      REMOTE_AGAIN_S * NS_PER_SEC);
}

/* --- sessions --- */

void remote_forwards_begin(struct remote_forwards *r)
{
	const struct session *s = r->proxy->session;

	if (!r->n)
		return;
	if (session_reverses(s))
		ask(r);
	else
		log_warn(r->proxy->log, "rp listens on nothing for --remote-forward: %s",
			 session_is_extended(s) ? "it is an older one" :
			 "it was reached by the baseline, which cannot ask for it");
}

void remote_forwards_end(struct remote_forwards *r)
{
	unsigned int i;

	loop_timer_stop(r->proxy->loop, &r->again);
	while (!list_empty(&r->calls))
		conn_abort(list_first(&r->calls, struct call, member)->conn,
			   CONN_END_SESSION);
	for (i = 0; i < r->n; i++)
		r->remote[i].state = REMOTE_IDLE;
}

struct remote_forwards *remote_forwards_new(struct proxy *p)
{
	const struct options *o = p->options;
	struct remote_forwards *r = calloc(1, sizeof(*r) + o->nremotes *
					   sizeof(struct remote));
	unsigned int i;

	if (!r)
		return NULL;
	r->proxy = p;
	r->again.fire = ask_again;
	list_init(&r->calls);
	r->n = o->nremotes;
	for (i = 0; i < r->n; i++) {
		r->remote[i].rule = &o->remotes[i];
		r->remote[i].at = address_destination(&o->remotes[i].addr);
		endpoint_text(&o->remotes[i].to, r->remote[i].to);
	}
	return r;
}

void remote_forwards_free(struct remote_forwards *r)
{
	if (!r)
		return;
	remote_forwards_end(r);
	free(r);
}

void remote_forwards_print(const struct remote_forwards *r, FILE *out)
{
	static const char *const state[] = {
		[REMOTE_IDLE] = "was not asked yet",
		[REMOTE_ASKED] = "was asked",
		[REMOTE_LISTENS] = "listens",
		[REMOTE_FAILED] = "does not listen",
	};
	char at[ADDR_TEXT];
	unsigned int i;

	for (i = 0; i < r->n; i++)
		fprintf(out, "rp %s on %s for %s\n", state[r->remote[i].state],
			addr_text(&r->remote[i].rule->addr, at),
			r->remote[i].to);
}
