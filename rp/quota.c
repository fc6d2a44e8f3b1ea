/* SPDX-License-Identifier: MIT */
#include "quota.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../mux/base/payer.h"
#include "../mux/options/key_file.h"

enum { WHO_MAX = sizeof("key ") + KEY_NAME_MAX };

_Static_assert((int)WHO_MAX >= (int)PAYER_TEXT, "an address fits, too");

struct quota_address {
	struct list member;
	struct payer payer;
	char key[KEY_NAME_MAX + 1];	/* "": it is @payer's */
	char who[WHO_MAX];
	unsigned int n;
	unsigned int pipes;	/* of them all */
	struct list shares;	/* the oldest first */
	struct hoard hoard;	/* of their sessions, */
	struct budget budget;	/* too */
};

static bool is_of(const struct quota_address *a, const struct payer *payer,
		  const char *key)
{
	return !strcmp(a->key, key) && (*key || payer_is(&a->payer, payer));
}

static struct quota_address *find(const struct quota *q,
				  const struct sockaddr_storage *peer,
				  const char *key)
{
	const struct payer payer = payer_of(peer);
	struct list *pos, *tmp;

	list_each(pos, tmp, &q->addresses) {
		struct quota_address *a = list_entry(pos, struct quota_address,
						     member);

		if (is_of(a, &payer, key))
			return a;
	}
	return NULL;
}

static struct quota_share *oldest(const struct quota *q,
				  const struct quota_address *a, bool idle)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &a->shares) {
		struct quota_share *share = list_entry(pos, struct quota_share,
						       member);

		if (!idle || q->is_idle(share))
			return share;
	}
	return NULL;
}

/* Of the address that has most sessions, which must be more than @least. */
static struct quota_share *oldest_of_most(const struct quota *q,
					  unsigned int least, bool idle)
{
	struct quota_share *found = NULL;
	unsigned int most = least;
	struct list *pos, *tmp;

	list_each(pos, tmp, &q->addresses) {
		const struct quota_address *a =
			list_entry(pos, struct quota_address, member);
		struct quota_share *share;

		if (a->n <= most)
			continue;
		share = oldest(q, a, idle);
		if (!share)
			continue;
		found = share;
		most = a->n;
	}
	return found;
}

/* For another session of an address that has @n. */
static struct quota_share *who_goes(const struct quota *q, unsigned int n)
{
	struct quota_share *share = oldest_of_most(q, n + 1, true);

	if (!share)
		share = oldest_of_most(q, n + 1, false);
	if (!share && !n)
		share = oldest_of_most(q, 0, true);
	return share;
}

static bool has_room_for_pipes(const struct quota *q, unsigned int pipes)
{
	return q->pipes + pipes <= q->max_pipes;
}

bool quota_is_full(const struct quota *q, unsigned int pipes)
{
	return q->sessions >= q->max || !has_room_for_pipes(q, pipes);
}

const char *quota_objection(struct quota *q,
			    const struct sockaddr_storage *peer,
			    const char *key, struct quota_share **victim)
{
	const struct quota_address *a = find(q, peer, key);
	unsigned int n = a ? a->n : 0;

	*victim = NULL;
	if (n >= q->max_each)
		return *key ? "its key has as many sessions as --max-sessions-each allows" :
			      "its address has as many sessions as --max-sessions-each allows";
	if (q->sessions < q->max)
		return NULL;
	*victim = who_goes(q, n);
	return "there are as many sessions as --max-sessions allows";
}

/* The address that has most pipes, if these are more than @least. */
static const struct quota_address *most_pipes(const struct quota *q,
					      unsigned int least)
{
	const struct quota_address *found = NULL;
	unsigned int most = least;
	struct list *pos, *tmp;

	list_each(pos, tmp, &q->addresses) {
		const struct quota_address *a =
			list_entry(pos, struct quota_address, member);

		if (a->pipes <= most)
			continue;
		found = a;
		most = a->pipes;
	}
	return found;
}

const char *quota_objection_to_pipes(struct quota *q,
				     const struct sockaddr_storage *peer,
				     const char *key, unsigned int pipes,
				     struct quota_share **victim)
{
	const struct quota_address *a = find(q, peer, key), *most;

	*victim = NULL;
	if (has_room_for_pipes(q, pipes))
		return NULL;
	most = most_pipes(q, (a ? a->pipes : 0) + pipes);
	if (most) {
		*victim = oldest(q, most, true);
		if (!*victim)
			*victim = oldest(q, most, false);
	}
	return "pipes have as many descriptors as they may have (ulimit -n)";
}

static void name_it(struct quota_address *a, const struct sockaddr_storage *peer)
{
	if (*a->key)
		snprintf(a->who, sizeof(a->who), "key %s", a->key);
	else
		payer_name(peer, a->who);
}

