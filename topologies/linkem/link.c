/* SPDX-License-Identifier: MIT */
#include "link.h"

#include <math.h>
#include <string.h>

#include "clock.h"
#include "frame.h"

enum { PACKETS_DEFAULT = 1000 };

const char *const link_end_name[LINK_ENDS] = {
	[LINK_LOST] = "loss",	  [LINK_QUEUE] = "queue",
	[LINK_CODEL] = "codel",	  [LINK_MEMORY] = "memory",
	[LINK_DEVICE] = "device",
};

static int64_t ns(double ms)
{
	return llround(ms * (double)NS_PER_MS);
}

static void add(struct link_count *c, uint32_t bytes)
{
	c->packets++;
	c->bytes += bytes;
}

/* --- ends --- */

static void drop(struct link *l, struct packet *p, enum link_end end,
		 int64_t at)
{
	add(&l->count.dropped[end], p->cost);
	if (l->watch.drop)
		l->watch.drop(l->watch.arg, (int)l->rng.direction, p, end, at);
	pool_put(l->pool, p);
}

static void put_on_line(struct link *l, struct packet *p, int64_t at)
{
	if (line_push(&l->line, p) < 0)
		drop(l, p, LINK_MEMORY, at);
}

/* The last bit of @p was sent at @at: now it propagates. */
static void depart(struct link *l, struct packet *p, int64_t at)
{
	const struct params *par = &l->params;
	int64_t delay = par->delays.n ? delays_at(&par->delays, at)
				      : ns(par->delay_ms);

	if (p->lost) {
		drop(l, p, LINK_LOST, at);
		return;
	}
	if (par->jitter_ms > 0)
		delay += jitter_of((enum jitter_dist)par->jitter_dist,
				   ns(par->jitter_ms), &l->rng, p->index);
	p->due = at + (delay > 0 ? delay : 0);
	if (!par->jitter_reorder && p->due < l->floor)
		p->due = l->floor;
	if (p->held)
		p->due += ns(par->reorder_ms);
	else if (!par->jitter_reorder)
		l->floor = p->due;
	put_on_line(l, p, at);
}

/* --- service --- */

struct moment {
	struct link *link;
	int64_t at;
};

static void drop_by_codel(void *arg, struct packet *p)
{
	const struct moment *m = arg;

	drop(m->link, p, LINK_CODEL, m->at);
}

static struct packet *next_packet(struct link *l, int64_t at)
{
	struct moment moment = { l, at };
	const struct codel_drop by_codel = { drop_by_codel, &moment };

	return host_pop(&l->host, at, &by_codel);
}

/* When the oldest in the queue can start; there is one. */
static int64_t next_start(const struct link *l)
{
	int64_t entered = host_peek(&l->host)->entered;

	return entered > l->rate.free_at ? entered : l->rate.free_at;
}

static void run_rate(struct link *l, int64_t now)
{
	while (host_peek(&l->host) && next_start(l) <= now) {
		int64_t start = next_start(l);
		struct packet *p = next_packet(l, start);

		if (p)
			depart(l, p, rate_send(&l->rate, start, p->cost));
	}
}

static uint32_t opportunity_bytes(const struct link *l)
{
	if (l->params.trace_bytes > 0)
		return (uint32_t)l->params.trace_bytes;
	return l->mtu + (uint32_t)l->params.overhead_bytes;
}

/* One opportunity at @at: whole packets and, as in Mahimahi, parts of them. */
static void deliver(struct link *l, int64_t at)
{
	uint32_t left = opportunity_bytes(l);
	bool used = false;

	while (left) {
		uint32_t part;

		if (!l->sending) {
			l->sending = next_packet(l, at);
			if (!l->sending)
				break;
			l->sending_left = l->sending->cost;
		}
		used = true;
		part = l->sending_left < left ? l->sending_left : left;
		l->sending_left -= part;
		left -= part;
		if (!l->sending_left) {
			depart(l, l->sending, at);
			l->sending = NULL;
		}
	}
	l->count.used += used;
}

static bool is_idle(const struct link *l)
{
	return !l->sending && !host_peek(&l->host);
}

static void run_trace(struct link *l, int64_t now)
{
	struct trace *t = &l->params.trace;
	uint64_t passed = t->passed;

	while (trace_peek(t) <= now) {
		int64_t at = trace_peek(t);

		if (is_idle(l)) {
			/* Those of this very moment may still be used. */
			trace_skip(t, now);
			break;
		}
		trace_use(t);
		deliver(l, at);
	}
	l->count.opportunities += t->passed - passed;
}

/* --- radio --- */

static bool radio_waits(void *arg)
{
	const struct link *l = arg;

	return host_peek(&l->host) != NULL;
}

static struct packet *radio_take(void *arg, int64_t at)
{
	return next_packet(arg, at);
}

static void radio_sent(void *arg, struct packet *p, int64_t at)
{
	depart(arg, p, at);
}

