/* SPDX-License-Identifier: MIT */
#include "resolver_clients.h"

#include <stdlib.h>
#include <string.h>

void clients_init(struct clients *all, unsigned int threads)
{
	memset(all, 0, sizeof(*all));
	list_init(&all->all);
	list_init(&all->line);
	all->common = all->most = all->each = threads;
}

/* --- what is used, and what is reserved --- */

static unsigned int lacks(const struct clients *all, const struct client *c)
{
	return c->busy < all->few ? all->few - c->busy : 0;
}

static unsigned int reserved_of(const struct clients *all,
				const struct client *c)
{
	return c->has_few ? lacks(all, c) : 0;
}

static bool are_free(const struct clients *all, unsigned int threads)
{
	return all->busy + all->reserved + threads <= all->most;
}

static void set_busy(struct clients *all, struct client *c, unsigned int busy)
{
	all->reserved -= reserved_of(all, c);
	all->busy -= c->busy;
	c->busy = busy;
	all->busy += c->busy;
	all->reserved += reserved_of(all, c);
}

/* Who needs more than is free keeps those behind it waiting: it would never have its turn else. */
static void serve_line(struct clients *all)
{
	while (!list_empty(&all->line)) {
		struct client *c = list_first(&all->line, struct client, place);

		if (!are_free(all, lacks(all, c)))
			break;
		list_del(&c->place);
		c->has_few = true;
		all->reserved += reserved_of(all, c);
	}
}

void clients_grant_each(struct clients *all, unsigned int few,
			unsigned int most)
{
	all->few = few;
	all->most = most;
	serve_line(all);
}

void client_reserve(struct clients *all, struct client *c)
{
	if (c->wanted++)
		return;
	list_add_tail(&all->line, &c->place);
	serve_line(all);
}

void client_release(struct clients *all, struct client *c)
{
	if (--c->wanted)
		return;
	all->reserved -= reserved_of(all, c);
	c->has_few = false;
	list_del(&c->place);
	client_put(c);
	serve_line(all);
}

/* --- clients --- */

static struct client *client_at(const struct list *pos)
{
	return list_entry(pos, struct client, member);
}

static struct client *find(const struct clients *all, const char *who)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &all->all) {
		if (!strcmp(client_at(pos)->who, who))
			return client_at(pos);
	}
	return NULL;
}

struct client *client_get(struct clients *all, const char *who)
{
	struct client *c = find(all, who);
	size_t size = strlen(who) + 1;

	if (c)
		return c;
	c = calloc(1, sizeof(*c) + size);
	if (!c)
		return NULL;
	memcpy(c->who, who, size);
	list_init(&c->place);
	list_init(&c->queue);
	list_add_tail(&all->all, &c->member);
	return c;
}

void client_put(struct client *c)
{
	if (c->wanted || c->busy || !list_empty(&c->queue))
		return;
	list_del(&c->member);
	free(c);
}

void clients_fini(struct clients *all)
{
	while (!list_empty(&all->all)) {
		struct client *c = client_at(all->all.next);

		list_del(&c->member);
		free(c);
	}
}

/* --- whose turn it is --- */

bool client_may_have_thread(const struct clients *all, const struct client *c)
{
	if (c->busy >= all->each)
		return false;
	if (reserved_of(all, c))
		return true;
	if (!list_empty(&all->line) || !are_free(all, 1))
		return false;
	return all->busy < all->common || c->busy < all->few;
}

struct client *clients_next(const struct clients *all)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &all->all) {
		struct client *c = client_at(pos);

		if (!list_empty(&c->queue) && client_may_have_thread(all, c))
			return c;
	}
	return NULL;
}

void client_takes_thread(struct clients *all, struct client *c)
{
	list_move_tail(&all->all, &c->member);
	set_busy(all, c, c->busy + 1);
}

void client_returns_thread(struct clients *all, struct client *c)
{
	set_busy(all, c, c->busy - 1);
	client_put(c);
	serve_line(all);
}
