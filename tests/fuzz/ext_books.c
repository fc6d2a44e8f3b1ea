/* SPDX-License-Identifier: MIT */
#include "ext_books.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mux/conn/conn.h"
#include "mux/session/extended.h"
#include "mux/session/flow.h"
#include "check.h"

struct books {
	uint64_t promised, idle, early[2];
	unsigned int channels;
	size_t held;
};

static void check_channel(const struct extended *x, const struct channel *ch,
			  struct books *sum)
{
	bool of_rp = ch->id > WIRE_ID_LP_MAX;

	sum->channels++;
	*(ch->in_use ? &sum->promised : &sum->idle) += channel_promised(ch);
	check(ch->conn || !ch->in_use);
	sum->early[of_rp] += ch->early;
	sum->held += reorder_bytes(&ch->order);
	check(!ch->conn || ch->conn->channel == ch);
	check(ch->conn || list_empty(&ch->line) ||
	      (x->lp != of_rp && !ch->use.open));
}

/* Of each half few inputs use large ids: the walk ends where all channels were met. */
static void check_channels(const struct session *s)
{
	static const int first[] = { 0, 0x8000, 64, 0x8040 };
	static const int end[] = { 64, 0x8040, 0x8000, WIRE_ID_MAX + 1 };
	const struct extended *x = s->ext;
	struct books sum = { 0 };

	for (int part = 0; part < 4; part++) {
		for (int id = first[part];
		     id < end[part] && sum.channels < x->channels; id++) {
			if (x->channel[id])
				check_channel(x, x->channel[id], &sum);
		}
	}
	check(sum.channels == x->channels);
	check(x->promised == sum.promised && x->idle == sum.idle);
	check(x->pool.limit.used == sum.early[0]);
	check(x->pool_of_rp.limit.used == sum.early[1]);
	check(s->in.early == sum.held && sum.held <= REORDER_MAX_SESSION);
}

static void check_kept(const struct session *s)
{
	const struct extended *x = s->ext;
	unsigned int pipes = 0;
	size_t kept = 0;

	for (int i = 0; i < PIPES_MAX; i++) {
		const struct leg *leg = &x->leg[i];

		pipes += s->pipes[i] != NULL;
		check(s->pipes[i] || !leg->known || !leg->kept.first);
		kept += leg->kept.bytes;
	}
	check(pipes == s->paths.npipes);
	for (unsigned int i = 0; i < s->paths.npaths; i++)
		pipes -= s->paths.path[i].npipes;
	check(!pipes);
	pipes = s->paths.npipes;
	check(kept <= x->kept && (keeping_has_again(x) || kept == x->kept));
	check(!x->alone_since == !!pipes);
}

static void check_conns(const struct session *s)
{
	unsigned int n = 0, ready = 0, of_rp = 0;
	struct list *pos, *tmp;
	size_t queued = 0;

	list_each(pos, tmp, &s->conns) {
		const struct conn *c = list_entry(pos, struct conn, member);

		n++;
		queued += conn_queued(c);
		ready += c->ready;
		of_rp += c->id > WIRE_ID_LP_MAX;
		check(!c->ready || !c->ended);
		check(c->state != CONN_CLOSED || !conn_queued(c));
	}
	list_each(pos, tmp, &s->conn_owner.done)
		n++, of_rp += list_entry(pos, struct conn, member)->id > WIRE_ID_LP_MAX;
	check(s->nconns == n);
	check(s->in.queued == queued);
	check(s->ext->reverse.conns == of_rp);
	check(s->sched.ready == ready);
	check(!s->in.paused);
}

static void check_flows(const struct session *s)
{
	const struct extended *x = s->ext;
	unsigned int flows = 0;
	struct list *pos, *tmp;

	list_each(pos, tmp, &s->conns)
		flows += list_entry(pos, struct conn, member)->flow != NULL;
	check(x->nflows <= flows);
	check(x->flows_bytes <= FLOWS_MEMORY + 2 * WIRE_MESSAGE_MAX);
	check(!x->flows_bytes == list_empty(&x->flows));
	check(!x->lp || list_empty(&x->narrow));
}

void ext_books_check(const struct session *s)
{
	check_conns(s);
	if (s->stopping)
		return;
	check_channels(s);
	check_kept(s);
	check_flows(s);
}
