/* SPDX-License-Identifier: MIT */
/* Pipes that look dead: passed over, given up, and one dialled again for all of them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/sock.h"
#include "mux/sched/sched.h"
#include "ext_pair.h"
#include "halted.h"
#include "loopback.h"

enum { HOPS = 16, TRANSIT = 65536 };

struct hop {			/* in the middle of a pipe: */
	int fd[2];		/* LP's side and RP's */
	bool dark;		/* it carries nothing, and says nothing of it */
};

static struct network {
	struct hop hop[HOPS];
	int hops;
	size_t written, read;	/* by the client, by the server */
	int lost;		/* the pipe that lose_one() chose */
} net;

static void add_hop(struct pair *pair, int fd[2])
{
	struct hop *h = &net.hop[net.hops++];
	int lp[2], rp[2];

	(void)pair;
	assert_true(net.hops <= HOPS);
	tcp_pair(lp);
	tcp_pair(rp);
	sock_nodelay(lp[1]);
	sock_nodelay(rp[1]);
	fd[0] = rp[0];
	fd[1] = lp[0];
	*h = (struct hop){ .fd = { lp[1], rp[1] } };
}

/* What one side closed is closed at the other; for it nothing is carried any more. */
static void carry(struct hop *h, int side)
{
	static uint8_t buf[TRANSIT];
	long n = read_some(h->fd[side], buf, sizeof(buf));

	if (n > 0 && send(h->fd[!side], buf, (size_t)n, MSG_NOSIGNAL) == n)
		return;
	if (n != -EAGAIN)
		shutdown(h->fd[!side], SHUT_RDWR);
}

static void be_network(void)
{
	for (int i = 0; i < net.hops; i++) {
		if (net.hop[i].dark)
			continue;
		carry(&net.hop[i], 0);
		carry(&net.hop[i], 1);
	}
}

static void be_dark(bool dark)
{
	for (int i = 0; i < net.hops; i++)
		net.hop[i].dark = dark;
}

struct wait {
	struct pair *pair;
	bool (*is)(struct pair *pair);
};

static void drain(struct pair *pair)
{
	static uint8_t buf[1 << 18];
	long n;

	while ((n = read_some(pair->conn[0].server, buf, sizeof(buf))) > 0)
		net.read += (size_t)n;
}

/* The network, and who reads at the server. */
static void carry_on(struct pair *pair)
{
	be_network();
	if (pair->conn[0].server >= 0)
		drain(pair);
}

static bool it_is(void *arg)
{
	struct wait *w = arg;

	carry_on(w->pair);
	return w->is(w->pair);
}

static void until(struct pair *pair, const char *what,
		  bool (*is)(struct pair *pair))
{
	struct wait w = { pair, is };

	assert_true(run_until(pair->engine.loop, what, it_is, &w));
}

static int setup_new(void **state)
{
	struct pair *pair;

	pair_setup_new(state);
	pair = *state;
	net.hops = 0;
	net.read = net.written = 0;
	net.lost = 0;
	pair->connect = add_hop;
	pair->carry = carry_on;
	pair->settings.pipe_policy = &sched_rr;
	return 0;
}

static int setup(void **state)
{
	setup_new(state);
	pair_start(*state, PAIR_PIPES);
	return 0;
}

static int setup_paths(void **state)
{
	struct pair *pair;

	setup_new(state);
	pair = *state;
	pair_set_paths(pair);
	pair_start(pair, PAIR_PIPES);
	pair_settle(pair);
	pair->redials = false;
	return 0;
}

static int teardown(void **state)
{
	clock_go_on();
	be_dark(false);
	pair_teardown(state);
	for (int i = 0; i < net.hops; i++) {
		close(net.hop[i].fd[0]);
		close(net.hop[i].fd[1]);
	}
	return 0;
}

static bool answered(struct pair *pair)
{
	return pair->conn[0].answered;
}

static bool nothing_is_kept(struct pair *pair)
{
	return !pair->lp->ext->kept && !pair->rp->ext->kept;
}

