/* SPDX-License-Identifier: MIT */
/* LP dials pipes that its session lacks: when the next one is, and what it waits for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "ext_pair.h"
#include "halted.h"
#include "lp/dialer.h"
#include "lp/joiner.h"
#include "loopback.h"
#include "mux/base/addr.h"

/* Nobody answers what is dialled: who listens does not even accept. */
static struct {
	struct joiner joiner;
	struct dialer_options dial;
	int listener;
} here;

static void begin(struct pair *pair, bool listens)
{
	struct sockaddr_storage to;
	uint16_t port;
	socklen_t len;

	here.listener = tcp_listen(64, &port);
	assert_int_equal(addr_parse("127.0.0.1", NULL, port, &to, &len), 0);
	if (!listens)
		close(here.listener);
	here.dial = (struct dialer_options){
		.rp = { .host = "127.0.0.1" }, .pipes = PAIR_PIPES,
		.transports = &pair->settings.transports,
		.paths = &pair->settings.paths,
	};
	assert_int_equal(joiner_init(&here.joiner, pair->engine.loop,
				     &pair->log, &here.dial, 0), 0);
	joiner_start(&here.joiner, pair->lp, &to);
}

static int teardown(void **state)
{
	clock_go_on();
	joiner_fini(&here.joiner);
	close(here.listener);
	return pair_teardown(state);
}

static void lose(struct pair *pair, unsigned int i)
{
	pair_kill(pair, i);
	while (pair->lp->pipes[i])
		run_round(pair->engine.loop);
	joiner_look(&here.joiner);
}

static bool is_dialled(void *arg)
{
	const struct pair *pair = arg;

	return !session_lacks(pair->lp) && !here.joiner.under_way;
}

/* Each while those before it still wait for their WELCOME. */
static void what_is_lost_is_dialled_again_at_once(void **state)
{
	struct pair *pair = *state;

	begin(pair, true);
	for (unsigned int i = 0; i < PAIR_PIPES - 1; i++) {
		lose(pair, i);
		assert_true(here.joiner.next.slot);
		assert_true(here.joiner.next.at <= loop_clock());
		assert_true(run_until(pair->engine.loop, "its dial",
				      is_dialled, pair));
	}
}

/* The kernel of an rp that has ended or hangs takes connections all the same. */
static void what_is_connected_is_not_yet_up(void **state)
{
	struct pair *pair = *state;

	begin(pair, true);
	assert_true(here.joiner.complete);
	lose(pair, 0);
	assert_false(here.joiner.complete);
	assert_true(run_until(pair->engine.loop, "its dial", is_dialled, pair));
	assert_false(here.joiner.complete);
	joiner_welcomed(&here.joiner);	/* another */
	assert_false(here.joiner.complete);
}

static bool nothing_is_under_way(void *arg)
{
	return !here.joiner.under_way && arg;
}

/* Another pipe of the path was sent away while this one was dialled: RP has to hear of it first. */
static void who_is_to_wait_has_not_failed(void **state)
{
	struct pair *pair = *state;
	struct way *way = &pair->lp->ext->way[0];

	begin(pair, true);
	lose(pair, 0);
	while (!here.joiner.under_way)
		run_round(pair->engine.loop);
	way->untold = true;
	assert_true(run_until(pair->engine.loop, "its dial",
			      nothing_is_under_way, pair));
	assert_false(here.joiner.failing || here.joiner.complained);
	assert_int_equal(here.joiner.at.count, 1);
	/* Then it is dialled again. */
	way->untold = false;
	joiner_look(&here.joiner);
	assert_true(run_until(pair->engine.loop, "its dial", is_dialled, pair));
}

/* As if its WELCOME had come, and the pipe been lost again. */
static void lose_again(struct pair *pair)
{
	struct leg *leg = &pair->lp->ext->leg[0];

	joiner_welcomed(&here.joiner);
	greeting_free(leg->joining);
	leg->joining = NULL;
	joiner_look(&here.joiner);
}

