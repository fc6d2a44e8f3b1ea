/* SPDX-License-Identifier: MIT */
/* Two engines speak the extension with each other. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/sock.h"
#include "mux/conn/conn.h"
#include "mux/session/sent_run.h"
#include "mux/wire/run.h"
#include "ext_pair.h"
#include "flow.h"
#include "loopback.h"

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL),
			 strlen(text));
}

static void hears(struct pair *pair, int fd, const char *text)
{
	pair_expect(pair, fd, text, strlen(text));
}

static void data_go_both_ways_and_each_ends_by_itself(void **state)
{
	struct pair *pair = *state;
	struct pair_conn *pc = &pair->conn[0];

	pair_open(pair, 0);
	say(pc->client, "a question");	/* before anybody answered */
	shutdown(pc->client, SHUT_WR);
	run_round(pair->engine.loop);
	while (pc->server < 0)
		run_round(pair->engine.loop);
	hears(pair, pc->server, "a question");
	pair_expect_end(pair, pc->server, 0);
	say(pc->server, "a long answer");
	hears(pair, pc->client, "a long answer");
	say(pc->server, ", in two parts");
	hears(pair, pc->client, ", in two parts");
	assert_int_equal(pair->lp->nconns, 1);
	close(pc->server);
	pc->server = -1;
	pair_expect_end(pair, pc->client, 0);
	assert_int_equal(pc->answered, 1);
	assert_int_equal(pc->result, WIRE_SYNACK_CONNECTED);
	pair_at_rest(pair);
}

static void the_server_may_end_first(void **state)
{
	struct pair *pair = *state;
	struct pair_conn *pc = &pair->conn[0];

	pair_connect(pair, 0);
	say(pc->server, "all I have to say");
	shutdown(pc->server, SHUT_WR);
	hears(pair, pc->client, "all I have to say");
	pair_expect_end(pair, pc->client, 0);
	say(pc->client, "and I");
	hears(pair, pc->server, "and I");
	shutdown(pc->client, SHUT_WR);
	pair_expect_end(pair, pc->server, 0);
	pair_at_rest(pair);
}

static void reset(int *fd)
{
	sock_reset(*fd);
	*fd = -1;
}

static void a_reset_is_one_at_the_other_end(void **state)
{
	struct pair *pair = *state;

	pair_connect(pair, 0);
	pair_connect(pair, 1);
	pair_connect(pair, 2);
	reset(&pair->conn[0].client);
	pair_expect_end(pair, pair->conn[0].server, -ECONNRESET);
	reset(&pair->conn[1].server);
	pair_expect_end(pair, pair->conn[1].client, -ECONNRESET);
	/* Also where one way had ended in order before. */
	shutdown(pair->conn[2].client, SHUT_WR);
	pair_expect_end(pair, pair->conn[2].server, 0);
	reset(&pair->conn[2].server);
	pair_expect_end(pair, pair->conn[2].client, -ECONNRESET);
	pair_at_rest(pair);
}

