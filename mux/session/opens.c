/* SPDX-License-Identifier: MIT */
/* What is opened from this end, and whether there is room for it. */
#include <errno.h>

#include "../conn/conn.h"
#include "session_inside.h"

bool session_is_crowded(const struct session *s)
{
	const struct engine *engine = s->engine;
	size_t most = engine->settings->max_held / CONNS_SHARE / CONN_MEMORY;

	return s->nconns > 1 && s->nconns + engine->conns > most;
}

bool session_has_room(const struct session *s)
{
	return session_is_up(s) && !session_is_crowded(s) &&
	       s->nconns < s->engine->settings->max_conns &&
	       s->dialect->has_id(s);
}

int64_t session_next_id_in(const struct session *s)
{
	return s->dialect->next_id_in ? s->dialect->next_id_in(s) : 0;
}

int session_open_to(struct session *s, int fd, const struct destination *to)
{
	struct conn *c;

	if (!session_has_room(s))
		return -EAGAIN;
	c = s->dialect->open(s);
	if (!c)
		return -EAGAIN;
	c->ours = true;
	if (conn_set_destination(c, to) < 0) {
		conn_abort(c, CONN_END_LIMIT);
		return -ENOMEM;
	}
	if (conn_attach(c, fd) < 0)
		conn_abort(c, CONN_END_LIMIT);
	return 0;
}

int session_open(struct session *s, int fd, const struct destination *to)
{
	return s->dialect->can_name(to) ? session_open_to(s, fd, to) :
					  -EAFNOSUPPORT;
}

struct conn *session_ask(struct session *s, const struct destination *to)
{
	struct conn *c;

	if (!session_is_extended(s) || !s->dialect->can_name(to) ||
	    !session_has_room(s))
		return NULL;
	c = s->dialect->open(s);
	if (!c)
		return NULL;
	c->ours = true;
	if (conn_set_destination(c, to) < 0) {
		conn_abort(c, CONN_END_LIMIT);
		return NULL;
	}
	conn_ask(c);
	return c;
}
