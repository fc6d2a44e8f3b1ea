/* SPDX-License-Identifier: MIT */
/* What a session is refused, and loses, for want of something, and for whom that counts. */
#include "../base/log.h"
#include "../base/seldom.h"
#include "../conn/conn.h"
#include "flow.h"
#include "session_inside.h"

void session_pays_as(struct session *s, const struct sockaddr_storage *addr)
{
	payer_name(addr, s->payer);
}

bool session_notes(struct session *s, enum incident what)
{
	return incidents_note(s->engine->limits, what,
			     *s->payer ? s->payer : s->peer);
}

_Static_assert(sizeof(struct conn) + 2 * sizeof(size_t) <= CONN_REFUSED_MEMORY,
	       "what it and its place in a table take");

/*
 * Who asks for connections and reads no answer has as many of these as ids. Did they
 * count as connections, there would be none left for others; did they not count at all, they
 * would take what memory there is.
 */
void session_turn_away(struct session *s, struct conn *c)
{
	c->turned_away = true;
	s->nturned_away++;
	s->engine->conns--;
	engine_balance(s->engine);
	inbound_charge(s, CONN_REFUSED_MEMORY);
}

void session_turned_away_gone(struct session *s)
{
	s->nturned_away--;
	inbound_charge(s, -CONN_REFUSED_MEMORY);
}

/* A flow may have none yet. */
static bool has_own_socket(const struct conn *c)
{
	return c->flow ? flow_has_socket(c->flow) : c->watch.fd >= 0;
}

/*
 * Those that race for the addresses of a name have no socket of their own yet. Those that are
 * closed, and wait for a pipe that takes their end, or for their connect(), may be many, and are
 * not walked past.
 */
static struct conn *oldest(const struct session *s, bool has_socket)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &s->conn_owner.sockets) {
		struct conn *c = list_entry(pos, struct conn, place);

		if (!has_socket || has_own_socket(c))
			return c;
	}
	return NULL;
}

bool session_gives_up(struct session *s)
{
	struct conn *c = oldest(s, true);

	if (!c)
		c = oldest(s, false);
	if (!c)
		return false;
	if (session_notes(s, INCIDENT_DESCRIPTORS))
		log_warn(s->engine->log, "session %u: connection %u was reset: its peer has most of the descriptors, and another one needs one",
			 s->number, c->id);
	conn_reset(c, CONN_END_LIMIT);
	return true;
}

/* Every answer of a server may be so. */
void refusing_missized(struct conn *c, const char *how)
{
	struct session *s = c->owner->self;
	char dst[DESTINATION_TEXT];

	if (seldom(&s->missized_at, s->engine->loop))
		log_info(s->engine->log, "session %u: connection %u to %s: an HTTP answer has another size than it says: %s",
			 s->number, c->id, destination_text(c->dst, dst), how);
}
