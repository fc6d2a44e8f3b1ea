/* SPDX-License-Identifier: MIT */
#include "hinting.h"

#include "mux/conn/conn.h"
#include "mux/session/extended.h"

enum { IDS = 8 };

/* Nothing, a little, the most that may be said, or more than that. */
static uint64_t bytes_of(uint8_t how)
{
	return how < 250 ? (uint64_t)how << 10 : WIRE_HINT_MOST + how - 252;
}

/* Any, or some of which the first always has pipes: what is bound to others waits for them. */
static uint8_t paths_of(uint8_t how)
{
	return how & 1 ? how : 0;
}

/* Over one of its pipes, behind what that brought last. */
static void comes(struct session *s, unsigned int pipe,
		  const struct wire_hint *said)
{
	struct leg *leg = &s->ext->leg[pipe % s->npipes];
	struct last before;

	if (leg->last.what == LAST_HINT)
		hints_followed(s, leg, &(struct wire_msg){ .id = 0 });
	before = leg->last;
	leg->last.what = LAST_ANY;
	hints_came(s, leg, &before, said);
}

void hinting_play(struct session *s, struct input *in)
{
	uint8_t which = input_take(in), how = input_take(in);
	struct hint hint = {
		.bytes = bytes_of(how), .urgency = which >> 4,
		.paths = paths_of(input_take(in)),
	};
	uint16_t id = 1 + which % IDS;
	struct conn *c;

	if (!s || !session_is_up(s))
		return;
	c = s->ext->channel[id] ? s->ext->channel[id]->conn : NULL;
	if (which & 8)
		comes(s, how, &(struct wire_hint){ id, hint.urgency, hint.bytes,
						   hint.paths });
	else if (c)
		session_hint(s, c, &hint);
}
