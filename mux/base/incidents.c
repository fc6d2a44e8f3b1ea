/* SPDX-License-Identifier: MIT */
#include "incidents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "payer.h"
#include "seldom.h"

#define QUIET (SELDOM_SECONDS * NS_PER_SEC)

struct told {			/* of one peer and kind */
	struct list member;
	unsigned int what;
	char who[INCIDENTS_WHO];
	unsigned int lines;	/* so many are still said one by one */
	uint64_t more;		/* since the last line */
	int64_t said_at;
};

static struct told *told_at(struct list *pos)
{
	return list_entry(pos, struct told, member);
}

static struct told *find(const struct incidents *r, unsigned int what,
			 const char *who)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &r->said) {
		struct told *t = told_at(pos);

		if (t->what == what &&
		    !strncmp(t->who, who, sizeof(t->who) - 1))
			return t;
	}
	return NULL;
}

static void said_now(struct incidents *r, struct told *t)
{
	t->more = 0;
	t->said_at = loop_clock();
	list_move_tail(&r->said, &t->member);
}

static void forget(struct incidents *r, struct told *t)
{
	list_del(&t->member);
	r->peers--;
	free(t);
}

/* The next who may be spoken of again is the first. */
static void sleep_on(struct incidents *r)
{
	r->awaited = !list_empty(&r->said) &&
		     !loop_timer_at(r->loop, &r->timer,
				    told_at(r->said.next)->said_at + QUIET);
}

static void say_what_is_due(struct incidents *r)
{
	int64_t now = loop_now(r->loop);

	while (!list_empty(&r->said) &&
	       now - told_at(r->said.next)->said_at >= QUIET) {
		struct told *t = told_at(r->said.next);

		if (!t->more) {
			forget(r, t);
			continue;
		}
		log_warn(r->log, "%s: in the last %d s %llu more %s", t->who,
			 SELDOM_SECONDS, (unsigned long long)t->more,
			 r->kind[t->what].text);
		said_now(r, t);
	}
}

static void look(struct incidents *r)
{
	pthread_mutex_lock(&r->lock);
	say_what_is_due(r);
	sleep_on(r);
	pthread_mutex_unlock(&r->lock);
}

static void is_time(struct timer *timer)
{
	look(container_of(timer, struct incidents, timer));
}

static void is_told(struct errand *e)
{
	look(container_of(e, struct incidents, errand));
}

static struct told *add(struct incidents *r, unsigned int what, const char *who)
{
	struct told *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->what = what;
	t->lines = r->kind[what].lines ? r->kind[what].lines : 1;
	snprintf(t->who, sizeof(t->who), "%s", who);
	list_init(&t->member);
	r->peers++;
	said_now(r, t);
	return t;
}

static bool note(struct incidents *r, unsigned int what, const char *who)
{
	struct told *t = find(r, what, who);
	bool said;

	if (!t && r->peers >= INCIDENTS_PEERS) {
		who = "others";
		t = find(r, what, who);
	}
	if (!t)
		t = add(r, what, who);
	said = t && t->lines;
	if (said)
		t->lines--;
	else if (t)
		t->more++;
	if (!said || !r->kind[what].in_order) {
		r->count[what]++;
		r->changed = true;
	}
	return said;
}

bool incidents_note(struct incidents *r, unsigned int what, const char *who)
{
	bool say;

	pthread_mutex_lock(&r->lock);
	say = note(r, what, who);
	if (say && !r->awaited && r->inbox) {
		r->awaited = true;
		inbox_post(r->inbox, &r->errand);
	} else if (say && !r->awaited) {
		sleep_on(r);
	}
	pthread_mutex_unlock(&r->lock);
	return say;
}

bool incidents_news(struct incidents *r, uint64_t count[INCIDENTS_KINDS])
{
	bool changed;

	pthread_mutex_lock(&r->lock);
	changed = r->changed;
	r->changed = false;
	memcpy(count, r->count, sizeof(r->count));
	pthread_mutex_unlock(&r->lock);
	return changed;
}

bool incidents_note_peer(struct incidents *r, unsigned int what,
			 const struct sockaddr_storage *peer)
{
	char who[PAYER_TEXT];

	return incidents_note(r, what, payer_name(peer, who));
}

void incidents_init(struct incidents *r, struct loop *loop, struct log *log,
		    const struct incidents_kind *kind)
{
	memset(r, 0, sizeof(*r));
	r->loop = loop;
	r->log = log;
	r->kind = kind;
	r->timer.fire = is_time;
	r->errand.run = is_told;
	pthread_mutex_init(&r->lock, NULL);
	list_init(&r->said);
}

void incidents_share(struct incidents *r, struct inbox *inbox)
{
	pthread_mutex_lock(&r->lock);
	r->inbox = inbox;
	pthread_mutex_unlock(&r->lock);
}

void incidents_fini(struct incidents *r)
{
	if (!r->loop)
		return;
	loop_timer_stop(r->loop, &r->timer);
	while (!list_empty(&r->said))
		forget(r, told_at(r->said.next));
	pthread_mutex_destroy(&r->lock);
	r->loop = NULL;
}