static void begin(struct pair *pair)
{
	pair_settle(pair);
	pair_open(pair, 0);
	until(pair, "SYNACK", answered);
	until(pair, "rest", nothing_is_kept);
}

/* As much as several pipes take, so that no other one is free. */
static void say_much(struct pair *pair)
{
	static const uint8_t bytes[1 << 18];

	ssize_t n = send(pair->conn[0].client, bytes, sizeof(bytes),
			 MSG_NOSIGNAL);

	assert_true(n > 0);
	net.written += (size_t)n;
}

static bool one_is_lacking(struct pair *pair)
{
	return session_lacks(pair->lp) == 1;
}

static bool two_are_lacking(struct pair *pair)
{
	return session_lacks(pair->lp) == 2;
}

/* All are dark for so long that one is given up, and then they go on. */
static void stall_once(struct pair *pair)
{
	be_dark(true);
	say_much(pair);
	until(pair, "one to be given up", one_is_lacking);
	be_dark(false);
	until(pair, "rest", nothing_is_kept);
}

static unsigned int dialled_again(const struct pair *pair)
{
	unsigned int n = 0;

	for (int i = 0; i < PAIR_PIPES; i++)
		n += pair->lp->ext->leg[i].incarnation;
	return n;
}

static void one_is_dialled_for_all(void **state)
{
	struct pair *pair = *state;

	begin(pair);
	be_dark(true);
	say_much(pair);
	until(pair, "one to be given up", one_is_lacking);
	pair->redials = true;
	pair_dial(pair);	/* along a way that works */
	pair_settle(pair);
	assert_in_range(dialled_again(pair), 2, PAIR_PIPES);
	until(pair, "rest", nothing_is_kept);
}

/* It was dialled and never welcomed. */
static void who_goes_on_ends_a_probe(void **state)
{
	struct pair *pair = *state;
	int64_t began;

	begin(pair);
	stall_once(pair);
	be_dark(true);
	say_much(pair);
	began = loop_clock();
	until(pair, "another to be given up", two_are_lacking);
	/* That is sooner than by its own silence. */
	assert_in_range(loop_clock() - began, 1 * NS_PER_SEC, 4 * NS_PER_SEC);
}

static bool is_whole(struct pair *pair)
{
	return session_lacks(pair->lp) == 0 && pair_is_settled(pair);
}

static int64_t dark_until;

static bool it_was_dark(struct pair *pair)
{
	(void)pair;
	return loop_clock() > dark_until;
}

/* Pipes whose acknowledgements take long are not dead for that. */
static void a_probe_that_is_late_ends_nobody(void **state)
{
	struct pair *pair = *state;

	begin(pair);
	stall_once(pair);
	pair->lp->ext->way[0].ack_takes = 10 * NS_PER_SEC;
	be_dark(true);
	say_much(pair);
	dark_until = loop_clock() + 1200 * NS_PER_MS;
	until(pair, "1.2 s", it_was_dark);
	pair_dial(pair);
	until(pair, "all pipes", is_whole);
}

/* --- what takes so long and no longer: the clock stands but for the test --- */

enum { WORDS = 8 };

#define MS NS_PER_MS

static void come_and_go(struct pair *pair)
{
	for (int i = 0; i < 4; i++) {
		carry_on(pair);
		run_round(pair->engine.loop);
	}
}

static void live(struct pair *pair, int64_t ns)
{
	for (int64_t at = 0; at < ns; at += 10 * MS) {
		clock_pass(10 * MS);
		come_and_go(pair);
	}
}

/* Messages of a byte: each pipe that may take something has two of them, or more. */
static void say_words(struct pair *pair)
{
	for (int i = 0; i < WORDS; i++) {
		assert_int_equal(send(pair->conn[0].client, "?", 1,
				      MSG_NOSIGNAL), 1);
		net.written++;
		come_and_go(pair);
	}
}

/*
 * No copies of tails: they go by the acknowledgements of the kernel, whose clock is
 * another one.
 */
static void begin_halted(struct pair *pair)
{
	begin(pair);
	pair->lp->ext->copies = pair->rp->ext->copies = UINT32_MAX;
	clock_halt();
}

