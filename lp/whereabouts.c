/* SPDX-License-Identifier: MIT */
#include "whereabouts.h"

#include <errno.h>
#include <string.h>

#include "../mux/base/addr.h"
#include "../mux/wire/wire.h"

static void looked_up(void *asker, const struct answer *answer)
{
	struct whereabouts *w = asker;

	w->lookup = NULL;
	w->found(w, answer);
}

int whereabouts_ask(struct whereabouts *w)
{
	struct answer answer = { .count = 1 };
	socklen_t len;

	if (w->lookup)
		return 0;
	if (addr_parse(w->host, NULL, WIRE_PORT, &answer.addr[0], &len))
		return resolver_ask(w->resolver, w->host, AF_UNSPEC, looked_up,
				    w, &w->lookup);
	w->found(w, &answer);
	return 0;
}

void whereabouts_forget(struct whereabouts *w)
{
	if (w->lookup)
		resolver_cancel(w->lookup);
	w->lookup = NULL;
}

int whereabouts_init(struct whereabouts *w, struct loop *loop,
		     const char *host,
		     void (*found)(struct whereabouts *w,
				   const struct answer *answer))
{
	*w = (struct whereabouts){ .host = host, .found = found };
	w->resolver = resolver_new(loop, 1);
	return w->resolver ? 0 : -ENOMEM;
}

void whereabouts_fini(struct whereabouts *w)
{
	whereabouts_forget(w);
	if (w->resolver)
		resolver_free(w->resolver);
	w->resolver = NULL;
}

unsigned int whereabouts_find(const struct answer *at,
			      const struct sockaddr_storage *addr)
{
	unsigned int i = 0;

	while (i < at->count && !addr_same_host(&at->addr[i], addr))
		i++;
	return i;
}

void whereabouts_move(struct answer *at, unsigned int from, unsigned int to)
{
	struct sockaddr_storage addr = at->addr[from];

	for (; from < to; from++)
		at->addr[from] = at->addr[from + 1];
	for (; from > to; from--)
		at->addr[from] = at->addr[from - 1];
	at->addr[to] = addr;
}
