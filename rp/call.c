/* SPDX-License-Identifier: MIT */
#include "call.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>

#include "../mux/base/addr.h"
#include "../mux/base/log.h"
#include "../mux/base/race.h"
#include "../mux/base/resolver.h"
#include "../mux/conn/conn.h"
#include "../mux/session/session.h"
#include "connects.h"
#include "quota.h"
#include "reach.h"

struct call {
	struct connector *connector;
	struct conn *conn;	/* NULL: it was given up while it looked up */
	struct list member;	/* of the connector's calls, or its unasked */
	struct lookup *lookup;	/* or NULL */
	struct racing *racing;	/* NULL: there is no race yet */
};

/* Apart from the call, as most calls of many wait for their names: it is large. */
struct racing {
	struct call *call;
	struct race race;
};

static struct call *call_of(struct race *r)
{
	return container_of(r, struct racing, race)->call;
}

static struct log *log_of(const struct call *call)
{
	return call->connector->all->engine->log;
}

/* --- the race --- */

static int dial(struct race *r, const struct sockaddr_storage *to)
{
	struct connector *c = call_of(r)->connector;
	int fd;

	connector_counts(c, 1);
	fd = connector_dial(c, to);
	if (fd < 0)
		connector_counts(c, -1);
	return fd;
}

static void closed(struct race *r)
{
	connector_counts(call_of(r)->connector, -1);
}

/* The connection has its own place among the sockets. */
static void won(struct race *r, int fd)
{
	struct call *call = call_of(r);
	struct connector *c = call->connector;
	struct conn *conn = call->conn;

	connector_counts(c, -1);
	call_free(call);
	connector_connected(c, conn, fd);
}

static void lost(struct race *r, int err)
{
	struct call *call = call_of(r);
	struct connector *c = call->connector;
	struct conn *conn = call->conn;

	call_free(call);
	connector_failed(c, conn, err);
}

static const struct race_ops race_ops = {
	.dial = dial,
	.closed = closed,
	.won = won,
	.lost = lost,
};

/* --- the name --- */

static void refuse(struct call *call, enum conn_end why)
{
	struct conn *conn = call->conn;

	call_free(call);
	conn_reset(conn, why);
}

/* Of the addresses in @answer, those that may be reached; how many. */
static unsigned int judge(const struct call *call, const struct answer *answer,
			  struct sockaddr_storage addr[LOOKUP_ADDRESSES])
{
	const struct connector *c = call->connector;
	char why[ACCESS_WHY], text[CONN_TEXT], host[ADDR_TEXT];
	unsigned int n = 0, i;

	for (i = 0; i < answer->count; i++) {
		addr[n] = answer->addr[i];
		addr_set_port(&addr[n], call->conn->dst->port);
		addr_unmap(&addr[n]);
		if (reach_allows(c->all->reach, &addr[n], c->local, why)) {
			n++;
			continue;
		}
		if (session_notes(call->conn->owner->self, INCIDENT_DENIED))
			log_warn(log_of(call), "%s, which is %s, denied: %s",
				 conn_text(call->conn, text),
				 addr_host(&addr[n], host), why);
	}
	return n;
}

static int ask(struct call *call);

/* One was answered or given up, so another one may be asked for. */
static void ask_next(struct connector *c)
{
	while (!list_empty(&c->unasked) && c->looking < CALLS_LOOKING) {
		struct call *next = list_first(&c->unasked, struct call,
					       member);
		struct conn *conn = next->conn;
		int err = ask(next);

		if (!err)
			continue;
		call_free(next);
		connector_failed(c, conn, -err);
	}
}

static void begin_race(struct call *call, const struct sockaddr_storage *addr,
		       unsigned int n)
{
	struct racing *racing = malloc(sizeof(*racing));
	struct connector *c = call->connector;
	struct conn *conn = call->conn;

	if (!racing) {
		call_free(call);
		connector_failed(c, conn, ENOMEM);
		return;
	}
	racing->call = call;
	call->racing = racing;
	race_init(&racing->race, &race_ops, c->all->engine->loop, addr, n);
	race_start(&racing->race);
}

static void take_answer(struct call *call, const struct answer *answer)
{
	struct sockaddr_storage addr[LOOKUP_ADDRESSES];
	char text[CONN_TEXT];
	unsigned int n;

	if (answer->error) {
		log_debug(log_of(call), "%s: %s", conn_text(call->conn, text),
			  resolver_error_text(answer->error));
		refuse(call, CONN_END_NO_NAME);
		return;
	}
	n = judge(call, answer, addr);
	if (n)
		begin_race(call, addr, n);
	else
		refuse(call, CONN_END_DENIED);
}

static void looked_up(void *asker, const struct answer *answer)
{
	struct call *call = asker;
	struct connector *c = call->connector;

	call->lookup = NULL;
	c->looking--;
	if (call->conn)
		take_answer(call, answer);
	else
		call_free(call);
	ask_next(c);
}

/* 0 or -errno. */
static int ask(struct call *call)
{
	struct connector *c = call->connector;
	const struct destination *to = call->conn->dst;
	int err = connector_asks(c, call->conn, (const char *)to->bytes,
				 looked_up, call, &call->lookup);

	if (err)
		return err;
	list_move_tail(&c->calls, &call->member);
	c->looking++;
	return 0;
}

int call_begin(struct connector *c, struct conn *conn)
{
	struct call *call = calloc(1, sizeof(*call));
	int err = 0;

	if (!call)
		return -ENOMEM;
	call->connector = c;
	call->conn = conn;
	list_add_tail(&c->unasked, &call->member);
	conn->asker = call;
	connector_counts(c, -1);	/* a name has none; those that race count */
	if (c->looking < CALLS_LOOKING)
		err = ask(call);
	if (err)
		call_free(call);
	return err;
}

void call_free(struct call *call)
{
	if (call->conn) {
		call->conn->asker = NULL;
		connector_counts(call->connector, 1);
	}
	call->conn = NULL;
	if (call->lookup)
		return;		/* a thread goes on with it: its place is taken */
	list_del(&call->member);
	if (call->racing)
		race_stop(&call->racing->race);
	free(call->racing);
	free(call);
}

static void forget(struct call *call)
{
	resolver_cancel(call->lookup);
	call->lookup = NULL;
	call->connector->looking--;
	call_free(call);
}

void calls_end(struct list *calls)
{
	while (!list_empty(calls)) {
		struct call *call = list_first(calls, struct call, member);

		if (call->conn)
			conn_abort(call->conn, CONN_END_SESSION);
		else
			forget(call);
	}
}
