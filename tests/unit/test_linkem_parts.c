/* SPDX-License-Identifier: MIT */
/* The parts that hold packets, the trace, and what counts as a packet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "topologies/linkem/clock.h"
#include "topologies/linkem/codel.h"
#include "topologies/linkem/delays.h"
#include "topologies/linkem/frame.h"
#include "topologies/linkem/line.h"
#include "topologies/linkem/packet.h"
#include "topologies/linkem/queue.h"
#include "topologies/linkem/rate.h"
#include "topologies/linkem/trace.h"
#include "random.h"

/* --- pool --- */

static void a_pool_has_a_limit(void **state)
{
	struct packet *held[64];
	struct pool pool;
	int n = 0;

	(void)state;
	pool_init(&pool, 1500, 32 * 2048);
	while (n < 64 && (held[n] = pool_get(&pool)))
		n++;
	assert_in_range(n, 20, 41);
	assert_null(pool_get(&pool));
	pool_put(&pool, held[0]);
	assert_non_null(pool_get(&pool));
	assert_int_equal(pool.in_use, n);
	pool_fini(&pool);
}

/* --- queue --- */

static void fill(struct packet *p, int n, uint32_t cost)
{
	memset(p, 0, (size_t)n * sizeof(*p));
	for (int i = 0; i < n; i++) {
		p[i].cost = cost;
		p[i].index = (uint64_t)i;
	}
}

static void the_tail_is_dropped_at_the_limit_of_packets(void **state)
{
	struct queue q = { .packets_max = 3 };
	struct packet p[5];

	(void)state;
	fill(p, 5, 1000);
	for (int i = 0; i < 5; i++)
		assert_int_equal(queue_push(&q, &p[i]), i < 3);
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(queue_pop(&q), &p[i]);
	assert_null(queue_pop(&q));
	assert_int_equal(q.bytes, 0);
	assert_int_equal(q.packets_top, 3);
	assert_int_equal(q.bytes_top, 3000);
}

static void the_tail_is_dropped_at_the_limit_of_bytes(void **state)
{
	struct queue q = { .bytes_max = 2500 };
	struct packet p[4];

	(void)state;
	fill(p, 4, 1000);
	p[3].cost = 500;
	assert_true(queue_push(&q, &p[0]) && queue_push(&q, &p[1]));
	assert_false(queue_push(&q, &p[2]));
	assert_true(queue_push(&q, &p[3]));	/* to the byte */
	assert_int_equal(q.bytes, 2500);
}

static void an_empty_queue_takes_any(void **state)
{
	struct queue q = { .bytes_max = 10 };
	struct packet p[2];

	(void)state;
	fill(p, 2, 1000);
	assert_true(queue_push(&q, &p[0]));
	assert_false(queue_push(&q, &p[1]));
}

/* --- CoDel --- */

struct codel_bed {
	struct codel codel;
	struct queue queue;
	struct packet packet[4096];
	int pushed, dropped, popped;
	int64_t drop_at[4096];
	int64_t now;
};

static void note_drop(void *arg, struct packet *p)
{
	struct codel_bed *bed = arg;

	(void)p;
	bed->drop_at[bed->dropped++] = bed->now;
}

static struct codel_bed *codel_bed(void)
{
	struct codel_bed *bed = calloc(1, sizeof(*bed));

	assert_non_null(bed);
	bed->codel.target = 5 * NS_PER_MS;
	bed->codel.interval = 100 * NS_PER_MS;
	bed->codel.mtu = 1514;
	return bed;
}

/* For @ms, in packets a millisecond: @in come (of ten), one goes. */
static void codel_play(struct codel_bed *bed, int ms, int in)
{
	const struct codel_drop drop = { note_drop, bed };

	for (int i = 0; i < ms; i++, bed->now += NS_PER_MS) {
		for (int k = 0; k < in / 10 + (i % 10 < in % 10); k++) {
			struct packet *p = &bed->packet[bed->pushed++];

			p->cost = 1514;
			p->entered = bed->now;
			assert_true(queue_push(&bed->queue, p));
		}
		bed->popped += !!codel_pop(&bed->codel, &bed->queue, bed->now,
					   &drop);
	}
}

static void codel_leaves_a_short_queue_alone(void **state)
{
	struct codel_bed *bed = codel_bed();

	(void)state;
	codel_play(bed, 1000, 10);
	assert_int_equal(bed->dropped, 0);
	assert_int_equal(bed->popped, 1000);
	free(bed);
}

static void codel_lets_a_burst_pass(void **state)
{
	struct codel_bed *bed = codel_bed();

	(void)state;
	codel_play(bed, 20, 30);	/* leaves 40 waiting */
	codel_play(bed, 60, 0);
	assert_int_equal(bed->dropped, 0);
	assert_int_equal(bed->popped, 60);
	free(bed);
}

