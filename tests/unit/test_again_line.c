/* SPDX-License-Identifier: MIT */
/* What is to be sent again: in which order, and that what waits for a path holds up nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "mux/extension/again.h"
#include "mux/extension/kept.h"
#include "random.h"

enum { ANY = 0, WIFI = 1, LTE = 2, LAST_PATH = PATHS_MAX - 1, ITEMS = 6 };

static struct again line;
static struct kept_item item[ITEMS];

static int set_up(void **state)
{
	(void)state;
	memset(&line, 0, sizeof(line));
	return 0;
}

static void add(unsigned int i, bool ahead, uint8_t paths)
{
	again_add(&line, &item[i], i + 1, ahead, paths);
}

static void is_first(unsigned int path, unsigned int i)
{
	assert_ptr_equal(again_first(&line, path), &item[i]);
}

static void each_kind_keeps_its_order(void **state)
{
	(void)state;
	assert_true(again_is_empty(&line));
	assert_null(again_first(&line, 0));
	assert_null(again_take(&line, true, ANY));
	add(0, false, ANY);
	add(1, false, ANY);
	add(2, true, ANY);
	add(3, true, ANY);
	is_first(0, 2);
	is_first(LAST_PATH, 2);
	assert_ptr_equal(again_take(&line, true, ANY), &item[2]);
	is_first(0, 3);
	assert_ptr_equal(again_take(&line, true, ANY), &item[3]);
	is_first(0, 0);
	assert_ptr_equal(again_take(&line, false, ANY), &item[0]);
	add(4, false, ANY);
	is_first(0, 1);
	assert_ptr_equal(again_take(&line, false, ANY), &item[1]);
	assert_ptr_equal(again_take(&line, false, ANY), &item[4]);
	assert_true(again_is_empty(&line));
}

static void what_waits_for_a_path_holds_up_nothing(void **state)
{
	(void)state;
	add(0, false, WIFI);
	add(1, false, LTE);
	add(2, false, ANY);
	add(3, false, WIFI | LTE);
	is_first(0, 0);
	is_first(1, 1);
	is_first(2, 2);
	assert_ptr_equal(again_take(&line, false, LTE), &item[1]);
	is_first(1, 2);
	assert_ptr_equal(again_take(&line, false, ANY), &item[2]);
	is_first(1, 3);
	assert_null(again_first(&line, 2));
	assert_ptr_equal(again_take(&line, false, WIFI | LTE), &item[3]);
	assert_null(again_first(&line, 1));
	is_first(0, 0);
}

static void who_was_ahead_stays_ahead_on_its_paths(void **state)
{
	(void)state;
	add(0, false, ANY);
	add(1, true, LTE);
	is_first(0, 0);
	is_first(1, 1);
	add(2, true, 1 << LAST_PATH);
	is_first(LAST_PATH, 2);
	is_first(2, 0);
}

static void all_lists_are_seen(void **state)
{
	const uint8_t paths[] = { ANY, WIFI, AGAIN_SETS - 1 };
	unsigned int seen = 0, i;
	struct kept_item *first;
	int list = -1;

	(void)state;
	for (i = 0; i < ITEMS; i++)
		add(i, i >= 3, paths[i % 3]);
	while ((first = again_each(&line, &list)))
		seen |= 1u << (first - item);
	assert_int_equal(seen, (1u << ITEMS) - 1);
}

static void what_is_bound_is_counted_where_it_can_go(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < ITEMS; i++)
		item[i].bytes = 1u << i;
	add(0, false, ANY);
	add(1, false, WIFI);
	add(2, true, WIFI);
	add(3, false, WIFI | LTE);
	assert_int_equal(again_without(&line, 0), 2 + 4 + 8);
	assert_int_equal(again_without(&line, LTE), 2 + 4);
	assert_int_equal(again_without(&line, WIFI), 0);
	assert_ptr_equal(again_take(&line, true, WIFI), &item[2]);
	assert_int_equal(again_without(&line, LTE), 2);
	assert_ptr_equal(again_take(&line, false, WIFI), &item[1]);
	assert_int_equal(again_without(&line, LTE), 0);
}

static bool is_odd(const struct kept_item *of, const void *arg)
{
	(void)arg;
	return (of - item) % 2;
}

static bool is_any(const struct kept_item *of, const void *arg)
{
	(void)of, (void)arg;
	return true;
}

static unsigned int length(const struct kept_item *first)
{
	unsigned int n = 0;

	for (; first; first = first->next)
		n++;
	return n;
}

/* The rest is a line as before, to which more can be added. */
static void what_is_removed_leaves_the_others_in_order(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < ITEMS; i++) {
		item[i].bytes = 1u << i;
		if (i != 4)
			add(i, false, LTE);
	}
	assert_int_equal(length(again_remove(&line, is_odd, NULL)), 3);
	assert_int_equal(again_without(&line, WIFI), 1 + 4);
	add(4, false, LTE);
	for (unsigned int i = 0; i < ITEMS; i += 2)
		assert_ptr_equal(again_take(&line, false, LTE), &item[i]);
	assert_true(again_is_empty(&line));
	add(0, false, LTE);
	add(1, true, ANY);
	assert_int_equal(length(again_remove(&line, is_any, NULL)), 2);
	assert_true(again_is_empty(&line));
	assert_int_equal(again_without(&line, WIFI), 0);
}