static struct leg *leg_of(struct pair *pair, int i)
{
	return &pair->lp->ext->leg[i];
}

/* Bytes that LP's pipe was given so far. */
static uint64_t given(struct pair *pair, int i)
{
	const struct pipe *p = pair->lp->pipes[i];

	assert_non_null(p);
	return p->tx_bytes + p->queued;
}

static uint64_t given_to_others(struct pair *pair)
{
	uint64_t n = 0;

	for (int i = 0; i < PAIR_PIPES; i++)
		n += i == net.lost ? 0 : given(pair, i);
	return n;
}

/* One pipe is dark: one that has some of what is on its way. */
static void lose_one(struct pair *pair)
{
	begin_halted(pair);
	be_dark(true);
	say_words(pair);
	for (net.lost = 0; !keeping_oldest(leg_of(pair, net.lost)); net.lost++)
		;
	be_dark(false);
	net.hop[net.lost].dark = true;
	live(pair, 380 * MS);
	assert_int_equal(leg_of(pair, net.lost)->suspect_since, 0);
	assert_true(net.read < net.written);
	/* Looked at every 50 ms. */
	live(pair, 90 * MS);
	assert_int_not_equal(leg_of(pair, net.lost)->suspect_since, 0);
	live(pair, 10 * MS);
	assert_int_equal(net.read, net.written);
}

static void a_suspect_pipe_gets_nothing_new_and_is_over_after_5_s(void **state)
{
	struct pair *pair = *state;
	uint64_t before, others;

	lose_one(pair);
	before = given(pair, net.lost);
	others = given_to_others(pair);
	for (int i = 0; i < 9; i++) {
		say_much(pair);
		live(pair, 500 * MS);
		assert_int_equal(given(pair, net.lost), before);
	}
	assert_int_equal(net.read, net.written);
	assert_true(given_to_others(pair) > others + 9 * (1 << 17));
	live(pair, 380 * MS);
	assert_int_equal(session_lacks(pair->lp), 0);
	pair->redials = true;
	live(pair, 150 * MS);
	assert_int_equal(leg_of(pair, net.lost)->incarnation, 1);
	assert_true(pair_is_settled(pair));
	/* Along a way that works. */
	say_much(pair);
	live(pair, 500 * MS);
	assert_true(given(pair, net.lost) >= WIRE_MESSAGE_MAX);
	assert_int_equal(net.read, net.written);
	assert_int_equal(dialled_again(pair), 1);
}

static void an_ack_clears_a_suspect_pipe(void **state)
{
	struct pair *pair = *state;
	uint64_t before;

	lose_one(pair);
	live(pair, 4000 * MS);
	assert_int_not_equal(leg_of(pair, net.lost)->suspect_since, 0);
	net.hop[net.lost].dark = false;
	live(pair, 200 * MS);
	assert_int_equal(leg_of(pair, net.lost)->suspect_since, 0);
	before = given(pair, net.lost);
	say_much(pair);
	live(pair, 300 * MS);
	assert_true(given(pair, net.lost) >= before + WIRE_MESSAGE_MAX);
	live(pair, 6000 * MS);
	assert_int_equal(session_lacks(pair->lp), 0);
	assert_int_equal(dialled_again(pair), 0);
	assert_int_equal(net.read, net.written);
}

/* Of a single message no other pipe could tell: one that is free is as good. */
static void a_single_message_does_not_wait_for_others(void **state)
{
	struct pair *pair = *state;

	begin_halted(pair);
	be_dark(true);
	assert_int_equal(send(pair->conn[0].client, "?", 1, MSG_NOSIGNAL), 1);
	come_and_go(pair);
	while (!keeping_oldest(leg_of(pair, net.lost)))
		net.lost++;
	be_dark(false);
	net.hop[net.lost].dark = true;
	live(pair, 380 * MS);
	assert_int_equal(net.read, 0);
	live(pair, 100 * MS);
	assert_int_equal(net.read, 1);
}

static void all_are_lost(struct pair *pair)
{
	begin_halted(pair);
	be_dark(true);
	say_much(pair);
	live(pair, 10 * MS);
}

