/* SPDX-License-Identifier: MIT */
#include "matrix.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVERY (170 * MS)	/* an object */
#define TICK (5 * MS)
#define START (2 * S)
#define FIRST S		/* until then the bulk's waits count apart */

enum { OBJECTS = 1024, BULK = 1 };

/* --- one run --- */

struct trial {
	struct model model;
	struct random chance;
	struct cellular trace;
	double took[OBJECTS], early[OBJECTS];	/* ms; those in the start */
	unsigned int n, nearly;
	int64_t began, yielded, offered_at, capacity_from;
	double capacity;	/* bytes */
	uint64_t arrived, drops;	/* bytes before it began */
	double first_wait99;	/* ms */
};

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double part_of(double *of, unsigned int n, double part)
{
	if (!n)
		return NAN;
	qsort(of, n, sizeof(*of), by_size);
	return of[(unsigned int)((n - 1) * part + 0.5)];
}

static void count_object(struct trial *r, int64_t until)
{
	double took = (double)(until - r->offered_at) / 1e6;

	if (r->n == OBJECTS || r->nearly == OBJECTS)
		return;
	if (r->offered_at - r->began < START)
		r->early[r->nearly++] = took;
	else
		r->took[r->n++] = took;
	r->offered_at = 0;
}

static void mind_object(struct trial *r)
{
	struct model_conn *c = &r->model.conn[0];
	int64_t now = r->model.now;

	if (r->offered_at && !c->done_at)
		return;
	if (r->offered_at)
		count_object(r, c->done_at);
	if (now < r->began + 50 * MS || now % EVERY >= TICK)
		return;
	/* Not in step with what happens in rounds. */
	model_run(&r->model, random_below(&r->chance, 20) * MS);
	r->offered_at = r->model.now;
	model_offer(&r->model, 0, OBJECT);
}

static void mind_path(struct trial *r, const struct matrix_case *c,
		      int64_t took)
{
	struct model *model = &r->model;
	int64_t since = model->now - r->began;
	bool on = c->rivals && since >= c->rivals_from &&
		(!c->rivals_to || since < c->rivals_to);

	if (c->steps > 0 && since / (4 * S) != (since - took) / (4 * S))
		model->is.rate = c->is.rate *
			pow(c->steps, random_range(&r->chance, 0, 1000) / 1e3);
	if (c->rivals && on != (model->rivals.n && model->rivals.one[0].on))
		model_rivals(model, on ? c->rivals : 0, c->rival_cc);
	r->capacity += (c->trace > 0 ? cellular_rate(&r->trace, model->now) :
			model->is.rate) * (double)took / 1e9;
	if (model->paths.path[0].aggregate.state == AGGREGATE_YIELD)
		r->yielded += took;
}

static double wait99(const struct trial *r)
{
	return (double)hist_quantile(&r->model.conn[BULK].waited, 0.99) / 1e3;
}

static void mind_waits(struct trial *r, int64_t since, int64_t took)
{
	if (since < FIRST || since - took >= FIRST)
		return;
	r->first_wait99 = wait99(r);
	hist_init(&r->model.conn[BULK].waited);
}

static void begin(struct trial *r, const struct matrix_case *c,
		  enum aggregate_mode mode)
{
	struct model_params is = c->is;
	struct random chance = { c->seed ^ 0x5eed };

	memset(r, 0, sizeof(*r));
	r->chance.state = c->seed;
	is.mode = mode;
	if (c->trace > 0) {
		cellular_make(&r->trace, c->trace, &chance);
		is.trace = &r->trace;
	}
	model_init(&r->model, &is, &r->chance);
	r->began = r->model.now;
}

static void go_on(struct trial *r, const struct matrix_case *c, int64_t lasts)
{
	while (r->model.now - r->began < lasts) {
		int64_t at = r->model.now;

		mind_object(r);
		model_run(&r->model, TICK - r->model.now % TICK);
		mind_path(r, c, r->model.now - at);
		mind_waits(r, r->model.now - r->began, r->model.now - at);
		if (r->model.now - r->began <= START)
			r->drops = r->model.network.dropped;
	}
}

/* One that is not complete took as long as it has waited so far, at least. */
static void end(struct trial *r)
{
	const struct model_conn *c = &r->model.conn[0];

	if (r->offered_at)
		count_object(r, c->done_at ? c->done_at : r->model.now);
}

