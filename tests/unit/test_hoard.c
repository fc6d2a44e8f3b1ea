/* SPDX-License-Identifier: MIT */
/*
 * Who has to go when too much is held: whoever holds most, and nobody else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mux/session/hoard.h"

enum { ADDRESSES = 3, LEAVES = 4, MAX = 800, MAX_EACH = 400 };

static struct hoard root, address[ADDRESSES], leaf[LEAVES];

/* In pieces of 10, as connections are. */
static void shed(struct hoard *h, size_t bytes)
{
	size_t given = (bytes + 9) / 10 * 10;

	if (given > h->bytes)
		given = h->bytes;
	hoard_add(h, -(int64_t)given);
}

/* Leaves 0 and 1 are of address 0, 2 of 1, 3 of 2. */
static int setup(void **state)
{
	static const int of[LEAVES] = { 0, 0, 1, 2 };

	(void)state;
	hoard_init(&root, NULL, MAX);
	for (int i = 0; i < ADDRESSES; i++)
		hoard_init(&address[i], &root, MAX_EACH);
	for (int i = 0; i < LEAVES; i++) {
		hoard_init(&leaf[i], &address[of[i]], 0);
		leaf[i].shed = shed;
	}
	return 0;
}

static void what_is_held_counts_all_the_way_up(void **state)
{
	(void)state;
	assert_false(hoard_add(&leaf[0], 100));
	assert_false(hoard_add(&leaf[1], 200));
	assert_false(hoard_add(&leaf[2], 300));
	assert_int_equal(address[0].bytes, 300);
	assert_int_equal(root.bytes, 600);
	assert_false(hoard_add(&leaf[1], -150));
	assert_int_equal(address[0].bytes, 150);
	assert_int_equal(root.bytes, 450);
	hoard_relieve(&root);
	assert_int_equal(root.bytes, 450);
}

static void an_address_over_its_limit_pays_alone(void **state)
{
	(void)state;
	hoard_add(&leaf[2], 390);
	hoard_add(&leaf[0], 100);
	assert_true(hoard_add(&leaf[1], 310));
	hoard_relieve(&root);
	assert_int_equal(address[0].bytes, MAX_EACH - MAX_EACH / 8);
	assert_int_equal(leaf[0].bytes, 100);
	assert_int_equal(leaf[2].bytes, 390);
}

static void over_the_limit_of_all_who_holds_most_pays(void **state)
{
	(void)state;
	hoard_add(&leaf[0], 190);
	hoard_add(&leaf[1], 190);
	hoard_add(&leaf[2], 390);
	assert_true(hoard_add(&leaf[3], 50));
	hoard_relieve(&root);
	assert_int_equal(root.bytes, MAX - MAX / 8);
	assert_int_equal(leaf[0].bytes + leaf[1].bytes, 380);
	assert_int_equal(leaf[3].bytes, 50);
	assert_int_equal(leaf[2].bytes, 270);
}

/* It would be asked for ever. */
static void who_sheds_nothing_ends_it(void **state)
{
	(void)state;
	leaf[0].shed = NULL;
	assert_true(hoard_add(&leaf[0], MAX + 1));
	hoard_relieve(&root);
	assert_int_equal(root.bytes, MAX + 1);
}

static void a_session_outlives_its_address(void **state)
{
	(void)state;
	hoard_add(&leaf[0], 100);
	hoard_add(&leaf[1], 50);
	hoard_fini(&address[0]);
	assert_int_equal(root.bytes, 150);
	assert_ptr_equal(leaf[0].above, &root);
	assert_true(hoard_add(&leaf[0], MAX));
	hoard_fini(&leaf[0]);
	assert_int_equal(root.bytes, 50);
	hoard_fini(&leaf[1]);
	assert_int_equal(root.bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_is_held_counts_all_the_way_up,
				       setup),
		cmocka_unit_test_setup(an_address_over_its_limit_pays_alone,
				       setup),
		cmocka_unit_test_setup(
			over_the_limit_of_all_who_holds_most_pays, setup),
		cmocka_unit_test_setup(who_sheds_nothing_ends_it, setup),
		cmocka_unit_test_setup(a_session_outlives_its_address, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