/* The first drop an interval after the wait passed the target, then at
 * intervals that shrink with the square root of the count. */
static void codel_drops_by_the_law(void **state)
{
	struct codel_bed *bed = codel_bed();
	int64_t second, third;

	(void)state;
	codel_play(bed, 600, 13);
	assert_true(bed->dropped >= 5);
	/* 13 in, 10 out: after 17 ms a packet has waited 5 ms. */
	assert_in_range(bed->drop_at[0] / NS_PER_MS, 105, 130);
	second = bed->drop_at[1] - bed->drop_at[0];
	third = bed->drop_at[2] - bed->drop_at[1];
	assert_in_range(second / NS_PER_MS, 99, 101);
	assert_in_range(third / NS_PER_MS, 70, 72);
	assert_int_equal(bed->pushed,
			 bed->popped + bed->dropped + (int)bed->queue.packets);
	free(bed);
}

static void codel_stops_below_the_target(void **state)
{
	struct codel_bed *bed = codel_bed();
	int dropped;

	(void)state;
	codel_play(bed, 400, 13);
	codel_play(bed, 400, 0);
	dropped = bed->dropped;
	assert_false(bed->codel.dropping);
	codel_play(bed, 200, 10);
	assert_int_equal(bed->dropped, dropped);
	free(bed);
}

/* --- rate --- */

static void a_rate_is_exact_in_the_long_run(void **state)
{
	/* 1514 bytes at 9.185 Mbit/s are 1318671.747... ns. */
	struct rate r = { .bit_per_s = 9185000 };
	int64_t end = 0;

	(void)state;
	for (int i = 0; i < 9185; i++)
		end = rate_send(&r, 0, 1514);
	assert_true(end == 1514LL * 8 * 1000000);
	assert_int_equal(r.rest, 0);
}

static void an_idle_link_starts_anew(void **state)
{
	struct rate r = { .bit_per_s = 12000000 };

	(void)state;
	assert_true(rate_send(&r, 0, 1500) == NS_PER_MS);
	assert_true(rate_send(&r, 5 * NS_PER_MS, 1500) == 6 * NS_PER_MS);
	assert_true(rate_send(&r, 0, 1500) == 7 * NS_PER_MS);
}

/* --- delay line --- */

static void a_line_sorts_and_keeps_the_order_of_equals(void **state)
{
	enum { N = 2000 };
	static struct packet p[N];
	struct line line = { .n = 0 };
	struct packet *last = NULL;
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	fill(p, N, 1);
	for (int i = 0; i < N; i++) {
		p[i].due = random_below(&r, 300);
		assert_int_equal(line_push(&line, &p[i]), 0);
		/* Some leave in between. */
		if (random_below(&r, 4) == 0)
			line_pop(&line);
	}
	while (line.n) {
		struct packet *top = line_peek(&line);

		assert_ptr_equal(line_pop(&line), top);
		if (last)
			assert_true(last->due < top->due ||
				    (last->due == top->due &&
				     last->order < top->order));
		last = top;
	}
	assert_null(line_pop(&line));
	line_fini(&line);
}

/* --- trace --- */

#define TEMPLATE "/tmp/tm3-trace-XXXXXX"

static void write_file(char *path, const char *text)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static int load(struct trace *t, const char *text, char *why, size_t why_len)
{
	char path[] = TEMPLATE;
	int ret;

	write_file(path, text);
	ret = trace_load(t, path, why, why_len);
	unlink(path);
	return ret;
}

static int load_delays(struct delays *d, const char *text, char *why,
		       size_t why_len)
{
	char path[] = TEMPLATE;
	int ret;

	write_file(path, text);
	ret = delays_load(d, path, why, why_len);
	unlink(path);
	return ret;
}

static void a_trace_repeats_after_its_last_line(void **state)
{
	static const int64_t wanted[] = { 0, 2, 2, 5, 5, 7, 7, 10, 10, 12 };
	struct trace t;
	char why[256];

	(void)state;
	assert_int_equal(load(&t, "0\n2\n2\n5\n", why, sizeof(why)), 0);
	trace_start(&t, 1000 * NS_PER_MS);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		assert_true(trace_peek(&t) == (1000 + wanted[i]) * NS_PER_MS);
		trace_use(&t);
	}
	/* 4 x 1500 bytes in 5 ms. */
	assert_int_equal(trace_rate(&t, 1500), 9600000);
	trace_fini(&t);
}

