/* SPDX-License-Identifier: MIT */
/* LP's network becomes another one under a session of the extension. */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/host.h"
#include "ext_pair.h"
#include "loopback.h"

/* Of loopback addresses it says that they are there. */
static const struct host here;

static struct leg *leg(const struct pair *pair, unsigned int i)
{
	return &pair->lp->ext->leg[i];
}

static bool lp_ended(void *arg)
{
	const struct pair *pair = arg;

	return !pair->lp;
}

static bool all_answered(void *arg)
{
	const struct pair *pair = arg;

	for (unsigned int i = 0; i < PAIR_PIPES; i++) {
		struct pipe *p = pair->lp->pipes[i];

		if (!p || !leg(pair, i)->token ||
		    p->heard_at < leg(pair, i)->pinged_at)
			return false;
	}
	return true;
}

/* --- the way of a pipe --- */

static void pipes_that_stay_are_asked(void **state)
{
	struct pair *pair = *state;

	session_roam(pair->lp, &here);
	assert_true(run_until(pair->engine.loop, "PONGs", all_answered, pair));
	for (unsigned int i = 0; i < PAIR_PIPES; i++)
		assert_int_equal(pair_redialled(pair, i), 0);
}

static bool has_second_incarnations(void *arg)
{
	const struct pair *pair = arg;

	return pair_is_settled(pair) && pair_redialled(pair, 1) == 1 &&
	       pair_redialled(pair, 3) == 1;
}

static void a_pipe_whose_way_is_another_is_dialled_again(void **state)
{
	struct pair *pair = *state;
	struct pair_conn *pc = &pair->conn[0];

	pair->redials = true;
	pair_connect(pair, 0);
	assert_true(leg(pair, 1)->route.device);
	leg(pair, 1)->route.device += 1;
	leg(pair, 3)->route.gateway[0] += 1;
	session_roam(pair->lp, &here);
	assert_int_equal(pair->lp->paths.npipes, PAIR_PIPES - 2);
	assert_int_equal(send(pc->client, "moved", 5, MSG_NOSIGNAL), 5);
	pair_expect(pair, pc->server, "moved", 5);
	assert_true(run_until(pair->engine.loop, "new pipes",
			      has_second_incarnations, pair));
	assert_int_equal(pair_redialled(pair, 0), 0);
	assert_int_equal(pair_redialled(pair, 2), 0);
}

/* The kernel may have no answer when a pipe begins, and have one later. */
static void a_way_that_was_not_known_is_learnt(void **state)
{
	struct pair *pair = *state;

	leg(pair, 1)->route.device = 0;
	session_roam(pair->lp, &here);
	assert_int_equal(pair->lp->paths.npipes, PAIR_PIPES);
	assert_int_equal(leg(pair, 1)->route.device,
			 leg(pair, 0)->route.device);
}

static void rp_does_not_roam(void **state)
{
	struct pair *pair = *state;

	session_roam(pair->rp, &here);
	for (unsigned int i = 0; i < PAIR_PIPES; i++)
		assert_false(pair->rp->ext->leg[i].ping_due);
}

/* --- where RP gave up a pipe that LP still has --- */

static void be_quiet(struct pair *pair)
{
	for (unsigned int i = 0; i < PAIR_PIPES; i++)
		pair->lp->pipes[i]->heard_at -= 2 * NS_PER_SEC;
}

static unsigned int asked(const struct pair *pair)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < PAIR_PIPES; i++)
		n += leg(pair, i)->token > 0;
	return n;
}

static bool all_are_asked(void *arg)
{
	return asked(arg) == PAIR_PIPES;
}

/* What RP does when a pipe has ended, on one of the others. */
static void an_ack_that_tells_nothing_is_a_hint(void **state)
{
	struct pair *pair = *state;
	struct extended *rp = pair->rp->ext;

	be_quiet(pair);
	rp->ack_due = rp->ack_all = true;
	loop_after(pair->engine.loop, &pair->rp->out.pump);
	assert_true(run_until(pair->engine.loop, "PINGs",
			      all_are_asked, pair));
}

static void an_ack_that_tells_something_is_none(void **state)
{
	struct pair *pair = *state;
	uint64_t got = 0;

	pair_connect(pair, 0);
	be_quiet(pair);
	assert_int_equal(send(pair->conn[0].client, "news", 4, MSG_NOSIGNAL), 4);
	pair_expect(pair, pair->conn[0].server, "news", 4);
	while (pair->lp->ext->kept)
		run_round(pair->engine.loop);
	for (unsigned int i = 0; i < PAIR_PIPES; i++)
		got += leg(pair, i)->heard;
	assert_true(got >= 2);	/* OPEN and data */
	assert_int_equal(asked(pair), 0);
}

/* --- where RP does not let it go on --- */

static bool first_path_is_up(void *arg)
{
	const struct pair *pair = arg;

	return pair->lp->paths.npipes == 2 && pair->rp->paths.npipes == 2;
}

static bool was_sent_away(void *arg)
{
	const struct pair *pair = arg;

	return pair_redialled(pair, 2) && !leg(pair, 2)->joining;
}

static void unknown_on_one_pipe_is_no_end(void **state)
{
	struct pair *pair = *state;

	pair_connect(pair, 0);
	pair->joins = PAIR_SENT_AWAY;
	pair_kill(pair, 2);
	while (!session_lacks(pair->lp))
		run_round(pair->engine.loop);
	pair_dial(pair);
	assert_true(run_until(pair->engine.loop, "the answer", was_sent_away,
			      pair));
	assert_true(leg(pair, 0)->ping_due || leg(pair, 0)->token);
	pair->joins = PAIR_JOINS;
	pair->redials = true;
	pair_settle(pair);
	assert_int_equal(send(pair->conn[0].client, "on", 2, MSG_NOSIGNAL), 2);
	pair_expect(pair, pair->conn[0].server, "on", 2);
}

