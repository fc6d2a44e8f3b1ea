/* SPDX-License-Identifier: MIT */
/*
 * What applications at the two ends of the model do, and what an end says by itself.
 */
#include "ends_inside.h"

static bool has_chunk(const struct id *id)
{
	return id->front < id->back;
}

/* @msg is the next one of id @n. */
static void number(struct ends *m, int end, int n, struct message *msg)
{
	struct id *id = &m->end[end].id[n];

	msg->id = (uint8_t)n;
	msg->serial = ++id->serial_sent;
	msg->number = use_send(&id->use, ends_kind(msg->kind));
}

/* One message of id @n, if it may be sent now: behind what was cut. */
static bool say(struct ends *m, int end, int n, struct message msg)
{
	struct id *id = &m->end[end].id[n];

	if (msg.kind == RESET && m->wrong == RESET_OVER_CHUNK)
		id->front = id->back;
	if (has_chunk(id) || !use_may_send(&id->use, ends_kind(msg.kind)))
		return false;
	if (msg.kind == OPEN) {
		id->early_sent = 0;
		m->result.uses++;
		if (m->wrong == NUMBERS_FROM_0)
			id->use.number = 0;
		if (m->wrong == WINDOW_PER_USE)
			ends_forget_credit(id);
	}
	if (msg.kind == RESET && m->wrong == EARLY_UNTIL_RESET) {
		m->early.used -= id->early_sent;
		id->early_sent = 0;
	}
	number(m, end, n, &msg);
	ends_send_any(m, end, &msg);
	return true;
}

static void open_use(struct ends *m, int end, int n)
{
	struct id *id = &m->end[end].id[n];
	struct message msg = { .kind = OPEN, .window = WINDOW_BYTES };

	if (end == LP && say(m, end, n, msg))
		credit_grant(&id->in, WINDOW_BYTES);
}

static void answer(struct ends *m, int end, int n, bool refuse)
{
	struct id *id = &m->end[end].id[n];
	struct message msg = { .kind = SYNACK };

	if (!use_may_send(&id->use, USE_SYNACK))
		return;
	msg.offset = credit_grant(&id->in, random_below(&m->r, WINDOW_BYTES));
	if (m->wrong == EARLY_OVER_WINDOW)
		id->in.early = 0;
	m->early_held -= id->early_due;
	id->early_due = 0;
	say(m, end, n, msg);
	if (refuse)
		say(m, end, n, (struct message){ .kind = RESET });
}

/* Bytes that may be sent now, at most DATA_BYTES; 0: fewer than there are. */
static uint32_t some_bytes(struct ends *m, const struct id *id)
{
	bool early = id->use.opener && !id->use.answered;
	uint64_t left = early ? early_left(&m->early, id->early_sent)
			      : credit_left(&id->out);
	uint32_t bytes = random_range(&m->r, 1, DATA_BYTES);

	return bytes > left ? 0 : bytes;
}

static void spend(struct ends *m, struct id *id, uint32_t bytes)
{
	id->out.sent += bytes;
	if (!id->use.opener || id->use.answered)
		return;
	id->early_sent += bytes;
	m->early.used += bytes;
}

static void send_data(struct ends *m, int end, int n)
{
	struct id *id = &m->end[end].id[n];
	struct message msg = { .kind = DATA, .bytes = some_bytes(m, id) };

	if (msg.bytes && say(m, end, n, msg))
		spend(m, id, msg.bytes);
}

/* Several messages get their numbers and wait. */
static void cut(struct ends *m, int end, int n)
{
	struct id *id = &m->end[end].id[n];

	if (has_chunk(id) || !use_may_send(&id->use, USE_DATA))
		return;
	id->front = id->back = 0;
	while (id->back < CHUNK) {
		struct message *msg = &id->chunk[id->back];

		*msg = (struct message){ .kind = DATA,
					 .bytes = some_bytes(m, id) };
		if (!msg->bytes)
			return;
		number(m, end, n, msg);
		spend(m, id, msg->bytes);
		id->back++;
	}
}

bool ends_send_part(struct ends *m, int end, int n)
{
	struct id *id = &m->end[end].id[n];

	if (!has_chunk(id))
		return false;
	if (random_below(&m->r, 2)) {
		ends_send_any(m, end, &id->chunk[id->front++]);
	} else {
		ends_send_any(m, end, &id->chunk[--id->back]);
		m->result.from_end++;
	}
	ends_respond(m, end, n);
	return true;
}

static void grant(struct ends *m, int end, int n)
{
	struct id *id = &m->end[end].id[n];
	struct message msg = { .kind = WINDOW, .id = (uint8_t)n };
	uint64_t before = id->in.granted;

	if (!id->use.open || (!id->use.opener && !id->use.answered))
		return;
	msg.offset = credit_grant(&id->in, WINDOW_BYTES);
	if (msg.offset > before)
		ends_send_any(m, end, &msg);
}

/* What each end does by itself, without an application. */
void ends_respond(struct ends *m, int end, int n)
{
	struct id *id = &m->end[end].id[n];

	if (!use_owes_reset(&id->use) ||
	    (has_chunk(id) && m->wrong != RESET_OVER_CHUNK))
		return;
	answer(m, end, n, false);
	say(m, end, n, (struct message){ .kind = RESET });
}

/* Within a use that was answered, or by who opened it. */
static void talk(struct ends *m, int end, int n)
{
	switch (random_below(&m->r, 12)) {
	case 0:
		say(m, end, n, (struct message){ .kind = NO_MORE });
		break;
	case 1:
		if (random_below(&m->r, 2))
			say(m, end, n, (struct message){ .kind = RESET });
		break;
	case 2:
	case 3:
		grant(m, end, n);
		break;
	case 4:
		cut(m, end, n);
		break;
	case 5:
	case 6:
	case 7:
		if (ends_send_part(m, end, n))
			break;
		/* fall through */
	default:
		send_data(m, end, n);
	}
}

void ends_act(struct ends *m, int end)
{
	int n = (int)random_below(&m->r, IDS);
	const struct use *use = &m->end[end].id[n].use;

	if (use_may_send(use, USE_OPEN))
		open_use(m, end, n);
	else if (use_may_send(use, USE_SYNACK))
		answer(m, end, n, random_below(&m->r, 4) == 0);
	else
		talk(m, end, n);
	ends_respond(m, end, n);
}
