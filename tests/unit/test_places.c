/* SPDX-License-Identifier: MIT */
/*
 * Whom an address counts for, and which of the pipes that wait has to go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "mux/base/payer.h"
#include "rp/places.h"
#include "addr.h"

enum { MOST = 32, FAIR = 4 };

static struct places all;
static struct place place[MOST];
static unsigned int n;

static struct place *take(const char *text)
{
	struct sockaddr_storage addr = address(text, 1);

	assert_true(n < MOST);
	assert_int_equal(places_take(&all, &place[n], &addr), 0);
	return &place[n++];
}

static int set_up(void **state)
{
	(void)state;
	memset(place, 0, sizeof(place));
	n = 0;
	places_init(&all, FAIR);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < n; i++) {
		if (place[i].payer)
			places_leave(&all, &place[i]);
	}
	assert_int_equal(all.n, 0);
	assert_true(list_empty(&all.payers));
	return 0;
}

static void leave(struct place *p)
{
	places_leave(&all, p);
	p->payer = NULL;
}

static bool same(const char *a, const char *b)
{
	struct sockaddr_storage one = address(a, 1), other = address(b, 1);
	struct payer p = payer_of(&one), q = payer_of(&other);

	return payer_is(&p, &q);
}

static void assert_name(const char *addr, const char *name)
{
	struct sockaddr_storage a = address(addr, 1);
	char text[PAYER_TEXT];

	assert_string_equal(payer_name(&a, text), name);
}

static void whom_an_address_counts_for(void **state)
{
	struct sockaddr_storage neither = { .ss_family = AF_UNIX };
	char text[PAYER_TEXT];

	(void)state;
	assert_true(same("192.0.2.1:80", "192.0.2.1:81"));
	assert_false(same("192.0.2.1", "192.0.2.2"));
	assert_true(same("192.0.2.1", "[::ffff:192.0.2.1]"));
	assert_true(same("2001:db8:0:1::1", "[2001:db8:0:1:ffff:ffff:ffff:ffff]:9"));
	assert_false(same("2001:db8:0:1::1", "2001:db8:0:2::1"));
	assert_false(same("::1", "0.0.0.0"));
	assert_true(same("fe80::1%lo", "fe80::2%lo"));
	assert_false(same("fe80::1%lo", "fe80::1"));
	assert_name("192.0.2.1:80", "192.0.2.1");
	assert_name("[::ffff:192.0.2.1]:80", "192.0.2.1");
	assert_name("2001:db8:0:1:2:3:4:5", "2001:db8:0:1::/64");
	assert_name("fe80::1%lo", "fe80::%1/64");
	assert_string_equal(payer_name(&neither, text), "unknown");
}

static void the_oldest_goes(void **state)
{
	struct place *first = take("192.0.2.1"), *second = take("192.0.2.2");
	struct sockaddr_storage other = address("192.0.2.3", 1);

	(void)state;
	take("192.0.2.1");
	assert_int_equal(places_of(&all, &other), 0);
	assert_null(places_oldest_of(&all, &other, NULL));
	other = address("192.0.2.1", 1);
	assert_int_equal(places_of(&all, &other), 2);
	assert_ptr_equal(places_oldest_of(&all, &other, NULL), first);
	assert_ptr_equal(places_victim(&all, NULL), first);
	leave(first);
	assert_ptr_equal(places_victim(&all, NULL), second);
}

/* Who has more than is fair; not who has most of what is fair. */
static void who_has_most_loses_its_oldest(void **state)
{
	struct place *oldest = take("192.0.2.9"), *of_most, *of_one;

	(void)state;
	for (int i = 0; i < FAIR; i++)
		take("192.0.2.1");
	assert_ptr_equal(places_victim(&all, NULL), oldest);
	of_one = &place[1];
	take("192.0.2.1");
	assert_ptr_equal(places_victim(&all, NULL), of_one);
	of_most = take("2001:db8::1");
	for (int i = 0; i < FAIR + 1; i++)
		take(i % 2 ? "2001:db8::2" : "2001:db8::3");
	assert_ptr_equal(places_victim(&all, NULL), of_most);
	leave(of_most);		/* they have as many now, and the others older ones */
	assert_ptr_equal(places_victim(&all, NULL), of_one);
}

static const struct place *stays;

static bool may_go(const struct place *p)
{
	return p != stays;
}

static void some_may_not_go_yet(void **state)
{
	struct place *second;

	(void)state;
	stays = take("192.0.2.1");
	assert_ptr_equal(places_victim(&all, may_go), stays);
	second = take("192.0.2.1");
	assert_ptr_equal(places_victim(&all, may_go), second);
	leave(second);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(whom_an_address_counts_for),
		TEST(the_oldest_goes),
		TEST(who_has_most_loses_its_oldest),
		TEST(some_may_not_go_yet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
