/* SPDX-License-Identifier: MIT */
#include "owed.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "pipe.h"

/* Whoever sends datagrams sends another one in this time, or is no game and no call. */
#define DATAGRAMS_LAST NS_PER_SEC

bool passing_datagrams(const struct passing *passing, int64_t now)
{
	return passing->datagram_at && now - passing->datagram_at < DATAGRAMS_LAST;
}

/* Did a segment come, a while behind the one before? */
static bool is_far_apart(struct passing *passing, int64_t now)
{
	int64_t since = now - passing->filled_at;

	passing->filled_at = now;
	return since >= OWED_FAR_APART;
}

/*
 * Less than a segment has nothing behind it that is on its way, and who sent it may be
 * waiting to see whether it was lost. On a slow path a segment is long alone, too, and as long
 * as it is not acknowledged the other end takes it for under way: who knows so little of
 * what is in the queue cannot keep it as short as datagrams need it.
 */
static bool came_alone(struct pipe *p, size_t len)
{
	int64_t now = loop_now(p->loop);

	if (!len || p->transport != TRANSPORT_TCP)
		return false;
	if (len < p->info.mss)
		return true;
	return p->passing && passing_datagrams(p->passing, now) &&
	       is_far_apart(p->passing, now) && len == p->info.mss;
}

/*
 * Behind what the batch brought: whoever waits for it has it by then, and what was sent on the
 * pipe meanwhile took the acknowledgement along. Not for good: the kernel goes back to delaying as
 * soon as something is sent.
 */
static void acknowledge(struct task *t)
{
	struct pipe *p = container_of(t, struct pipe, owed.task);
	int on = 1;

	if (p->owed.sent == p->tx_bytes)
		setsockopt(p->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}

void owed_init(struct pipe *p)
{
	loop_task_init(&p->owed.task, acknowledge);
}

void owed_came(struct pipe *p, size_t len)
{
	if (!p->prompt || p->watch.fd < 0 || !came_alone(p, len))
		return;
	p->owed.sent = p->tx_bytes;
	loop_later(p->loop, &p->owed.task);
}