/* Bytes of the opportunities from @at on that are before @until. */
static uint64_t trace_bytes(struct link *l, int64_t at, int64_t until)
{
	struct trace *t = &l->params.trace;
	uint64_t passed = t->passed;
	uint64_t before;

	trace_skip(t, at);
	before = t->passed;
	while (trace_peek(t) < until)
		trace_use(t);
	l->count.opportunities += t->passed - passed;
	return (t->passed - before) * opportunity_bytes(l);
}

static uint64_t radio_carries(void *arg, int64_t at, uint64_t wanted)
{
	struct link *l = arg;
	uint64_t each = opportunity_bytes(l);
	uint64_t bytes;

	if (!l->params.trace.n) {
		bytes = grants_capacity(&l->radio.grants, l->rate.bit_per_s);
		return bytes < wanted ? bytes : wanted;
	}
	bytes = trace_bytes(l, at, at + l->radio.grants.every);
	if (bytes > wanted)
		bytes = wanted;
	l->count.used += (bytes + each - 1) / each;
	return bytes;
}

static void radio_fell_open(void *arg, int64_t at)
{
	struct link *l = arg;

	(void)at;
	if (l->watch.fell_open)
		l->watch.fell_open(l->watch.arg, (int)l->rng.direction);
}

static struct radio_link radio_link(const struct link *l)
{
	return (struct radio_link){
		.waits = radio_waits,
		.take = radio_take,
		.sent = radio_sent,
		.carries = radio_carries,
		.fell_open = radio_fell_open,
		.arg = (void *)l,
	};
}

void link_run(struct link *l, int64_t now)
{
	const struct radio_link of_radio = radio_link(l);

	if (l->radio.is_on)
		radio_run(&l->radio, &of_radio, now);
	else if (l->params.trace.n)
		run_trace(l, now);
	else if (l->rate.bit_per_s)
		run_rate(l, now);
}

int64_t link_next(const struct link *l)
{
	const struct packet *first = line_peek(&l->line);
	int64_t next = first ? first->due : NEVER;
	const struct radio_link of_radio = radio_link(l);
	int64_t service = NEVER;

	if (l->radio.is_on)
		service = radio_next(&l->radio, &of_radio);
	else if (l->params.trace.n && !is_idle(l))
		service = trace_peek(&l->params.trace);
	else if (!l->params.trace.n && host_peek(&l->host))
		service = next_start(l);
	return service < next ? service : next;
}

/* --- parameters --- */

uint64_t link_rate(const struct link *l)
{
	if (l->params.trace.n)
		return trace_rate(&l->params.trace, opportunity_bytes(l));
	return l->rate.bit_per_s;
}

double link_ms(const struct link *l, uint64_t bytes)
{
	uint64_t rate = link_rate(l);

	return rate ? (double)bytes * 8e3 / (double)rate : 0;
}

static void set_limits(struct link *l)
{
	const struct params *par = &l->params;
	double room = par->queue_ms * (double)link_rate(l) / 8e3;
	double bytes = par->queue_bytes;
	double packets = par->queue_packets;

	if (room > 0 && (bytes == 0 || room < bytes))
		bytes = fmax(1, floor(room));
	if (par->queue_ms == 0 && par->queue_bytes == 0 && packets == 0)
		packets = PACKETS_DEFAULT;
	host_limit(&l->host, (uint64_t)bytes, (uint64_t)packets);
}

static void set_order(struct link *l)
{
	const struct params *par = &l->params;
	struct codel *codel = &l->host.codel;

	l->host.order = par->aqm == AQM_CODEL ? HOST_CODEL : par->host;
	codel->target = ns(par->codel_target_ms);
	codel->interval = ns(par->codel_interval_ms);
	codel->mtu = l->mtu + (uint32_t)par->overhead_bytes;
}

static void set_radio(struct link *l, int64_t now)
{
	if (l->radio.is_on && !params_has_radio(&l->params))
		host_join(&l->host, &l->radio.firmware.queue);
	radio_configure(&l->radio, &l->params.radio, now);
}

static void apply(struct link *l, int64_t now)
{
	const struct params *par = &l->params;
	uint64_t bit_per_s = (uint64_t)llround(par->rate_mbps * 1e6);
	struct packet *p;

	if (bit_per_s != l->rate.bit_per_s)
		l->rate.rest = 0;
	l->rate.bit_per_s = bit_per_s;
	set_order(l);
	set_limits(l);
	set_radio(l, now);
	if (par->trace.n && !l->radio.is_on)
		return;
	if (l->sending)
		depart(l, l->sending, now);
	l->sending = NULL;
	if (bit_per_s || l->radio.is_on)
		return;
	while ((p = queue_pop(&l->host.bulk)))
		depart(l, p, now);
}

void link_configure(struct link *l, struct params *params, int64_t now)
{
	link_run(l, now);
	if (params->trace.n && !params->trace.started)
		trace_start(&params->trace, now);
	if (params->delays.n && !params->delays.started)
		delays_start(&params->delays, now);
	/* A rate that follows does not serve the time of a trace or a radio. */
	if (l->params.trace.n || l->radio.is_on)
		l->rate.free_at = now;
	params_fini(&l->params);
	l->params = *params;
	apply(l, now);
}