static double idle(const struct matrix_case *c, enum aggregate_mode mode)
{
	struct trial *r = malloc(sizeof(*r));
	double ms;

	begin(r, c, mode);
	go_on(r, c, c->lasts / 2 < 12 * S ? c->lasts / 2 : 12 * S);
	end(r);
	ms = part_of(r->took, r->n, 0.5);
	model_fini(&r->model);
	free(r);
	return ms;
}

static uint64_t arrived(const struct trial *r)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < MODEL_CONNS; i++)
		sum += r->model.conn[i].arrived;
	return sum;
}

static double goodput_of(const struct trial *r)
{
	return (double)(arrived(r) - r->arrived) / r->capacity;
}

/* What was measured so far is forgotten, what the law has learnt is not. */
static void begin_anew(struct trial *r)
{
	r->began = r->model.now;
	r->arrived = arrived(r);
	r->capacity = 0;
	r->yielded = 0;
	r->n = r->nearly = 0;
}

static struct trial *beside_bulk(const struct matrix_case *c,
			       enum aggregate_mode mode)
{
	struct trial *r = malloc(sizeof(*r));

	begin(r, c, mode);
	go_on(r, c, c->alone);
	begin_anew(r);
	model_offer(&r->model, BULK, UINT64_MAX);
	go_on(r, c, c->lasts);
	end(r);
	return r;
}

struct matrix_found matrix_measure(const struct matrix_case *c,
				   enum aggregate_mode mode)
{
	struct trial *off = beside_bulk(c, AGGREGATE_OFF);
	struct trial *on = beside_bulk(c, mode);
	struct matrix_found f = { .idle_ms = idle(c, mode) };

	f.p50 = part_of(on->took, on->n, 0.5) - f.idle_ms;
	f.p90 = part_of(on->took, on->n, 0.9) - f.idle_ms;
	f.p95 = part_of(on->took, on->n, 0.95) - f.idle_ms;
	f.p99 = part_of(on->took, on->n, 0.99) - f.idle_ms;
	f.start_p95 = part_of(on->early, on->nearly, 0.95) - f.idle_ms;
	f.goodput = goodput_of(on);
	f.of_off = f.goodput / goodput_of(off);
	f.yield = (double)on->yielded / (double)(on->model.now - on->began);
	f.start_drops = on->drops;
	f.wait99 = wait99(on);
	f.first_wait99 = on->first_wait99;
	model_fini(&on->model);
	model_fini(&off->model);
	free(on);
	free(off);
	return f;
}

/* --- cases --- */

static struct matrix_case plain(const char *name, double mbit, int64_t rtt,
				double bdps, unsigned int pipes)
{
	struct matrix_case c = { .lasts = 30 * S, .seed = 1 };
	double queue_ms = (double)rtt / 1e6 * bdps;

	snprintf(c.name, sizeof(c.name), "%s", name);
	c.is = mile(mbit, rtt, queue_ms, pipes);
	c.is.delayed_acks = true;
	return c;
}

