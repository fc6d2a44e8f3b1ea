/* SPDX-License-Identifier: MIT */
/*
 * Connections by shortest remaining time and by turns, by the engine's own decision: who goes
 * first, and when objects are complete. With arguments this program plays objects and says when
 * each was complete; tests/unit/test_srpt_oracle.py compares that with what experiments/oracle
 * computes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "mux/wire/wire_ext.h"
#include "path_play.h"

enum { NEAR, FAR };

/* 200 KB/s 5 ms and 500 KB/s 10 ms, a hundred times as much, so that messages are small. */
static const struct play_mile fast[] = { { 20e6, 0.005 }, { 50e6, 0.010 } };

static void begin(struct play *play, const struct path_policy *paths,
		  unsigned int n)
{
	play_init(play, paths, fast, n);
	play_conns(play, &sched_srpt);
}

/* What is decided leaves at once, so that order is all. */
static void begin_batch(struct play *play, const struct conn_policy *conns,
			const struct path_policy *paths,
			const struct play_mile *miles, unsigned int n)
{
	play_init(play, paths, miles, n);
	play_conns(play, conns);
	play->one_by_one = true;
	for (unsigned int i = 0; i < n; i++)
		play->lane[i].pipe.allowance = 1;
}

/* Which connection's bytes go next. */
static unsigned int next_conn(struct play *play)
{
	struct next next = play_next(play);

	assert_int_equal(next.act, NEXT_SEND);
	return (unsigned int)(next.conn - play->conn);
}

static void tell(struct play *play, unsigned int conn, uint64_t bytes,
		 uint8_t urgency)
{
	conn_tell_size(&play->conn[conn], bytes);
	play->conn[conn].urgency = urgency;
}

static double done_ms(const struct play *play, unsigned int conn,
		      int64_t began)
{
	return (double)(play->done[conn] - began) / 1e6;
}

static void assert_about(double value, double wanted, double most)
{
	if (fabs(value - wanted) > most)
		fail_msg("%.6f is more than %.6f from %.6f", value, most, wanted);
}

/* --- who goes first --- */

static void the_smallest_goes_first(void **state)
{
	(void)state;
	for (unsigned int paths = 1; paths <= 2; paths++) {
		struct play play;

		begin(&play, &path_ecf, paths);
		play_object(&play, 0, 90000, true);
		play_object(&play, 1, 80000, true);
		play_object(&play, 2, 85000, true);
		assert_int_equal(next_conn(&play), 1);
		/* By what remains of them when another one comes. */
		play.conn[0].tx_bytes = 11000;
		play_object(&play, 3, 79500, true);
		assert_int_equal(next_conn(&play), 0);
		sched_idle(&play.s, &play.conn[0], play.now);
		assert_int_equal(next_conn(&play), 3);
	}
}

static void who_is_more_urgent_goes_before_all_others(void **state)
{
	struct play play;

	(void)state;
	begin(&play, &path_soonest, 1);
	play_object(&play, 0, 1000, true);
	play_object(&play, 1, 1 << 20, true);
	play_object(&play, 2, 1 << 20, false);
	tell(&play, 1, 0, 1);
	assert_int_equal(next_conn(&play), 1);
	tell(&play, 2, 0, 2);
	play.s.ordered = false;
	assert_int_equal(next_conn(&play), 2);
}

static void whose_size_is_not_known_comes_last_by_turns(void **state)
{
	struct play play;
	struct next next;

	(void)state;
	begin(&play, &path_soonest, 1);
	play.paths.path[NEAR].aggregate.limit = 1 << 30;
	play_object(&play, 0, 1 << 20, false);
	play_object(&play, 1, 1 << 20, false);
	play_object(&play, 2, 1 << 20, false);
	play_object(&play, 3, 1 << 30, true);
	assert_int_equal(next_conn(&play), 3);
	sched_idle(&play.s, &play.conn[3], play.now);
	for (unsigned int i = 0; i < 9; i++) {
		next = play_next(&play);
		assert_ptr_equal(next.conn, &play.conn[i % 3]);
		play_send(&play, &next);
		play.lane[NEAR].pipe.info.unsent = 0;
	}
	/* Once it is told it is one of the others. */
	tell(&play, 1, 1 << 20, 0);
	assert_int_equal(next_conn(&play), 1);
}

