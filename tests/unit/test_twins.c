/* SPDX-License-Identifier: MIT */
/* Of what connections sent last: which of it goes over the other path as well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "loopback.h"
#include "mux/sched/path_policy.h"
#include "path_pair.h"

enum { FIRST_ID = 1, BYTES = 500 };

static const int64_t LATER = INT64_C(1000000000);

/* A message of connection 0 is kept for LP's first pipe, and was not written yet. */
static struct conn *keep_one(struct pair *pair)
{
	struct session *lp;
	struct conn *c;
	struct run *run;

	pair->settings.path_policy = &path_dems_s;
	pair_begin(pair, PAIR_PIPES);
	pair_connect(pair, 0);
	lp = pair->lp;
	c = lp->ext->channel[FIRST_ID]->conn;
	run = run_get(&lp->shared.pool);
	run->id = FIRST_ID;
	run->of_conn = true;
	run->messages = 1;
	run->first = c->channel->use.number;
	run->len = wire_put_data(run->buf, FIRST_ID, run->first, BYTES) + BYTES;
	assert_non_null(keeping_add(lp, lp->pipes[0], run));
	return c;
}

/* What there is to send twice, some ns from now. */
static struct view seen_in(const struct pair *pair, int64_t time)
{
	struct view view = { .now = loop_now(pair->lp->engine->loop) + time };

	twins_look(pair->lp->ext, &view);
	return view;
}

static bool goes_over(const struct pair *pair, unsigned int path)
{
	return seen_in(pair, LATER).twin[path].there;
}

static void the_last_message_goes_over_the_other_path(void **state)
{
	struct pair *pair = *state;

	keep_one(pair);
	assert_true(goes_over(pair, SPARE));
	assert_false(goes_over(pair, MAIN));
}

/* Until the other end grants more. Then there is something new, and the end is elsewhere. */
static void but_not_that_of_who_waits_for_credit(void **state)
{
	struct pair *pair = *state;
	struct conn *c = keep_one(pair);

	c->readable = true;
	c->channel->out.allowed = c->channel->out.sent;
	assert_false(goes_over(pair, SPARE));
	c->channel->out.allowed++;
	assert_true(goes_over(pair, SPARE));
	c->channel->out.allowed--;
	c->readable = false;
	assert_true(goes_over(pair, SPARE));
}

/* An application that writes an object bit by bit has sent nothing last before it is through. */
static void nor_of_who_has_more_as_was_told(void **state)
{
	struct pair *pair = *state;
	struct conn *c = keep_one(pair);

	conn_tell_size(c, BYTES);
	assert_false(goes_over(pair, SPARE));
	c->tx_bytes += BYTES;
	assert_true(goes_over(pair, SPARE));
	c->tx_bytes -= BYTES;
	c->out_ended = true;
	assert_true(goes_over(pair, SPARE));
	c->out_ended = false;
	conn_tell_size(c, 0);
	assert_true(goes_over(pair, SPARE));
}

/*
 * Whose windows are still small writes, and is silent until they are acknowledged. Who ended, or
 * whose size was told, is known to be through.
 */
static void nor_of_whose_application_wrote_a_moment_ago(void **state)
{
	struct pair *pair = *state;
	struct conn *c = keep_one(pair);
	int64_t now = loop_now(pair->lp->engine->loop);

	c->tx_bytes = BYTES;	/* the message that is kept */
	conn_outlook_new(c)->silent_at = now + LATER;
	assert_false(seen_in(pair, LATER - 1).twin[SPARE].there);
	assert_true(seen_in(pair, LATER - 1).twins_at == now + LATER);
	assert_true(seen_in(pair, LATER).twin[SPARE].there);
	assert_true(seen_in(pair, LATER).twins_at == 0);
	c->out_ended = true;
	assert_true(seen_in(pair, 0).twin[SPARE].there);
	c->out_ended = false;
	conn_tell_size(c, BYTES);
	c->tx_bytes += BYTES;
	assert_true(seen_in(pair, 0).twin[SPARE].there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			the_last_message_goes_over_the_other_path,
			path_pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(
			but_not_that_of_who_waits_for_credit,
			path_pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(
			nor_of_who_has_more_as_was_told,
			path_pair_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(
			nor_of_whose_application_wrote_a_moment_ago,
			path_pair_setup, pair_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
