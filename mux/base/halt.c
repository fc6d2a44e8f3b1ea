/* SPDX-License-Identifier: MIT */
#include "halt.h"

void halt_init(struct halt *h)
{
	*h = (struct halt){ 0 };
	list_init(&h->places);
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->changed, NULL);
}

void halt_fini(struct halt *h)
{
	pthread_mutex_destroy(&h->lock);
	pthread_cond_destroy(&h->changed);
}

/* By the thread that halts. The next halt may begin before this one has gone on. */
static void halt_here(struct errand *e)
{
	struct halt *h = container_of(e, struct halt_place, errand)->halt;
	uint64_t round;

	pthread_mutex_lock(&h->lock);
	round = h->round;
	h->halted++;
	pthread_cond_broadcast(&h->changed);
	while (h->round == round)
		pthread_cond_wait(&h->changed, &h->lock);
	pthread_mutex_unlock(&h->lock);
}

void halt_add(struct halt *h, struct halt_place *place, struct inbox *inbox)
{
	place->halt = h;
	place->inbox = inbox;
	place->errand.run = halt_here;
	list_add_tail(&h->places, &place->member);
	h->n++;
}

void halt_clear(struct halt *h)
{
	list_init(&h->places);
	h->n = 0;
}

void halt_begin(struct halt *h)
{
	struct list *pos, *tmp;

	if (!h || h->depth++)
		return;
	list_each(pos, tmp, &h->places) {
		struct halt_place *place = list_entry(pos, struct halt_place,
						      member);

		inbox_post(place->inbox, &place->errand);
	}
	pthread_mutex_lock(&h->lock);
	while (h->halted < h->n)
		pthread_cond_wait(&h->changed, &h->lock);
	pthread_mutex_unlock(&h->lock);
}

void halt_end(struct halt *h)
{
	if (!h || --h->depth)
		return;
	pthread_mutex_lock(&h->lock);
	h->halted = 0;
	h->round++;
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->lock);
}