static void kill_all(struct pair *pair)
{
	for (unsigned int i = 0; i < PAIR_PIPES; i++)
		pair_kill(pair, i);
	while (session_lacks(pair->lp) < PAIR_PIPES)
		run_round(pair->engine.loop);
}

static bool rp_heard_hello(void *arg)
{
	const struct pair *pair = arg;

	return !pair->awaiting[0];
}

/*
 * An RP that was started anew must not take a pipe of an index that it has not seen for the
 * first of a session. LP's other pipes would join that, and nothing of theirs is known there.
 */
static void who_joins_begins_no_session(void **state)
{
	struct pair *pair = *state;
	uint8_t welcome[64];

	pair->redials = false;
	pair_start(pair, PAIR_PIPES);
	assert_true(run_until(pair->engine.loop, "the first path's",
			      first_path_is_up, pair));
	pair_connect(pair, 0);
	for (unsigned int i = 0; i < 2; i++)
		pair_kill(pair, i);
	session_free(pair->rp);
	pair->rp = NULL;
	while (session_lacks(pair->lp) < PAIR_PIPES)
		run_round(pair->engine.loop);
	pair_dial_at(pair, 2);
	assert_true(run_until(pair->engine.loop, "HELLO", rp_heard_hello, pair));
	/* What RP says to that is lost on its way. */
	assert_true(recv(greeting_fd(leg(pair, 2)->joining), welcome,
			 sizeof(welcome), 0) > 0);
	pair_dial_at(pair, 0);
	assert_true(run_until(pair->engine.loop, "LP's end", lp_ended, pair));
	assert_true(pair->lp_unknown);
	assert_null(pair->rp);
	pair_expect_end(pair, pair->conn[0].client, -ECONNRESET);
}

static void unknown_without_pipes_is_the_end(void **state)
{
	struct pair *pair = *state;

	pair_connect(pair, 0);
	pair->joins = PAIR_SENT_AWAY;
	kill_all(pair);
	pair_dial(pair);
	assert_true(run_until(pair->engine.loop, "LP's end", lp_ended, pair));
	assert_true(pair->lp_unknown);
	pair_expect_end(pair, pair->conn[0].client, -ECONNRESET);
}

/* An RP that resets pipes from elsewhere, instead of saying anything. */
static void closed_from_elsewhere_is_the_end(void **state)
{
	struct sockaddr_in *from;
	struct pair *pair = *state;

	pair->joins = PAIR_CLOSED;
	from = (void *)&pair->lp->ext->way[0].from;
	from->sin_addr.s_addr ^= htonl(1);
	kill_all(pair);
	pair_dial(pair);
	assert_true(run_until(pair->engine.loop, "LP's end", lp_ended, pair));
	assert_true(pair->lp_unknown);
}

static void closed_from_the_same_address_is_tried_again(void **state)
{
	struct pair *pair = *state;

	pair->joins = PAIR_CLOSED;
	kill_all(pair);
	pair_dial(pair);
	while (leg(pair, 0)->joining)
		run_round(pair->engine.loop);
	pair->joins = PAIR_JOINS;
	pair->redials = true;
	pair_settle(pair);
	assert_int_equal(pair_redialled(pair, 0), 2);
}

static in_addr_t *address_of(struct sockaddr_storage *from)
{
	return &((struct sockaddr_in *)from)->sin_addr.s_addr;
}

/* RP took pipes from there since: it would take one more. */
static void where_pipes_came_from_lately_is_not_elsewhere(void **state)
{
	struct sockaddr_storage *from;
	struct pair *pair = *state;

	from = &pair->lp->ext->way[0].from;
	*address_of(from) ^= htonl(1);	/* where the session began */
	pair->redials = true;
	pair_kill(pair, 2);
	while (!pair_redialled(pair, 2))
		run_round(pair->engine.loop);
	pair_settle(pair);
	pair->redials = false;
	pair->joins = PAIR_CLOSED;
	kill_all(pair);
	pair_dial(pair);
	while (pair->lp && leg(pair, 0)->joining)
		run_round(pair->engine.loop);
	assert_false(pair->lp_unknown);
	pair->joins = PAIR_JOINS;
	pair->redials = true;
	pair_settle(pair);
}

#define PAIR_TEST(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR_TEST(pipes_that_stay_are_asked),
		PAIR_TEST(a_pipe_whose_way_is_another_is_dialled_again),
		PAIR_TEST(a_way_that_was_not_known_is_learnt),
		PAIR_TEST(rp_does_not_roam),
		PAIR_TEST(an_ack_that_tells_nothing_is_a_hint),
		PAIR_TEST(an_ack_that_tells_something_is_none),
		PAIR_TEST(unknown_on_one_pipe_is_no_end),
		cmocka_unit_test_setup_teardown(who_joins_begins_no_session,
						pair_setup_paths, pair_teardown),
		PAIR_TEST(unknown_without_pipes_is_the_end),
		PAIR_TEST(closed_from_elsewhere_is_the_end),
		PAIR_TEST(closed_from_the_same_address_is_tried_again),
		PAIR_TEST(where_pipes_came_from_lately_is_not_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