static bool cannot_write(void *arg)
{
	const struct pair_conn *pc = arg;

	return send(pc->server, "?", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE;
}

static void who_ended_and_went_is_missed(void **state)
{
	struct pair *pair = *state;
	struct pair_conn *pc = &pair->conn[0];

	pair_connect(pair, 0);
	say(pc->client, "bye");
	close(pc->client);	/* what comes for it is answered by a reset */
	pc->client = -1;
	hears(pair, pc->server, "bye");
	pair_expect_end(pair, pc->server, 0);
	say(pc->server, "are you there?");
	/* It was told of an end in order before, so a write tells of this one. */
	assert_true(run_until(pair->engine.loop, "a broken pipe", cannot_write,
			      pc));
	pair_at_rest(pair);
}

static void refused(struct pair *pair, enum conn_end how, uint8_t result)
{
	struct pair_conn *pc = &pair->conn[0];

	pair->refuse = how;
	pc->answered = 0;
	pair_open(pair, 0);
	pair_expect_end(pair, pc->client, -ECONNRESET);
	assert_int_equal(pc->answered, 1);
	assert_int_equal(pc->result, result);
	close(pc->client);
	pc->client = -1;
	pair_at_rest(pair);
}

static void a_refusal_tells_why(void **state)
{
	struct pair *pair = *state;

	refused(pair, CONN_END_REFUSED, WIRE_SYNACK_REFUSED);
	refused(pair, CONN_END_UNREACHABLE, WIRE_SYNACK_UNREACHABLE);
	refused(pair, CONN_END_TIMEOUT, WIRE_SYNACK_TIMEOUT);
	refused(pair, CONN_END_DENIED, WIRE_SYNACK_DENIED);
	refused(pair, CONN_END_LIMIT, WIRE_SYNACK_LIMIT);
	refused(pair, CONN_END_NO_NAME, WIRE_SYNACK_NO_NAME);
	assert_int_equal(pair->lp->ext->last_id, 1);
}

static void ids_are_used_again_at_once(void **state)
{
	struct pair *pair = *state;
	struct pair_conn *pc = &pair->conn[0];

	for (int i = 0; i < 300; i++) {
		pair_connect(pair, 0);
		say(pc->client, "ping");
		hears(pair, pc->server, "ping");
		say(pc->server, "pong");
		hears(pair, pc->client, "pong");
		if (i % 3 == 0) {
			reset(&pc->client);
			pair_expect_end(pair, pc->server, -ECONNRESET);
		} else {
			close(pc->client);
			pair_expect_end(pair, pc->server, 0);
		}
		close(pc->server);
		pc->client = pc->server = -1;
	}
	pair_at_rest(pair);
	/* One may still be ending when the next begins. */
	assert_in_range(pair->lp->ext->last_id, 1, 4);
	assert_int_equal(pc->opened, 300);
}

static void names_and_ipv6_arrive(void **state)
{
	static const uint8_t v6[16] = { 0x20, 1, 0xd, 0xb8, [15] = 7 };
	struct destination to[2] = {
		destination_ipv6(v6, PAIR_PORT),
		destination_name("example.org", 11, PAIR_PORT + 1),
	};
	struct pair *pair = *state;

	for (int i = 0; i < 2; i++) {
		int fd[2];

		app_pair(fd);
		pair->conn[i].client = fd[0];
		assert_int_equal(session_open(pair->lp, fd[1], &to[i], NULL), 0);
		while (!pair->conn[i].opened)
			run_round(pair->engine.loop);
		assert_memory_equal(&pair->conn[i].to, &to[i], sizeof(to[i]));
	}
}

static void who_asks_first_hears_first(void **state)
{
	struct destination to = destination_name("a", 1, PAIR_PORT);
	struct pair *pair = *state;
	struct pair_conn *pc = &pair->conn[0];
	struct conn *c = session_ask(pair->lp, &to);
	int fd[2];

	assert_non_null(c);
	while (!pc->answered)
		run_round(pair->engine.loop);
	assert_int_equal(pc->result, WIRE_SYNACK_CONNECTED);
	say(pc->server, "banner");
	for (int i = 0; i < 20; i++)
		run_round(pair->engine.loop);
	app_pair(fd);
	pc->client = fd[0];
	assert_int_equal(conn_attach(c, fd[1]), 0);
	hears(pair, pc->client, "banner");
	say(pc->client, "hello");
	hears(pair, pc->server, "hello");
	pair->refuse = CONN_END_REFUSED;
	pc->answered = 0;
	assert_non_null(session_ask(pair->lp, &to));
	while (!pc->answered)
		run_round(pair->engine.loop);
	assert_int_equal(pc->result, WIRE_SYNACK_REFUSED);
}

static void who_asked_may_go_before_the_answer(void **state)
{
	struct destination to = destination_name("a", 1, PAIR_PORT);
	struct pair *pair = *state;
	struct conn *c = session_ask(pair->lp, &to);

	conn_reset(c, CONN_END_LOCAL_RESET);	/* before RP heard of it */
	pair_at_rest(pair);
	assert_int_equal(pair->conn[0].opened, 0);
	c = session_ask(pair->lp, &to);
	while (!c->channel->use.open)
		run_round(pair->engine.loop);
	conn_reset(c, CONN_END_LOCAL_RESET);
	pair_at_rest(pair);
	assert_int_equal(pair->conn[0].opened, 1);
	pair_expect_end(pair, pair->conn[0].server, -ECONNRESET);
}

/* --- pipes --- */

/* A message has 8 bytes of header and one more at least, WIRE_LARGE_MAX at most. */
static bool again_is_more_than_headers(const struct stats_counts *counts)
{
	return counts->again_bytes >= 9 * counts->again &&
	       counts->again_bytes <= WIRE_LARGE_MAX * counts->again;
}

static void bytes_outlive_pipes(void **state)
{
	struct pair *pair = *state;
	struct flow f = { .all = FLOOD }, up = { .all = FLOOD };
	unsigned int kills = 0;

	pair->redials = true;
	pair_connect(pair, 0);
	f.from = up.to = pair->conn[0].server;
	f.to = up.from = pair->conn[0].client;
	while (f.got < f.all || up.got < up.all) {
		flows(&f);
		flows(&up);
		run_round(pair->engine.loop);
		if (f.got / (FLOOD / 40) > kills && pair->lp->paths.npipes > 1) {
			unsigned int i = kills++ % PAIR_PIPES;

			if (pair->lp->pipes[i])
				pair_kill(pair, i);
		}
		assert_non_null(pair->lp);
		assert_non_null(pair->rp);
	}
	assert_true(kills > 20);
	assert_true(pair->lp->counts.again + pair->rp->counts.again > 0);
	assert_true(again_is_more_than_headers(&pair->lp->counts) &&
		    again_is_more_than_headers(&pair->rp->counts));
	close(pair->conn[0].client);
	close(pair->conn[0].server);
	pair->conn[0].client = pair->conn[0].server = -1;
	pair_settle(pair);
	pair_at_rest(pair);
}

/* Both sessions here are of one process. */
static void all_sessions_keep_so_much_together(void **state)
{
	const size_t mib = 1 << 20;
	struct pair *pair = *state;
	struct extended *x = pair->lp->ext;

	pair_at_rest(pair);
	pair->settings.max_memory = 8 * mib;	/* of which 4 to keep */
	x->kept = pair->engine.kept = mib;
	assert_false(keeping_is_full(x));
	pair->engine.kept = 3 * mib;
	assert_true(keeping_is_full(x));
	x->kept = mib - 1;
	assert_false(keeping_is_full(x));
	pair->engine.kept = 5 * mib;
	assert_true(keeping_is_full(x));
	x->kept = 0;		/* one run may go in any case */
	assert_false(keeping_is_full(x));
	pair->settings.keep = mib;
	pair->engine.kept = x->kept = mib;
	assert_true(keeping_is_full(x));
	pair->engine.kept = x->kept = 0;
}

static void what_others_keep_slows_but_does_not_stop(void **state)
{
	struct pair *pair = *state;
	struct flow f = { .all = 4 * FLOW_CHUNK };
	const size_t others = pair->settings.max_memory;

	pair_connect(pair, 0);
	f.from = pair->conn[0].server;
	f.to = pair->conn[0].client;
	pair->engine.kept += others;
	assert_true(run_until(pair->engine.loop, "all of it", flows, &f));
	pair->engine.kept -= others;
	close(pair->conn[0].client);
	close(pair->conn[0].server);
	pair->conn[0].client = pair->conn[0].server = -1;
	pair_at_rest(pair);
}

struct stuck {
	const struct session *session;
	struct flow *flow;
};

static bool waits_for_ack(void *arg)
{
	struct stuck *stuck = arg;
	const struct session *s = stuck->session;

	flow_push(stuck->flow);
	return s->out.wait == WAIT_FOR_ACK && s->ext->kept > s->ext->cut;
}

/* It was full by what others kept, who made room before its own ACK came. */
static void room_that_others_make_is_used(void **state)
{
	struct pair *pair = *state;
	struct flow f = { .all = 16 * FLOW_CHUNK };
	struct stuck stuck = { pair->rp, &f };
	const size_t others = pair->settings.max_memory;
	const struct wire_ack ack = { 0 };

	pair_connect(pair, 0);
	f.from = pair->conn[0].server;
	f.to = pair->conn[0].client;
	pair->engine.kept += others;
	assert_true(run_until(pair->engine.loop, "it is full", waits_for_ack,
			      &stuck));
	pair->engine.kept -= others;
	assert_true(list_empty(&pair->rp->out.pump.node));
	keeping_acked(pair->rp, &ack);
	assert_false(list_empty(&pair->rp->out.pump.node));
	assert_true(run_until(pair->engine.loop, "all of it", flows, &f));
	close(pair->conn[0].client);
	close(pair->conn[0].server);
	pair->conn[0].client = pair->conn[0].server = -1;
	pair_at_rest(pair);
}

static bool has_no_pipe(void *arg)
{
	struct pair *pair = arg;

	return !pair->lp->paths.npipes && !pair->rp->paths.npipes;
}

static void a_session_outlives_all_of_its_pipes(void **state)
{
	struct pair *pair = *state;
	struct pair_conn *pc = &pair->conn[0];

	pair_connect(pair, 0);
	for (unsigned int i = 0; i < PAIR_PIPES; i++)
		pair_kill(pair, i);
	assert_true(run_until(pair->engine.loop, "no pipe", has_no_pipe, pair));
	say(pc->client, "into the dark");
	for (int i = 0; i < 50; i++)
		run_round(pair->engine.loop);
	assert_true(session_has_room(pair->lp));
	assert_int_equal(session_lacks(pair->lp), PAIR_PIPES);
	while (session_lacks(pair->lp))
		pair_dial(pair);
	hears(pair, pc->server, "into the dark");
	pair_settle(pair);
	assert_int_equal(pair->lp->ext->leg[0].incarnation, 1);
}

/* What pipes that ended together held goes again as it was first sent, not pipe by pipe. */
static void pipes_that_are_over_are_one_line(void **state)
{
	enum { TIMES = 5 * PAIR_PIPES };
	unsigned int changes = 0;
	struct pair *pair = *state;
	struct kept_item *item;
	int list = -1;

	pair->settings.pipe_policy = &sched_rr;
	pair->settings.thin = THIN_OFF;
	pair_begin(pair, PAIR_PIPES);
	pair_connect(pair, 0);
	for (int n = 0; n < TIMES; n++) {
		say(pair->conn[0].client, "not acknowledged yet");
		run_round(pair->engine.loop);
	}
	for (unsigned int i = 0; i < PAIR_PIPES; i++)
		pair_kill(pair, i);
	assert_true(run_until(pair->engine.loop, "no pipe", has_no_pipe, pair));
	while ((item = again_each(&pair->lp->ext->again, &list))) {
		for (; item->next; item = item->next) {
			const struct sent_run *one = sent_run_of(item);
			const struct sent_run *other = sent_run_of(item->next);

			changes += one->pipe != other->pipe;
			assert_true(one->run->order < other->run->order);
		}
	}
	assert_true(changes > 2 * PAIR_PIPES);
	while (session_lacks(pair->lp))
		pair_dial(pair);
	for (int n = 0; n < TIMES; n++)
		hears(pair, pair->conn[0].server, "not acknowledged yet");
}

static void who_waits_too_long_for_a_pipe_has_ended(void **state)
{
	struct pair *pair = *state;

	pair->settings.resume_s = 1;
	pair_begin(pair, 1);
	pair_connect(pair, 0);
	pair_kill(pair, 0);
	pair_expect_end(pair, pair->conn[0].client, -ECONNRESET);
	pair_expect_end(pair, pair->conn[0].server, -ECONNRESET);
	while (pair->lp || pair->rp)
		run_round(pair->engine.loop);
	assert_non_null(strstr(pair->rp_why, "no pipe"));
}

static void goodbye_ends_both_ends_at_once(void **state)
{
	struct pair *pair = *state;

	pair_connect(pair, 0);
	session_stop(pair->rp, "rp is ending");
	pair_expect_end(pair, pair->conn[0].client, -ECONNRESET);
	while (pair->lp)
		run_round(pair->engine.loop);
	assert_non_null(strstr(pair->lp_why, "GOODBYE, reason 0: it is ending"));
}

/* It looks at once at what it would look at within two seconds. */
static bool has_let_buffers_go(void *arg)
{
	struct session *s = arg;
	struct timer *look = &s->survey.check_timer;

	if (look->at > loop_now(s->engine->loop))
		loop_timer_in(s->engine->loop, look, 0);
	return !s->shared.pool.bytes && !s->paths.pipes[0]->partial.bytes &&
	       !s->engine->idle;
}

/* A read of @s ended within a message, and the next one brought the rest. */
static void reads_one_in_parts(struct session *s)
{
	struct partial *partial = &s->paths.pipes[0]->partial;

	assert_true(partial_set(partial, (const uint8_t *)"p", 1,
				WIRE_LARGE_MAX));
	assert_true(partial_set(partial, NULL, 0, WIRE_LARGE_MAX));
	assert_non_null(partial->bytes);
}

static void traffic_that_is_over_leaves_no_buffers_behind(void **state)
{
	struct pair *pair = *state;
	struct pair_conn *pc = &pair->conn[0];

	pair_connect(pair, 0);
	say(pc->client, "a question");
	hears(pair, pc->server, "a question");
	assert_true(pair->lp->shared.pool.bytes > 0);
	reads_one_in_parts(pair->lp);
	reads_one_in_parts(pair->rp);
	assert_true(run_until(pair->engine.loop, "LP at rest",
			      has_let_buffers_go, pair->lp));
	assert_true(run_until(pair->engine.loop, "RP at rest",
			      has_let_buffers_go, pair->rp));
	assert_true(pair->engine.gave_back_at > 0);
	say(pc->server, "an answer");
	hears(pair, pc->client, "an answer");
}

/* An ACK shares a run with what is kept, and goes again with it. */
static void an_ack_of_before_says_nothing_of_now(void **state)
{
	const struct wire_ack now = { .time_us = UINT64_MAX - 1, .reorder_bytes = 7 },
			      before = { .time_us = 5, .reorder_bytes = 70000 };
	struct pair *pair = *state;

	keeping_acked(pair->rp, &now);
	keeping_acked(pair->rp, &before);
	assert_int_equal(pair->rp->ext->early_there, 7);
}

#define PAIR_TEST(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)
#define PAIR_TEST_NEW(f) cmocka_unit_test_setup_teardown(f, pair_setup_new, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR_TEST(an_ack_of_before_says_nothing_of_now),
		PAIR_TEST(data_go_both_ways_and_each_ends_by_itself),
		PAIR_TEST(the_server_may_end_first),
		PAIR_TEST(a_reset_is_one_at_the_other_end),
		PAIR_TEST(who_ended_and_went_is_missed),
		PAIR_TEST(a_refusal_tells_why),
		PAIR_TEST(ids_are_used_again_at_once),
		PAIR_TEST(names_and_ipv6_arrive),
		PAIR_TEST(who_asks_first_hears_first),
		PAIR_TEST(who_asked_may_go_before_the_answer),
		PAIR_TEST(bytes_outlive_pipes),
		PAIR_TEST(all_sessions_keep_so_much_together),
		PAIR_TEST(what_others_keep_slows_but_does_not_stop),
		PAIR_TEST(room_that_others_make_is_used),
		PAIR_TEST(a_session_outlives_all_of_its_pipes),
		PAIR_TEST_NEW(pipes_that_are_over_are_one_line),
		PAIR_TEST_NEW(who_waits_too_long_for_a_pipe_has_ended),
		PAIR_TEST(goodbye_ends_both_ends_at_once),
		PAIR_TEST(traffic_that_is_over_leaves_no_buffers_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