/* Somebody who welcomes and closes is not dialled as fast as that goes. */
static void in_the_long_run_there_is_a_pause(void **state)
{
	enum { TIMES = 3 * PAIR_PIPES };
	struct pair *pair = *state;
	int64_t began;

	begin(pair, true);
	began = loop_clock();
	lose(pair, 0);
	for (int i = 0; i < TIMES; i++) {
		assert_true(run_until(pair->engine.loop, "its dial",
				      is_dialled, pair));
		lose_again(pair);
	}
	assert_true(loop_clock() - began >= (TIMES - 1 - PAIR_PIPES) *
					    JOIN_MIN_MS * NS_PER_MS);
}

static bool has_failed(void *arg)
{
	return here.joiner.failing && here.joiner.next.slot && arg;
}

static void the_pause_doubles_while_tries_fail(void **state)
{
	struct pair *pair = *state;
	struct joiner *j = &here.joiner;

	begin(pair, false);
	lose(pair, 0);
	for (int i = 0; i < 3; i++) {
		assert_true(run_until(pair->engine.loop, "a refusal",
				      has_failed, pair));
		assert_int_equal(j->next.at - j->tried_at,
				 (JOIN_MIN_MS << i) * NS_PER_MS);
		while (j->next.slot)
			run_round(pair->engine.loop);
	}
	assert_true(run_until(pair->engine.loop, "a refusal", has_failed, pair));
	joiner_welcomed(j);
	assert_false(j->failing || j->retries);
}

/* --- what is paused for at most; the clock stands but for the test --- */

static bool nobody_asks(const struct session *s)
{
	for (int i = 0; i < PAIR_PIPES; i++) {
		if (s->ext->leg[i].pinged)
			return false;
	}
	return true;
}

/* Time may go by: all that was asked is answered. */
static bool has_failed_and_rests(void *arg)
{
	const struct pair *pair = arg;

	return has_failed(arg) && nobody_asks(pair->lp) && nobody_asks(pair->rp);
}

static int64_t pause_ms(int tries)
{
	return (100 << tries) < 5000 ? 100 << tries : 5000;
}

static void the_pause_is_5_s_at_most(void **state)
{
	enum { TRIES = 9 };
	struct pair *pair = *state;
	struct joiner *j = &here.joiner;

	begin(pair, false);
	lose(pair, 0);
	clock_halt();
	for (int i = 0; i < TRIES; i++) {
		assert_true(run_rounds(pair->engine.loop, "a refusal",
				       has_failed_and_rests, pair));
		assert_int_equal(j->next.at - j->tried_at, pause_ms(i) * NS_PER_MS);
		clock_pass(j->next.at - loop_clock());
		while (j->next.slot)
			run_round(pair->engine.loop);
	}
}

static bool is_sent_away(void *arg)
{
	const struct pair *pair = arg;

	return pair->lp->ext->way[0].lack_timer.slot && nobody_asks(pair->lp) &&
	       nobody_asks(pair->rp);
}

/* It is connected, and closed before its WELCOME. */
static void who_is_never_welcomed_pauses_5_s_at_most(void **state)
{
	enum { TRIES = 9 };
	struct pair *pair = *state;
	struct way *way = &pair->lp->ext->way[0];

	begin(pair, false);
	joiner_stop(&here.joiner);	/* it is the test that dials */
	pair->joins = PAIR_CLOSED;
	pair_kill(pair, 0);
	while (pair->lp->pipes[0])
		run_round(pair->engine.loop);
	clock_halt();
	for (int i = 0; i < TRIES; i++) {
		pair_dial(pair);
		assert_true(run_rounds(pair->engine.loop, "its end", is_sent_away,
				       pair));
		assert_int_equal(way->lack_timer.at - loop_clock(),
				 pause_ms(i) * NS_PER_MS);
		clock_pass(way->lack_timer.at - loop_clock());
		while (way->lack_timer.slot)
			run_round(pair->engine.loop);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, pair_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_lost_is_dialled_again_at_once),
		TEST(what_is_connected_is_not_yet_up),
		TEST(who_is_to_wait_has_not_failed),
		TEST(in_the_long_run_there_is_a_pause),
		TEST(the_pause_doubles_while_tries_fail),
		TEST(the_pause_is_5_s_at_most),
		TEST(who_is_never_welcomed_pauses_5_s_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