static void one_is_given_up_after_a_second_without_progress(void **state)
{
	struct pair *pair = *state;

	all_are_lost(pair);
	live(pair, 970 * MS);
	assert_int_equal(session_lacks(pair->lp), 0);
	live(pair, 90 * MS);
	assert_int_equal(session_lacks(pair->lp), 1);
	/* And no other one before it is welcomed, or asked in vain. */
	live(pair, 3000 * MS);
	assert_int_equal(session_lacks(pair->lp), 1);
}

static void where_acknowledgements_take_long_that_second_is_longer(void **state)
{
	struct pair *pair = *state;

	all_are_lost(pair);
	pair->lp->ext->way[0].ack_takes = 500 * MS;
	live(pair, 1470 * MS);
	assert_int_equal(session_lacks(pair->lp), 0);
	live(pair, 90 * MS);
	assert_int_equal(session_lacks(pair->lp), 1);
}

/* As on a path by satellite; who would ask the kernel for its round trip does not. */
static void live_far(struct pair *pair, int64_t ns)
{
	struct session *s = pair->lp;

	loop_timer_stop(s->engine->loop, &s->survey.losses_timer);
	loop_timer_stop(s->engine->loop, &s->ext->tails_timer);
	for (int64_t at = 0; at < ns; at += 10 * MS) {
		for (int i = 0; i < PAIR_PIPES; i++) {
			s->pipes[i]->info.rtt_ms = 600;
			s->pipes[i]->looked_at = loop_clock();
		}
		live(pair, 10 * MS);
	}
}

/* Each would go again before its acknowledgement can be there, and none would ever be timed. */
static void nobody_is_suspect_before_three_round_trips(void **state)
{
	struct pair *pair = *state;

	begin_halted(pair);
	be_dark(true);
	say_words(pair);
	live_far(pair, 1700 * MS);
	for (int i = 0; i < PAIR_PIPES; i++)
		assert_int_equal(leg_of(pair, i)->suspect_since, 0);
	assert_int_equal(pair->lp->counts.again, 0);
	be_dark(false);
	live(pair, 100 * MS);
	assert_int_equal(net.read, net.written);
}

/* --- PING --- */

static void ask_in_vain(struct pair *pair)
{
	begin_halted(pair);
	live(pair, 200 * MS);
	be_dark(true);
	control_ask(pair->lp, pair->lp->pipes[0]);
	live(pair, 20 * MS);
	assert_true(leg_of(pair, 0)->pinged);
}

/* What the other end sent before it read the PING comes first. Only the PONG tells of a PING. */
static void a_pong_counts_behind_bytes_that_came_after_the_ping(void **state)
{
	struct pair *pair = *state;
	int64_t then;

	ask_in_vain(pair);
	pair->lp->pipes[0]->heard_at = loop_clock();
	live(pair, 1100 * MS);
	then = leg_of(pair, 0)->progress_at;
	be_dark(false);
	live(pair, 50 * MS);
	assert_false(leg_of(pair, 0)->pinged);
	assert_true(leg_of(pair, 0)->progress_at > then);
}

static void a_ping_is_answered_within_5_s(void **state)
{
	struct pair *pair = *state;

	ask_in_vain(pair);
	live(pair, 4900 * MS);
	assert_int_equal(session_lacks(pair->lp), 0);
	live(pair, 1200 * MS);
	assert_int_equal(session_lacks(pair->lp), 1);
}

/* It stands behind what its pipe holds, as all do that wait for an acknowledgement. */
static void where_acknowledgements_take_long_a_ping_may_too(void **state)
{
	struct pair *pair = *state;

	ask_in_vain(pair);
	pair->lp->ext->way[0].ack_takes = 2500 * MS;
	live(pair, 7400 * MS);
	assert_int_equal(session_lacks(pair->lp), 0);
	live(pair, 1200 * MS);
	assert_int_equal(session_lacks(pair->lp), 1);
}

/* --- several paths --- */

