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

static void grow(struct queue *q, uint64_t packets, uint64_t bytes)
{
	q->packets += packets;
	q->bytes += bytes;
	if (q->packets > q->packets_top)
		q->packets_top = q->packets;
	if (q->bytes > q->bytes_top)
		q->bytes_top = q->bytes;
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
	grow(q, 1, p->cost);
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

void queue_prepend(struct queue *q, struct queue *before)
{
	if (!before->head)
		return;
	before->tail->next = q->head;
	q->head = before->head;
	if (!q->tail)
		q->tail = before->tail;
	grow(q, before->packets, before->bytes);
	before->head = before->tail = NULL;
	before->packets = before->bytes = 0;
}