/* 10 Mbit/s, 60 ms, a queue of one BDP, 8 pipes, and one thing that differs. */
static const struct {
	const char *name;
	double loss, burst;
	int64_t jitter;
	bool reorder, both, trace, bbr;
	double steps;
	int64_t late;
	double lost_stamps;
	unsigned int rivals;
	bool rival_bbr;
	double queue;		/* BDPs, 0: one */
	unsigned int pipes;	/* 0: 8 */
	int64_t from, to;
	int64_t alone;
} named[] = {
	{ .name = "clean" },
	{ .name = "clean bbr", .bbr = true },
	{ .name = "clean 4 pipes", .pipes = 4 },
	{ .name = "clean 16 pipes", .pipes = 16 },
	{ .name = "clean 64 pipes", .pipes = 64 },
	{ .name = "clean 1 pipe", .pipes = 1 },
	{ .name = "queue 0.25", .queue = 0.25 },
	{ .name = "queue 8", .queue = 8 },
	{ .name = "queue 8 bbr", .queue = 8, .bbr = true },
	{ .name = "loss 0.5", .loss = 0.005 },
	{ .name = "loss 1", .loss = 0.01 },
	{ .name = "loss 1 bbr", .loss = 0.01, .bbr = true },
	{ .name = "loss 2", .loss = 0.02 },
	{ .name = "loss 3", .loss = 0.03 },
	{ .name = "loss 1 bursts", .loss = 0.01, .burst = 4 },
	{ .name = "loss 1 queue 8", .loss = 0.01, .queue = 8 },
	{ .name = "jitter 10", .jitter = 10 * MS },
	{ .name = "jitter 10 bbr", .jitter = 10 * MS, .bbr = true },
	{ .name = "jitter 20 both", .jitter = 20 * MS, .both = true },
	{ .name = "jitter 20 both bbr", .jitter = 20 * MS, .both = true,
	  .bbr = true },
	{ .name = "jitter 30", .jitter = 30 * MS },
	{ .name = "jitter 10 reorder", .jitter = 10 * MS, .reorder = true },
	{ .name = "jitter 10 loss 1", .jitter = 10 * MS, .loss = 0.01 },
	{ .name = "objects first", .alone = 5 * S },
	{ .name = "objects first bbr", .alone = 5 * S, .bbr = true },
	{ .name = "objects first, jitter 20 both", .jitter = 20 * MS,
	  .both = true, .alone = 5 * S },
	{ .name = "objects first, jitter 20 both bbr", .jitter = 20 * MS,
	  .both = true, .alone = 5 * S, .bbr = true },
	{ .name = "objects first, late 20", .late = 20 * MS, .alone = 5 * S },
	{ .name = "late 5", .late = 5 * MS },
	{ .name = "late 20", .late = 20 * MS },
	{ .name = "late 50", .late = 50 * MS },
	{ .name = "late 20 loss 1", .late = 20 * MS, .loss = 0.01 },
	{ .name = "late 20 loss 1 bbr", .late = 20 * MS, .loss = 0.01,
	  .bbr = true },
	{ .name = "late 50 loss 1 bbr", .late = 50 * MS, .loss = 0.01,
	  .bbr = true },
	{ .name = "stamps 10 % lost", .lost_stamps = 0.1 },
	{ .name = "stamps 60 % lost", .lost_stamps = 0.6 },
	{ .name = "rate steps", .steps = 4, .queue = 4 },
	{ .name = "rate steps loss 1", .steps = 4, .queue = 4, .loss = 0.01 },
	{ .name = "cellular", .trace = true, .queue = 8 },
	{ .name = "cellular bbr", .trace = true, .queue = 8, .bbr = true },
	{ .name = "1 rival 0.5", .rivals = 1, .queue = 0.5 },
	{ .name = "1 rival 1", .rivals = 1 },
	{ .name = "1 rival 5", .rivals = 1, .queue = 5 },
	{ .name = "1 rival 1, 1 pipe", .rivals = 1, .pipes = 1 },
	{ .name = "1 rival 5, 1 pipe", .rivals = 1, .queue = 5, .pipes = 1 },
	{ .name = "4 rivals 0.5", .rivals = 4, .queue = 0.5 },
	{ .name = "4 rivals 1", .rivals = 4 },
	{ .name = "4 rivals 5", .rivals = 4, .queue = 5 },
	{ .name = "1 rival 0.5, 4 pipes", .rivals = 1, .queue = 0.5, .pipes = 4 },
	{ .name = "1 rival 0.5, 16 pipes", .rivals = 1, .queue = 0.5, .pipes = 16 },
	{ .name = "1 rival 1, 4 pipes", .rivals = 1, .pipes = 4 },
	{ .name = "1 rival 1, 16 pipes", .rivals = 1, .pipes = 16 },
	{ .name = "1 rival 5, 4 pipes", .rivals = 1, .queue = 5, .pipes = 4 },
	{ .name = "1 rival 5, 16 pipes", .rivals = 1, .queue = 5, .pipes = 16 },
	{ .name = "4 rivals 1, 4 pipes", .rivals = 4, .pipes = 4 },
	{ .name = "4 rivals 1, 16 pipes", .rivals = 4, .pipes = 16 },
	{ .name = "4 rivals 5, 4 pipes", .rivals = 4, .queue = 5, .pipes = 4 },
	{ .name = "4 rivals 5, 16 pipes", .rivals = 4, .queue = 5, .pipes = 16 },
	{ .name = "1 bbr 0.5", .rivals = 1, .rival_bbr = true, .queue = 0.5 },
	{ .name = "1 bbr 1", .rivals = 1, .rival_bbr = true },
	{ .name = "1 bbr 5", .rivals = 1, .rival_bbr = true, .queue = 5 },
	{ .name = "bbr, 1 bbr 0.5", .bbr = true, .rivals = 1,
	  .rival_bbr = true, .queue = 0.5 },
	{ .name = "bbr, 1 bbr 1", .bbr = true, .rivals = 1, .rival_bbr = true },
	{ .name = "bbr, 1 bbr 5", .bbr = true, .rivals = 1, .rival_bbr = true,
	  .queue = 5 },
	{ .name = "bbr, 4 bbr 0.5", .bbr = true, .rivals = 4,
	  .rival_bbr = true, .queue = 0.5 },
	{ .name = "bbr, 4 bbr 1", .bbr = true, .rivals = 4, .rival_bbr = true },
	{ .name = "bbr, 4 bbr 5", .bbr = true, .rivals = 4, .rival_bbr = true,
	  .queue = 5 },
	{ .name = "1 rival 10-20 s", .rivals = 1, .from = 10 * S, .to = 20 * S },
	{ .name = "4 rivals 10-20 s", .rivals = 4, .from = 10 * S,
	  .to = 20 * S },
};

