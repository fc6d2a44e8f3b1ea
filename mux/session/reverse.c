/* SPDX-License-Identifier: MIT */
/*
 * LISTEN and LISTENING, and connections that RP opens. What is to be said of a listener
 * is state, which the next one to be said takes the place of: no peer makes it grow.
 */
#include "reverse.h"

#include <errno.h>

#include "../base/log.h"
#include "../conn/address.h"
#include "../conn/conn.h"
#include "extended.h"

_Static_assert(LISTENERS_MAX <= 64, "reverse.due has a bit for each");

bool session_reverses(const struct session *s)
{
	return session_is_up(s) && s->ext &&
	       s->ext->welcome.features & WIRE_FEATURE_LISTEN;
}

/* --- what is to be said --- */

static struct listener_state *say(struct session *s, uint16_t listener)
{
	s->ext->reverse.due |= UINT64_C(1) << listener;
	loop_after(s->engine->loop, &s->out.pump);
	return &s->ext->reverse.listener[listener];
}

void session_listen(struct session *s, uint16_t listener,
		    const struct destination *at)
{
	say(s, listener)->at = at;
}

void session_listening(struct session *s, uint16_t listener,
		       enum wire_listening_result result, uint16_t port)
{
	struct listener_state *l = say(s, listener);

	l->result = (uint8_t)result;
	l->port = port;
}

bool reverse_next(struct extended *x, struct wire_ext *what)
{
	const struct listener_state *l;
	uint16_t listener = 0;

	if (!x->reverse.due)
		return false;
	while (!(x->reverse.due >> listener & 1))
		listener++;
	x->reverse.due &= ~(UINT64_C(1) << listener);
	l = &x->reverse.listener[listener];
	if (x->lp)
		*what = (struct wire_ext){
			.type = WIRE_LISTEN,
			.listen = { .listener = listener,
				    .protocol = WIRE_PROTOCOL_TCP,
				    .at = destination_copy(l->at) },
		};
	else
		*what = (struct wire_ext){
			.type = WIRE_LISTENING,
			.listening = { .listener = listener,
				       .result = l->result, .port = l->port },
		};
	return true;
}

/* --- places --- */

void reverse_begins(struct session *s, const struct conn *c)
{
	s->ext->reverse.conns += c->id > WIRE_ID_LP_MAX;
}

void reverse_gone(struct session *s, struct conn *c)
{
	s->ext->reverse.conns -= c->id > WIRE_ID_LP_MAX;
}

/* Strangers come to RP's listeners: they leave LP half of the session's places. */
static unsigned int most(const struct session *s)
{
	unsigned int all = extended_places(s);

	return all - all / 2;
}

/* --- what came --- */

/* What cannot be listened on needs nobody to judge it. */
void reverse_listen(struct session *s, const struct wire_listen *what)
{
	const struct destination *at = &what->at;

	if (!session_reverses(s) || !s->role->listen ||
	    what->listener >= LISTENERS_MAX) {
		s->counts.dropped++;
		return;
	}
	if (what->protocol == WIRE_PROTOCOL_TCP && destination_is_sound(at) &&
	    (at->kind == DESTINATION_IPV4 || at->kind == DESTINATION_IPV6))
		s->role->listen(s, what->listener, at);
	else
		session_listening(s, what->listener, WIRE_LISTENING_FAILED, 0);
}

void reverse_listening(struct session *s, const struct wire_listening *what)
{
	if (!session_reverses(s) || !s->role->listening ||
	    what->listener >= LISTENERS_MAX)
		s->counts.dropped++;
	else
		s->role->listening(s, what->listener, what->result, what->port);
}

void reverse_open(struct session *s, struct conn *c)
{
	if (!session_reverses(s) || !s->role->accepted) {
		conn_reset(c, CONN_END_DENIED);
	} else if (s->ext->reverse.conns <= most(s)) {
		s->role->accepted(s, c);
	} else {
		if (session_notes(s, INCIDENT_CONNECTIONS))
			log_warn(s->engine->log, "session %u: connection %u and others from RP were refused: they may have half of --max-conns",
				 s->number, c->id);
		conn_reset(c, CONN_END_LIMIT);
	}
}

/* --- RP --- */

int session_accept(struct session *s, int fd, uint16_t listener,
		   const struct sockaddr_storage *peer)
{
	struct destination from = address_destination(peer);

	if (!session_reverses(s) || s->ext->reverse.conns >= most(s))
		return -EAGAIN;
	from = destination_listener(listener, &from);
	return session_open_to(s, fd, &from, NULL);
}
