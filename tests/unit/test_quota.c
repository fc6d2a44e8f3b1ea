/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rp/quota.h"
#include "addr.h"

enum { MAX = 8, EACH = 5 };

struct session {		/* a stand-in */
	struct quota_share share;
	bool busy;
};

static struct quota quota;
static struct hoard all;
static struct session session[MAX + 1];
static unsigned int n;

static bool is_idle(const struct quota_share *share)
{
	return !((const struct session *)(const void *)share)->busy;
}

static bool give_up(struct quota_share *share)
{
	share->sockets--;
	return true;
}

static int set_up(void **state)
{
	(void)state;
	memset(session, 0, sizeof(session));
	n = 0;
	hoard_init(&all, NULL, 1000);
	quota_init(&quota, &all, NULL, MAX, EACH, is_idle, give_up);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (unsigned int i = 0; i <= MAX; i++)
		quota_drop(&quota, &session[i].share);
	assert_true(list_empty(&quota.addresses));
	return (int)quota.sessions;
}

static struct quota_share *take_by_key(const char *text, const char *key)
{
	struct sockaddr_storage addr = address(text, 1);

	assert_int_equal(quota_take(&quota, &session[n].share, &addr, key), 0);
	return &session[n++].share;
}

static struct quota_share *take(const char *text)
{
	return take_by_key(text, "");
}

static const char *objection_by_key(const char *text, const char *key,
				    struct quota_share **victim)
{
	struct sockaddr_storage addr = address(text, 1);

	return quota_objection(&quota, &addr, key, victim);
}

static const char *objection(const char *text, struct quota_share **victim)
{
	return objection_by_key(text, "", victim);
}

static void one_address_has_its_own_limit(void **state)
{
	struct quota_share *victim;

	(void)state;
	for (int i = 0; i < EACH; i++) {
		assert_null(objection("192.0.2.1", &victim));
		take("192.0.2.1");
	}
	assert_non_null(strstr(objection("192.0.2.1", &victim), "each"));
	assert_null(victim);
	assert_null(objection("192.0.2.2", &victim));
	assert_non_null(objection("[::ffff:192.0.2.1]", &victim));
	quota_drop(&quota, &session[0].share);
	assert_null(objection("192.0.2.1", &victim));
}

/* Whoever has one address of a /64 has them all. */
static void ipv6_counts_by_network(void **state)
{
	struct quota_share *victim;
	char text[32];

	(void)state;
	for (int i = 0; i < EACH; i++) {
		snprintf(text, sizeof(text), "2001:db8::%d", i);
		take(text);
	}
	assert_non_null(objection("2001:db8::ffff", &victim));
	assert_null(objection("2001:db8:0:1::1", &victim));
}

/* The oldest idle one of the address that has most. */
/* Wherever it comes from; and who shares an address with it has another account. */
static void a_key_is_one_peer(void **state)
{
	static const char *const from[] = {
		"192.0.2.1", "192.0.2.2", "198.51.100.3", "2001:db8::1", "192.0.2.1",
	};
	struct quota_share *victim, *share = NULL;

	(void)state;
	for (unsigned int i = 0; i < EACH; i++) {
		assert_null(objection_by_key(from[i], "roamer", &victim));
		share = take_by_key(from[i], "roamer");
		share->sockets = 2;
		assert_int_equal(quota_of_address(share), i + 1);
	}
	assert_int_equal(quota_sockets(share), 2 * EACH);
	assert_non_null(strstr(objection_by_key("203.0.113.9", "roamer", &victim),
			       "its key has as many sessions"));
	assert_null(victim);
	assert_null(objection_by_key("192.0.2.1", "neighbour", &victim));
	assert_null(objection("192.0.2.1", &victim));
	assert_int_equal(quota_of_address(take_by_key("192.0.2.1", "neighbour")), 1);
	assert_int_equal(quota_of_address(take("192.0.2.1")), 1);
	take("192.0.2.7");
	/* All are there: of the key that has most the oldest goes. */
	assert_non_null(objection("203.0.113.9", &victim));
	assert_ptr_equal(victim, &session[0].share);
}

static void who_has_most_makes_room(void **state)
{
	struct quota_share *victim;

	(void)state;
	for (int i = 0; i < EACH; i++)
		take("192.0.2.1");
	for (int i = EACH; i < MAX; i++)
		take("192.0.2.2");
	session[0].busy = true;
	assert_non_null(objection("192.0.2.3", &victim));
	assert_ptr_equal(victim, &session[1].share);
	quota_drop(&quota, victim);
	quota_drop(&quota, victim);	/* it may end by itself meanwhile */
	take("192.0.2.3");
	assert_int_equal(quota.sessions, MAX);
	assert_int_equal(quota_of_address(&session[0].share), EACH - 1);
	/* Three of four: after that it would be the newcomer that has most. */
	assert_non_null(objection("192.0.2.2", &victim));
	assert_null(victim);
}

/* Somebody has to: of whoever has most. */
static void who_is_busy_goes_last(void **state)
{
	struct quota_share *victim;

	(void)state;
	for (int i = 0; i < MAX; i++) {
		take(i < EACH ? "192.0.2.1" : "192.0.2.2");
		session[i].busy = i < EACH;
	}
	assert_non_null(objection("192.0.2.3", &victim));
	assert_ptr_equal(victim, &session[EACH].share);
	for (int i = EACH; i < MAX; i++)
		session[i].busy = true;
	assert_non_null(objection("192.0.2.3", &victim));
	assert_ptr_equal(victim, &session[0].share);
	assert_non_null(objection("192.0.2.2", &victim));
	assert_ptr_equal(victim, &session[0].share);
}