static void say_word_on_a_dark_path(struct pair *pair)
{
	begin_halted(pair);
	be_dark(true);
	assert_int_equal(send(pair->conn[0].client, "?", 1, MSG_NOSIGNAL), 1);
	net.written++;
	come_and_go(pair);
	while (!keeping_oldest(leg_of(pair, net.lost)))
		net.lost++;
	be_dark(false);
	net.hop[net.lost].dark = net.hop[net.lost ^ 1].dark = true;
}

/* What goes again would wait on the other pipe of that path for as long once more. */
static void all_pipes_of_a_silent_path_are_suspect_at_once(void **state)
{
	struct pair *pair = *state;
	int other;

	say_word_on_a_dark_path(pair);
	other = net.lost ^ 1;
	live(pair, 200 * MS);
	say_words(pair);
	assert_int_not_equal(keeping_oldest(leg_of(pair, other)), 0);
	live(pair, 190 * MS);
	assert_int_equal(leg_of(pair, other)->suspect_since, 0);
	live(pair, 80 * MS);
	assert_int_not_equal(leg_of(pair, net.lost)->suspect_since, 0);
	assert_int_not_equal(leg_of(pair, other)->suspect_since, 0);
	assert_int_equal(leg_of(pair, net.lost ^ 2)->suspect_since, 0);
	assert_int_equal(leg_of(pair, other ^ 2)->suspect_since, 0);
	live(pair, 20 * MS);
	assert_int_equal(net.read, net.written);
}

/* It held nothing, so no ACK could tell that it is there. */
static void an_idle_pipe_of_a_silent_path_is_cleared_by_a_pong(void **state)
{
	struct pair *pair = *state;
	int other = (say_word_on_a_dark_path(pair), net.lost ^ 1);

	live(pair, 100 * MS);
	leg_of(pair, net.lost ^ 2)->progress_at = loop_clock();
	assert_int_equal(keeping_oldest(leg_of(pair, other)), 0);
	live(pair, 380 * MS);
	assert_int_not_equal(leg_of(pair, other)->suspect_since, 0);
	net.hop[net.lost].dark = net.hop[other].dark = false;
	live(pair, 200 * MS);
	assert_int_equal(leg_of(pair, other)->suspect_since, 0);
	assert_int_equal(leg_of(pair, net.lost)->suspect_since, 0);
	live(pair, 6000 * MS);
	assert_int_equal(dialled_again(pair), 0);
	assert_int_equal(net.read, net.written);
}

/* Where only one of two pipes of a path is silent, the other one is not. */
static void a_path_with_a_pipe_that_goes_on_is_not_silent(void **state)
{
	struct pair *pair = *state;

	say_word_on_a_dark_path(pair);
	net.hop[net.lost ^ 1].dark = false;
	live(pair, 100 * MS);
	say_words(pair);
	live(pair, 400 * MS);
	assert_int_not_equal(leg_of(pair, net.lost)->suspect_since, 0);
	assert_int_equal(leg_of(pair, net.lost ^ 1)->suspect_since, 0);
}

#define PATHS_TEST(f) cmocka_unit_test_setup_teardown(f, setup_paths, teardown)
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_is_dialled_for_all),
		TEST(who_goes_on_ends_a_probe),
		TEST(a_probe_that_is_late_ends_nobody),
		TEST(a_suspect_pipe_gets_nothing_new_and_is_over_after_5_s),
		TEST(an_ack_clears_a_suspect_pipe),
		TEST(a_single_message_does_not_wait_for_others),
		TEST(one_is_given_up_after_a_second_without_progress),
		TEST(where_acknowledgements_take_long_that_second_is_longer),
		TEST(nobody_is_suspect_before_three_round_trips),
		TEST(a_pong_counts_behind_bytes_that_came_after_the_ping),
		TEST(a_ping_is_answered_within_5_s),
		TEST(where_acknowledgements_take_long_a_ping_may_too),
		PATHS_TEST(all_pipes_of_a_silent_path_are_suspect_at_once),
		PATHS_TEST(an_idle_pipe_of_a_silent_path_is_cleared_by_a_pong),
		PATHS_TEST(a_path_with_a_pipe_that_goes_on_is_not_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
