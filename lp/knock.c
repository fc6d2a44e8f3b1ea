/* SPDX-License-Identifier: MIT */
#include "knock.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../mux/base/sock.h"
#include "departure.h"

static int dial(struct race *r, const struct sockaddr_storage *to)
{
	struct knock *k = container_of(r, struct knock, race);

	return sock_connect(departure_socket(k->path,
					     transport_set_of(k->transports, 0),
					     to->ss_family), to);
}

static void closed(struct race *r)
{
	(void)r;
}

static void won(struct race *r, int fd)
{
	struct knock *k = container_of(r, struct knock, race);
	struct sockaddr_storage who = { 0 };
	socklen_t len = sizeof(who);
	int err = getpeername(fd, (struct sockaddr *)&who, &len);

	close(fd);
	if (!err && k->ops->is_silent(k))
		k->ops->answered(k, &who);
}

static void lost(struct race *r, int err)
{
	struct knock *k = container_of(r, struct knock, race);

	if (err == ECONNREFUSED && k->ops->is_silent(k))
		k->ops->answered(k, NULL);
}

static const struct race_ops race_ops = {
	.dial = dial,
	.closed = closed,
	.won = won,
	.lost = lost,
};

static void time_came(struct timer *t)
{
	struct knock *k = container_of(t, struct knock, timer);

	if (k->ops->is_silent(k))
		race_start(&k->race);
}

void knock_soon(struct knock *k, const struct sockaddr_storage *addr,
		unsigned int n)
{
	if (!n)
		return;
	race_init(&k->race, &race_ops, k->race.loop, addr, n);
	loop_timer_in(k->race.loop, &k->timer, RACE_STEP_MS * NS_PER_MS);
}

void knock_stop(struct knock *k)
{
	loop_timer_stop(k->race.loop, &k->timer);
	race_stop(&k->race);
}

void knock_init(struct knock *k, const struct knock_ops *ops,
		struct loop *loop, const struct transport_set *transports)
{
	memset(k, 0, sizeof(*k));
	k->ops = ops;
	k->transports = transports;
	k->race.loop = loop;
	k->timer.fire = time_came;
}