void link_init(struct link *l, int direction, uint64_t seed, uint32_t mtu,
	       struct pool *pool, struct params *params, int64_t now)
{
	memset(l, 0, sizeof(*l));
	l->rng.seed = seed;
	l->rng.direction = (uint32_t)direction;
	l->mtu = mtu;
	l->pool = pool;
	hist_init(&l->late);
	radio_init(&l->radio);
	link_configure(l, params, now);
}

void link_restart(struct link *l, uint64_t seed, int64_t now)
{
	link_run(l, now);
	l->draw++;
	l->rng.seed = seed;
	l->next_index = 0;
	l->behind = 0;
	l->params.loss.is_bad = false;
	l->rate.rest = 0;
	hist_init(&l->late);
	memset(&l->host.codel, 0, sizeof(l->host.codel));
	if (l->params.trace.n)
		trace_start(&l->params.trace, now);
	if (l->params.delays.n)
		delays_start(&l->params.delays, now);
	apply(l, now);
	radio_restart(&l->radio, now);
}

void link_fini(struct link *l)
{
	struct packet *p;

	host_join(&l->host, &l->radio.firmware.queue);
	while ((p = queue_pop(&l->host.bulk)) || (p = line_pop(&l->line)))
		pool_put(l->pool, p);
	if (l->sending)
		pool_put(l->pool, l->sending);
	line_fini(&l->line);
	radio_fini(&l->radio);
	params_fini(&l->params);
}

/* --- in --- */

static bool chance(const struct link *l, enum rng_purpose purpose,
		   uint64_t index, double probability)
{
	return probability > 0 &&
	       rng_uniform(&l->rng, purpose, index, 0) < probability;
}

static void send(struct link *l, struct packet *p, int64_t now)
{
	bool is_interactive =
		interactive_has(&l->params.interactive, p->data, p->len);

	if (!l->params.trace.n && !l->rate.bit_per_s)
		depart(l, p, now);
	else if (!host_push(&l->host, p, is_interactive))
		drop(l, p, LINK_QUEUE, now);
}

static struct packet *copy_of(struct link *l, const struct packet *p)
{
	struct packet *copy = pool_get(l->pool);

	if (!copy)
		return NULL;
	memcpy(copy, p, sizeof(*p) + p->len);
	copy->next = NULL;
	copy->copy = true;
	add(&l->count.duplicated, p->cost);
	return copy;
}

static void enter_other(struct link *l, struct packet *p, int64_t now)
{
	l->count.other_in++;
	p->due = now + ns(l->params.delay_ms);
	put_on_line(l, p, now);
}

/* Numbers @p and decides its fate. */
static void judge(struct link *l, struct packet *p)
{
	p->numbered = true;
	p->index = l->next_index++;
	p->draw = l->draw;
	p->cost = p->len - FRAME_HEADER + (uint32_t)l->params.overhead_bytes;
	add(&l->count.in, p->cost);
	p->lost = loss_take(&l->params.loss, &l->rng, p->index);
	p->held = chance(l, RNG_REORDER, p->index, l->params.reorder);
	l->count.held += p->held;
}

void link_enter(struct link *l, struct packet *p, int64_t now)
{
	struct packet *copy = NULL;

	p->entered = now;
	if (!frame_is_numbered(p->data, p->len)) {
		enter_other(l, p, now);
		return;
	}
	link_run(l, now);
	judge(l, p);
	if (p->lost && l->params.loss_at == LOSS_AT_ENTRY) {
		drop(l, p, LINK_LOST, now);
		return;
	}
	if (!p->lost && chance(l, RNG_DUPLICATE, p->index, l->params.duplicate))
		copy = copy_of(l, p);
	send(l, p, now);
	if (copy)
		send(l, copy, now);
	link_run(l, now);
}

void link_enter_lost(struct link *l, const uint8_t *frame, uint32_t len,
		     int64_t now)
{
	struct packet p = { .len = len, .entered = now };

	if (!frame_is_numbered(frame, len)) {
		l->count.other_in++;
		return;
	}
	judge(l, &p);
	add(&l->count.dropped[LINK_MEMORY], p.cost);
	if (l->watch.drop)
		l->watch.drop(l->watch.arg, (int)l->rng.direction, &p,
			      LINK_MEMORY, now);
}

/* --- out --- */

struct packet *link_exit(struct link *l, int64_t now)
{
	struct packet *p = line_peek(&l->line);

	if (!p || p->due > now)
		return NULL;
	return line_pop(&l->line);
}

void link_done(struct link *l, struct packet *p, bool written, int64_t at)
{
	if (!p->numbered) {
		l->count.other_out += written;
		pool_put(l->pool, p);
		return;
	}
	if (!written) {
		drop(l, p, LINK_DEVICE, at);
		return;
	}
	add(&l->count.out, p->cost);
	if (p->draw == l->draw) {
		if (p->index + 1 < l->behind)
			l->count.reordered++;
		else
			l->behind = p->index + 1;
	}
	hist_add(&l->late, (at - p->due) / 1000);
	pool_put(l->pool, p);
}