static void takes(bool ahead, unsigned int i)
{
	is_first(0, i);
	assert_ptr_equal(again_take(&line, ahead, ANY), &item[i]);
}

static void pipes_that_are_over_are_one_line(void **state)
{
	(void)state;
	add(1, false, ANY);	/* of one pipe, */
	add(4, false, ANY);
	add(0, false, ANY);	/* of another, */
	add(2, false, ANY);
	add(5, false, ANY);
	takes(false, 0);
	takes(false, 1);
	add(3, false, ANY);	/* and of a third */
	add(1, false, ANY);
	for (unsigned int i = 1; i < ITEMS; i++)
		takes(false, i);
	assert_true(again_is_empty(&line));
	add(3, false, ANY);
	takes(false, 3);
}

/* What was bound to paths has its place among what was not. */
static void lists_of_paths_are_one_line_as_well(void **state)
{
	(void)state;
	add(2, false, ANY);
	add(1, false, WIFI);
	add(3, false, WIFI);
	is_first(0, 1);
	is_first(1, 2);
	assert_ptr_equal(again_take(&line, false, WIFI), &item[1]);
	is_first(0, 2);
	takes(false, 2);
	is_first(0, 3);
}

/* Places drawn at random come out in their order, whatever was taken meanwhile. */
static void random_places_come_out_in_order(void **state)
{
	enum { MANY = 2000 };
	static struct kept_item many[MANY];
	unsigned int there = 0, added = 0, left = 50 * MANY;
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	while (left--) {
		struct kept_item *first;
		uint64_t least = UINT64_MAX;

		if (added < MANY && random_below(&r, 3)) {
			again_add(&line, &many[added++], 1 + random_below(&r, 500),
				  false, ANY);
			there++;
			continue;
		}
		if (!there) {
			added = 0;
			continue;
		}
		for (first = again_first(&line, 0); first; first = first->next)
			least = first->last < least ? first->last : least;
		first = again_take(&line, false, ANY);
		assert_true(first->last == least);
		there--;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_kind_keeps_its_order, set_up),
		cmocka_unit_test_setup(what_waits_for_a_path_holds_up_nothing, set_up),
		cmocka_unit_test_setup(who_was_ahead_stays_ahead_on_its_paths, set_up),
		cmocka_unit_test_setup(what_is_bound_is_counted_where_it_can_go, set_up),
		cmocka_unit_test_setup(what_is_removed_leaves_the_others_in_order, set_up),
		cmocka_unit_test_setup(all_lists_are_seen, set_up),
		cmocka_unit_test_setup(pipes_that_are_over_are_one_line, set_up),
		cmocka_unit_test_setup(lists_of_paths_are_one_line_as_well, set_up),
		cmocka_unit_test_setup(random_places_come_out_in_order, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
