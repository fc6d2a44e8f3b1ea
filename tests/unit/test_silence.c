/* SPDX-License-Identifier: MIT */
/* Pipes that are asked whether they are there, and paths all of whose pipes are silent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "dark_net.h"
#include "halted.h"

/* --- PING --- */

static void ask_in_vain(struct pair *pair)
{
	net_begin_halted(pair);
	net_live(pair, 200 * MS);
	net_be_dark(true);
	control_ask(pair->lp, pair->lp->pipes[0]);
	net_live(pair, 20 * MS);
	assert_true(net_leg(pair, 0)->pinged);
}

/* What the other end sent before it read the PING comes first. Only the PONG tells of a PING. */
static void a_pong_counts_behind_bytes_that_came_after_the_ping(void **state)
{
	struct pair *pair = *state;
	int64_t then;

	ask_in_vain(pair);
	pair->lp->pipes[0]->heard_at = loop_clock();
	net_live(pair, 1100 * MS);
	then = net_leg(pair, 0)->progress_at;
	net_be_dark(false);
	net_live(pair, 50 * MS);
	assert_false(net_leg(pair, 0)->pinged);
	assert_true(net_leg(pair, 0)->progress_at > then);
}

static void a_ping_is_answered_within_5_s(void **state)
{
	struct pair *pair = *state;

	ask_in_vain(pair);
	net_live(pair, 4900 * MS);
	assert_int_equal(session_lacks(pair->lp), 0);
	net_live(pair, 1200 * MS);
	assert_int_equal(session_lacks(pair->lp), 1);
}

/* It stands behind what its pipe holds, as all do that wait for an acknowledgement. */
static void where_acknowledgements_take_long_a_ping_may_too(void **state)
{
	struct pair *pair = *state;

	ask_in_vain(pair);
	pair->lp->ext->way[0].ack_takes = 2500 * MS;
	net_live(pair, 7400 * MS);
	assert_int_equal(session_lacks(pair->lp), 0);
	net_live(pair, 1200 * MS);
	assert_int_equal(session_lacks(pair->lp), 1);
}

/* --- several paths --- */

static void say_word_on_a_dark_path(struct pair *pair)
{
	net_begin_halted(pair);
	net_be_dark(true);
	assert_int_equal(send(pair->conn[0].client, "?", 1, MSG_NOSIGNAL), 1);
	net.written++;
	net_come_and_go(pair);
	while (!keeping_oldest(net_leg(pair, net.lost)))
		net.lost++;
	net_be_dark(false);
	net.hop[net.lost].dark = net.hop[net.lost ^ 1].dark = true;
}

/* What goes again would wait on the other pipe of that path for as long once more. */
static void all_pipes_of_a_silent_path_are_suspect_at_once(void **state)
{
	struct pair *pair = *state;
	int other;

	say_word_on_a_dark_path(pair);
	other = net.lost ^ 1;
	net_live(pair, 200 * MS);
	net_say_words(pair);
	assert_int_not_equal(keeping_oldest(net_leg(pair, other)), 0);
	net_live(pair, 190 * MS);
	assert_int_equal(net_leg(pair, other)->suspect_since, 0);
	net_live(pair, 80 * MS);
	assert_int_not_equal(net_leg(pair, net.lost)->suspect_since, 0);
	assert_int_not_equal(net_leg(pair, other)->suspect_since, 0);
	assert_int_equal(net_leg(pair, net.lost ^ 2)->suspect_since, 0);
	assert_int_equal(net_leg(pair, other ^ 2)->suspect_since, 0);
	net_live(pair, 20 * MS);
	assert_int_equal(net.read, net.written);
}