/* One each: who comes for the first time gets the place of somebody idle. */
static void a_newcomer_finds_a_place(void **state)
{
	struct quota_share *victim;
	char text[32];

	(void)state;
	for (int i = 0; i < MAX; i++) {
		snprintf(text, sizeof(text), "192.0.2.%d", i + 1);
		take(text);
		session[i].busy = i < 3;
	}
	assert_non_null(objection("192.0.2.99", &victim));
	assert_ptr_equal(victim, &session[3].share);
	assert_non_null(objection("192.0.2.1", &victim));
	assert_null(victim);
	for (int i = 3; i < MAX; i++)
		session[i].busy = true;
	assert_non_null(objection("192.0.2.99", &victim));
	assert_null(victim);
}

static void who_has_most_sockets_gives_one_up(void **state)
{
	struct quota_share *a[2], *b, *c;

	(void)state;
	a[0] = take("192.0.2.1");
	a[1] = take("192.0.2.1");
	b = take("192.0.2.2");
	c = take("192.0.2.3");
	a[0]->sockets = 3;
	a[1]->sockets = 4;
	b->sockets = 6;		/* more than a session of the first, less than both */
	c->sockets = 1;
	assert_int_equal(quota_sockets(a[0]), 7);
	assert_true(quota_relieves(&quota, c, false));
	assert_int_equal(a[1]->sockets, 3);
	assert_int_equal(b->sockets, 6);
	b->sockets = 5;
	assert_true(quota_relieves(&quota, b, false));
	assert_int_equal(quota_sockets(a[0]), 5);
	/* Who would have as many as who has most is refused, and so is that one. */
	assert_false(quota_relieves(&quota, b, false));
	assert_false(quota_relieves(&quota, b, true));
	assert_int_equal(quota_sockets(a[0]), 5);
	assert_int_equal(b->sockets, 5);
}

static struct quota_share *take_pipes(const char *text, unsigned int pipes)
{
	session[n].share.pipes = pipes;
	session[n].busy = true;
	return take(text);
}

static const char *objection_to(const char *text, unsigned int pipes,
				struct quota_share **victim)
{
	struct sockaddr_storage addr = address(text, 1);

	return quota_objection_to_pipes(&quota, &addr, "", pipes, victim);
}

static void pipes_have_a_limit_of_all(void **state)
{
	struct quota_share *victim;

	(void)state;
	quota.max_pipes = 100;
	take_pipes("192.0.2.1", 60);
	assert_null(objection_to("192.0.2.2", 40, &victim));
	assert_false(quota_is_full(&quota, 40));
	assert_true(quota_is_full(&quota, 41));
	/* Who has most gets no more, and nobody goes who would then have fewer. */
	assert_non_null(strstr(objection_to("192.0.2.1", 41, &victim), "ulimit -n"));
	assert_null(victim);
	assert_non_null(objection_to("192.0.2.2", 60, &victim));
	assert_null(victim);
	assert_non_null(objection_to("192.0.2.2", 59, &victim));
	assert_ptr_equal(victim, &session[0].share);
	quota_drop(&quota, victim);
	assert_null(objection_to("192.0.2.2", 100, &victim));
	assert_int_equal(quota.pipes, 0);
}

/* Of whoever has most pipes in all, the oldest session, idle if one is. */
static void who_has_most_pipes_makes_room(void **state)
{
	struct quota_share *victim;

	(void)state;
	quota.max_pipes = 100;
	take_pipes("2001:db8::1", 20);
	take_pipes("2001:db8::2", 20);
	take_pipes("192.0.2.1", 32);
	take_pipes("2001:db8::3", 20);
	assert_non_null(objection_to("192.0.2.3", 16, &victim));
	assert_ptr_equal(victim, &session[0].share);
	session[3].busy = false;
	assert_non_null(objection_to("192.0.2.3", 16, &victim));
	assert_ptr_equal(victim, &session[3].share);
	quota_drop(&quota, victim);
	assert_null(objection_to("192.0.2.3", 16, &victim));
	/* With 13 more than its 32 it would have more than the other, which has 40. */
	take_pipes("192.0.2.3", 16);
	assert_non_null(objection_to("192.0.2.1", 13, &victim));
	assert_null(victim);
	/* The one that has 40 has most, whoever has sockets. */
	session[2].share.sockets = 99;
	assert_non_null(objection_to("192.0.2.3", 13, &victim));
	assert_ptr_equal(victim, &session[0].share);
}

static void at_home_it_is_the_same_by_session(void **state)
{
	struct quota_share *a[2], *b;

	(void)state;
	a[0] = take("192.0.2.1");
	a[1] = take("192.0.2.1");
	b = take("192.0.2.2");
	a[0]->sockets = 4;
	a[1]->sockets = 1;
	b->sockets = 6;
	assert_true(quota_relieves(&quota, a[1], true));
	assert_int_equal(a[0]->sockets, 3);
	assert_int_equal(b->sockets, 6);
	/* None has more than its address. */
	b->sockets = 4;
	assert_true(quota_relieves(&quota, a[1], false));
	assert_int_equal(a[0]->sockets, 2);
	b->sockets = 3;
	assert_false(quota_relieves(&quota, a[0], false));
	a[1]->sockets = 2;
	assert_false(quota_relieves(&quota, a[1], true));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_address_has_its_own_limit),
		TEST(ipv6_counts_by_network),
		TEST(a_key_is_one_peer),
		TEST(who_has_most_makes_room),
		TEST(who_is_busy_goes_last),
		TEST(a_newcomer_finds_a_place),
		TEST(who_has_most_sockets_gives_one_up),
		TEST(pipes_have_a_limit_of_all),
		TEST(who_has_most_pipes_makes_room),
		TEST(at_home_it_is_the_same_by_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
