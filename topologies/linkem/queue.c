/* SPDX-License-Identifier: MIT */
#include "queue.h"

static bool fits(const struct queue *q, const struct packet *p)
{
	if (!q->packets)
		return true;
	if (q->packets_max && q->packets + 1 > q->packets_max)
		return false;
	return !q->bytes_max || q->bytes + p->cost <= q->bytes_max;
}

bool queue_push(struct queue *q, struct packet *p)
{
	if (!fits(q, p))
		return false;
	p->next = NULL;
	if (q->tail)
		q->tail->next = p;
	else
		q->head = p;
	q->tail = p;
	q->packets++;
	q->bytes += p->cost;
	if (q->packets > q->packets_top)
		q->packets_top = q->packets;
	if (q->bytes > q->bytes_top)
		q->bytes_top = q->bytes;
	return true;
}

struct packet *queue_pop(struct queue *q)
{
	struct packet *p = q->head;

	if (!p)
		return NULL;
	q->head = p->next;
	if (!q->head)
		q->tail = NULL;
	q->packets--;
	q->bytes -= p->cost;
	return p;
}
