/* SPDX-License-Identifier: MIT */
/* Pipes that look dead: passed over, given up, and one dialled again for all of them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "mux/pipe/carrier.h"
#include "mux/sched/sched.h"
#include "dark_net.h"
#include "halted.h"
#include "loopback.h"

enum { MUCH = 1 << 18, PATHS = 2 };

static void say_some(struct pair *pair, size_t len)
{
	static const uint8_t bytes[MUCH];
	ssize_t n = send(pair->conn[0].client, bytes, len, MSG_NOSIGNAL);

	assert_true(n > 0);
	net.written += (size_t)n;
}

/* As much as several pipes take, so that no other one is free. */
static void say_much(struct pair *pair)
{
	say_some(pair, MUCH);
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
	net_be_dark(true);
	say_much(pair);
	net_until(pair, "one to be given up", one_is_lacking);
	net_be_dark(false);
	net_until(pair, "rest", net_nothing_is_kept);
}

static void one_is_dialled_for_all(void **state)
{
	struct pair *pair = *state;

	net_begin(pair);
	net_be_dark(true);
	say_much(pair);
	net_until(pair, "one to be given up", one_is_lacking);
	pair->redials = true;
	pair_dial(pair);	/* along a way that works */
	pair_settle(pair);
	assert_in_range(net_dialled_again(pair), 2, PAIR_PIPES);
	net_until(pair, "rest", net_nothing_is_kept);
}

/* It was dialled and never welcomed. */
static void who_goes_on_ends_a_probe(void **state)
{
	struct pair *pair = *state;
	int64_t began;

	net_begin(pair);
	stall_once(pair);
	/* Of which the longer a busy machine made it, the longer would be waited now. */
	pair->lp->ext->way[0].ack_takes = 0;
	net_be_dark(true);
	say_much(pair);
	began = loop_clock();
	net_until(pair, "another to be given up", two_are_lacking);
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

	net_begin(pair);
	stall_once(pair);
	pair->lp->ext->way[0].ack_takes = 10 * NS_PER_SEC;
	net_be_dark(true);
	say_much(pair);
	dark_until = loop_clock() + 1200 * NS_PER_MS;
	net_until(pair, "1.2 s", it_was_dark);
	pair_dial(pair);
	net_until(pair, "all pipes", is_whole);
}

/* --- what takes so long and no longer: the clock stands but for the test --- */

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

/* When it is its turn: one may take all of what there is. */
static void assert_takes_more(struct pair *pair, uint64_t than)
{
	for (int i = 0; i < 4 * PAIR_PIPES; i++) {
		say_much(pair);
		net_live(pair, 100 * MS);
		if (given(pair, net.lost) >= than + WIRE_MESSAGE_MAX)
			return;
	}
	fail_msg("it was given nothing");
}

/* One pipe is dark: one that has some of what is on its way. */
static void lose_one(struct pair *pair)
{
	net_begin_halted(pair);
	net_be_dark(true);
	net_say_words(pair);
	for (net.lost = 0; !keeping_oldest(net_leg(pair, net.lost)); net.lost++)
		;
	net_be_dark(false);
	net.hop[net.lost].dark = true;
	net_live(pair, 380 * MS);
	assert_int_equal(net_leg(pair, net.lost)->suspect_since, 0);
	assert_true(net.read < net.written);
	/* Looked at every 50 ms. */
	net_live(pair, 90 * MS);
	assert_int_not_equal(net_leg(pair, net.lost)->suspect_since, 0);
	net_live(pair, 10 * MS);
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
		net_live(pair, 500 * MS);
		assert_int_equal(given(pair, net.lost), before);
	}
	assert_int_equal(net.read, net.written);
	assert_true(given_to_others(pair) > others + 9 * (1 << 17));
	net_live(pair, 380 * MS);
	assert_int_equal(session_lacks(pair->lp), 0);
	pair->redials = true;
	net_live(pair, 150 * MS);
	assert_int_equal(pair_redialled(pair, (unsigned int)net.lost), 1);
	assert_true(pair_is_settled(pair));
	/* Along a way that works. */
	assert_takes_more(pair, 0);
	net_live(pair, 500 * MS);
	assert_int_equal(net.read, net.written);
	assert_int_equal(net_dialled_again(pair), 1);
}

static void an_ack_clears_a_suspect_pipe(void **state)
{
	struct pair *pair = *state;
	uint64_t before;

	lose_one(pair);
	net_live(pair, 4000 * MS);
	assert_int_not_equal(net_leg(pair, net.lost)->suspect_since, 0);
	net.hop[net.lost].dark = false;
	net_live(pair, 200 * MS);
	assert_int_equal(net_leg(pair, net.lost)->suspect_since, 0);
	before = given(pair, net.lost);
	assert_takes_more(pair, before);
	net_live(pair, 6000 * MS);
	assert_int_equal(session_lacks(pair->lp), 0);
	assert_int_equal(net_dialled_again(pair), 0);
	assert_int_equal(net.read, net.written);
}

