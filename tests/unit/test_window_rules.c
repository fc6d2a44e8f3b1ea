/* SPDX-License-Identifier: MIT */
/*
 * The rules of the memory for windows, each by itself: who is reset when it is out,
 * who is not, and what is set aside for whom.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/conn/conn.h"
#include "ext_hand.h"
#include "ext_pair.h"
#include "flow.h"
#include "halted.h"
#include "loopback.h"

/* --- who is reset when the memory is out --- */

static struct channel *channel_of(struct pair *pair, int i)
{
	return pair->lp->ext->channel[i + 1];
}

struct unread {
	struct flow f;
	struct conn *c;
};

static bool is_left_lying(void *arg)
{
	struct unread *u = arg;

	flow_push(&u->f);
	return conn_queued(u->c);
}

static uint64_t share_of(struct pair *pair, int i)
{
	struct channel *ch = channel_of(pair, i);

	return channel_promised(ch) + conn_queued(ch->conn);
}

/* Its round is not over before all that is sent was taken. */
static void never_doubled(struct channel *ch)
{
	ch->round_at += 60 * NS_PER_SEC;
	ch->round_from += FLOOD;
}

/* Connection @i has @window of the memory, and its application left some of it lying. */
static void hold(struct pair *pair, int i, uint64_t window)
{
	struct unread u = { .f.all = FLOOD };

	pair_connect(pair, i);
	u.c = channel_of(pair, i)->conn;
	u.f.from = pair->conn[i].server;
	small_buffers(pair->conn[i].client, u.c->watch.fd);
	channel_of(pair, i)->window = window;
	never_doubled(channel_of(pair, i));
	assert_true(run_until(pair->engine.loop, "what nobody reads",
			      is_left_lying, &u));
	assert_in_range(share_of(pair, i), window * 3 / 4, window);
}

static void wait_idle(struct pair *pair, int i, int seconds)
{
	struct conn *c = channel_of(pair, i)->conn;

	fill_socket(c->watch.fd);
	c->channel->taken_at = loop_clock() - seconds * NS_PER_SEC;
}

static bool looked(void *arg)
{
	struct pair *pair = arg;

	return pair->lp->ext->window_timer.at >
	       loop_now(pair->engine.loop) + NS_PER_SEC / 2;
}

static void look(struct pair *pair)
{
	struct timer *t = &pair->lp->ext->window_timer;

	loop_timer_in(pair->engine.loop, t, 0);
	assert_true(run_until(pair->engine.loop, "a look", looked, pair));
}

static bool is_there(struct pair *pair, int i)
{
	const struct channel *ch = channel_of(pair, i);

	return ch->conn && ch->conn->fin_pending != WIRE_REASON_RST;
}

/* All of it is out by now, but no more waits than may. */
static void run_out(struct pair *pair)
{
	pair->settings.window_memory = pair->lp->ext->promised +
				       pair->lp->in.queued;
}

