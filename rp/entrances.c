/* SPDX-License-Identifier: MIT */
#include "entrances.h"

#include <errno.h>
#include <stdlib.h>

#include "../mux/base/addr.h"
#include "../mux/base/sock.h"
#include "../mux/settings/incident.h"

struct entrance {
	struct list member;
	struct listener *listener;
	enum transport kind;
	bool both;		/* of IPv6, and takes IPv4 too */
};

static struct entrance *entrance_at(const struct list *pos)
{
	return list_entry(pos, struct entrance, member);
}

void entrances_init(struct entrances *e, struct loop *loop, struct log *log,
		    struct incidents *incidents, accepted_fn accepted,
		    void *owner)
{
	e->loop = loop;
	e->log = log;
	e->incidents = incidents;
	e->accepted = accepted;
	e->owner = owner;
	list_init(&e->all);
}

/* 0 or -errno; @listener is NULL where that is why. */
static int add(struct entrances *e, enum transport kind, bool both,
	       struct listener *listener)
{
	struct entrance *new;
	int err = listener ? 0 : -errno;

	if (err)
		return err;
	new = calloc(1, sizeof(*new));
	if (!new) {
		listener_free(listener);
		return -ENOMEM;
	}
	new->kind = kind;
	new->both = both;
	new->listener = listener;
	listener_counts_in(listener, e->incidents, INCIDENT_DESCRIPTORS);
	list_add_tail(&e->all, &new->member);
	return 0;
}

int entrances_open(struct entrances *e, enum transport kind,
		   const struct sockaddr_storage *addr, socklen_t len)
{
	return add(e, kind, false,
		   listener_new(e->loop, e->log,
				transport_socket(kind, addr->ss_family), addr,
				len, e->accepted, e->owner));
}

int entrances_adopt(struct entrances *e, enum transport kind, int fd)
{
	bool both = sock_takes_both(fd);

	return add(e, kind, both,
		   listener_adopt(e->loop, e->log, fd, e->accepted, e->owner));
}

const struct sockaddr_storage *entrances_address(const struct entrances *e,
						 unsigned int i,
						 enum transport *kind)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &e->all) {
		*kind = entrance_at(pos)->kind;
		if (!i--)
			return listener_addr(entrance_at(pos)->listener);
	}
	return NULL;
}

/* An IPv6 listener of ours takes no IPv4, see sock_listen(); others' may. */
static bool takes(const struct entrance *e, const struct sockaddr_storage *dst)
{
	const struct sockaddr_storage *listening = listener_addr(e->listener);
	uint8_t v4[4];

	if (addr_port(listening) != addr_port(dst))
		return false;
	return addr_same_host(listening, dst) ||
	       (addr_is_any(listening) &&
		(e->both || addr_v4(listening, v4) == addr_v4(dst, v4)));
}

bool entrances_listen_at(const struct entrances *e,
			 const struct sockaddr_storage *dst)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &e->all) {
		if (entrance_at(pos)->kind != TRANSPORT_SCTP &&
		    takes(entrance_at(pos), dst))
			return true;
	}
	return false;
}

bool entrances_are_short(const struct entrances *e)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &e->all) {
		if (listener_is_short(entrance_at(pos)->listener))
			return true;
	}
	return false;
}

void entrances_close(struct entrances *e)
{
	while (!list_empty(&e->all)) {
		struct entrance *first = entrance_at(e->all.next);

		listener_free(first->listener);
		list_del(&first->member);
		free(first);
	}
}