/* What the pipe that was lost has carried as yet, from LP to RP: from @from to @to of it. */
static void arrives(const uint8_t *from, const uint8_t *to)
{
	assert_int_equal(send(net.hop[net.lost].fd[1], from, (size_t)(to - from),
			      MSG_NOSIGNAL), to - from);
}

/*
 * Of messages that came before a pipe died RP may tell late, by way of another pipe. Once
 * that gave the dead one new messages, and they waited until it was suspect again.
 */
static void an_ack_of_a_part_does_not_clear_it(void **state)
{
	struct pair *pair = *state;
	const struct leg *leg;
	uint8_t buf[4096];
	uint64_t before;
	long n;

	lose_one(pair);
	leg = net_leg(pair, net.lost);
	before = given(pair, net.lost);
	n = read_some(net.hop[net.lost].fd[0], buf, sizeof(buf));
	assert_true(n > 0);
	arrives(buf, buf + n / 2);
	net_live(pair, 300 * MS);
	/* As where it acknowledges by way of another path. */
	pair->rp->ext->ack_all = true;
	for (int i = 0; i < 9; i++) {
		say_much(pair);
		net_live(pair, 500 * MS);
		assert_int_equal(given(pair, net.lost), before);
	}
	assert_int_not_equal(leg->suspect_since, 0);
	assert_true(leg->progress_at > leg->suspect_since);
	assert_int_equal(session_lacks(pair->lp), 0);
	arrives(buf + n / 2, buf + n);
	net.hop[net.lost].dark = false;
	net_live(pair, 200 * MS);
	assert_int_equal(leg->suspect_since, 0);
	assert_int_equal(net_dialled_again(pair), 0);
	assert_int_equal(net.read, net.written);
}

static size_t under_way;

static void hear_of(struct pipe *p)
{
	p->info.in_flight = under_way;
	p->info.unsent = p->info.astray = 0;
}

/*
 * It lives, though RP has parsed nothing of it yet: until TCP has repaired all that was lost, and an
 * ACK told of it, the pipe would stand idle.
 */
static void what_its_kernel_hears_of_clears_it(void **state)
{
	static struct carrier carrier;	/* which the pipe has until its end */
	struct pair *pair = *state;
	uint64_t before;

	carrier = *pair->lp->pipes[0]->carrier;
	carrier.look = carrier.look_at_queues = hear_of;
	net_begin_halted(pair);
	net_say_words(pair);
	net_live(pair, 200 * MS);
	net.hop[0].dark = true;
	net_say_words(pair);
	under_way = 2;
	pair->lp->pipes[0]->carrier = &carrier;
	net_live(pair, 480 * MS);
	assert_int_not_equal(net_leg(pair, 0)->suspect_since, 0);
	before = given(pair, 0);
	say_much(pair);
	net_live(pair, 1000 * MS);
	assert_int_not_equal(net_leg(pair, 0)->suspect_since, 0);
	assert_int_equal(given(pair, 0), before);
	under_way = 1;
	net_live(pair, 60 * MS);
	assert_int_equal(net_leg(pair, 0)->suspect_since, 0);
	under_way = 0;
	net.hop[0].dark = false;
	assert_takes_more(pair, before);
	net_live(pair, 500 * MS);
	assert_int_equal(net.read, net.written);
	assert_int_equal(net_dialled_again(pair), 0);
}

/* Of a single message no other pipe could tell: one that is free is as good. */
static void a_single_message_does_not_wait_for_others(void **state)
{
	struct pair *pair = *state;

	net_begin_halted(pair);
	net_be_dark(true);
	assert_int_equal(send(pair->conn[0].client, "?", 1, MSG_NOSIGNAL), 1);
	net_come_and_go(pair);
	while (!keeping_oldest(net_leg(pair, net.lost)))
		net.lost++;
	net_be_dark(false);
	net.hop[net.lost].dark = true;
	net_live(pair, 380 * MS);
	assert_int_equal(net.read, 0);
	net_live(pair, 100 * MS);
	assert_int_equal(net.read, 1);
}

static void all_are_lost(struct pair *pair)
{
	net_begin_halted(pair);
	net_be_dark(true);
	say_much(pair);
	net_live(pair, 10 * MS);
}

