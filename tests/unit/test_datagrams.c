/* SPDX-License-Identifier: MIT */
/* The queue of a flow: no sockets, no clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mux/extension/datagrams.h"
#include "random.h"

#define MS INT64_C(1000000)
#define PATIENCE (DATAGRAM_PATIENCE_MS * MS)

enum { ITEMS = 200 };

static struct datagram_queue q;
static struct datagram_item item[ITEMS];

static int set_up(void **state)
{
	(void)state;
	datagrams_init(&q);
	for (int i = 0; i < ITEMS; i++)
		item[i] = (struct datagram_item){ .size = 100 + (size_t)i };
	return 0;
}

static void empty_one_has_nothing(void **state)
{
	(void)state;
	assert_null(datagrams_first(&q));
	assert_null(datagrams_take(&q));
	assert_null(datagrams_stale(&q, INT64_MAX));
}

static void goes_in_order(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_null(datagrams_put(&q, &item[i], i));
	assert_int_equal(q.bytes, 100 + 101 + 102);
	for (int i = 0; i < 3; i++) {
		assert_ptr_equal(datagrams_first(&q), &item[i]);
		assert_ptr_equal(datagrams_take(&q), &item[i]);
	}
	assert_int_equal(q.count, 0);
	assert_int_equal(q.bytes, 0);
	assert_null(datagrams_put(&q, &item[3], 9));
	assert_ptr_equal(datagrams_take(&q), &item[3]);
}

static void oldest_makes_room_for_one_too_many(void **state)
{
	(void)state;
	for (int i = 0; i < DATAGRAMS_MOST; i++)
		assert_null(datagrams_put(&q, &item[i], 0));
	for (int i = DATAGRAMS_MOST; i < ITEMS; i++)
		assert_ptr_equal(datagrams_put(&q, &item[i], 0),
				 &item[i - DATAGRAMS_MOST]);
	assert_int_equal(q.count, DATAGRAMS_MOST);
	assert_ptr_equal(datagrams_first(&q), &item[ITEMS - DATAGRAMS_MOST]);
}

static void none_is_sent_that_waited_too_long(void **state)
{
	(void)state;
	datagrams_put(&q, &item[0], 0);
	datagrams_put(&q, &item[1], 1);
	datagrams_put(&q, &item[2], PATIENCE);
	assert_null(datagrams_stale(&q, PATIENCE));
	assert_ptr_equal(datagrams_stale(&q, PATIENCE + 1), &item[0]);
	assert_null(datagrams_stale(&q, PATIENCE + 1));
	assert_ptr_equal(datagrams_stale(&q, PATIENCE + 2), &item[1]);
	assert_null(datagrams_stale(&q, PATIENCE + 2));
	assert_ptr_equal(datagrams_take(&q), &item[2]);
}

/* Whatever is done: what comes out are the newest of what came in, in order. */
static void books_are_kept(void **state)
{
	struct random r;
	int64_t now = 0;
	int in = 0, out = 0;

	(void)state;
	random_begin(&r, "the books of a queue");
	while (in < ITEMS) {
		struct datagram_item *gone;
		size_t bytes = 0;

		now += random_below(&r, 5) * MS;
		if (random_below(&r, 4))
			gone = datagrams_put(&q, &item[in++], now);
		else if (random_below(&r, 2))
			gone = datagrams_take(&q);
		else
			gone = datagrams_stale(&q, now);
		if (gone)
			assert_ptr_equal(gone, &item[out++]);
		for (int i = out; i < in; i++)
			bytes += item[i].size;
		assert_int_equal(q.count, in - out);
		assert_int_equal(q.bytes, bytes);
		assert_in_range(q.count, 0, DATAGRAMS_MOST);
	}
}

static void names_are_idle_sooner(void **state)
{
	(void)state;
	assert_true(datagrams_idle_limit(true) == 10000 * MS);
	assert_true(datagrams_idle_limit(false) == 120000 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(empty_one_has_nothing, set_up),
		cmocka_unit_test_setup(goes_in_order, set_up),
		cmocka_unit_test_setup(oldest_makes_room_for_one_too_many,
				       set_up),
		cmocka_unit_test_setup(none_is_sent_that_waited_too_long,
				       set_up),
		cmocka_unit_test_setup(books_are_kept, set_up),
		cmocka_unit_test(names_are_idle_sooner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
