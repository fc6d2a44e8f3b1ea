/* SPDX-License-Identifier: MIT */
/* A session over two paths of which one goes down with its device, or is turned off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mux/base/host.h"
#include "loopback.h"
#include "path_pair.h"

enum { ANOTHER_DEVICE = 77, A_THIRD };

/* As if the second path left by a device of its own, which is down. */
static void lose_device(struct pair *pair)
{
	struct leg *leg = pair->lp->ext->leg;
	unsigned int up = leg[0].route.device;
	const struct host host = { .running = &up, .nrunning = 1 };

	leg[2].route.device = leg[3].route.device = ANOTHER_DEVICE;
	pair->redials = false;
	session_roam(pair->lp, &host);
}

static bool rp_knows_it_is_off(void *arg)
{
	return path_of(((struct pair *)arg)->rp, SPARE)->off;
}

static bool rp_knows_it_is_on(void *arg)
{
	return !path_of(((struct pair *)arg)->rp, SPARE)->off;
}

static void rp_hears_of_a_device_that_is_down(void **state)
{
	struct pair *pair = *state;

	pair_begin(pair, 4);
	pair_connect(pair, 0);
	path_pair_carry(pair, LOT);
	lose_device(pair);
	assert_int_equal(path_of(pair->lp, SPARE)->npipes, 0);
	assert_true(run_until(pair->engine.loop, "PATH", rp_knows_it_is_off,
			      pair));
	path_pair_carry(pair, LOT);
	pair->redials = true;
	while (session_lacks(pair->lp))
		pair_dial(pair);
	pair_settle(pair);
	assert_true(run_until(pair->engine.loop, "PATH", rp_knows_it_is_on,
			      pair));
	path_of(pair->lp, MAIN)->cost = path_of(pair->rp, MAIN)->cost = COST + 1;
	path_of(pair->lp, SPARE)->written = path_of(pair->rp, SPARE)->written = 0;
	for (int i = 0; i < 5; i++)
		path_pair_carry(pair, LOT);
	assert_true(path_of(pair->lp, SPARE)->written > 0);
	assert_true(path_of(pair->rp, SPARE)->written > 0);
}

/* It may be for a moment, and nobody could take over. */
static void pipes_stay_while_all_devices_are_down(void **state)
{
	struct pair *pair = *state;
	unsigned int up = A_THIRD;
	const struct host host = { .running = &up, .nrunning = 1 };

	pair_begin(pair, 4);
	assert_int_not_equal(pair->lp->ext->leg[0].route.device, 0);
	session_roam(pair->lp, &host);
	assert_int_equal(pair->lp->paths.npipes, 4);
}

/* Something that was sent on the second path is not acknowledged yet. */
static void carry_until_kept(struct pair *pair, const struct extended *x)
{
	for (int i = 0; !keeping_oldest(&x->leg[2]) && !keeping_oldest(&x->leg[3]);
	     i++) {
		assert_true(i < 100);
		path_pair_carry(pair, LOT);
	}
}

/* RP has something under way on the path that is to be off: the other one is dearer. */
static struct extended *rp_that_keeps(struct pair *pair)
{
	pair_begin(pair, 4);
	pair_connect(pair, 0);
	path_of(pair->rp, MAIN)->cost = COST + 1;
	carry_until_kept(pair, pair->rp->ext);
	return pair->rp->ext;
}

/* Long before RP could find out by itself. */
static void what_is_under_way_on_a_path_that_is_off_goes_again(void **state)
{
	struct wire_path said = { .path = SPARE, .state = WIRE_PATH_OFF,
				  .serial = 50 };
	struct pair *pair = *state;
	unsigned int suspects = 0, i;
	struct extended *rp;

	rp = rp_that_keeps(pair);
	ways_came(pair->rp, &said);
	for (i = 2; i < 4; i++)
		suspects += pair->rp->pipes[i]->relieved;
	assert_true(suspects > 0);
	assert_true(keeping_has_again(rp));
	path_of(pair->rp, SPARE)->written = 0;
	path_pair_carry(pair, LOT);
	assert_true(pair->rp->counts.again > 0);
	assert_int_equal(path_of(pair->rp, SPARE)->written, 0);
	assert_false(pair->rp->pipes[0]->relieved || pair->rp->pipes[1]->relieved);
}

static bool none_is_suspect(void *arg)
{
	const struct pair *pair = arg;

	for (int i = 2; i < 4; i++) {
		if (!pair->rp->pipes[i] || pair->rp->pipes[i]->relieved)
			return false;
	}
	return true;
}

