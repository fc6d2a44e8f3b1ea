/* SPDX-License-Identifier: MIT */
/*
 * The ids of a session of the extension, and what goes on over their uses. Each end opens
 * connections with ids of its own half: LP with the lower ones, RP with the others.
 */
#include <stdlib.h>

#include "../conn/conn.h"
#include "extended.h"

enum { CHANNELS_EACH = 16 };	/* made at a time: what a session with a single one takes */

/* What ids go on with is charged as what waits for applications is. */
static void remember(struct extended *x, int64_t bytes)
{
	x->remembered += (size_t)bytes;
	inbound_charge(x->s, bytes);
}

struct channel *ids_channel(struct extended *x, uint16_t id)
{
	if (x->channel[id])
		return x->channel[id];
	x->channel[id] = slab_get(&x->room);
	if (!x->channel[id])
		return NULL;
	channel_init(x->channel[id], id, id <= WIRE_ID_LP_MAX ? &x->pool :
							&x->pool_of_rp);
	x->channels++;
	remember(x, sizeof(struct channel));
	return x->channel[id];
}

/*
 * A datagram has no number that would tell which use of its id it belongs to. So an
 * id that a flow had rests until none can be under way any more.
 */
static void rest(struct extended *x, struct channel *ch)
{
	ch->rests_until = loop_now(x->s->engine->loop) +
			  REST_SECONDS * NS_PER_SEC;
	list_add_tail(&x->resting, &ch->line);
	x->nresting++;
	if (!x->rest_timer.slot)
		loop_timer_at(x->s->engine->loop, &x->rest_timer,
			      ch->rests_until);
}

static void have_rested(struct timer *t)
{
	struct extended *x = container_of(t, struct extended, rest_timer);
	int64_t now = loop_now(x->s->engine->loop);

	while (!list_empty(&x->resting)) {
		struct channel *ch = list_first(&x->resting, struct channel,
						line);

		if (ch->rests_until > now) {
			loop_timer_at(x->s->engine->loop, t, ch->rests_until);
			break;
		}
		ch->flow_had_it = false;
		list_move_tail(&x->spare, &ch->line);
		x->nresting--;
	}
	session_tell_room(x->s);
}

/* Of its own half: LP's ids are the lower ones. */
static bool is_own(const struct extended *x, uint16_t id)
{
	return x->lp == (id <= WIRE_ID_LP_MAX);
}

static uint16_t last_own(const struct extended *x)
{
	return x->lp ? WIRE_ID_LP_MAX : WIRE_ID_MAX;
}

/*
 * An id that the other end named before its owner ever used it gets its turn by last_id,
 * and only so.
 */
void ids_settle(struct extended *x, struct channel *ch)
{
	if (!is_own(x, ch->id) || ch->id > x->last_id || ch->use.open || ch->conn ||
	    !list_empty(&ch->line))
		return;
	if (ch->flow_had_it) {
		rest(x, ch);
		return;
	}
	list_add_tail(&x->spare, &ch->line);
	session_tell_room(x->s);
}

bool ids_has_one(const struct session *s)
{
	const struct extended *x = s->ext;

	if (session_is_alone(s))
		return false;
	return s->nconns < x->welcome.connections &&
	       (!list_empty(&x->spare) || x->last_id < last_own(x));
}

unsigned int ids_known(const struct session *s)
{
	return s->ext->channels;
}

/* Ids that were used before first: what they were granted is theirs to use. */
static struct channel *free_channel(struct extended *x)
{
	struct channel *ch;

	if (list_empty(&x->spare))
		return x->last_id < last_own(x) ?
			ids_channel(x, ++x->last_id) : NULL;
	ch = list_entry(x->spare.prev, struct channel, line);
	list_del(&ch->line);
	return ch;
}

struct conn *ids_open(struct session *s)
{
	struct channel *ch = free_channel(s->ext);
	struct conn *c = ch ? session_conn_new(s, ch->id) : NULL;

	if (!c) {
		if (ch)
			ids_settle(s->ext, ch);
		return NULL;
	}
	reverse_begins(s, c);
	channel_attach(ch, c);
	c->had_syn = c->syn_pending = true;
	return c;
}

void ids_init(struct extended *x)
{
	slab_init(&x->room, struct channel, slot, CHANNELS_EACH);
	list_init(&x->spare);
	list_init(&x->resting);
	x->rest_timer.fire = have_rested;
	list_init(&x->pool.waiters);
	list_init(&x->pool_of_rp.waiters);
	x->last_id = WIRE_ID_LP_MAX;
}

void ids_are_of_lp(struct extended *x)
{
	x->last_id = 0;
}

/* What came out of order is the channels', and goes with them. */
static void forget_early(struct session *s)
{
	inbound_charge(s, -(int64_t)s->in.early);
	s->in.early = 0;
}

void ids_fini(struct extended *x)
{
	struct list *pos, *tmp;
	unsigned int i;

	loop_timer_stop(x->s->engine->loop, &x->rest_timer);
	list_each(pos, tmp, &x->s->conns)
		list_entry(pos, struct conn, member)->channel = NULL;
	for (i = 0; i <= WIRE_ID_MAX; i++) {
		if (!x->channel[i])
			continue;
		channel_fini(x->channel[i]);
		slab_put(&x->room, x->channel[i]);
		x->channel[i] = NULL;
	}
	x->channels = 0;
	forget_early(x->s);
	remember(x, -(int64_t)x->remembered);
}

/*
 * Of what all sessions have charged this one has most, and nothing but its ids, connections that
 * were turned away and its pipes' layers is left. Without an id's numbers nobody could tell
 * its next use from the last one: it ends. Until its pipes have ended others may come in
 * its place, so what its ids take, and what it keeps, is given back now.
 */
void ids_give_up(struct session *s)
{
	struct extended *x = s->ext;

	extended_condemn(s, WIRE_GOODBYE_LIMIT, "too little memory is left for all sessions, and %u ids take %zu bytes of it, %u refused connections %zu, %u pipes' encryption %zu",
			 x->channels, x->remembered, s->nturned_away,
			 s->nturned_away * (size_t)CONN_REFUSED_MEMORY,
			 s->open_pipes, s->layered);
	if (s->stopping) {
		hints_fini(x);	/* those that wait point to ids */
		ids_fini(x);
		keeping_let_go(x);
	}
	layered_disregard(s);
}