int quota_take(struct quota *q, struct quota_share *share,
	       const struct sockaddr_storage *peer, const char *key)
{
	struct quota_address *a = find(q, peer, key);

	if (!a) {
		a = calloc(1, sizeof(*a));
		if (!a)
			return -ENOMEM;
		a->payer = payer_of(peer);
		snprintf(a->key, sizeof(a->key), "%s", key);
		name_it(a, peer);
		list_init(&a->shares);
		hoard_init(&a->hoard, q->hoard, q->hoard_each);
		if (q->budgets)
			budget_init(&a->budget, q->budgets);
		list_add_tail(&q->addresses, &a->member);
	}
	share->address = a;
	list_add_tail(&a->shares, &share->member);
	a->n++;
	a->pipes += share->pipes;
	q->sessions++;
	q->pipes += share->pipes;
	return 0;
}

void quota_drop(struct quota *q, struct quota_share *share)
{
	struct quota_address *a = share->address;

	if (!a)
		return;
	share->address = NULL;
	list_del(&share->member);
	q->sessions--;
	q->pipes -= share->pipes;
	a->pipes -= share->pipes;
	if (--a->n)
		return;
	list_del(&a->member);
	hoard_fini(&a->hoard);
	budget_fini(&a->budget);
	free(a);
}

struct hoard *quota_hoard(const struct quota_share *share)
{
	return &share->address->hoard;
}

struct budget *quota_budget(const struct quota_share *share)
{
	return &share->address->budget;
}

const char *quota_who(const struct quota_share *share)
{
	return share->address ? share->address->who : "";
}

unsigned int quota_of_address(const struct quota_share *share)
{
	return share->address ? share->address->n : 0;
}

/* --- sockets --- */

static unsigned int sockets_of(const struct quota_address *a)
{
	unsigned int n = 0;
	struct list *pos, *tmp;

	list_each(pos, tmp, &a->shares)
		n += list_entry(pos, struct quota_share, member)->sockets;
	return n;
}

unsigned int quota_sockets(const struct quota_share *share)
{
	return share->address ? sockets_of(share->address) : share->sockets;
}

unsigned int quota_lent(const struct quota_share *share)
{
	unsigned int n = 0;
	struct list *pos, *tmp;

	if (!share->address)
		return share->lent;
	list_each(pos, tmp, &share->address->shares)
		n += list_entry(pos, struct quota_share, member)->lent;
	return n;
}

static struct quota_share *most_of(const struct quota_address *a)
{
	struct quota_share *most = list_first(&a->shares, struct quota_share,
					      member);
	struct list *pos, *tmp;

	list_each(pos, tmp, &a->shares) {
		struct quota_share *share = list_entry(pos, struct quota_share,
						       member);

		if (share->sockets > most->sockets)
			most = share;
	}
	return most;
}

/* Or the one of @share, if none has more. */
static const struct quota_address *most_of_all(const struct quota *q,
					       const struct quota_share *share)
{
	const struct quota_address *found = share->address;
	unsigned int most = quota_sockets(share);
	struct list *pos, *tmp;

	list_each(pos, tmp, &q->addresses) {
		const struct quota_address *a =
			list_entry(pos, struct quota_address, member);
		unsigned int n = sockets_of(a);

		if (n <= most)
			continue;
		found = a;
		most = n;
	}
	return found;
}

bool quota_relieves(struct quota *q, const struct quota_share *share,
		    bool at_home)
{
	const struct quota_address *a = at_home ? share->address :
					most_of_all(q, share);
	struct quota_share *most = a ? most_of(a) : NULL;

	if (!most || (a == share->address && most->sockets <= share->sockets))
		return false;
	return q->give_up(most);
}

void quota_init(struct quota *q, struct hoard *hoard, struct budgets *budgets,
		unsigned int max, unsigned int max_each,
		bool (*is_idle)(const struct quota_share *share),
		bool (*give_up)(struct quota_share *share))
{
	q->hoard = hoard;
	q->hoard_each = hoard ? hoard->max / 2 : 0;
	q->budgets = budgets;
	q->max = max;
	q->max_each = max_each;
	q->sessions = 0;
	q->pipes = 0;
	q->max_pipes = ULONG_MAX;
	q->is_idle = is_idle;
	q->give_up = give_up;
	list_init(&q->addresses);
}

void quota_set(struct quota *q, size_t all, unsigned int max,
	       unsigned int max_each)
{
	struct list *pos, *tmp;

	q->max = max;
	q->max_each = max_each;
	q->hoard_each = all / 2;
	list_each(pos, tmp, &q->addresses)
		list_entry(pos, struct quota_address, member)->hoard.max =
			q->hoard_each;
}
