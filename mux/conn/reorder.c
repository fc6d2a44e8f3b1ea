/* SPDX-License-Identifier: MIT */
#include "reorder.h"

#include <stdlib.h>
#include <string.h>

/* Up to here a list is searched faster than a table is made and freed. */
enum { FEW = 8, FIRST_BITS = 4 };	/* of a table for twice as many */

/*
 * A queue in which forever one message waits and is let go must not make and free a table
 * each time: hence the list. A table is made for the FEW + 1st message and freed with the
 * last, so that at least FEW messages pay for it. What the queue has beside that, while
 * anything waits, is a small block of one size: to make it takes a fraction of what it
 * takes to copy the message that it is made for.
 */

void reorder_init(struct reorder *q, uint32_t first)
{
	*q = (struct reorder){ .next = first };
}

/* What a block of @n bytes takes from a 64-bit allocator: 8 bytes in front of
 * it, in steps of 16. */
static size_t block_size(size_t n)
{
	return (n + 8 + 15) & ~(size_t)15;
}

/* The list is a table of one chain. */
static uint32_t chains(const struct reorder_waiting *w)
{
	return UINT32_C(1) << w->bits;
}

static size_t table_memory(const struct reorder_waiting *w)
{
	if (!w->bits)
		return 0;
	return block_size(chains(w) * sizeof(struct reorder_early *));
}

_Static_assert(sizeof(struct reorder_early) + 8 == REORDER_PLACE,
	       "block_size() of what is left of a hollow one");

static size_t early_memory(const struct reorder_early *early)
{
	return block_size(sizeof(*early) + (early->hollow ? 0 : early->body_len));
}

static void count_in(struct reorder_waiting *w, const struct reorder_early *early)
{
	w->count++;
	w->bytes += early_memory(early);
	w->payload += reorder_payload_of(early);
}

static void count_out(struct reorder_waiting *w, const struct reorder_early *early)
{
	w->count--;
	w->bytes -= early_memory(early);
	w->payload -= reorder_payload_of(early);
}

static struct reorder_early **heads(struct reorder_waiting *w)
{
	return w->bits ? w->bucket : &w->few;
}

/*
 * Who sends the numbers must not choose the bucket: a thousand in one cost sixteen
 * times as much each. So where the table lies, which nobody outside knows, is
 * mixed in. The mixing is that of MurmurHash3's end.
 */
static uint32_t mix(const struct reorder_waiting *w, uint32_t number)
{
	uint64_t h = number ^ (uint64_t)(uintptr_t)w->bucket;

	h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
	h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return (uint32_t)(h ^ h >> 33);
}

static struct reorder_early **bucket_of(struct reorder_waiting *w, uint32_t number)
{
	return &heads(w)[mix(w, number) & (chains(w) - 1)];
}

/* Where the message with @number hangs, or the NULL at its chain's end. */
static struct reorder_early **find(struct reorder_waiting *w, uint32_t number)
{
	struct reorder_early **at = bucket_of(w, number);

	while (*at && (*at)->number != number)
		at = &(*at)->chain;
	return at;
}

static void insert(struct reorder_waiting *w, struct reorder_early *early)
{
	struct reorder_early **at = bucket_of(w, early->number);

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

/* Nothing waits any more. */
static void free_waiting(struct reorder *q)
{
	struct reorder_waiting *w = q->waiting;

	q->waiting = NULL;
	list_del(&w->ranked);
	if (w->bits)
		free(w->bucket);
	free(w);
}

void reorder_fini(struct reorder *q)
{
	struct reorder_waiting *w = q->waiting;

	if (!w)
		return;
	for (uint32_t i = 0; i < chains(w); i++) {
		while (heads(w)[i])
			reorder_release(pop(&heads(w)[i]));
	}
	free_waiting(q);
}

static struct reorder_waiting *begin_to_wait(struct reorder *q)
{
	struct reorder_waiting *w = malloc(sizeof(*w));

	if (!w)
		return NULL;
	*w = (struct reorder_waiting){
		.of = q, .bytes = block_size(sizeof(*w)),
	};
	list_init(&w->ranked);
	return w;
}

/* Keeps the load at 1. Without memory for it the chains grow instead. */
static void grow_table(struct reorder_waiting *w)
{
	struct reorder_waiting grown = *w;

	grown.bits = w->bits ? w->bits + 1 : FIRST_BITS;
	grown.bucket = calloc(chains(&grown), sizeof(*grown.bucket));
	if (!grown.bucket)
		return;
	grown.bytes += table_memory(&grown) - table_memory(w);
	for (uint32_t i = 0; i < chains(w); i++) {
		while (heads(w)[i])
			insert(&grown, pop(&heads(w)[i]));
	}
	if (w->bits)
		free(w->bucket);
	*w = grown;
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

static enum reorder_verdict enqueue(struct reorder *q,
				    const struct wire_msg *msg, int64_t now)
{
	struct reorder_waiting *w = q->waiting ? q->waiting : begin_to_wait(q);
	struct reorder_early *early = w ? copy(msg, now) : NULL;

	if (!early) {
		if (!q->waiting)
			free(w);
		return REORDER_NO_MEMORY;
	}
	q->waiting = w;
	if (w->count >= FEW && w->count >= chains(w))
		grow_table(w);
	insert(w, early);
	count_in(w, early);
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
	if (q->waiting && *find(q->waiting, msg->number))
		return REORDER_DUPLICATE;
	if (ahead > 0)
		return enqueue(q, msg, now);
	q->next++;
	return REORDER_DUE;
}

struct reorder_early *reorder_take(struct reorder *q)
{
	struct reorder_waiting *w = q->waiting;
	struct reorder_early **at;
	struct reorder_early *early;

	if (!w)
		return NULL;
	at = find(w, q->next);
	if (!*at)
		return NULL;
	early = pop(at);
	count_out(w, early);
	q->next++;
	if (!w->count)
		free_waiting(q);
	return early;
}

static struct reorder_early *hollow(struct reorder_waiting *w,
				    struct reorder_early *early)
{
	struct reorder_early *less;

	count_out(w, early);
	early->hollow = true;
	count_in(w, early);
	less = realloc(early, sizeof(*early));
	return less ? less : early;
}

void reorder_hollow(struct reorder *q)
{
	struct reorder_waiting *w = q->waiting;

	for (uint32_t i = 0; w && i < chains(w); i++) {
		struct reorder_early **at = &heads(w)[i];

		for (; *at; at = &(*at)->chain) {
			if ((*at)->type == WIRE_DATA && !(*at)->hollow)
				*at = hollow(w, *at);
		}
	}
}

void reorder_release(struct reorder_early *early)
{
	free(early);
}
