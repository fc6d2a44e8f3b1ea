/* SPDX-License-Identifier: MIT */
#include "host.h"

void host_limit(struct host *h, uint64_t bytes, uint64_t packets)
{
	h->bulk.bytes_max = h->interactive.bytes_max = bytes;
	h->bulk.packets_max = h->interactive.packets_max = packets;
}

bool host_push(struct host *h, struct packet *p, bool is_interactive)
{
	if (h->order == HOST_PRIO && is_interactive)
		return queue_push(&h->interactive, p);
	return queue_push(&h->bulk, p);
}

const struct packet *host_peek(const struct host *h)
{
	return h->interactive.head ? h->interactive.head : h->bulk.head;
}

struct packet *host_pop(struct host *h, int64_t now,
			const struct codel_drop *drop)
{
	if (h->interactive.head)
		return queue_pop(&h->interactive);
	if (h->order == HOST_CODEL)
		return codel_pop(&h->codel, &h->bulk, now, drop);
	return queue_pop(&h->bulk);
}

uint64_t host_packets(const struct host *h)
{
	return h->interactive.packets + h->bulk.packets;
}

uint64_t host_bytes(const struct host *h)
{
	return h->interactive.bytes + h->bulk.bytes;
}

void host_join(struct host *h, struct queue *before)
{
	queue_prepend(&h->bulk, &h->interactive);
	queue_prepend(&h->bulk, before);
}
