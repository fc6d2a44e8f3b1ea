/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mux/conn/reorder.h"

static const uint8_t zeros[WIRE_PAYLOAD_MAX];

static enum reorder_verdict put(struct reorder *q, uint32_t number,
				uint16_t len, int64_t now)
{
	struct wire_msg msg = {
		.type = WIRE_DATA,
		.id = 1,
		.number = number,
		.body = zeros,
		.body_len = len,
	};

	return reorder_put(q, &msg, now);
}

/* Takes and drops all that is due; returns how many that were. */
static uint32_t take_all(struct reorder *q)
{
	struct reorder_early *held;
	uint32_t n = 0;

	while ((held = reorder_take(q))) {
		reorder_release(held);
		n++;
	}
	return n;
}

static void assert_owns_nothing(const struct reorder *q)
{
	assert_int_equal(reorder_count(q), 0);
	assert_int_equal(reorder_bytes(q), 0);
	assert_int_equal(reorder_payload(q), 0);
	assert_null(q->waiting);
}

static void in_order_is_never_held(void **state)
{
	struct reorder q;

	(void)state;
	reorder_init(&q, 0);
	for (uint32_t n = 0; n < 1000; n++) {
		assert_int_equal(put(&q, n, 100, 0), REORDER_DUE);
		assert_null(reorder_take(&q));
		assert_owns_nothing(&q);
	}
	assert_int_equal(q.next, 1000);
}

static void a_gap_holds_what_follows(void **state)
{
	struct reorder_early *held;
	struct reorder q;

	(void)state;
	reorder_init(&q, 5);
	assert_int_equal(put(&q, 7, 70, 1111), REORDER_EARLY);
	assert_int_equal(put(&q, 6, 60, 2222), REORDER_EARLY);
	assert_null(reorder_take(&q));
	assert_int_equal(reorder_payload(&q), 130);
	assert_int_equal(put(&q, 5, 50, 3333), REORDER_DUE);
	held = reorder_take(&q);
	assert_non_null(held);
	assert_int_equal(held->number, 6);
	assert_int_equal(held->came_at, 2222);
	reorder_release(held);
	held = reorder_take(&q);
	assert_non_null(held);
	assert_int_equal(held->number, 7);
	assert_int_equal(held->came_at, 1111);
	assert_int_equal(held->body_len, 70);
	reorder_release(held);
	assert_null(reorder_take(&q));
	assert_owns_nothing(&q);
}

static void types_and_bodies_are_kept(void **state)
{
	static const uint8_t reason = WIRE_REASON_RST;
	struct wire_msg fin = {
		.type = WIRE_FIN, .id = 1, .number = 1,
		.body = &reason, .body_len = 1,
	};
	struct reorder_early *held;
	struct reorder q;

	(void)state;
	reorder_init(&q, 0);
	assert_int_equal(reorder_put(&q, &fin, 0), REORDER_EARLY);
	assert_int_equal(reorder_payload(&q), 0);	/* a FIN is none */
	assert_true(reorder_bytes(&q) >= sizeof(*held) + 1);
	assert_int_equal(put(&q, 0, 1, 0), REORDER_DUE);
	held = reorder_take(&q);
	assert_non_null(held);
	assert_int_equal(held->type, WIRE_FIN);
	assert_int_equal(held->body[0], WIRE_REASON_RST);
	reorder_release(held);
}

static void what_was_delivered_is_a_duplicate(void **state)
{
	struct reorder q;

	(void)state;
	reorder_init(&q, 0);
	for (uint32_t n = 0; n < 10; n++)
		put(&q, n, 1, 0);
	for (uint32_t n = 0; n < 10; n++)
		assert_int_equal(put(&q, n, 1, 0), REORDER_DUPLICATE);
	assert_int_equal(put(&q, 0u - (1u << 30), 1, 0), REORDER_DUPLICATE);
	assert_owns_nothing(&q);
}

static void what_is_held_is_a_duplicate(void **state)
{
	struct reorder q;

	(void)state;
	reorder_init(&q, 0);
	for (uint32_t n = 1; n < 100; n++) {
		size_t bytes;

		assert_int_equal(put(&q, n, 10, 0), REORDER_EARLY);
		bytes = reorder_bytes(&q);
		for (uint32_t again = 1; again <= n; again++)
			assert_int_equal(put(&q, again, 20, 0),
					 REORDER_DUPLICATE);
		assert_int_equal(reorder_bytes(&q), bytes);
	}
	reorder_fini(&q);
	assert_owns_nothing(&q);
}

static void what_waits_to_be_taken_is_a_duplicate(void **state)
{
	struct reorder q;

	(void)state;
	reorder_init(&q, 0);
	assert_int_equal(put(&q, 1, 10, 0), REORDER_EARLY);
	assert_int_equal(put(&q, 0, 10, 0), REORDER_DUE);
	assert_int_equal(put(&q, 1, 10, 0), REORDER_DUPLICATE);
	assert_int_equal(take_all(&q), 1);
	assert_int_equal(q.next, 2);
	assert_owns_nothing(&q);
}

static void the_window_ends_where_it_says(void **state)
{
	static const uint32_t first[] = { 0, 77, UINT32_MAX - 10 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct reorder q;

		reorder_init(&q, first[i]);
		assert_int_equal(put(&q, first[i] + WIRE_NUMBER_WINDOW, 1, 0),
				 REORDER_EARLY);
		assert_int_equal(put(&q, first[i] + WIRE_NUMBER_WINDOW + 1, 1,
				     0), REORDER_TOO_FAR);
		assert_int_equal(put(&q, first[i] + INT32_MAX, 1, 0),
				 REORDER_TOO_FAR);
		assert_int_equal(put(&q, first[i] + (1u << 31), 1, 0),
				 REORDER_DUPLICATE);
		assert_int_equal(reorder_count(&q), 1);
		reorder_fini(&q);
	}
}