/* Last bytes that are on a far path arrive when they do: it need not hurry. */
static void what_is_in_flight_counts(void **state)
{
	struct play play;

	(void)state;
	begin(&play, &path_ecf, 2);
	play_object(&play, 0, 1000, true);
	play_object(&play, 1, 20000, true);
	assert_int_equal(next_conn(&play), 0);
	play.outlook[0].arrives_at = play.now + 9 * NS_PER_MS;
	play_object(&play, 2, 1000000, true);
	assert_int_equal(next_conn(&play), 1);
}

/* Without the near path the small one takes longer than a larger one that may use it. */
static void the_paths_that_were_named_count(void **state)
{
	struct play play;

	(void)state;
	begin(&play, &path_soonest, 2);
	play_object(&play, 0, 1000, true);
	play_object(&play, 1, 20000, true);
	assert_int_equal(next_conn(&play), 0);
	play.conn[0].paths = 1 << FAR;
	play.s.ordered = false;
	assert_int_equal(next_conn(&play), 1);
}

/* --- what goes before the last byte --- */

static void all_that_is_ahead_goes_before(void **state)
{
	struct play play;
	struct next next;

	(void)state;
	begin(&play, &path_ecf, 2);
	play_shut(&play, NEAR);
	/* 100,000 bytes of the near path arrive before the far one's first. */
	play_object(&play, 0, 60000, true);
	assert_int_equal(play_next(&play).act, NEXT_WAIT);
	play_object(&play, 1, 70000, true);
	next = play_next(&play);
	assert_int_equal(paths_number(&play.paths, next.pipe), FAR);
	assert_ptr_equal(next.conn, &play.conn[1]);
	/* In other turns as many bytes of each go before the last of one. */
	play_init(&play, &path_ecf, fast, 2);
	play_conns(&play, &sched_turns);
	play_shut(&play, NEAR);
	play_object(&play, 0, 20000, true);
	play_object(&play, 1, 90000, true);
	next = play_next(&play);
	assert_ptr_equal(next.conn, &play.conn[1]);
	play_init(&play, &path_ecf, fast, 2);
	play_conns(&play, &sched_turns);
	play_shut(&play, NEAR);
	play_object(&play, 0, 5000, true);
	play_object(&play, 1, 90000, true);
	assert_int_equal(play_next(&play).act, NEXT_WAIT);
}

/* --- when they are complete --- */

/* The published example: 900 and 800 bytes, here a hundred times as much. */
static void two_objects_are_complete_as_published(void **state)
{
	double message = 1e3 * PLAY_MESSAGE / 20e6;
	struct play play;
	int64_t began;

	(void)state;
	begin_batch(&play, &sched_srpt, &path_ecf, fast, 2);
	began = play.now;
	play_object(&play, 0, 90000, true);
	play_object(&play, 1, 80000, true);
	play_run(&play);
	assert_about(done_ms(&play, 0, began), 11, message);
	assert_about(done_ms(&play, 1, began), 9, message);
	/* By turns both take as long as all. */
	begin_batch(&play, &sched_turns, &path_ecf, fast, 2);
	play_object(&play, 0, 90000, true);
	play_object(&play, 1, 80000, true);
	play_run(&play);
	assert_about(done_ms(&play, 0, began), 11, 2 * message);
	assert_about(done_ms(&play, 1, began), 11, 2 * message);
}

/* Whoever is told a wrong size sends late or early, but all of it. */
static void a_wrong_size_costs_no_bytes(void **state)
{
	static const uint64_t told[] = { 1, 20000, 1 << 30, WIRE_HINT_MOST };

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct play play;
		uint64_t sum;

		begin(&play, &path_ecf, 2);
		play_object(&play, 0, 300000, false);
		tell(&play, 0, told[i], 0);
		play_object(&play, 1, 50000, true);
		play_object(&play, 2, 40000, false);
		play_run(&play);
		sum = play.lane[NEAR].bytes + play.lane[FAR].bytes;
		assert_int_equal(sum, 390000);
	}
}