/* One batch of events brings PATH and the ACK that leaves nothing to be sent again. */
static void an_ack_of_the_same_moment_clears_what_is_off(void **state)
{
	struct wire_path said = { .path = SPARE, .state = WIRE_PATH_OFF,
				  .serial = 50 };
	struct wire_ack ack = { .pipes = 2 };
	struct pair *pair = *state;
	struct extended *rp;

	rp = rp_that_keeps(pair);
	for (uint8_t i = 2; i < 4; i++) {
		assert_null(pair->rp->pipes[i]->queue);
		ack.pipe[i - 2] = (struct wire_ack_pipe){
			i, rp->leg[i].incarnation, rp->leg[i].kept.sent,
		};
	}
	pair->redials = false;
	ways_came(pair->rp, &said);
	assert_false(none_is_suspect(pair));
	keeping_acked(pair->rp, &ack);
	assert_true(run_until(pair->engine.loop, "to be cleared",
			      none_is_suspect, pair));
}

/* Its pipes stay, and both ends use the other one. */
static void a_path_that_lp_turns_off_carries_nothing_either_way(void **state)
{
	struct pair *pair = *state;

	pair_begin(pair, 4);
	pair_connect(pair, 0);
	session_use_path(pair->lp, MAIN, WIRE_PATH_OFF);
	while (!path_of(pair->rp, MAIN)->off)
		run_round(pair->engine.loop);
	path_pair_carry(pair, LOT);
	path_of(pair->lp, MAIN)->written = path_of(pair->rp, MAIN)->written = 0;
	path_pair_carry(pair, LOT);
	assert_int_equal(path_of(pair->lp, MAIN)->written, 0);
	assert_int_equal(path_of(pair->rp, MAIN)->written, 0);
	assert_int_equal(session_lacks(pair->lp), 0);
	session_use_path(pair->lp, MAIN, WIRE_PATH_BACKUP);
	session_use_path(pair->lp, SPARE, WIRE_PATH_OFF);
	while (!path_of(pair->rp, SPARE)->off)
		run_round(pair->engine.loop);
	assert_true(path_of(pair->rp, MAIN)->backup);
	path_pair_carry(pair, LOT);
	assert_true(path_of(pair->lp, MAIN)->written > LOT);
	assert_true(path_of(pair->rp, MAIN)->written > LOT);
}

static void connect_when_told(struct pair *pair, int fd[2])
{
	if (pair->network)
		assert_false(pair->lp->ext->way[SPARE].due);
	tcp_pair(fd);
}

static bool is_settled(void *arg)
{
	return pair_is_settled(arg);
}

/* Its pipes were lost at once, and the timer that dials was set before there was a PATH. */
static void rp_is_told_of_another_way_before_it_is_dialled(void **state)
{
	static const struct host here;
	struct pair *pair = *state;
	bool roamed = true;

	pair->connect = connect_when_told;
	pair_begin(pair, 4);
	pair->lp->ext->leg[2].route.device++;
	pair->lp->ext->leg[3].route.device++;
	pair->network = &roamed;
	session_roam(pair->lp, &here);
	assert_true(path_of(pair->lp, SPARE)->npipes < 2);
	assert_true(run_until(pair->engine.loop, "all pipes", is_settled, pair));
}

/* One try of several pipes has one pause after it, however many of them are sent away. */
static void a_pause_is_one_of_a_try(void **state)
{
	struct pair *pair = *state;
	struct way *way;

	pair_begin(pair, 4);
	way = &pair->lp->ext->way[MAIN];
	pair->redials = false;
	pair->joins = PAIR_SENT_AWAY;
	pair_kill(pair, 0);
	pair_kill(pair, 1);
	while (session_lacks_on(pair->lp, MAIN) < 2)
		run_round(pair->engine.loop);
	pair_dial_at(pair, 0);
	pair_dial_at(pair, 1);
	while (pair->lp->ext->leg[0].joining || pair->lp->ext->leg[1].joining)
		run_round(pair->engine.loop);
	assert_int_equal(way->lack_pause, 100 * NS_PER_MS);
}

#define DOWN_TEST(name) cmocka_unit_test_setup_teardown(name, path_pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DOWN_TEST(rp_hears_of_a_device_that_is_down),
		DOWN_TEST(pipes_stay_while_all_devices_are_down),
		DOWN_TEST(what_is_under_way_on_a_path_that_is_off_goes_again),
		DOWN_TEST(an_ack_of_the_same_moment_clears_what_is_off),
		DOWN_TEST(a_path_that_lp_turns_off_carries_nothing_either_way),
		DOWN_TEST(rp_is_told_of_another_way_before_it_is_dialled),
		DOWN_TEST(a_pause_is_one_of_a_try),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