/* All three are live: their servers would go on. @most holds most. */
static void the_one_that_holds_most_is_reset(struct pair *pair, int most)
{
	pair_begin(pair, PAIR_PIPES);
	for (int i = 0; i < 3; i++)
		hold(pair, i, (i == most ? 4 : 2) * WINDOW_FIRST);
	for (int i = 0; i < 3; i++)
		wait_idle(pair, i, WINDOW_IDLE_SECONDS);
	look(pair);
	assert_int_equal(pair->lp->counts.queue_limit, 0);
	run_out(pair);
	look(pair);
	assert_int_equal(pair->lp->counts.queue_limit, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(is_there(pair, i), i != most);
}

static void who_holds_most_is_reset_if_it_was_first(void **state)
{
	the_one_that_holds_most_is_reset(*state, 0);
}

static void who_holds_most_is_reset_wherever_it_is(void **state)
{
	the_one_that_holds_most_is_reset(*state, 1);
}

static void who_holds_most_is_reset_if_it_was_last(void **state)
{
	the_one_that_holds_most_is_reset(*state, 2);
}

static void who_took_something_lately_is_not_reset(void **state)
{
	struct pair *pair = *state;

	pair_begin(pair, PAIR_PIPES);
	hold(pair, 0, 4 * WINDOW_FIRST);
	hold(pair, 1, 2 * WINDOW_FIRST);
	wait_idle(pair, 0, WINDOW_IDLE_SECONDS - 5);
	wait_idle(pair, 1, WINDOW_IDLE_SECONDS);
	run_out(pair);
	look(pair);
	assert_true(is_there(pair, 0));
	assert_false(is_there(pair, 1));
}

/* Else who has no more than any new one would pay for those that have much. */
static void who_holds_what_all_begin_with_is_not_reset(void **state)
{
	struct pair *pair = *state;

	pair_begin(pair, PAIR_PIPES);
	hold(pair, 0, WINDOW_FIRST);
	wait_idle(pair, 0, WINDOW_IDLE_SECONDS);
	run_out(pair);
	look(pair);
	assert_true(is_there(pair, 0));
	assert_int_equal(pair->lp->counts.queue_limit, 0);
}

/* --- what is set aside --- */

static bool is_wide(void *arg)
{
	struct unread *u = arg;

	flows(&u->f);
	return channel_promised(u->c->channel) > 16 * WINDOW_LEAST;
}

static void an_eighth_is_left(struct pair *pair, size_t memory)
{
	struct unread reads = { .f.all = FLOOD };
	size_t begin = memory - memory / 8 - memory / 16;
	int n = 16, i;

	pair->settings.window_memory = memory;
	pair_begin(pair, PAIR_PIPES);
	for (i = 0; i < n; i++)
		pair_connect(pair, i);
	/* The rest is out: what is beyond is what any connection has. */
	assert_in_range(pair->lp->ext->promised, begin,
			begin + n * WINDOW_LEAST);
	assert_int_equal(channel_promised(channel_of(pair, n - 1)), WINDOW_LEAST);
	reads.c = channel_of(pair, n - 1)->conn;
	reads.f.from = pair->conn[n - 1].server;
	reads.f.to = pair->conn[n - 1].client;
	assert_true(run_until(pair->engine.loop, "a wide window", is_wide,
			      &reads));
	assert_true(pair->lp->ext->promised + pair->lp->in.queued <=
		    memory + n * WINDOW_LEAST);
}

static void an_eighth_is_for_those_who_read(void **state)
{
	an_eighth_is_left(*state, 2 << 20);
}

/* What all of them have in any case is an eighth by itself. */
static void however_many_others_there_are(void **state)
{
	an_eighth_is_left(*state, 512 << 10);
}

/* --- what a read brought --- */

enum { MESSAGE = 4096, IN_ORDER = 14, FIRST_DATA = 1 };

/* In one piece: bytes that are due, and behind a gap one message that is not. */
static void put_due_and_early(struct hand *h)
{
	static uint8_t bytes[(IN_ORDER + 1) * WIRE_MESSAGE_MAX];
	size_t at = 0;

	for (uint32_t i = 0; i <= IN_ORDER; i++)
		at += wire_put_data(bytes + at, ID,
				    FIRST_DATA + i + (i == IN_ORDER), MESSAGE) +
		      MESSAGE;
	hand_put(h, bytes, at);
}

/* The message behind the gap has more granted while the others are not offered to anybody yet. */
static void what_is_about_to_wait_is_memory_too(void **state)
{
	struct channel *ch;
	struct session *s;
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	h.settings.window_memory = 2 * WINDOW_FIRST;
	hand_open(&h, 0);
	hand_hears(&h, WIRE_SYNACK);
	s = h.s;
	ch = s->ext->channel[ID];
	fill_socket(ch->conn->watch.fd);
	ch->window = 16 * WINDOW_FIRST;
	put_due_and_early(&h);
	hand_hears(&h, WIRE_WINDOW);
	assert_int_equal(conn_queued(ch->conn), IN_ORDER * MESSAGE);
	/* An eighth is for those who read. */
	assert_int_equal(s->ext->promised + s->in.queued,
			 2 * WINDOW_FIRST - 2 * WINDOW_FIRST / 8);
	hand_end(&h);
}

/* --- what is granted before SYNACK --- */

enum { FIRST_ID = 1 };

/* The answer to the first OPEN, and a message that overtook it, in one piece. */
static void answer_behind_data(struct hand *h, size_t len)
{
	struct wire_ext synack = {
		.type = WIRE_SYNACK, .number = 0,
		.synack = { .id = FIRST_ID, .offset = WINDOW_FIRST },
	};
	uint8_t bytes[2 * WIRE_MESSAGE_MAX] = { 0 };
	size_t at = wire_put_data(bytes, FIRST_ID, 1, len) + len;

	at += wire_ext_put(bytes + at, &synack);
	hand_put(h, bytes, at);
}

/* The memory was out when it opened, and is there again. RP has sent all that it may. */
static void what_is_granted_before_synack_is_told(void **state)
{
	struct destination to = destination_ipv4((uint8_t[]){ 192, 0, 2, 1 }, 80);
	struct hand h;
	struct want w;
	int fd[2];

	(void)state;
	app_pair(fd);
	hand_begin(&h, true);
	h.settings.window_memory = WINDOW_LEAST;
	assert_int_equal(session_open(h.s, fd[1], &to, NULL), 0);
	w = hand_hears(&h, WIRE_OPEN);
	assert_int_equal(w.ext.open.window, WINDOW_LEAST);
	h.settings.window_memory = WINDOW_MEMORY;
	answer_behind_data(&h, WINDOW_LEAST);
	w = hand_hears(&h, WIRE_WINDOW);
	assert_int_equal(w.ext.window.id, FIRST_ID);
	assert_true(w.ext.window.offset > WINDOW_LEAST);
	close(fd[0]);
	hand_end(&h);
}

#define PAIR_TEST(f) \
	cmocka_unit_test_setup_teardown(f, pair_setup_new, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR_TEST(who_holds_most_is_reset_if_it_was_first),
		PAIR_TEST(who_holds_most_is_reset_wherever_it_is),
		PAIR_TEST(who_holds_most_is_reset_if_it_was_last),
		PAIR_TEST(who_took_something_lately_is_not_reset),
		PAIR_TEST(who_holds_what_all_begin_with_is_not_reset),
		PAIR_TEST(an_eighth_is_for_those_who_read),
		PAIR_TEST(however_many_others_there_are),
		cmocka_unit_test(what_is_about_to_wait_is_memory_too),
		cmocka_unit_test(what_is_granted_before_synack_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
