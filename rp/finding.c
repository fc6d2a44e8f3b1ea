/* SPDX-License-Identifier: MIT */
#include "finding.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#include "../mux/wire/destination.h"
#include "call.h"
#include "connects.h"

struct finding {
	struct findings *all;
	struct list member;
	struct lookup *lookup;	/* or NULL */
	const struct conn *flow;	/* until it is asked for */
	answered_fn found;
	void *owner;		/* NULL: it was given up */
	char name[DESTINATION_NAME_MAX + 1];
};

void findings_init(struct findings *all, struct connector *connector)
{
	all->connector = connector;
	all->looking = 0;
	list_init(&all->unasked);
	list_init(&all->asked);
}

static void drop(struct finding *f)
{
	list_del(&f->member);
	free(f);
}

void findings_fini(struct findings *all)
{
	while (!list_empty(&all->unasked))
		drop(list_first(&all->unasked, struct finding, member));
	while (!list_empty(&all->asked)) {
		struct finding *f = list_first(&all->asked, struct finding,
					       member);

		resolver_cancel(f->lookup);
		drop(f);
	}
	all->looking = 0;
}

static void tell(struct finding *f, const struct answer *answer)
{
	void *owner = f->owner;
	answered_fn found = f->found;

	drop(f);
	if (owner)
		found(owner, answer);
}

static void ask_next(struct findings *all);

static void looked_up(void *asker, const struct answer *answer)
{
	struct finding *f = asker;
	struct findings *all = f->all;

	all->looking--;
	tell(f, answer);
	ask_next(all);
}

static int ask(struct finding *f)
{
	int err = connector_asks(f->all->connector, f->flow, f->name, looked_up,
				 f, &f->lookup);

	if (err)
		return err;
	f->all->looking++;
	list_move_tail(&f->all->asked, &f->member);
	return 0;
}

/* One that cannot even be asked for has no address. */
static void ask_next(struct findings *all)
{
	const struct answer none = { .error = EAI_AGAIN };

	while (!list_empty(&all->unasked) && all->looking < CALLS_LOOKING) {
		struct finding *f = list_first(&all->unasked, struct finding,
					       member);

		if (ask(f))
			tell(f, &none);
	}
}

struct finding *finding_begin(struct findings *all, const struct conn *flow,
			      const char *name, answered_fn found, void *owner)
{
	struct finding *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->all = all;
	f->flow = flow;
	f->found = found;
	f->owner = owner;
	snprintf(f->name, sizeof(f->name), "%s", name);
	list_add_tail(&all->unasked, &f->member);
	if (all->looking < CALLS_LOOKING && ask(f)) {
		drop(f);
		return NULL;
	}
	return f;
}

void finding_give_up(struct finding *f)
{
	f->owner = NULL;
	if (!f->lookup)
		drop(f);
}
