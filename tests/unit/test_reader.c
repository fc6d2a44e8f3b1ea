/* SPDX-License-Identifier: MIT */
/*
 * The reader against a model of pipes: a million assignments of messages to
 * pipes that stall and trickle, and scenes in which it must not stand still.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "inflow.h"

enum { ASSIGNMENTS = 1000000 };

static void send_some(struct inflow *w, bool bulk)
{
	unsigned int conn = bulk && random_below(w->r, 8) ? 0 :
		random_below(w->r, w->conns);
	unsigned int pipe = random_below(w->r, w->pipes);
	unsigned int n = random_range(w->r, 1, 64);

	while (n--)
		inflow_put(w, pipe, conn);
	if (!random_below(w->r, 4))
		inflow_fall(w, pipe);
}

struct manner {
	bool network;	/* else all that was sent has come */
	bool bulk;	/* one connection has nearly everything */
	bool falls, loses, resets, unordered;
	unsigned int slow;	/* reads one in so many times */
};

static void live(struct inflow *w, const struct manner *is, unsigned int n)
{
	unsigned int sent = 0, before = n - 64;

	w->rising = !is->falls && !is->unordered;
	w->all_came = !is->network && !is->loses;
	if (is->unordered)
		reader_add(&w->reader, random_below(w->r, w->pipes), false);
	if (is->loses)
		w->conn[0].lost = random_below(w->r, 50);
	while (sent < before) {
		unsigned int i;

		send_some(w, is->bulk);
		inflow_carry(w, !is->network);
		if (is->resets && !random_below(w->r, 50))
			inflow_reset(w, random_below(w->r, w->conns));
		if (!random_below(w->r, is->slow))
			inflow_round(w);
		for (sent = 0, i = 0; i < w->pipes; i++)
			sent += w->pipe[i].sent;
	}
	while (!inflow_is_read(w)) {
		inflow_carry(w, !is->network);
		for (unsigned int i = 0; i < w->pipes; i++)
			w->pipe[i].stalled = false;
		inflow_round(w);
	}
	inflow_check_end(w);
}

static struct manner any_manner(struct random *r)
{
	return (struct manner){
		.network = random_below(r, 2), .bulk = random_below(r, 2),
		.falls = !random_below(r, 6), .loses = !random_below(r, 6),
		.resets = !random_below(r, 4),
		.unordered = !random_below(r, 6),
		.slow = random_range(r, 1, 40),
	};
}

static void a_million_assignments(void **state)
{
	unsigned int done = 0;
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	while (done < ASSIGNMENTS) {
		struct manner is = any_manner(&r);
		unsigned int n = random_range(&r, 100, INFLOW_MESSAGES);
		static struct inflow w;

		inflow_init(&w, &r, random_range(&r, 1, PIPES_MAX),
			   random_below(&r, 4) ? random_range(&r, 1, INFLOW_CONNS) : 1);
		live(&w, &is, n);
		if (w.rising && w.all_came)
			assert_in_range(w.most_held, 0,
					(size_t)w.pipes * READER_MAX);
		inflow_fini(&w);
		done += n;
	}
}

/* One connection over 16 pipes, the reader slow: next to nothing is early. */
static void what_has_come_is_read_in_order(void **state)
{
	static const struct manner is = { .bulk = true, .slow = 30 };
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int round = 0; round < 20; round++) {
		static struct inflow w;

		inflow_init(&w, &r, 16, 1);
		live(&w, &is, INFLOW_MESSAGES);
		assert_in_range(w.most_held, 0, 16 * READER_LEAST);
		inflow_fini(&w);
	}
}

/* --- scenes --- */

struct scene {
	struct inflow w;
	struct random r;
};

static int set_up(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	random_begin(&s->r, "scene");
	inflow_init(&s->w, &s->r, 4, 4);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *s = *state;

	inflow_fini(&s->w);
	free(s);
	return 0;
}

static void put_many(struct inflow *w, unsigned int pipe, unsigned int conn,
		     unsigned int n)
{
	while (n--)
		inflow_put(w, pipe, conn);
}

/*
 * Pipe 0 has messages behind a gap and behind them those of connection 1; the
 * others always have something that is due. Connection 1 gets its own.
 */
static void a_gap_never_filled_stops_nobody(void **state)
{
	struct inflow *w = &((struct scene *)*state)->w;
	size_t got = 0, here = 0;

	w->conn[0].lost = 3;
	put_many(w, 0, 0, 200);
	put_many(w, 0, 1, 100);
	while (w->conn[1].delivered < 100) {
		for (unsigned int i = 1; i < 4; i++) {
			if (w->pipe[i].sent < INFLOW_MESSAGES - 64 && !inflow_unread(w, i))
				put_many(w, i, 2 + i % 2, 64);
			inflow_come(w, i, INFLOW_MESSAGES);
			here = inflow_unread(w, i) > here ? inflow_unread(w, i) : here;
		}
		inflow_come(w, 0, INFLOW_MESSAGES);
		got += inflow_round(w);
		/* What was there, some patience, and the rounds between. */
		assert_true(got < 3 * here + (4 << 20));
	}
}

