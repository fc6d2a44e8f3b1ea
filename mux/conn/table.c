/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "table.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "../settings/limits.h"
#include "conn.h"

/* What an id remembers of its former owner. */
struct former {
	struct list node;	/* by expiry, oldest first */
	struct conn *conn;	/* detached and not over yet, or NULL */
	struct conn *closing;	/* over, its socket not yet; or NULL */
	uint64_t switched;	/* pipes on which the successor was heard */
	int64_t expires;
	uint32_t next;		/* the number it expected next when it ended */
	uint32_t late;		/* messages that came since */
	uint32_t fin_number;
	bool fin_seen;
	uint16_t id;
};

struct slot {
	struct conn *conn;
	struct former *former;
};

struct table {
	struct list formers;
	unsigned int conns, nformers;
	uint16_t last_id;	/* given out */
	uint8_t gave[(WIRE_ID_MAX + 1) / 8];	/* a bit for each id */
	struct slot slot[WIRE_ID_MAX + 1];	/* untouched pages cost nothing */
};

_Static_assert(sizeof(struct former) + 2 * sizeof(size_t) <= FORMER_MEMORY,
	       "what malloc() takes for it");
_Static_assert((int)PIPES_MAX <= (int)TABLE_NO_ORDER,
	       "former.switched has a bit for each pipe");

static uint64_t bit_of(unsigned int pipe)
{
	return pipe < TABLE_NO_ORDER ? UINT64_C(1) << pipe : 0;
}

/*
 * A mapping of its own: calloc() gives memory of the heap, all of it written, to who
 * comes after one that gave so much back, and needs a piece that is not scattered.
 */
struct table *table_new(void)
{
	struct table *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (t == MAP_FAILED)
		return NULL;
	list_init(&t->formers);
	return t;
}

static void former_drop(struct table *t, struct former *f)
{
	t->slot[f->id].former = NULL;
	list_del(&f->node);
	t->nformers--;
	free(f);
}

void table_free(struct table *t)
{
	if (!t)
		return;
	while (!list_empty(&t->formers))
		former_drop(t, list_first(&t->formers, struct former, node));
	munmap(t, sizeof(*t));
}

static struct former *former_add(struct table *t, uint16_t id, int64_t now)
{
	struct former *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->id = id;
	f->expires = now + REST_SECONDS * NS_PER_SEC;
	list_add_tail(&t->formers, &f->node);
	t->slot[id].former = f;
	t->nformers++;
	return f;
}

static uint32_t former_next(const struct former *f)
{
	return f->conn ? f->conn->reorder.next : f->next;
}

/* A message of a former that has ended: is it the last that can come? */
static void former_count(struct table *t, struct former *f,
			 const struct wire_msg *msg)
{
	f->late++;
	if (msg->type == WIRE_FIN) {
		f->fin_seen = true;
		f->fin_number = msg->number;
	}
	if (f->fin_seen && f->late == f->fin_number - f->next + 1)
		former_drop(t, f);
}

/*
 * Is this message the former's? Notes on which pipes it cannot be any more. A
 * SYN is, if the former ended before its own had come.
 */
static bool former_owns(struct former *f, const struct wire_msg *msg,
			unsigned int pipe)
{
	uint64_t bit = bit_of(pipe);

	if (f->switched & bit)
		return false;
	if (msg->type == WIRE_SYN ? former_next(f) == 0 :
	    wire_distance(msg->number, former_next(f)) >= 0)
		return true;
	f->switched |= bit;
	return false;
}

/*
 * A SYN for a live id: LP is done with the old connection, whose FIN is still
 * under way on another pipe. Only one can wait so; an older one makes place.
 */
static struct conn *detach(struct table *t, struct slot *slot,
			   unsigned int pipe, int64_t now)
{
	struct conn *old = slot->conn;
	struct conn *evicted = NULL;
	struct former *f;

	if (slot->former) {
		evicted = slot->former->conn;
		t->conns -= evicted != NULL;
		former_drop(t, slot->former);
	}
	f = former_add(t, old->id, now);
	if (!f) {
		slot->conn = NULL;
		t->conns--;
		return old;
	}
	f->conn = old;
	f->switched = bit_of(pipe);
	slot->conn = NULL;
	return evicted;
}