bool matrix_named(unsigned int i, struct matrix_case *c)
{
	static const struct {
		const char *name;
		double mbit;
		int64_t rtt;
		double queue;
	} rates[] = {
		{ "1 Mbit/s", 1, 60 * MS, 3 }, { "5 Mbit/s", 5, 50 * MS, 2 },
		{ "100 Mbit/s", 100, 20 * MS, 1 },
		{ "500 Mbit/s", 500, 5 * MS, 1 },
		{ "1 Gbit/s", 1000, 10 * MS, 1 },
		{ "10 Mbit/s 300 ms", 10, 300 * MS, 1 },
		{ "10 Mbit/s 2 ms", 10, 2 * MS, 40 },
	};
	unsigned int n = sizeof(named) / sizeof(named[0]);

	if (i >= n) {
		i -= n;
		if (i >= sizeof(rates) / sizeof(rates[0]))
			return false;
		*c = plain(rates[i].name, rates[i].mbit, rates[i].rtt,
			   rates[i].queue, 8);
		if (rates[i].mbit > 200)
			c->lasts = rates[i].mbit > 500 ? 5 * S : 15 * S;
		return true;
	}
	*c = plain(named[i].name, 10, 60 * MS,
		   named[i].queue > 0 ? named[i].queue : 1,
		   named[i].pipes ? named[i].pipes : 8);
	c->is.loss = named[i].loss;
	c->is.burst = named[i].burst;
	c->is.jitter = named[i].jitter;
	c->is.reorder = named[i].reorder;
	c->is.jitter_back = named[i].both ? c->is.jitter : 0;
	c->is.cc = named[i].bbr ? TCP_BBR : TCP_CUBIC;
	c->is.late = named[i].late;
	c->is.lost_stamps = named[i].lost_stamps;
	c->steps = named[i].steps;
	c->trace = named[i].trace ? 10 * MBIT : 0;
	c->rivals = named[i].rivals;
	c->rival_cc = named[i].rival_bbr ? TCP_BBR : TCP_CUBIC;
	c->rivals_from = named[i].from;
	c->rivals_to = named[i].to;
	c->alone = named[i].alone;
	if (c->rivals)
		c->lasts = 60 * S;
	return true;
}

static double log_between(struct random *r, double low, double high)
{
	return low * pow(high / low, random_range(r, 0, 10000) / 1e4);
}

static void name_random(struct matrix_case *c, double mbit, double rtt_ms,
			double queue_ms)
{
	const struct model_params *is = &c->is;
	int n = snprintf(c->name, sizeof(c->name), "%llu %.3gM %.3gms q%.3g x%u",
			 (unsigned long long)c->seed, mbit, rtt_ms, queue_ms,
			 is->pipes);

	snprintf(c->name + n, sizeof(c->name) - (size_t)n,
		 "%s%s%.2g%s j%d%s l%d%s%s%s", is->cc == TCP_BBR ? " bbr" : "",
		 is->burst > 0 ? " b" : " ", is->loss * 100,
		 is->loss_back > 0 ? "a" : "", (int)(is->jitter / MS),
		 is->reorder ? "r" : "", (int)(is->late / MS),
		 c->steps > 0 ? " steps" : "", c->trace > 0 ? " trace" : "",
		 c->alone ? " alone" : "");
}