/* Each pipe brings what is missing behind what is early of the other one. */
static void two_pipes_that_wait_for_each_other(void **state)
{
	struct inflow *w = &((struct scene *)*state)->w;

	w->rising = false;
	put_many(w, 0, 0, 1);
	put_many(w, 1, 1, 1);
	w->conn[0].sent = w->conn[1].sent = 1;
	put_many(w, 2, 0, 40);	/* 1 to 40 of connection 0, */
	put_many(w, 3, 1, 40);
	put_many(w, 3, 0, 1);	/* number 41 behind them; */
	put_many(w, 2, 1, 1);
	put_many(w, 3, 0, 40);
	put_many(w, 2, 1, 40);
	for (unsigned int i = 0; i < 4; i++)
		inflow_come(w, i, INFLOW_MESSAGES);
	for (int round = 0; round < 20 && !inflow_is_read(w); round++)
		inflow_round(w);
	assert_true(inflow_is_read(w));
	inflow_check_end(w);
}

/* What came since pipes were named is asked for, and read first. */
static void what_came_meanwhile_is_seen(void **state)
{
	struct inflow *w = &((struct scene *)*state)->w;
	size_t most;

	put_many(w, 0, 0, 1);
	put_many(w, 1, 0, 100);
	inflow_come(w, 1, 100);
	reader_ready(&w->reader, 1);
	reader_begin(&w->reader);
	assert_int_equal(reader_next(&w->reader, &most), 1);
	inflow_read(w, 1, WIRE_HEADER);
	assert_int_equal(reader_next(&w->reader, &most), -1);
	reader_end(&w->reader);
	reader_begin(&w->reader);
	reader_ready(&w->reader, 1);
	inflow_come(w, 0, 1);
	assert_int_equal(reader_next(&w->reader, &most), 0);
	inflow_read(w, 0, most);
	assert_int_equal(reader_next(&w->reader, &most), 1);
	inflow_read(w, 1, most);
	assert_int_equal(w->most_held, 0);
}

/* A number in the network: the others are read, and it is first once it comes. */
static void behind_a_gap_pipes_are_read_on(void **state)
{
	struct inflow *w = &((struct scene *)*state)->w;

	put_many(w, 0, 0, 1);
	put_many(w, 1, 0, 500);
	put_many(w, 2, 0, 500);
	w->pipe[0].stalled = true;
	inflow_come(w, 1, 500);
	inflow_come(w, 2, 500);
	for (int round = 0; round < 100; round++)
		inflow_round(w);
	assert_int_equal(inflow_unread(w, 1) + inflow_unread(w, 2), 0);
	assert_int_equal(reorder_count(&w->conn[0].q), 1000);
	inflow_come(w, 0, 1);
	inflow_round(w);
	assert_int_equal(w->conn[0].delivered, 1001);
}

/* A few bytes behind a gap are no reason to end what a session reads in its turn. */
static void little_that_is_early_ends_no_round(void **state)
{
	struct inflow *w = &((struct scene *)*state)->w;

	w->conn[0].lost = 0;
	for (unsigned int i = 0; i < 4; i++) {
		put_many(w, i, 0, 2);
		inflow_come(w, i, 2);
		inflow_read(w, i, WIRE_HEADER);
	}
	inflow_round(w);
	assert_true(inflow_is_read(w));
}

/* Messages overtake each other on SCTP, so it may bring what is missing. */
static void a_pipe_without_order_never_waits(void **state)
{
	struct inflow *w = &((struct scene *)*state)->w;
	size_t most;

	w->rising = false;
	reader_add(&w->reader, 1, false);
	put_many(w, 0, 0, 1);
	put_many(w, 1, 0, 100);
	inflow_come(w, 1, 100);
	for (int round = 0; round < 10 && inflow_unread(w, 1); round++) {
		reader_begin(&w->reader);
		reader_ready(&w->reader, 1);
		assert_int_equal(reader_next(&w->reader, &most), 1);
		inflow_read(w, 1, most);
		reader_end(&w->reader);
	}
	assert_int_equal(inflow_unread(w, 1), 0);
}

int main(void)
{
#define SCENE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_million_assignments),
		cmocka_unit_test(what_has_come_is_read_in_order),
		SCENE(a_gap_never_filled_stops_nobody),
		SCENE(two_pipes_that_wait_for_each_other),
		SCENE(what_came_meanwhile_is_seen),
		SCENE(behind_a_gap_pipes_are_read_on),
		SCENE(little_that_is_early_ends_no_round),
		SCENE(a_pipe_without_order_never_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