struct table_route table_route(struct table *t, const struct wire_msg *msg,
			       unsigned int pipe, bool accepts, int64_t now)
{
	struct slot *slot = &t->slot[msg->id];
	struct table_route route = { .verdict = TABLE_CONN };
	struct former *f = slot->former;

	if (f && former_owns(f, msg, pipe)) {
		route.conn = f->conn;
		if (!f->conn) {
			route.verdict = TABLE_LATE;
			route.closing = f->closing;
			former_count(t, f, msg);
		}
		return route;
	}
	if (slot->conn && accepts && msg->type == WIRE_SYN &&
	    slot->conn->had_syn)
		route.evicted = detach(t, slot, pipe, now);
	route.conn = slot->conn;
	if (!slot->conn)
		route.verdict = accepts ? TABLE_NEW : TABLE_LATE;
	return route;
}

struct table_route table_foresee(const struct table *t,
				 const struct wire_head *head,
				 unsigned int pipe, bool accepts)
{
	const struct slot *slot = &t->slot[head->id];
	const struct former *f = slot->former;
	struct table_route route = { .conn = slot->conn };

	if (f && !(f->switched & bit_of(pipe)) &&
	    wire_distance(head->number, former_next(f)) >= 0) {
		route.conn = f->conn;
		route.verdict = f->conn ? TABLE_CONN : TABLE_LATE;
	} else if (slot->conn) {
		route.verdict = TABLE_CONN;
	} else {
		route.verdict = accepts ? TABLE_NEW : TABLE_LATE;
	}
	return route;
}

void table_add(struct table *t, struct conn *c)
{
	t->slot[c->id].conn = c;
	t->conns++;
}

/* Makes the memory of a detached connection that of one that has ended. */
static void former_ended(struct table *t, struct former *f, bool complete)
{
	f->next = f->conn->reorder.next;
	f->conn = NULL;
	if (complete)
		former_drop(t, f);
}

void table_remove(struct table *t, struct conn *c, bool complete, int64_t now)
{
	struct slot *slot = &t->slot[c->id];
	struct former *f = slot->former;

	if (f && f->conn == c) {
		t->conns--;
		former_ended(t, f, complete);
		return;
	}
	if (slot->conn != c)
		return;
	t->conns--;
	slot->conn = NULL;
	if (f) {
		if (f->conn)
			return;	/* still finishing: its memory stays */
		former_drop(t, f);
	}
	if (complete)
		return;
	f = former_add(t, c->id, now);
	if (!f)
		return;
	f->next = c->reorder.next;
	f->closing = c;
}

void table_gone(struct table *t, const struct conn *c)
{
	struct former *f = t->slot[c->id].former;

	if (f && f->closing == c)
		f->closing = NULL;
}

bool table_is_free(const struct table *t, uint16_t id)
{
	return !t->slot[id].conn;
}

static bool id_free(const struct table *t, uint16_t id, int64_t now)
{
	const struct slot *slot = &t->slot[id];

	return !slot->conn && (!slot->former || slot->former->expires <= now);
}

uint16_t table_next_id(struct table *t, int64_t now)
{
	uint16_t id = t->last_id;
	unsigned int tries;

	for (tries = 0; tries < WIRE_ID_LP_MAX; tries++) {
		id = id < WIRE_ID_LP_MAX ? (uint16_t)(id + 1) : 1;
		if (!id_free(t, id, now))
			continue;
		if (t->slot[id].former)
			former_drop(t, t->slot[id].former);
		t->last_id = id;
		t->gave[id / 8] |= (uint8_t)(1 << id % 8);
		return id;
	}
	return 0;
}

void table_begin_at(struct table *t, uint16_t id)
{
	t->last_id = (uint16_t)(id - 1);
}

bool table_gave(const struct table *t, uint16_t id)
{
	return t->gave[id / 8] & 1 << id % 8;
}

/* Every former owner stands for an id at rest: no need to walk them. */
bool table_has_id(const struct table *t)
{
	return t->conns + t->nformers < WIRE_ID_LP_MAX;
}

int64_t table_expiry(const struct table *t)
{
	if (list_empty(&t->formers))
		return 0;
	return list_first(&t->formers, struct former, node)->expires;
}

struct conn *table_expire(struct table *t, int64_t now)
{
	while (!list_empty(&t->formers)) {
		struct former *f =
			list_first(&t->formers, struct former, node);

		if (f->expires > now)
			return NULL;
		if (f->conn)
			return f->conn;
		former_drop(t, f);
	}
	return NULL;
}

unsigned int table_conns(const struct table *t)
{
	return t->conns;
}

unsigned int table_formers(const struct table *t)
{
	return t->nformers;
}
