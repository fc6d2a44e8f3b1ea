// SPDX-License-Identifier: MIT
/*
 * In the place of clients.c and clock.c: a server that is only arithmetic, on a clock that moves
 * only while answers are waited for. So what bench-ramp finds does not depend on the machine. The
 * port that is asked tells the limit: so many answers a second.
 */
#include <errno.h>
#include <stdlib.h>

#include "ramp.h"

enum { PLACES = 1 << 19 };

struct answer {
	int64_t at;
	uint32_t which;
	size_t len;
	uint8_t msg[WIRE_PREFIX + WIRE_ANSWER];
};

static struct {
	int64_t now, free_at, each_ns;
	struct answer *queue;
	uint64_t put, taken;
} server;

int64_t clock_ns(void)
{
	return server.now;
}

int clients_open(struct clients *c, uint16_t port, uint16_t ports,
		 const char *authority, uint32_t *which)
{
	(void)ports;
	(void)authority;
	*which = c->count;
	server.each_ns = 1000000000 / port;
	server.queue = calloc(PLACES, sizeof(*server.queue));
	return server.queue ? 0 : -ENOMEM;
}

void clients_close(struct clients *c)
{
	(void)c;
	free(server.queue);
}

int clients_ask(struct clients *c, uint32_t which, const uint8_t *query,
		size_t len)
{
	struct answer *a = &server.queue[server.put % PLACES];

	(void)c;
	if (server.put - server.taken == PLACES)
		return -ENOBUFS;
	if (server.free_at < server.now)
		server.free_at = server.now;
	server.free_at += server.each_ns;
	a->at = server.free_at;
	a->which = which;
	a->len = wire_answer(query + WIRE_PREFIX, len - WIRE_PREFIX, a->msg);
	server.put++;
	return 0;
}

int clients_hear(struct clients *c, int64_t until, heard_fn heard, void *arg)
{
	struct answer *a = &server.queue[server.taken % PLACES];

	(void)c;
	if (server.taken == server.put || a->at > until) {
		server.now = (until > server.now ? until : server.now) + 1;
		return 0;
	}
	server.now = a->at > server.now ? a->at : server.now;
	server.taken++;
	heard(arg, a->which, a->msg + WIRE_PREFIX, a->len - WIRE_PREFIX);
	return 0;
}

int limited_serve(enum kind kind, uint16_t port, double rate)
{
	(void)kind;
	(void)port;
	(void)rate;
	return -ENOTSUP;
}
