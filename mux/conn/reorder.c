/* SPDX-License-Identifier: MIT */
#include "reorder.h"

#include <stdlib.h>
#include <string.h>

/* Up to here a list is searched faster than a table is made and freed. */
enum { FEW = 8, FIRST_BITS = 4 };	/* of a table for twice as many */

/*
 * An empty queue owns nothing, and a queue that forever holds one message and
 * lets it go must not make and free a table each time: hence the list. A table
 * is made for the FEW + 1st message and freed with the last, so that at least
 * FEW messages pay for it.
 */

void reorder_init(struct reorder *q, uint32_t first)
{
	memset(q, 0, sizeof(*q));
	q->next = first;
	list_init(&q->holds);
}

/* What a block of @n bytes takes from a 64-bit allocator: 8 bytes in front of
 * it, in steps of 16. */
static size_t block_size(size_t n)
{
	return (n + 8 + 15) & ~(size_t)15;
}

/* The list is a table of one chain. */
static uint32_t chains(const struct reorder *q)
{
	return UINT32_C(1) << q->bits;
}

static size_t table_memory(const struct reorder *q)
{
	if (!q->bits)
		return 0;
	return block_size(chains(q) * sizeof(struct reorder_early *));
}

static size_t early_memory(const struct reorder_early *early)
{
	return block_size(sizeof(*early) + (early->hollow ? 0 : early->body_len));
}

static void count_in(struct reorder *q, const struct reorder_early *early)
{
	q->count++;
	q->bytes += early_memory(early);
	if (early->type == WIRE_DATA && !early->hollow)
		q->payload += early->body_len;
	if (q->count > q->max_count)
		q->max_count = q->count;
	if (q->payload > q->max_bytes)
		q->max_bytes = q->payload;
}

static void count_out(struct reorder *q, const struct reorder_early *early)
{
	q->count--;
	q->bytes -= early_memory(early);
	if (early->type == WIRE_DATA && !early->hollow)
		q->payload -= early->body_len;
}

static struct reorder_early **heads(struct reorder *q)
{
	return q->bits ? q->bucket : &q->few;
}

/*
 * Who sends the numbers must not choose the bucket: a thousand in one cost sixteen
 * times as much each. So where the table lies, which nobody outside knows, is
 * mixed in. The mixing is that of MurmurHash3's end.
 */
static uint32_t mix(const struct reorder *q, uint32_t number)
{
	uint64_t h = number ^ (uint64_t)(uintptr_t)q->bucket;

	h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
	h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return (uint32_t)(h ^ h >> 33);
}

static struct reorder_early **bucket_of(struct reorder *q, uint32_t number)
{
	return &heads(q)[mix(q, number) & (chains(q) - 1)];
}

/* Where the message with @number hangs, or the NULL at its chain's end. */
static struct reorder_early **find(struct reorder *q, uint32_t number)
{
	struct reorder_early **at = bucket_of(q, number);

	while (*at && (*at)->number != number)
		at = &(*at)->chain;
	return at;
}

static void insert(struct reorder *q, struct reorder_early *early)
{
	struct reorder_early **at = bucket_of(q, early->number);

	early->chain = *at;
	*at = early;
}

static struct reorder_early *pop(struct reorder_early **at)
{
	struct reorder_early *early = *at;

	*at = early->chain;
	early->chain = NULL;
	return early;
}

static void free_table(struct reorder *q)
{
	if (!q->bits)
		return;
	q->bytes -= table_memory(q);
	free(q->bucket);
	q->bits = 0;
	q->few = NULL;
}

void reorder_fini(struct reorder *q)
{
	for (uint32_t i = 0; i < chains(q); i++) {
		while (heads(q)[i]) {
			struct reorder_early *early = pop(&heads(q)[i]);

			count_out(q, early);
			reorder_release(early);
		}
	}
	free_table(q);
}

/* Keeps the load at 1. Without memory for it the chains grow instead. */
static void grow_table(struct reorder *q)
{
	struct reorder grown = *q;

	grown.bits = q->bits ? q->bits + 1 : FIRST_BITS;
	grown.bucket = calloc(chains(&grown), sizeof(*grown.bucket));
	if (!grown.bucket)
		return;
	grown.bytes += table_memory(&grown) - table_memory(q);
	for (uint32_t i = 0; i < chains(q); i++) {
		while (heads(q)[i])
			insert(&grown, pop(&heads(q)[i]));
	}
	if (q->bits)
		free(q->bucket);
	*q = grown;
}

static struct reorder_early *copy(const struct wire_msg *msg, int64_t now)
{
	struct reorder_early *early = malloc(sizeof(*early) + msg->body_len);

	if (!early)
		return NULL;
	early->came_at = now;
	early->number = msg->number;
	early->body_len = msg->body_len;
	early->type = (uint8_t)msg->type;
	early->hollow = false;
	memcpy(early->body, msg->body, msg->body_len);
	return early;
}

static enum reorder_verdict hold(struct reorder *q, const struct wire_msg *msg,
				 int64_t now)
{
	struct reorder_early *early = copy(msg, now);

	if (!early)
		return REORDER_NO_MEMORY;
	if (q->count >= FEW && q->count >= chains(q))
		grow_table(q);
	insert(q, early);
	count_in(q, early);
	return REORDER_EARLY;
}

enum reorder_verdict reorder_put(struct reorder *q, const struct wire_msg *msg,
				 int64_t now)
{
	int32_t ahead = wire_distance(msg->number, q->next);

	if (ahead < 0)
		return REORDER_DUPLICATE;
	if (ahead > (int32_t)WIRE_NUMBER_WINDOW)
		return REORDER_TOO_FAR;
	if (q->count && *find(q, msg->number))
		return REORDER_DUPLICATE;
	if (ahead > 0)
		return hold(q, msg, now);
	q->next++;
	return REORDER_DUE;
}

struct reorder_early *reorder_take(struct reorder *q)
{
	struct reorder_early **at;
	struct reorder_early *early;

	if (!q->count)
		return NULL;
	at = find(q, q->next);
	if (!*at)
		return NULL;
	early = pop(at);
	count_out(q, early);
	q->next++;
	if (!q->count)
		free_table(q);
	return early;
}

static struct reorder_early *hollow(struct reorder *q,
				    struct reorder_early *early)
{
	struct reorder_early *less;

	count_out(q, early);
	early->hollow = true;
	count_in(q, early);
	less = realloc(early, sizeof(*early));
	return less ? less : early;
}

void reorder_hollow(struct reorder *q)
{
	for (uint32_t i = 0; i < chains(q); i++) {
		struct reorder_early **at = &heads(q)[i];

		for (; *at; at = &(*at)->chain) {
			if ((*at)->type == WIRE_DATA && !(*at)->hollow)
				*at = hollow(q, *at);
		}
	}
}

void reorder_release(struct reorder_early *early)
{
	free(early);
}
