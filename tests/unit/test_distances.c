/* SPDX-License-Identifier: MIT */
/* A session over a near and a far path: what goes by how far they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "ext_pair.h"
#include "loopback.h"

enum { MAIN, SPARE };

static int set_up(void **state)
{
	pair_setup_paths(state);
	pair_begin(*state, PAIR_PIPES);
	pair_connect(*state, 0);
	return 0;
}

/* --- which way ACKs go --- */

static uint64_t acks_on(struct pair *pair, unsigned int number)
{
	const struct path *path = &pair->lp->paths.path[number];

	return path->pipes[0]->tx_acks + path->pipes[1]->tx_acks;
}

static uint64_t all_acks(struct pair *pair)
{
	return acks_on(pair, MAIN) + acks_on(pair, SPARE);
}

struct acking {
	struct pair *pair;
	unsigned int near;
	uint64_t before;
};

/* The kernel's round trips on loopback are all alike. */
static bool one_more_was_sent(void *arg)
{
	struct acking *a = arg;

	for (unsigned int i = 0; i < 4; i++) {
		struct pipe *p = a->pair->lp->pipes[i];

		p->info.rttmin_ms = i / 2 == a->near ? 20 : 200;
		p->heard_at = p->looked_at = loop_clock();
	}
	return all_acks(a->pair) > a->before;
}

static void expect_an_ack(struct pair *pair, unsigned int near)
{
	struct acking a = { pair, near, all_acks(pair) };
	uint64_t far = acks_on(pair, !near);

	one_more_was_sent(&a);
	assert_int_equal(send(pair->conn[0].server, "!", 1, MSG_NOSIGNAL), 1);
	assert_true(run_until(pair->engine.loop, "an ACK", one_more_was_sent,
			      &a));
	assert_int_equal(acks_on(pair, !near), far);
}

static void acks_go_on_the_nearer_path(void **state)
{
	struct pair *pair = *state;

	for (int i = 0; i < 4; i++)
		expect_an_ack(pair, MAIN);
	for (int i = 0; i < 4; i++)
		expect_an_ack(pair, SPARE);
}

/* --- how much may be under way to LP --- */

struct taking {
	struct pair *pair;
	size_t unwritten, left;
};

static void write_some(struct taking *t)
{
	static const uint8_t bytes[WINDOW_FIRST];
	ssize_t n = send(t->pair->conn[0].server, bytes, t->unwritten,
			 MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n > 0)
		t->unwritten -= (size_t)n;
}

static void take_some(struct taking *t)
{
	static uint8_t bytes[WINDOW_FIRST];
	ssize_t n = recv(t->pair->conn[0].client, bytes, sizeof(bytes),
			 MSG_DONTWAIT);

	if (n > 0)
		t->left -= (size_t)n;
}

static bool all_was_taken(void *arg)
{
	struct taking *t = arg;

	for (unsigned int i = 0; i < 4; i++) {
		struct pipe *p = t->pair->lp->pipes[i];

		p->info.rtt_ms = i / 2 == MAIN ? 20 : 2000;
		p->looked_at = loop_clock();
	}
	write_some(t);
	take_some(t);
	return !t->left;
}

static void take(struct pair *pair, size_t bytes)
{
	struct taking t = { pair, bytes, bytes };

	assert_true(run_until(pair->engine.loop, "what was written",
			      all_was_taken, &t));
}

/* By how much the window of LP's connection grew as a quarter of it was taken within 1 s. */
static uint64_t growth(struct pair *pair)
{
	struct conn *c = list_first(&pair->lp->conns, struct conn, member);
	struct channel *ch = c->channel;
	uint64_t before = ch->window;

	ch->round_from = ch->taken;
	ch->round_at = loop_clock();
	take(pair, before / 8);
	ch->round_at -= NS_PER_SEC;
	take(pair, before / 8 + 1);
	return ch->window / before;
}

static void windows_go_by_the_farthest_path_in_use(void **state)
{
	struct pair *pair = *state;

	assert_int_equal(growth(pair), 2);
	session_use_path(pair->lp, SPARE, WIRE_PATH_BACKUP);
	assert_int_equal(growth(pair), 1);
	session_use_path(pair->lp, SPARE, WIRE_PATH_USE);
	session_use_path(pair->lp, MAIN, WIRE_PATH_BACKUP);
	assert_int_equal(growth(pair), 2);
}

#define PATHS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PATHS_TEST(acks_go_on_the_nearer_path),
		PATHS_TEST(windows_go_by_the_farthest_path_in_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
