/* SPDX-License-Identifier: MIT */
/* Whom it counts for that a session was refused something. */
#include "session_inside.h"

void session_pays_as(struct session *s, const struct sockaddr_storage *addr)
{
	payer_name(addr, s->payer);
}

bool session_refuses(struct session *s, enum refusal what)
{
	return refusals_note(&s->engine->refusals, what,
			     *s->payer ? s->payer : s->peer);
}