struct matrix_case matrix_random(uint64_t seed)
{
	static const unsigned int pipes[] = { 1, 2, 4, 8, 8, 16, 32, 64 };
	static const double losses[] = { 0, 0, 0, 0.002, 0.005, 0.01, 0.02, 0.03 };
	struct random r = { seed };
	double mbit = log_between(&r, 1, 300);
	double rtt_ms = log_between(&r, 1, 300);
	double queue_ms = rtt_ms * log_between(&r, 0.25, 10);
	double least = 20 * MODEL_MSS / (mbit * MBIT) * 1e3;
	struct matrix_case c = { .seed = seed, .lasts = 20 * S };

	c.is = mile(mbit, (int64_t)(rtt_ms * 1e6),
		    queue_ms > least ? queue_ms : least,
		    pipes[random_below(&r, 8)]);
	c.is.delayed_acks = random_below(&r, 4);
	c.is.cc = random_below(&r, 3) ? TCP_CUBIC : TCP_BBR;
	c.is.loss = losses[random_below(&r, 8)];
	c.is.burst = random_below(&r, 3) ? 0 : 4;
	c.is.loss_back = random_below(&r, 3) ? 0 : c.is.loss;
	c.is.jitter = random_below(&r, 3) ? 0 : random_range(&r, 1, 20) * MS;
	c.is.reorder = !random_below(&r, 4);
	c.is.jitter_back = c.is.reorder ? 0 : c.is.jitter;
	c.is.late = random_below(&r, 3) ? 0 : random_range(&r, 1, 50) * MS;
	c.is.lost_stamps = random_below(&r, 4) ? 0 : 0.3;
	c.steps = random_below(&r, 5) ? 0 : log_between(&r, 0.2, 3);
	c.trace = random_below(&r, 8) ? 0 : mbit * MBIT;
	c.alone = random_below(&r, 2) ? 0 : 5 * S;
	name_random(&c, mbit, rtt_ms, queue_ms);
	return c;
}

struct matrix_case matrix_crowded(uint64_t seed)
{
	struct random r = { ~seed };
	double mbit = log_between(&r, 1, 1000);
	double rtt_ms = log_between(&r, 5, 200);
	double queue_ms = rtt_ms * log_between(&r, 0.5, 5);
	double least = 20 * MODEL_MSS / (mbit * MBIT) * 1e3;
	/* As many events as these take seconds. */
	struct matrix_case c = { .seed = seed,
		.lasts = mbit > 200 ? 2 * S : mbit > 50 ? 6 * S : 20 * S };
	int n;

	c.is = mile(mbit, (int64_t)(rtt_ms * 1e6),
		    queue_ms > least ? queue_ms : least,
		    random_range(&r, 1, 24));
	c.is.delayed_acks = random_below(&r, 4);
	c.is.cc = random_below(&r, 3) ? TCP_CUBIC : TCP_BBR;
	c.is.loss = random_below(&r, 4) ? 0 : 0.005;
	c.is.jitter = random_below(&r, 4) ? 0 : random_range(&r, 1, 10) * MS;
	c.is.late = random_below(&r, 4) ? 0 : random_range(&r, 1, 20) * MS;
	c.rivals = random_below(&r, 2) ? 1 : RIVALS_MAX;
	c.rival_cc = random_below(&r, 3) ? TCP_CUBIC : TCP_BBR;
	c.rivals_from = c.lasts / 10 * random_below(&r, 4);
	c.rivals_to = random_below(&r, 2) ? 0 :
		c.lasts / 10 * random_range(&r, 6, 8);
	name_random(&c, mbit, rtt_ms, queue_ms);
	n = (int)strlen(c.name);
	snprintf(c.name + n, sizeof(c.name) - (size_t)n, " +%u%s %d-%d",
		 c.rivals, c.rival_cc == TCP_BBR ? "bbr" : "",
		 (int)(c.rivals_from / S), (int)(c.rivals_to / S));
	return c;
}
