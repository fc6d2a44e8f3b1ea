/* SPDX-License-Identifier: MIT */
/* Who may have how many of the threads that look names up, without threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "mux/base/resolver_clients.h"
#include "random.h"

enum { COMMON = 4, EACH = 3, FEW = 2, SESSIONS = 5, MOST = COMMON + FEW * SESSIONS };

static struct clients all;

static int set_up(void **state)
{
	(void)state;
	clients_init(&all, COMMON);
	all.each = EACH;
	clients_grant_each(&all, FEW, MOST);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	clients_fini(&all);
	return 0;
}

static struct client *comes(const char *who)
{
	struct client *c = client_get(&all, who);

	assert_non_null(c);
	client_reserve(&all, c);
	return c;
}

/* It takes as many threads as it may have; how many. */
static unsigned int hangs(struct client *c)
{
	unsigned int n = 0;

	for (; client_may_have_thread(&all, c); n++)
		client_takes_thread(&all, c);
	assert_true(all.busy + all.reserved <= all.most);
	return n;
}

/* Peers, each with names that hang, come and go until nothing is left for the next one. */
static unsigned int come_and_go(struct client *gone[MOST])
{
	char who[16];

	for (unsigned int n = 0;; n++) {
		snprintf(who, sizeof(who), "churn %u", n);
		gone[n] = comes(who);
		if (!hangs(gone[n])) {
			client_release(&all, gone[n]);
			return n;
		}
		client_release(&all, gone[n]);
	}
}

static void those_who_were_there_keep_a_few(void **state)
{
	struct client *friend = comes("friend"), *gone[MOST];

	(void)state;
	/* The first has 3, others two as long as what is for everybody is taken. */
	assert_int_equal(come_and_go(gone), 5);
	assert_int_equal(all.busy, MOST - FEW - 1);
	assert_int_equal(hangs(friend), FEW);
}

static void who_comes_next_has_a_few_as_they_are_free(void **state)
{
	struct client *gone[MOST], *first, *second, *greedy = comes("greedy");

	(void)state;
	come_and_go(gone);
	first = comes("first");
	second = comes("second");
	assert_false(client_may_have_thread(&all, first));
	/* One was free, and the next makes two. Nobody takes them first, nor with two of its own. */
	assert_int_equal(hangs(greedy), FEW);
	client_returns_thread(&all, gone[0]);
	assert_true(first->has_few);
	assert_false(second->has_few);
	client_returns_thread(&all, gone[0]);
	assert_false(second->has_few);
	assert_int_equal(hangs(greedy), 0);
	client_returns_thread(&all, gone[0]);
	assert_true(second->has_few);
	assert_int_equal(hangs(first) + hangs(second), 2 * FEW);
}

static void who_leaves_makes_room(void **state)
{
	struct client *gone[MOST], *friend = comes("friend"), *next, *last;

	(void)state;
	come_and_go(gone);
	next = comes("next");
	last = comes("last");
	client_release(&all, friend);
	assert_true(next->has_few);
	assert_false(last->has_few);
	client_release(&all, next);
	assert_true(last->has_few);
	/* In line, too. */
	next = comes("next");
	client_release(&all, next);
	assert_true(list_empty(&all.line));
}

static void more_sessions_are_more_threads(void **state)
{
	struct client *gone[MOST], *next;

	(void)state;
	come_and_go(gone);
	next = comes("next");
	assert_false(next->has_few);
	clients_grant_each(&all, FEW, MOST + FEW);
	assert_int_equal(hangs(next), FEW);
}

static void two_sessions_of_a_peer_have_the_same_few(void **state)
{
	struct client *friend = comes("friend"), *gone[MOST];

	(void)state;
	assert_ptr_equal(comes("friend"), friend);
	assert_int_equal(all.reserved, FEW);
	client_release(&all, friend);
	come_and_go(gone);
	assert_int_equal(hangs(friend), FEW);
}

/* --- whatever others do --- */

enum { HANG = 30, PEERS = 40, STEPS = 20000 };

static struct peer {
	struct client *client;	/* or NULL: it has neither a session nor a thread */
	bool there;
	unsigned int ends[EACH];	/* when each of its threads is free */
	unsigned int came;
} peers[PEERS];

static unsigned int sessions;

static void goes(struct peer *p)
{
	bool is_left = p->client->busy;

	p->there = false;
	sessions--;
	client_release(&all, p->client);
	if (!is_left)
		p->client = NULL;
}

static void frees_threads(struct peer *p, unsigned int now)
{
	for (unsigned int i = 0; p->client && i < EACH; i++) {
		bool is_last = p->client->busy == 1 && !p->there;

		if (p->ends[i] != now)
			continue;
		p->ends[i] = 0;
		client_returns_thread(&all, p->client);
		if (is_last)
			p->client = NULL;
	}
}

static void asks(struct peer *p, unsigned int now)
{
	for (unsigned int i = 0; i < EACH; i++) {
		if (p->ends[i] || !client_may_have_thread(&all, p->client))
			continue;
		client_takes_thread(&all, p->client);
		p->ends[i] = now + HANG;
	}
}

static void lives(struct random *r, struct peer *p, unsigned int now)
{
	char who[16];

	frees_threads(p, now);
	if (!p->there && sessions < SESSIONS && !random_below(r, 8)) {
		snprintf(who, sizeof(who), "peer %u", (unsigned int)(p - peers));
		p->client = comes(who);
		p->there = true;
		p->came = now;
		sessions++;
	}
	if (p->there && random_below(r, 2))
		asks(p, now);
	if (p->there && !random_below(r, 16))
		goes(p);
	if (p->there && now >= p->came + HANG)
		assert_true(p->client->has_few);
	if (p->there && p->client->has_few && p->client->busy < FEW)
		assert_true(client_may_have_thread(&all, p->client));
	assert_true(all.busy + all.reserved <= MOST);
}

/* At the latest when what hung as a session began hangs no more, that session has a few. */
static void a_session_has_a_few_in_time(void **state)
{
	struct random r;
	unsigned int waited = 0;

	(void)state;
	random_begin(&r, "a_session_has_a_few_in_time");
	memset(peers, 0, sizeof(peers));
	sessions = 0;
	for (unsigned int now = 1; now < STEPS; now++) {
		for (unsigned int i = 0; i < PEERS; i++)
			lives(&r, &peers[i], now);
		waited += !list_empty(&all.line);
	}
	assert_true(waited > STEPS / 20);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(those_who_were_there_keep_a_few),
		TEST(who_comes_next_has_a_few_as_they_are_free),
		TEST(who_leaves_makes_room),
		TEST(more_sessions_are_more_threads),
		TEST(two_sessions_of_a_peer_have_the_same_few),
		TEST(a_session_has_a_few_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
