/* SPDX-License-Identifier: MIT */
#include "datagrams.h"

#define NS_IN_MS INT64_C(1000000)
#define NS_IN_S INT64_C(1000000000)

void datagrams_init(struct datagram_queue *q)
{
	*q = (struct datagram_queue){ .end = &q->first };
}

struct datagram_item *datagrams_take(struct datagram_queue *q)
{
	struct datagram_item *item = q->first;

	if (!item)
		return NULL;
	q->first = item->next;
	if (!q->first)
		q->end = &q->first;
	q->count--;
	q->bytes -= item->size;
	item->next = NULL;
	return item;
}

struct datagram_item *datagrams_put(struct datagram_queue *q,
				    struct datagram_item *item, int64_t now)
{
	struct datagram_item *oldest = NULL;

	if (q->count == DATAGRAMS_MOST)
		oldest = datagrams_take(q);
	item->next = NULL;
	item->came_at = now;
	*q->end = item;
	q->end = &item->next;
	q->count++;
	q->bytes += item->size;
	return oldest;
}

struct datagram_item *datagrams_stale(struct datagram_queue *q, int64_t now)
{
	if (!q->first ||
	    now - q->first->came_at <= DATAGRAM_PATIENCE_MS * NS_IN_MS)
		return NULL;
	return datagrams_take(q);
}

const struct datagram_item *datagrams_first(const struct datagram_queue *q)
{
	return q->first;
}

int64_t datagrams_idle_limit(bool names)
{
	return (names ? FLOW_IDLE_NAMES_S : FLOW_IDLE_S) * NS_IN_S;
}
