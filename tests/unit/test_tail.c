/* SPDX-License-Identifier: MIT */
/* When the last messages of a pipe are overdue, by a clock of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mux/base/loop.h"
#include "mux/extension/tail.h"

enum { SEGMENT = 1448 };

#define MS NS_PER_MS
#define DELAYED_ACK (40 * MS)

/* Two segments, written at 1 s, 50 ms away. */
static struct tail two_segments(void)
{
	return (struct tail){
		.outstanding = 2 * SEGMENT, .in_flight = 2 * SEGMENT,
		.segment = SEGMENT,
		.written_at = 1000 * MS, .left_at_once = true,
		.heard_at = 990 * MS,
		.round_trip = 50 * MS, .patience = 80 * MS,
	};
}

static void a_tail_is_overdue_when_its_acknowledgement_is_late(void **state)
{
	struct tail t = two_segments();

	(void)state;
	assert_int_equal(tail_overdue_at(&t), 1080 * MS);
	/* What is heard of something before it makes no difference. */
	t.heard_at = 1050 * MS;
	assert_int_equal(tail_overdue_at(&t), 1080 * MS);
	t.patience = 250 * MS;
	assert_int_equal(tail_overdue_at(&t), 1250 * MS);
	/* All were alike, but the next burst is a queue. */
	t.patience = 52 * MS;
	assert_int_equal(tail_overdue_at(&t), 1075 * MS);
}

static void nothing_is_overdue_that_nobody_owes(void **state)
{
	struct tail t = two_segments();

	(void)state;
	t.outstanding = t.in_flight = 0;
	assert_int_equal(tail_overdue_at(&t), TAIL_NEVER);
	/* The other end's window is closed: it waits in this socket. */
	t.outstanding = t.unsent = SEGMENT;
	assert_int_equal(tail_overdue_at(&t), TAIL_NEVER);
	/* Nothing is known of its round trips. */
	t = two_segments();
	t.patience = 0;
	assert_int_equal(tail_overdue_at(&t), TAIL_NEVER);
}

static void a_single_segment_has_the_time_of_a_delayed_acknowledgement(void **state)
{
	struct tail t = two_segments();

	(void)state;
	t.outstanding = t.in_flight = SEGMENT;
	assert_true(tail_overdue_at(&t) > 1050 * MS + DELAYED_ACK);
	assert_true(tail_overdue_at(&t) < 1050 * MS + 200 * MS);
	t.outstanding = t.in_flight = 40;
	assert_true(tail_overdue_at(&t) > 1050 * MS + DELAYED_ACK);
	/* Where round trips vary by more than it, nothing is added. */
	t.patience = 550 * MS;
	assert_int_equal(tail_overdue_at(&t), 1550 * MS);
	t.patience = 80 * MS;
	t.outstanding = t.in_flight = SEGMENT + 1;
	assert_int_equal(tail_overdue_at(&t), 1080 * MS);
}

/* As long as it is not a segment that is full: such a one may have another behind it. */
static void where_acknowledgements_are_prompt_it_has_not(void **state)
{
	struct tail t = two_segments();

	(void)state;
	t.prompt = true;
	t.outstanding = t.in_flight = 40;
	assert_int_equal(tail_overdue_at(&t), 1080 * MS);
	t.outstanding = t.in_flight = SEGMENT;
	assert_true(tail_overdue_at(&t) > 1050 * MS + DELAYED_ACK);
}

/* The one that lies behind a gap is acknowledged at once. */
static void what_is_being_repaired_has_one_more_round_trip(void **state)
{
	struct tail t = two_segments();

	(void)state;
	t.in_flight = t.astray = SEGMENT;
	t.heard_at = 1050 * MS;
	assert_true(tail_overdue_at(&t) > 1050 * MS + 80 * MS);
	assert_true(tail_overdue_at(&t) < 1050 * MS + 80 * MS + 50 * MS);
}

static void what_waited_in_its_socket_left_with_the_last_acknowledgement(
	void **state)
{
	struct tail t = two_segments();

	(void)state;
	t.left_at_once = false;
	t.heard_at = 1040 * MS;
	assert_int_equal(tail_overdue_at(&t), 1120 * MS);
	t.heard_at = 900 * MS;
	assert_int_equal(tail_overdue_at(&t), 1080 * MS);
	/* Some of it still waits, whatever was thought when it was written. */
	t = two_segments();
	t.unsent = t.in_flight = SEGMENT;
	t.heard_at = 1040 * MS;
	assert_int_equal(tail_overdue_at(&t), 1120 * MS);
}

static void copies_are_a_hundredth_and_a_burst(void **state)
{
	(void)state;
	assert_true(tail_affords(0, 0, TAIL_BURST));
	assert_false(tail_affords(0, 0, TAIL_BURST + 1));
	assert_false(tail_affords(0, 1, TAIL_BURST));
	assert_false(tail_affords(99, TAIL_BURST, 1));
	assert_true(tail_affords(100, TAIL_BURST, 1));
	assert_false(tail_affords(1000000, TAIL_BURST, 10001));
	assert_true(tail_affords(1000000, TAIL_BURST, 10000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_tail_is_overdue_when_its_acknowledgement_is_late),
		cmocka_unit_test(nothing_is_overdue_that_nobody_owes),
		cmocka_unit_test(
			a_single_segment_has_the_time_of_a_delayed_acknowledgement),
		cmocka_unit_test(where_acknowledgements_are_prompt_it_has_not),
		cmocka_unit_test(what_is_being_repaired_has_one_more_round_trip),
		cmocka_unit_test(
			what_waited_in_its_socket_left_with_the_last_acknowledgement),
		cmocka_unit_test(copies_are_a_hundredth_and_a_burst),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