static void the_window_moves_with_what_is_delivered(void **state)
{
	struct reorder q;

	(void)state;
	reorder_init(&q, 0);
	assert_int_equal(put(&q, WIRE_NUMBER_WINDOW + 1, 1, 0),
			 REORDER_TOO_FAR);
	assert_int_equal(put(&q, 0, 1, 0), REORDER_DUE);
	assert_int_equal(put(&q, WIRE_NUMBER_WINDOW + 1, 1, 0), REORDER_EARLY);
	reorder_fini(&q);
}

/* All but the first of a whole window, backwards: what a table that did not
 * grow would take minutes for. */
static void a_full_window_is_held_and_released(void **state)
{
	struct reorder q;

	(void)state;
	reorder_init(&q, 1u << 31);
	for (uint32_t n = WIRE_NUMBER_WINDOW; n > 0; n--)
		assert_int_equal(put(&q, (1u << 31) + n, 1, 0), REORDER_EARLY);
	assert_int_equal(reorder_count(&q), WIRE_NUMBER_WINDOW);
	assert_int_equal(put(&q, 1u << 31, 1, 0), REORDER_DUE);
	assert_int_equal(take_all(&q), WIRE_NUMBER_WINDOW);
	assert_owns_nothing(&q);
}

/* Few held messages far apart cost what few cost. */
static void memory_follows_what_is_held(void **state)
{
	struct reorder q;

	(void)state;
	reorder_init(&q, 0);
	for (uint32_t n = 1; n <= 20; n++)
		assert_int_equal(put(&q, n * 50000, 1, 0), REORDER_EARLY);
	assert_true(reorder_bytes(&q) < 20 * 64 + 64 * sizeof(void *));
	reorder_fini(&q);
}

/* One message early, again and again, needs no table. */
static void a_single_swap_makes_no_table(void **state)
{
	struct reorder q;

	(void)state;
	reorder_init(&q, 0);
	for (uint32_t n = 0; n < 1000; n += 2) {
		assert_int_equal(put(&q, n + 1, 100, 0), REORDER_EARLY);
		assert_int_equal(q.waiting->bits, 0);
		assert_int_equal(put(&q, n, 100, 0), REORDER_DUE);
		assert_int_equal(take_all(&q), 1);
		assert_owns_nothing(&q);
	}
}

static void fini_drops_all_and_leaves_the_queue_usable(void **state)
{
	struct reorder q;

	(void)state;
	reorder_init(&q, 3);
	for (uint32_t n = 1; n < 50; n++)
		put(&q, 3 + n, 1000, 0);
	reorder_fini(&q);
	assert_owns_nothing(&q);
	assert_int_equal(q.next, 3);
	assert_int_equal(put(&q, 4, 1, 0), REORDER_EARLY);
	assert_int_equal(put(&q, 3, 1, 0), REORDER_DUE);
	assert_int_equal(take_all(&q), 1);
	reorder_fini(&q);
}

/* A taken message outlives whatever happens to its queue. */
static void a_taken_message_stays_where_it_is(void **state)
{
	static const uint8_t body[] = "stays";
	struct wire_msg msg = {
		.type = WIRE_DATA, .id = 1, .number = 1,
		.body = body, .body_len = sizeof(body),
	};
	struct reorder_early *held;
	struct reorder q;

	(void)state;
	reorder_init(&q, 0);
	reorder_put(&q, &msg, 0);
	put(&q, 0, 1, 0);
	held = reorder_take(&q);
	assert_non_null(held);
	for (uint32_t n = 3; n < 200; n++)
		put(&q, n, 100, 0);
	reorder_fini(&q);
	assert_string_equal((const char *)held->body, "stays");
	reorder_release(held);
}

/* Whoever sends the numbers has chosen them so that their low bits are alike. */
static void no_choice_of_numbers_makes_long_chains(void **state)
{
	enum { COUNT = 4096, STEP = WIRE_NUMBER_WINDOW / COUNT };
	uint32_t longest = 0;
	struct reorder q;

	(void)state;
	reorder_init(&q, 0);
	for (uint32_t n = 1; n <= COUNT; n++)
		assert_int_equal(put(&q, n * STEP, 1, 0), REORDER_EARLY);
	for (uint32_t i = 0; i < UINT32_C(1) << q.waiting->bits; i++) {
		const struct reorder_early *at;
		uint32_t length = 0;

		for (at = q.waiting->bucket[i]; at; at = at->chain)
			length++;
		if (length > longest)
			longest = length;
	}
	assert_in_range(longest, 1, 16);
	reorder_fini(&q);
	assert_owns_nothing(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order_is_never_held),
		cmocka_unit_test(a_gap_holds_what_follows),
		cmocka_unit_test(types_and_bodies_are_kept),
		cmocka_unit_test(what_was_delivered_is_a_duplicate),
		cmocka_unit_test(what_is_held_is_a_duplicate),
		cmocka_unit_test(what_waits_to_be_taken_is_a_duplicate),
		cmocka_unit_test(the_window_ends_where_it_says),
		cmocka_unit_test(the_window_moves_with_what_is_delivered),
		cmocka_unit_test(a_full_window_is_held_and_released),
		cmocka_unit_test(memory_follows_what_is_held),
		cmocka_unit_test(no_choice_of_numbers_makes_long_chains),
		cmocka_unit_test(a_single_swap_makes_no_table),
		cmocka_unit_test(fini_drops_all_and_leaves_the_queue_usable),
		cmocka_unit_test(a_taken_message_stays_where_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
