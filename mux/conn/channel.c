/* SPDX-License-Identifier: MIT */
#include "channel.h"

#include <stdlib.h>

#include "../wire/run.h"
#include "../wire/wire_ext.h"
#include "conn.h"

void channel_init(struct channel *ch, uint16_t id, struct early_pool *pool)
{
	ch->id = id;
	ch->pool = pool;
	use_init(&ch->use, 0);
	reorder_init(&ch->order, 0);
	list_init(&ch->line);
}

static void forget_said(struct channel *ch)
{
	if (!ch->said)
		return;
	list_del(&ch->said->due);
	free(ch->said);
	ch->said = NULL;
	ch->hint_first = false;
}

struct hint_said *channel_says(struct channel *ch)
{
	if (ch->said)
		return ch->said;
	ch->said = calloc(1, sizeof(*ch->said));
	if (!ch->said)
		return NULL;
	ch->said->of = ch;
	list_init(&ch->said->due);
	return ch->said;
}

void channel_fini(struct channel *ch)
{
	list_del(&ch->line);
	forget_said(ch);
	reorder_fini(&ch->order);
}

void channel_attach(struct channel *ch, struct conn *c)
{
	ch->conn = c;
	ch->hint_early = ch->hint_first = ch->hint_heard = false;
	c->channel = ch;
}

/*
 * One at a time: when it has sent, and there is room still, the next one may. Were all
 * woken at once, each answer would wake all that are left.
 */
static void let_next_on(struct early_pool *pool)
{
	struct channel *ch;

	if (list_empty(&pool->waiters) || !early_left(&pool->limit, 0))
		return;
	ch = list_first(&pool->waiters, struct channel, line);
	list_del(&ch->line);
	conn_credited(ch->conn);
}

void channel_detach(struct channel *ch)
{
	list_del(&ch->line);
	forget_said(ch);
	ch->conn = NULL;
	let_next_on(ch->pool);
}

void channel_answered(struct channel *ch)
{
	ch->pool->limit.used -= ch->early;
	ch->early = 0;
	list_del(&ch->line);
	let_next_on(ch->pool);
}

uint64_t channel_promised(const struct channel *ch)
{
	return ch->in.granted > ch->in.taken ? ch->in.granted - ch->in.taken : 0;
}

/* --- how its connection talks --- */

static bool is_early(const struct channel *ch)
{
	return ch->use.opener && !ch->use.answered;
}

static void frame_message(struct run *run, const struct wire_ext *what)
{
	run->len += wire_ext_put(run->buf + run->len, what);
	run->messages++;
}

struct wire_ext channel_hint(const struct channel *ch)
{
	return (struct wire_ext){
		.type = WIRE_HINT,
		.hint = {
			.id = ch->id,
			.priority = ch->said->hint.urgency,
			.remaining = hint_left(ch->said->to, ch->conn->rx_bytes),
			.paths = ch->said->hint.paths,
		},
	};
}

/* What it stands beside must not overtake it. */
static void frame_hint(const struct channel *ch, struct run *run)
{
	struct wire_ext what = channel_hint(ch);

	frame_message(run, &what);
	run->hints++;
	run->heard = false;
}

static void frame_open(struct conn *c, struct run *run)
{
	struct channel *ch = c->channel;
	struct wire_ext what = {
		.type = WIRE_OPEN,
		.number = use_send(&ch->use, USE_OPEN),
		.open = {
			.id = c->id,
			.protocol = c->flow ? WIRE_PROTOCOL_UDP :
					      WIRE_PROTOCOL_TCP,
			.to = destination_copy(c->dst),
			.window = c->flow ? 0 :
				  (uint32_t)channel_promised(ch),
		},
	};

	frame_message(run, &what);
	c->syn_pending = false;
	if (ch->hint_early)
		frame_hint(ch, run);
}

static enum wire_synack_result result_of(const struct conn *c)
{
	switch (c->end) {
	case CONN_END_NONE:
	case CONN_END_PEER_FIN:
	case CONN_END_PEER_RESET:
	case CONN_END_IDLE:
		return WIRE_SYNACK_CONNECTED;
	case CONN_END_REFUSED:
		return WIRE_SYNACK_REFUSED;
	case CONN_END_UNREACHABLE:
		return WIRE_SYNACK_UNREACHABLE;
	case CONN_END_TIMEOUT:
		return WIRE_SYNACK_TIMEOUT;
	case CONN_END_DENIED:
		return WIRE_SYNACK_DENIED;
	case CONN_END_LIMIT:
		return WIRE_SYNACK_LIMIT;
	case CONN_END_NO_NAME:
		return WIRE_SYNACK_NO_NAME;
	default:
		return WIRE_SYNACK_FAILED;
	}
}

static void frame_synack(struct conn *c, struct run *run)
{
	struct channel *ch = c->channel;
	struct wire_ext what = {
		.type = WIRE_SYNACK,
		.number = use_send(&ch->use, USE_SYNACK),
		.synack = {
			.id = c->id,
			.result = (uint8_t)result_of(c),
			.offset = ch->in.granted,
		},
	};

	frame_message(run, &what);
	channel_answered(ch);
}

static uint32_t next_number(struct conn *c, uint8_t reason)
{
	enum use_kind kind = reason == WIRE_REASON_RST ? USE_RESET :
			     reason ? USE_NO_MORE : USE_DATA;

	return use_send(&c->channel->use, kind);
}

static size_t credit(const struct conn *c)
{
	const struct channel *ch = c->channel;

	return is_early(ch) ? early_left(&ch->pool->limit, ch->early) :
			      credit_left(&ch->out);
}

static void sent(struct conn *c, size_t bytes)
{
	struct channel *ch = c->channel;

	ch->out.sent += bytes;
	ch->hint_first = false;
	if (!is_early(ch))
		return;
	ch->early += (uint32_t)bytes;
	ch->pool->limit.used += bytes;
	let_next_on(ch->pool);
}

/* First bytes may follow in this run, and what binds them must not come behind them. */
static bool is_hint_due(const struct conn *c)
{
	return c->channel->hint_first && c->readable && credit(c);
}

static void frame_first(struct conn *c, struct run *run)
{
	struct channel *ch = c->channel;

	run->first = ch->use.number;
	if (c->syn_pending)
		frame_open(c, run);
	else if (use_may_send(&ch->use, USE_SYNACK))
		frame_synack(c, run);
	if (is_hint_due(c))
		frame_hint(ch, run);
}

/* Beyond the limit of its own only its own answer helps. */
static void starved(struct conn *c)
{
	struct channel *ch = c->channel;

	if (is_early(ch) && ch->early < ch->pool->limit.conn)
		list_move_tail(&ch->pool->waiters, &ch->line);
}

const struct conn_speech channel_speech = {
	.frame_first = frame_first,
	.number = next_number,
	.credit = credit,
	.sent = sent,
	.starved = starved,
	.no_more = WIRE_REASON_NO_MORE,
	.half_open = true,
	.answers = true,
};
