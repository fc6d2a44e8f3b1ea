/* SPDX-License-Identifier: MIT */
/*
 * A connection whose messages came out of order waits for one that is missing,
 * GAP_SECONDS at most: pipes are not so far behind each other. Then the
 * missing one will not come, and the connection is reset. One that waits for
 * its SYN is warned of.
 */
#include "../base/log.h"
#include "../base/seldom.h"
#include "../conn/conn.h"
#include "session_inside.h"

#define GAP_LOOK NS_PER_SEC

/* A SYN that is only slow does not come so much later than its data. */
#define SYN_LATE (5 * NS_PER_SEC)

static void say_no_syn(struct session *s, const struct conn *c)
{
	if (seldom(&s->in.said_at, s->engine->loop))
		log_warn(s->engine->log, "session %u: messages of connection %u came, but no SYN for %lld s: if several lps share the address of %s, their connections get mixed up",
			 s->number, c->id, (long long)(SYN_LATE / NS_PER_SEC),
			 s->peer);
}

static void look(void *arg, struct reorder *q)
{
	struct conn *c = container_of(q, struct conn, reorder);
	struct session *s = arg;
	int64_t waits = pausing_reading_time(s) - q->waiting->since;

	/* One without its SYN has a timer of its own: conn_await_syn(). */
	if (!c->had_syn) {
		if (waits >= SYN_LATE)
			say_no_syn(s, c);
		return;
	}
	if (waits < GAP_SECONDS * NS_PER_SEC)
		return;
	s->counts.gap_limit++;
	if (session_notes(s, INCIDENT_GAP))
		log_warn(s->engine->log, "session %u: connection %u waited %d s for number %u and holds %zu bytes that follow it: reset",
			 s->number, c->id, GAP_SECONDS, c->reorder.next,
			 reorder_payload(&c->reorder));
	conn_reset(c, CONN_END_LIMIT);
}

static void gap_timer(struct timer *t)
{
	struct session *s = container_of(t, struct session, in.gap_timer);

	if (!s->in.paused)
		ranking_each(&s->in.ranking, look, s);
	if (s->in.early)
		loop_timer_in(s->engine->loop, t, GAP_LOOK);
}

/* Something waits, and the number that @c expects is another one now. */
void gaps_note(struct session *s, struct conn *c)
{
	c->reorder.waiting->since = loop_now(s->engine->loop) - s->in.paused_ns;
	if (!s->in.gap_timer.slot)
		loop_timer_in(s->engine->loop, &s->in.gap_timer, GAP_LOOK);
}

void gaps_start(struct session *s)
{
	s->in.gap_timer.fire = gap_timer;
}

void gaps_stop(struct session *s)
{
	loop_timer_stop(s->engine->loop, &s->in.gap_timer);
}