static void skipping_is_using_one_by_one(void **state)
{
	struct trace walked, skipped;
	struct random r;
	char why[256];
	int64_t now = 0;

	(void)state;
	random_begin(&r, __func__);
	assert_int_equal(load(&walked, "1\n2\n2\n9\n", why, sizeof(why)), 0);
	assert_int_equal(trace_copy(&skipped, &walked), 0);
	trace_start(&walked, 0);
	trace_start(&skipped, 0);
	for (int i = 0; i < 500; i++) {
		now += random_below(&r, 60) * NS_PER_MS / 2;
		while (trace_peek(&walked) < now)
			trace_use(&walked);
		trace_skip(&skipped, now);
		assert_true(trace_peek(&walked) == trace_peek(&skipped));
		assert_int_equal(walked.passed, skipped.passed);
	}
	trace_fini(&walked);
	trace_fini(&skipped);
}

static void a_wrong_trace_is_refused_by_line(void **state)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{ "", "longer than 0" },
		{ "0\n0\n", "longer than 0" },
		{ "5\n3\n", ":2:" },
		{ "1\n2\nx\n", ":3:" },
		{ "-1\n", ":1:" },
		{ "1.5\n", ":1:" },
		{ "99999999999\n", ":1:" },
	};
	struct trace t;
	char why[256];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_true(load(&t, wrong[i].text, why, sizeof(why)) < 0);
		assert_non_null(strstr(why, wrong[i].says));
	}
}

/* Of all moments of two periods, the delay is that of the step they are in. */
static void delays_repeat_after_their_last_step(void **state)
{
	static const double wanted_ms[] = { 7, 7, 0, 12.25, 12.25, 12.25 };
	struct delays d, copy;
	char why[256];

	(void)state;
	assert_int_equal(load_delays(&d, "2 7\n1 0\n3 12.25\n", why,
				     sizeof(why)), 0);
	delays_start(&d, 1000 * NS_PER_MS);
	assert_int_equal(delays_copy(&copy, &d), 0);
	delays_fini(&d);
	for (int i = 0; i < 12; i++) {
		int64_t start = (1000 + i) * NS_PER_MS;
		int64_t delay = (int64_t)(wanted_ms[i % 6] * 1e6);

		assert_true(delays_at(&copy, start) == delay);
		assert_true(delays_at(&copy, start + NS_PER_MS - 1) == delay);
	}
	delays_fini(&copy);
}

static void wrong_delays_are_refused_by_line(void **state)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{ "", "no delay" },
		{ "0 5\n", ":1:" },
		{ "10 5\n10\n", ":2:" },
		{ "10 -1\n", ":1:" },
		{ "10 5ms\n", ":1:" },
		{ "1.5 5\n", ":1:" },
		{ "10 5\n10 60001\n", ":2:" },
		{ "3600001 5\n", ":1:" },
	};
	struct delays d;
	char why[256];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_true(load_delays(&d, wrong[i].text, why,
					sizeof(why)) < 0);
		assert_non_null(strstr(why, wrong[i].says));
	}
}

/* --- frames --- */

static void ip_is_numbered_and_housekeeping_is_not(void **state)
{
	uint8_t f[128] = { 0 };

	(void)state;
	f[12] = 0x08;
	assert_true(frame_is_numbered(f, 60));		/* IPv4 */
	assert_false(frame_is_numbered(f, 14));
	f[13] = 0x06;
	assert_false(frame_is_numbered(f, 60));		/* ARP */
	f[12] = 0x86;
	f[13] = 0xdd;
	f[14 + 6] = 6;
	assert_true(frame_is_numbered(f, 80));		/* TCP over IPv6 */
	f[14 + 6] = 58;
	f[54] = 128;
	assert_true(frame_is_numbered(f, 80));		/* ping */
	f[54] = 135;
	assert_false(frame_is_numbered(f, 80));		/* who has? */
	f[14 + 6] = 0;
	f[54] = 58;
	f[62] = 143;
	assert_false(frame_is_numbered(f, 90));		/* listener report */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pool_has_a_limit),
		cmocka_unit_test(the_tail_is_dropped_at_the_limit_of_packets),
		cmocka_unit_test(the_tail_is_dropped_at_the_limit_of_bytes),
		cmocka_unit_test(an_empty_queue_takes_any),
		cmocka_unit_test(codel_leaves_a_short_queue_alone),
		cmocka_unit_test(codel_lets_a_burst_pass),
		cmocka_unit_test(codel_drops_by_the_law),
		cmocka_unit_test(codel_stops_below_the_target),
		cmocka_unit_test(a_rate_is_exact_in_the_long_run),
		cmocka_unit_test(an_idle_link_starts_anew),
		cmocka_unit_test(a_line_sorts_and_keeps_the_order_of_equals),
		cmocka_unit_test(a_trace_repeats_after_its_last_line),
		cmocka_unit_test(skipping_is_using_one_by_one),
		cmocka_unit_test(a_wrong_trace_is_refused_by_line),
		cmocka_unit_test(delays_repeat_after_their_last_step),
		cmocka_unit_test(wrong_delays_are_refused_by_line),
		cmocka_unit_test(ip_is_numbered_and_housekeeping_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
