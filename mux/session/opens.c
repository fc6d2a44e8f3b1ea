/* SPDX-License-Identifier: MIT */
/* What is opened from this end, and whether there is room for it. */
#include <errno.h>

#include "../base/log.h"
#include "../conn/conn.h"
#include "extended.h"

bool session_is_crowded(const struct session *s)
{
	const struct engine *engine = s->engine;
	size_t most = engine_memory(engine) / CONNS_SHARE / CONN_MEMORY;
	unsigned int n = s->nconns - s->nturned_away;

	return n > 1 && n + engine->conns > most;
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

void opens_keep_to(struct session *s, struct conn *c, uint8_t paths)
{
	c->paths = paths & WIRE_HINT_PATHS;
	c->on_all = paths & WIRE_HINT_COPIES;
	s->sched.path.bound |= paths != 0;
	loop_after(s->engine->loop, &s->out.pump);
}

static void say_unbound(struct session *s)
{
	if (!s->said_unbound)
		log_warn(s->engine->log, "session %u: rp, an older one, is not told of paths (HINT): what it sends goes over all, whatever --rule says",
			 s->number);
	s->said_unbound = true;
}

void session_bind(struct session *s, struct conn *c, uint8_t paths)
{
	struct hint hint = session_hinted(c);

	if (c->paths == paths)
		return;
	hint.paths = paths | (hint.paths & WIRE_HINT_COPIES);
	opens_keep_to(s, c, hint.paths);
	if (s->ext && ways_are_several(s->ext) &&
	    session_hint(s, c, &hint) == -EPROTONOSUPPORT)
		say_unbound(s);
}

int session_open_to(struct session *s, int fd, const struct destination *to,
		    const struct bounds *bounds)
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
	if (bounds)
		session_bind(s, c, bounds->paths);
	if (conn_attach(c, fd) < 0)
		conn_abort(c, CONN_END_LIMIT);
	else if (bounds && bounds->by_first_bytes)
		conn_show_first(c);
	return 0;
}

int session_open(struct session *s, int fd, const struct destination *to,
		 const struct bounds *bounds)
{
	return s->dialect->can_name(to) ? session_open_to(s, fd, to, bounds) :
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
