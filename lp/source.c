/* SPDX-License-Identifier: MIT */
#include "source.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "../mux/base/addr.h"
#include "../mux/base/list.h"
#include "../mux/base/sock.h"

enum {
	BUCKETS = 256,
	PART = 4,	/* of all descriptors, for each --tproxy: pipes and connections need some */
};

struct sources {
	struct list bucket[BUCKETS];
	unsigned int count;
};

struct source {
	struct sources *all;
	struct list member;	/* of its bucket */
	struct sockaddr_storage addr;
	unsigned int users;
	int fd;
};

static struct list *bucket_of(struct sources *all,
			      const struct sockaddr_storage *addr)
{
	return &all->bucket[addr_hash(addr) % BUCKETS];
}

static struct source *find(struct sources *all,
			   const struct sockaddr_storage *addr)
{
	struct list *bucket = bucket_of(all, addr), *pos, *tmp;

	list_each(pos, tmp, bucket) {
		struct source *s = list_entry(pos, struct source, member);

		if (addr_same(&s->addr, addr))
			return s;
	}
	return NULL;
}

static struct source *add(struct sources *all,
			  const struct sockaddr_storage *addr)
{
	struct source *s;
	int fd = all->count < sock_limit() / PART ?
		sock_transparent_udp(addr, true) : -EMFILE;

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	s = calloc(1, sizeof(*s));
	if (!s) {
		close(fd);
		errno = ENOMEM;
		return NULL;
	}
	s->all = all;
	s->addr = *addr;
	s->fd = fd;
	list_add_tail(bucket_of(all, addr), &s->member);
	all->count++;
	return s;
}

struct source *source_get(struct sources *all,
			  const struct sockaddr_storage *addr)
{
	struct source *s = find(all, addr);

	if (!s)
		s = add(all, addr);
	if (s)
		s->users++;
	return s;
}

void source_put(struct source *s)
{
	if (!s || --s->users)
		return;
	close(s->fd);
	list_del(&s->member);
	s->all->count--;
	free(s);
}

int source_fd(const struct source *s)
{
	return s->fd;
}

unsigned int sources_count(const struct sources *all)
{
	return all->count;
}

struct sources *sources_new(void)
{
	struct sources *all = calloc(1, sizeof(*all));
	int i;

	for (i = 0; all && i < BUCKETS; i++)
		list_init(&all->bucket[i]);
	return all;
}

void sources_free(struct sources *all)
{
	free(all);
}
