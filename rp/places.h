/* SPDX-License-Identifier: MIT */
/*
 * Pipes that wait, by whom they count for: how many each has, and which of all has to
 * go when there are too many. That is the oldest of whoever has most of them, as
 * far as that is more than one session needs; if nobody has so many it is the oldest of
 * all. So neither a newcomer nor one that is just dialling pays for others.
 */
#ifndef TM3_RP_PLACES_H
#define TM3_RP_PLACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "../mux/base/list.h"

struct places_payer;

struct place {			/* embedded in what waits */
	struct places_payer *payer;
	struct list member;
	uint64_t number;	/* in the order in which they came */
};

struct places {
	struct list payers;
	unsigned int n;
	unsigned int fair;	/* so many are not too many for anybody */
	uint64_t numbers;
};

void places_init(struct places *all, unsigned int fair);

/* 0 or -ENOMEM. */
int places_take(struct places *all, struct place *p,
		const struct sockaddr_storage *addr);
void places_leave(struct places *all, struct place *p);

/* How many count for the same as @addr, */
unsigned int places_of(const struct places *all,
		       const struct sockaddr_storage *addr);
/* and the first of them, the oldest, that @may go, or the oldest; NULL: there is none. */
struct place *places_oldest_of(const struct places *all,
			       const struct sockaddr_storage *addr,
			       bool (*may)(const struct place *p));
/* The one that has to go. There must be one. */
struct place *places_victim(const struct places *all,
			    bool (*may)(const struct place *p));

#endif