static void one_is_given_up_after_a_second_without_progress(void **state)
{
	struct pair *pair = *state;

	all_are_lost(pair);
	net_live(pair, 970 * MS);
	assert_int_equal(session_lacks(pair->lp), 0);
	net_live(pair, 90 * MS);
	assert_int_equal(session_lacks(pair->lp), 1);
	/* And no other one before it is welcomed, or asked in vain. */
	net_live(pair, 3000 * MS);
	assert_int_equal(session_lacks(pair->lp), 1);
}

/* What they were asked they do not answer: that takes 5 s, not the 20 of a pipe at rest. */
static void who_holds_nothing_is_asked_when_the_probe_is_welcome(void **state)
{
	struct pair *pair = *state;

	net_begin_halted(pair);
	net_be_dark(true);
	assert_int_equal(send(pair->conn[0].client, "?", 1, MSG_NOSIGNAL), 1);
	pair->redials = true;
	net_live(pair, 2500 * MS);
	assert_in_range(net_dialled_again(pair), 1, 2);
	assert_int_equal(net.read, 1);
	net_live(pair, 6000 * MS);
	assert_int_equal(net_dialled_again(pair), PAIR_PIPES);
	assert_int_equal(session_lacks(pair->lp), 0);
}

static int takes_nothing(struct pipe *p, struct run *run)
{
	(void)p, (void)run;
	return -EAGAIN;
}

/* LP's kernel is there, and LP hangs: no PING can go, and nobody else could tell. */
static void who_cannot_even_be_asked_has_ended(void **state)
{
	struct pair *pair = *state;
	struct carrier carrier = *pair->rp->pipes[0]->carrier;
	const struct wire_ext what = { .type = WIRE_PONG };

	carrier.write = takes_nothing;
	net_begin_halted(pair);
	net_be_dark(true);
	for (int i = 0; i < PAIR_PIPES; i++) {
		pair->rp->pipes[i]->carrier = &carrier;
		assert_true(control_say(pair->rp, pair->rp->pipes[i], &what));
	}
	net_live(pair, 19 * NS_PER_SEC);
	assert_int_equal(pair->rp->paths.npipes, PAIR_PIPES);
	net_live(pair, 3 * NS_PER_SEC);
	assert_int_equal(pair->rp->paths.npipes, 0);
	clock_go_on();
	while (session_lacks(pair->lp))
		pair_dial(pair);
	pair_settle(pair);
}

static void where_acknowledgements_take_long_that_second_is_longer(void **state)
{
	struct pair *pair = *state;

	all_are_lost(pair);
	pair->lp->ext->way[0].ack_takes = 500 * MS;
	net_live(pair, 1470 * MS);
	assert_int_equal(session_lacks(pair->lp), 0);
	net_live(pair, 90 * MS);
	assert_int_equal(session_lacks(pair->lp), 1);
}

/* As on a path by satellite; who would ask the kernel for its round trip does not. */
static void live_far(struct pair *pair, int64_t ns)
{
	struct session *s = pair->lp;

	loop_timer_stop(s->engine->loop, &s->losses_timer);
	loop_timer_stop(s->engine->loop, &s->ext->tails_timer);
	net.rtt_ms = 600;
	net_live(pair, ns);
}

/* Each would go again before its acknowledgement can be there, and none would ever be timed. */
static void nobody_is_suspect_before_three_round_trips(void **state)
{
	struct pair *pair = *state;

	net_begin_halted(pair);
	net_be_dark(true);
	net_say_words(pair);
	live_far(pair, 1700 * MS);
	for (int i = 0; i < PAIR_PIPES; i++)
		assert_int_equal(net_leg(pair, i)->suspect_since, 0);
	assert_int_equal(pair->lp->counts.again, 0);
	net_be_dark(false);
	net_live(pair, 100 * MS);
	assert_int_equal(net.read, net.written);
}

static void say(struct pair *pair)
{
	assert_int_equal(send(pair->conn[0].client, "?", 1, MSG_NOSIGNAL), 1);
	net.written++;
}

/* What it held came by the other path, so nothing is kept when it becomes suspect. */
static void one_that_holds_nothing_any_more_is_cleared(void **state)
{
	struct pair *pair = *state;

	net_begin_halted(pair);
	sched_set_paths(&pair->lp->sched, &path_copies, 0, 0);
	say(pair);
	net_live(pair, 2000 * MS);
	net.hop[0].dark = net.hop[1].dark = true;
	say(pair);
	net_live(pair, 700 * MS);
	assert_true(net_leg(pair, 0)->suspect_since);
	assert_int_equal(pair->lp->ext->kept, 0);
	net.hop[0].dark = net.hop[1].dark = false;
	net_live(pair, 1000 * MS);
	for (int i = 0; i < PAIR_PIPES; i++)
		assert_int_equal(net_leg(pair, i)->suspect_since, 0);
	pair_kill(pair, 2);
	pair_kill(pair, 3);
	net_live(pair, 200 * MS);
	say(pair);
	net_live(pair, 1000 * MS);
	assert_int_equal(net.read, net.written);
}

