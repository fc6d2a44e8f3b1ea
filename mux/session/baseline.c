/* SPDX-License-Identifier: MIT */
/*
 * Sessions of the baseline: a pipe that has ended ends them, since nobody can tell
 * which of its messages have arrived; and ids rest before they are used again.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#include "../base/log.h"
#include "../conn/conn.h"
#include "dialect.h"
#include "session_inside.h"

/* Ids come free one by one; those that ask for room are told in handfuls. */
#define REST_LOOK (100 * NS_PER_MS)

/*
 * What RP remembers of ids is charged as what waits for applications is: its peer decides how
 * much that is. LP decides itself which ids it uses.
 */
static void count_formers(struct session *s)
{
	size_t bytes = session_accepts(s) ?
		table_formers(s->table) * (size_t)FORMER_MEMORY : 0;

	inbound_charge(s, (int64_t)bytes - (int64_t)s->formers);
	s->formers = bytes;
}

void baseline_mind_rest(struct session *s)
{
	int64_t expiry = table_expiry(s->table);
	int64_t wait;

	count_formers(s);
	if (!expiry || s->rest_timer.slot)
		return;
	wait = expiry - pausing_reading_time(s);
	loop_timer_in(s->engine->loop, &s->rest_timer,
		      wait > REST_LOOK ? wait : REST_LOOK);
}

static void rest_ended(struct timer *t)
{
	struct session *s = container_of(t, struct session, rest_timer);
	struct conn *c;

	while ((c = table_expire(s->table, pausing_reading_time(s))))
		conn_abort(c, CONN_END_PROTOCOL);
	baseline_mind_rest(s);
	session_tell_room(s);
}

struct conn *baseline_conn_new(struct session *s, uint16_t id)
{
	struct conn *c = session_conn_new(s, id);

	if (c)
		table_add(s->table, c);
	return c;
}

static bool can_name(const struct destination *to)
{
	return to->kind == DESTINATION_IPV4;
}

static bool has_id(const struct session *s)
{
	return table_has_id(s->table);
}

static unsigned int ids(const struct session *s)
{
	return table_formers(s->table);
}

static struct conn *open_conn(struct session *s)
{
	uint16_t id = table_next_id(s->table, pausing_reading_time(s));
	struct conn *c = id ? baseline_conn_new(s, id) : NULL;

	if (!c)
		return NULL;
	c->had_syn = c->syn_pending = true;
	return c;
}

/*
 * Who did not open a connection needs to remember its id only while something
 * of it may be under way. Who did rests every id: the other end cannot know
 * that much.
 */
static void conn_ended(struct session *s, struct conn *c)
{
	bool complete = !c->ours && c->complete;

	table_remove(s->table, c, complete, pausing_reading_time(s));
	pausing_conn_ended(s, c);
	baseline_mind_rest(s);
}

static size_t early(const struct conn *c)
{
	return reorder_bytes(&c->reorder);
}

static void conn_gone(struct session *s, struct conn *c)
{
	table_gone(s->table, c);
}

/*
 * A server answered behind LP's end. RP says that this was lost as if the server
 * had reset the connection before: LP may still be able to tell its application.
 */
static void conn_lost(struct session *s, struct conn *c)
{
	if (!c->ours && table_is_free(s->table, c->id))
		outbound_say_reset(s, c);
}

static int64_t next_id_in(const struct session *s)
{
	int64_t expiry = table_expiry(s->table);

	if (table_has_id(s->table) || !expiry)
		return 0;
	return expiry - pausing_reading_time(s);
}

/*
 * A session does not begin with the ids of another one: where messages of two
 * local proxies are mixed up they name ids that were never opened.
 */
static uint16_t first_id(const struct settings *settings)
{
	uint64_t where = settings->seed;

	if (!settings->seed_given &&
	    getrandom(&where, sizeof(where), GRND_NONBLOCK) < 0)
		where = (uint64_t)loop_clock();
	return (uint16_t)(1 + where % WIRE_ID_LP_MAX);
}

static void pipe_ended(struct session *s, struct pipe *p, bool broke,
		       const char *why)
{
	(void)p;
	(void)broke;
	session_fail(s, "%s", why);
}

/*
 * It has most of what all have, in ids that are closed and in connections that it was refused.
 * Its end has nothing to say that would be worth a wait.
 */
static void give_up(struct session *s)
{
	char why[160];

	if (!session_is_up(s))
		return;
	snprintf(why, sizeof(why), "too little memory is left for all sessions, and %u ids take %zu bytes of it, %u refused connections %zu",
		 table_formers(s->table), s->formers, s->nturned_away,
		 s->nturned_away * (size_t)CONN_REFUSED_MEMORY);
	if (session_notes(s, INCIDENT_MEMORY))
		log_warn(s->engine->log, "session %u: %s: session ended",
			 s->number, why);
	session_stop(s, why);
	loop_after(s->engine->loop, &s->end);
}

static int init(struct session *s)
{
	s->rest_timer.fire = rest_ended;
	s->table = table_new();
	if (!s->table)
		return -ENOMEM;
	table_begin_at(s->table, first_id(s->engine->settings));
	return 0;
}

static void fini(struct session *s)
{
	loop_timer_stop(s->engine->loop, &s->rest_timer);
	table_free(s->table);
}

const struct dialect dialect_baseline = {
	.init = init,
	.fini = fini,
	.speech = &conn_speech_baseline,
	.message = inbound_message,
	.expects = inbound_expects,
	.pipe_ended = pipe_ended,
	.can_name = can_name,
	.open = open_conn,
	.has_id = has_id,
	.ids = ids,
	.conn_ended = conn_ended,
	.conn_gone = conn_gone,
	.conn_lost = conn_lost,
	.next_id_in = next_id_in,
	.queued = pausing_queued,
	.released = pausing_released,
	.early = early,
	.give_up = give_up,
};