static void a_later_one_that_is_smaller_goes_ahead(void **state)
{
	struct play play;
	int64_t began;

	(void)state;
	begin(&play, &path_soonest, 1);
	began = play.now;
	play_object(&play, 0, 2000000, true);
	play_later(&play, 1, 20000, 0.050);
	play_run(&play);
	/* What was given to the path before it, a round trip's worth, goes before. */
	assert_in_range((uint64_t)(1e3 * done_ms(&play, 1, began)), 56000, 67000);
	assert_about(done_ms(&play, 0, began), 106, 0.2);
}

enum { MANY = 20000 };

/*
 * The other end says how much each has left, and may say it so that all change places. By
 * insertion alone this took n^2 / 2 steps, in which nobody else's pipes are looked at.
 */
static void that_all_change_places_takes_no_time(void **state)
{
	struct conn *conn = calloc(MANY, sizeof(*conn));
	clock_t began;
	struct play play;
	struct list *pos;
	uint64_t last = 0;

	(void)state;
	assert_non_null(conn);
	begin(&play, &path_soonest, 1);
	for (unsigned int i = 0; i < MANY; i++) {
		list_init(&conn[i].turn);
		list_init(&conn[i].ahead);
		conn[i].ready = true;
		conn_tell_size(&conn[i], 1000 + i);
		sched_ready(&play.s, &conn[i], play.now);
	}
	assert_ptr_equal(play_next(&play).conn, &conn[0]);
	for (unsigned int i = 0; i < MANY; i++)
		conn_tell_size(&conn[i], 1000 + MANY - i / 2);
	began = clock();
	assert_ptr_equal(play_next(&play).conn, &conn[MANY - 2]);
	assert_true(clock() - began < CLOCKS_PER_SEC / 4);
	for (pos = play.s.round.next; pos != &play.s.round; pos = pos->next) {
		const struct conn *c = list_entry(pos, struct conn, turn);

		assert_true(conn_size(c) >= last);
		/* Equals have kept their order. */
		if (conn_size(c) == last)
			assert_ptr_equal(list_entry(pos->prev, struct conn, turn), c - 1);
		last = conn_size(c);
	}
	for (unsigned int i = 0; i < MANY; i++)
		conn_outlook_free(&conn[i]);
	free(conn);
}

static void they_have_names(void **state)
{
	(void)state;
	assert_ptr_equal(conn_policy_named("srpt"), &sched_srpt);
	assert_ptr_equal(conn_policy_named("rr"), &sched_turns);
}

/* --- for test_srpt_oracle.py --- */

/* CONNS PATHS N RATE DELAY [...] SIZE [...]: a line, when each was complete, in seconds. */
static char **play_batch(char **word)
{
	struct play_mile miles[PLAY_PATHS];
	unsigned int n = (unsigned int)atoi(word[2]), sizes = 0;
	struct play play;
	int64_t began;

	play_read_miles(miles, n, word + 3);
	begin_batch(&play, conn_policy_named(word[0]),
		    path_policy_named(word[1]), miles, n);
	began = play.now;
	for (word += 3 + 2 * n; *word && strcmp(*word, "and"); word++)
		play_object(&play, sizes++, strtoull(*word, NULL, 10), true);
	play_run(&play);
	for (unsigned int i = 0; i < sizes; i++)
		printf("%.9f ", (double)(play.done[i] - began) / 1e9);
	printf("\n");
	return word;
}

/* One batch, or more with `and` between them. */
static int play_all(char **word)
{
	while (*word) {
		word = play_batch(word);
		word += *word != NULL;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_smallest_goes_first),
		cmocka_unit_test(who_is_more_urgent_goes_before_all_others),
		cmocka_unit_test(whose_size_is_not_known_comes_last_by_turns),
		cmocka_unit_test(what_is_in_flight_counts),
		cmocka_unit_test(the_paths_that_were_named_count),
		cmocka_unit_test(all_that_is_ahead_goes_before),
		cmocka_unit_test(two_objects_are_complete_as_published),
		cmocka_unit_test(a_wrong_size_costs_no_bytes),
		cmocka_unit_test(a_later_one_that_is_smaller_goes_ahead),
		cmocka_unit_test(that_all_change_places_takes_no_time),
		cmocka_unit_test(they_have_names),
	};

	if (argc > 6)
		return play_all(argv + 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