/* --- acknowledgements, where a path is silent --- */

/* Since the oldest message was sent that LP's pipe keeps. */
static int64_t waits_for_ack(struct pair *pair, int i)
{
	int64_t oldest = keeping_oldest(net_leg(pair, i));

	return oldest ? loop_clock() - oldest : 0;
}

/* For RP, whose ACKs go there. */
static void first_path_is_nearer(struct pair *pair)
{
	for (int i = 0; i < PAIR_PIPES; i++)
		pair->rp->pipes[i]->info.rttmin_ms = i < 2 ? 1 : 20;
}

/*
 * At most one ACK is lost where a path that brought messages is silent from now on. Were there more,
 * LP would take the pipes of the other path for dead, and send again all that they hold.
 */
static void acks_leave_a_path_that_has_become_silent(void **state)
{
	struct pair *pair = *state;
	int64_t longest = 0;

	net_begin_halted(pair);
	sched_set_paths(&pair->lp->sched, &path_rr, 0, 0);
	for (int ms = 0; ms < 600; ms += 10) {
		if (ms == 240)
			net.hop[0].dark = net.hop[1].dark = true;
		first_path_is_nearer(pair);
		for (int i = 0; i < PATHS; i++) {	/* something on each */
			say_some(pair, WIRE_MESSAGE_MAX);
			net_come_and_go(pair);
		}
		net_live(pair, 10 * MS);
		for (int i = 2; i < PAIR_PIPES; i++)
			if (waits_for_ack(pair, i) > longest)
				longest = waits_for_ack(pair, i);
	}
	assert_in_range(longest, 1, 245 * MS);	/* two delays, by steps of 10 ms */
	net.hop[0].dark = net.hop[1].dark = false;
	net_live(pair, 1000 * MS);
	assert_int_equal(net.read, net.written);
}

static void look_full(struct pipe *p)
{
	p->info.unsent = 1 << 20;
}

/* It waited until another pipe takes it, and meanwhile its own delivered it. */
static void what_arrived_after_all_goes_no_more(void **state)
{
	struct pair *pair = *state;
	const struct carrier *real = pair->lp->pipes[0]->carrier;
	struct carrier full = *real;
	const struct extended *x;

	full.look = full.look_at_queues = look_full;
	net_begin_halted(pair);
	x = pair->lp->ext;
	net_be_dark(true);
	net_say_words(pair);
	for (net.lost = 0; !keeping_oldest(net_leg(pair, net.lost)); net.lost++)
		;
	for (int i = 0; i < PAIR_PIPES; i++)
		if (i != net.lost) {
			pair->lp->pipes[i]->carrier = &full;
			look_full(pair->lp->pipes[i]);
		}
	suspects_off(pair->lp, pair->lp->pipes[net.lost]->path);
	net_live(pair, 10 * MS);
	assert_true(keeping_has_again(x));
	net_be_dark(false);
	net_live(pair, 200 * MS);
	assert_false(keeping_has_again(x));
	for (int i = 0; i < PAIR_PIPES; i++)
		pair->lp->pipes[i]->carrier = real;
	net_live(pair, 500 * MS);
	assert_int_equal(pair->lp->counts.again, 0);
	assert_int_equal(x->kept, 0);
	assert_int_equal(net.read, net.written);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		NET_TEST(one_is_dialled_for_all),
		NET_TEST(who_goes_on_ends_a_probe),
		NET_TEST(a_probe_that_is_late_ends_nobody),
		NET_TEST(a_suspect_pipe_gets_nothing_new_and_is_over_after_5_s),
		NET_TEST(an_ack_clears_a_suspect_pipe),
		NET_TEST(an_ack_of_a_part_does_not_clear_it),
		NET_TEST(what_its_kernel_hears_of_clears_it),
		NET_TEST(a_single_message_does_not_wait_for_others),
		NET_TEST(one_is_given_up_after_a_second_without_progress),
		NET_TEST(who_holds_nothing_is_asked_when_the_probe_is_welcome),
		NET_TEST(who_cannot_even_be_asked_has_ended),
		NET_TEST(where_acknowledgements_take_long_that_second_is_longer),
		NET_TEST(nobody_is_suspect_before_three_round_trips),
		NET_PATHS_TEST(one_that_holds_nothing_any_more_is_cleared),
		NET_PATHS_TEST(acks_leave_a_path_that_has_become_silent),
		NET_PATHS_TEST(what_arrived_after_all_goes_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