/* It held nothing, so no ACK could tell that it is there. */
static void an_idle_pipe_of_a_silent_path_is_cleared_by_a_pong(void **state)
{
	struct pair *pair = *state;
	int other = (say_word_on_a_dark_path(pair), net.lost ^ 1);

	net_live(pair, 100 * MS);
	net_leg(pair, net.lost ^ 2)->progress_at = loop_clock();
	assert_int_equal(keeping_oldest(net_leg(pair, other)), 0);
	net_live(pair, 380 * MS);
	assert_int_not_equal(net_leg(pair, other)->suspect_since, 0);
	net.hop[net.lost].dark = net.hop[other].dark = false;
	net_live(pair, 200 * MS);
	assert_int_equal(net_leg(pair, other)->suspect_since, 0);
	assert_int_equal(net_leg(pair, net.lost)->suspect_since, 0);
	net_live(pair, 6000 * MS);
	assert_int_equal(net_dialled_again(pair), 0);
	assert_int_equal(net.read, net.written);
}

/* Where only one of two pipes of a path is silent, the other one is not. */
static void a_path_with_a_pipe_that_goes_on_is_not_silent(void **state)
{
	struct pair *pair = *state;

	say_word_on_a_dark_path(pair);
	net.hop[net.lost ^ 1].dark = false;
	net_live(pair, 100 * MS);
	net_say_words(pair);
	net_live(pair, 400 * MS);
	assert_int_not_equal(net_leg(pair, net.lost)->suspect_since, 0);
	assert_int_equal(net_leg(pair, net.lost ^ 1)->suspect_since, 0);
}

enum { MUST_WAIT = 64 << 10 };

static bool as_much_is_kept_as_may_be(struct pair *pair)
{
	return keeping_is_full(pair->lp->ext);
}

/* A connection is bound to the second path, which goes with all that it may keep. */
static void lose_all_that_may_be_kept(struct pair *pair)
{
	static const uint8_t bytes[1 << 20];
	struct conn *c;
	ssize_t n;

	pair->settings.aggregate = AGGREGATE_OFF;
	net_begin(pair);
	c = list_first(&pair->lp->conns, struct conn, member);
	session_bind(pair->lp, c, 1 << 1);
	net_until(pair, "rest", net_nothing_is_kept);
	pair->settings.keep = MUST_WAIT;
	net.hop[2].dark = net.hop[3].dark = true;
	n = send(pair->conn[0].client, bytes, sizeof(bytes),
		 MSG_NOSIGNAL | MSG_DONTWAIT);
	assert_true(n > 2 * MUST_WAIT);
	net.written = (size_t)n;
	net_until(pair, "it to be full", as_much_is_kept_as_may_be);
	for (unsigned int i = 2; i < 4; i++)
		extended_pipe_ended(pair->lp, pair->lp->pipes[i], false, "it is gone");
}

static bool all_arrived(struct pair *pair)
{
	(void)pair;
	return net.read == net.written;
}

/* What waits for a path holds up nothing of others. */
static void who_waits_for_a_path_fills_it_for_nobody(void **state)
{
	struct pair *pair = *state;

	lose_all_that_may_be_kept(pair);
	pair_connect(pair, 1);
	assert_int_equal(send(pair->conn[1].client, "?", 1, MSG_NOSIGNAL), 1);
	pair_expect(pair, pair->conn[1].server, "?", 1);
	assert_int_equal(net.read, 0);
	pair->redials = true;
	while (session_lacks(pair->lp))
		pair_dial(pair);
	net_until(pair, "the rest", all_arrived);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		NET_TEST(a_pong_counts_behind_bytes_that_came_after_the_ping),
		NET_TEST(a_ping_is_answered_within_5_s),
		NET_TEST(where_acknowledgements_take_long_a_ping_may_too),
		NET_PATHS_TEST(all_pipes_of_a_silent_path_are_suspect_at_once),
		NET_PATHS_TEST(an_idle_pipe_of_a_silent_path_is_cleared_by_a_pong),
		NET_PATHS_TEST(a_path_with_a_pipe_that_goes_on_is_not_silent),
		NET_PATHS_TEST(who_waits_for_a_path_fills_it_for_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
