/* SPDX-License-Identifier: MIT */
/*
 * A frame on its way, and the pool it comes from. A pool hands out slots of one
 * size and has a limit; what happens at the limit is the caller's to decide
 * (the link counts the frame as dropped for memory).
 */
#ifndef LINKEM_PACKET_H
#define LINKEM_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packet {
	struct packet *next;	/* of the queue, or of the pool's free ones */
	uint64_t index;		/* the n-th numbered packet, from 0 */
	int64_t entered;	/* when it was read */
	int64_t passed;		/* when the firmware of a radio had it */
	int64_t due;		/* when it is to be written */
	uint64_t order;		/* breaks ties of `due` */
	uint32_t cost;		/* bytes as the rate and the queue count them */
	uint32_t len;		/* bytes of the frame */
	uint32_t draw;		/* the link's when it was numbered */
	bool numbered;		/* false: neither rate nor chance applies */
	bool lost;		/* takes its share of the rate, then is gone */
	bool copy;		/* a duplicate made here */
	bool held;		/* chosen to be overtaken */
	uint8_t data[];
};

struct pool {
	struct packet *free;
	void *chunks;
	size_t frame_max;	/* bytes a slot has for its frame */
	size_t slots;		/* made so far */
	size_t slots_max;
	size_t in_use;
};

/* Slots for frames of @frame_max bytes, @memory_max bytes of them in all. */
void pool_init(struct pool *pool, size_t frame_max, size_t memory_max);
void pool_fini(struct pool *pool);

/* NULL at the limit. Everything but the data is zero. */
struct packet *pool_get(struct pool *pool);
void pool_put(struct pool *pool, struct packet *p);

#endif
