/* SPDX-License-Identifier: MIT */
/*
 * The record of a connection that has ended. Those of the other end that carried nothing, as
 * whatever was refused, cost it a message each: were all recorded, it could fill a disk.
 */
#include "../conn/conn.h"
#include "session_inside.h"

/* Records in a second, of connections that carried nothing. */
enum { EMPTY_RECORDS = 100 };

static bool carried_nothing(const struct conn *c)
{
	return !c->flow && !c->tx_bytes && !c->rx_bytes;
}

static bool is_recorded(struct session *s, const struct conn *c, int64_t now)
{
	if (c->turned_away)
		return false;
	if (c->ours || !carried_nothing(c))
		return true;
	if (now / NS_PER_SEC != s->recording.second)
		s->recording = (struct recording){ .second = now / NS_PER_SEC };
	return s->recording.empty++ < EMPTY_RECORDS;
}

void recording_conn_ended(struct session *s, const struct conn *c)
{
	int64_t now = loop_clock();

	if (is_recorded(s, c, now))
		stats_conn(s->engine->stats, s->number, c, now);
	else
		s->counts.unrecorded++;
}
