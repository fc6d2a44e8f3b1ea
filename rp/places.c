/* SPDX-License-Identifier: MIT */
#include "places.h"

#include <errno.h>
#include <stdlib.h>

#include "../mux/base/payer.h"

struct places_payer {
	struct list member;
	struct payer who;
	unsigned int n;
	struct list places;	/* the oldest first */
};

static struct places_payer *payer_at(const struct list *pos)
{
	return list_entry(pos, struct places_payer, member);
}

static struct place *place_at(const struct list *pos)
{
	return list_entry(pos, struct place, member);
}

static struct places_payer *find(const struct places *all,
				 const struct sockaddr_storage *addr)
{
	const struct payer who = payer_of(addr);
	struct list *pos, *tmp;

	list_each(pos, tmp, &all->payers) {
		if (payer_is(&payer_at(pos)->who, &who))
			return payer_at(pos);
	}
	return NULL;
}

void places_init(struct places *all, unsigned int fair)
{
	*all = (struct places){ .fair = fair };
	list_init(&all->payers);
}

int places_take(struct places *all, struct place *p,
		const struct sockaddr_storage *addr)
{
	struct places_payer *payer = find(all, addr);

	if (!payer) {
		payer = calloc(1, sizeof(*payer));
		if (!payer)
			return -ENOMEM;
		payer->who = payer_of(addr);
		list_init(&payer->places);
		list_add_tail(&all->payers, &payer->member);
	}
	p->payer = payer;
	p->number = all->numbers++;
	list_add_tail(&payer->places, &p->member);
	payer->n++;
	all->n++;
	return 0;
}

void places_leave(struct places *all, struct place *p)
{
	struct places_payer *payer = p->payer;

	list_del(&p->member);
	all->n--;
	if (--payer->n)
		return;
	list_del(&payer->member);
	free(payer);
}

unsigned int places_of(const struct places *all,
		       const struct sockaddr_storage *addr)
{
	const struct places_payer *payer = find(all, addr);

	return payer ? payer->n : 0;
}

static struct place *first_that(const struct places_payer *payer,
				bool (*may)(const struct place *p))
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &payer->places) {
		if (!may || may(place_at(pos)))
			return place_at(pos);
	}
	return place_at(payer->places.next);
}

struct place *places_oldest_of(const struct places *all,
			       const struct sockaddr_storage *addr,
			       bool (*may)(const struct place *p))
{
	const struct places_payer *payer = find(all, addr);

	return payer ? first_that(payer, may) : NULL;
}

static unsigned int too_many(const struct places *all,
			     const struct places_payer *payer)
{
	return payer->n > all->fair ? payer->n : 0;
}

/* Has @a more than @b; if as many, since longer? */
static bool comes_before(const struct places *all, const struct places_payer *a,
			 const struct places_payer *b)
{
	unsigned int n = too_many(all, a), m = too_many(all, b);

	if (n != m)
		return n > m;
	return place_at(a->places.next)->number <
	       place_at(b->places.next)->number;
}

struct place *places_victim(const struct places *all,
			    bool (*may)(const struct place *p))
{
	const struct places_payer *most = payer_at(all->payers.next);
	struct list *pos, *tmp;

	list_each(pos, tmp, &all->payers) {
		if (comes_before(all, payer_at(pos), most))
			most = payer_at(pos);
	}
	return first_that(most, may);
}
