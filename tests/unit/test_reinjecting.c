/* SPDX-License-Identifier: MIT */
/*
 * Two engines, of which RP has --reinject and a pipe that loses all that it is given: what comes of it by
 * another pipe, and when.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "ext_pair.h"
#include "ext_write.h"
#include "loopback.h"
#include "mux/extension/reinject.h"

enum { SEGMENT = 1448, SOME = 5000 };

static struct {
	const struct carrier *real;
	struct carrier hole, patient;
	size_t lost;
	double unheard_ms;	/* of the pipe that loses, */
	double patience_ms;	/* as well, */
	double others_unheard_ms;	/* and of the others, */
	size_t others_unsent;
	bool timed_out;
} here;

static uint8_t bytes[SOME];

static void look_at_hole(struct pipe *p)
{
	p->info = (struct pipe_info){
		.rtt_ms = 2, .rttmin_ms = 2, .patience_ms = here.patience_ms,
		.unheard_ms = here.unheard_ms, .timed_out = here.timed_out,
		.rate = 1e8, .cwnd = 1000, .mss = SEGMENT, .in_flight = here.lost,
	};
}

static int write_to_hole(struct pipe *p, struct run *run)
{
	size_t n = run->len - run->sent;

	here.lost += n;
	pipe_wrote(p, run, n);
	p->tx_bytes += n;
	return 0;
}

/* Nothing is late on the others, however busy the machine. */
static void look_patiently(struct pipe *p)
{
	here.real->look(p);
	p->info.patience_ms = 0;
	p->info.unheard_ms = here.others_unheard_ms;
	p->info.unsent += here.others_unsent;
}

static void look_at_full_queues(struct pipe *p)
{
	here.real->look_at_queues(p);
	p->info.unsent += here.others_unsent;
}

static void be_patient(struct session *s)
{
	for (unsigned int i = 0; i < s->npipes; i++)
		s->pipes[i]->carrier = &here.patient;
}

/* What RP writes goes to pipe 0 alone, as long as @only. */
static void use_only_the_first(struct pair *pair, bool only)
{
	for (unsigned int i = 1; i < pair->pipes; i++)
		pair->rp->pipes[i]->standby = only;
	loop_after(pair->engine.loop, &pair->rp->out.pump);
}

static bool all_acknowledged(void *arg)
{
	const struct pair *pair = arg;

	return !pair->rp->ext->kept && !pair->lp->ext->kept;
}

static int set_up_over(void **state, bool paths)
{
	struct pair *pair;

	pair_setup_new(state);
	pair = *state;
	if (paths)
		pair_set_paths(pair);
	pair->settings.thin = THIN_OFF;
	pair->settings.reinject = REINJECT_TIMELY;
	pair_begin(pair, PAIR_PIPES);
	here.real = pair->rp->pipes[0]->carrier;
	here.patient = here.hole = *here.real;
	here.patient.look = look_patiently;
	here.patient.look_at_queues = look_at_full_queues;
	here.hole.look = here.hole.look_at_queues = look_at_hole;
	here.hole.write = write_to_hole;
	here.lost = 0;
	here.unheard_ms = here.others_unheard_ms = 100;
	here.patience_ms = 4;
	here.others_unsent = 0;
	here.timed_out = false;
	be_patient(pair->rp);
	be_patient(pair->lp);
	for (size_t i = 0; i < SOME; i++)
		bytes[i] = (uint8_t)(i * 31 + i / 251);
	pair_connect(pair, 0);
	/* No pipe is suspect, on whatever machine. */
	for (int i = 0; i < PATHS_MAX; i++)
		pair->rp->ext->way[i].ack_takes = pair->lp->ext->way[i].ack_takes = 100 * NS_PER_SEC;
	assert_true(run_until(pair->engine.loop, "ACKs", all_acknowledged, pair));
	return 0;
}

static int set_up(void **state)
{
	return set_up_over(state, false);
}

static int set_up_paths(void **state)
{
	return set_up_over(state, true);
}

/* RP gave so much to pipe 0, and none of it arrives. */
static void lose(struct pair *pair, size_t len)
{
	struct pipe *p = pair->rp->pipes[0];

	p->carrier = &here.hole;
	pipe_look_closely(p, loop_now(pair->engine.loop));
	use_only_the_first(pair, true);
	pair_send(pair, bytes, len);
	use_only_the_first(pair, false);
}

/*
 * And no other pipe takes any of it again. The pipe is heard of until they are full: on a late
 * machine something would be overdue before.
 */
static void lose_while_others_are_full(struct pair *pair, size_t len)
{
	double unheard_ms = here.unheard_ms;

	here.unheard_ms = 0;
	lose(pair, len);
	here.unheard_ms = unheard_ms;
	here.others_unsent = 1 << 20;
	for (unsigned int i = 0; i < pair->pipes; i++)
		pipe_look_closely(pair->rp->pipes[i],
				  loop_now(pair->engine.loop));
}

static void arrives(struct pair *pair, size_t len)
{
	pair_expect(pair, pair->conn[0].client, bytes, len);
}

static void timely_sends_what_a_silent_pipe_holds_on_another(void **state)
{
	struct pair *pair = *state;
	const struct stats_counts *counts;

	lose(pair, SOME);
	arrives(pair, SOME);
	counts = &pair->rp->counts;
	assert_true(counts->reinjected > 0);
	assert_in_range(counts->reinjected_bytes, SOME, here.lost);
	assert_int_equal(counts->copies, 0);
	assert_int_equal(counts->again, 0);
	assert_int_equal(pair->lp->counts.reinjected, 0);
	/* It gets nothing new before something of it is acknowledged. */
	assert_true(pair->rp->pipes[0]->doubtful);
}

/* The other pipe of its path is silent as well, though nothing of it is overdue. */
static void what_a_silent_path_holds_goes_on_another_path(void **state)
{
	struct pair *pair = *state;
	const struct path *path = pair->rp->paths.path;

	lose(pair, SOME);
	arrives(pair, SOME);
	assert_int_equal(path[0].reinjected, 0);
	assert_true(path[1].reinjected >= SOME);
}

/* Its path is alive, and no other one takes anything. */
static void what_a_single_pipe_lost_may_go_on_the_same_path(void **state)
{
	struct pair *pair = *state;
	const struct path *path = pair->rp->paths.path;

	here.others_unheard_ms = 0;
	lose(pair, SOME);
	arrives(pair, SOME);
	assert_true(path[0].reinjected >= SOME);
	assert_int_equal(path[1].reinjected, 0);
}

static bool has_looked(void *arg)
{
	return loop_now(((struct pair *)arg)->engine.loop) >= *(int64_t *)
	       ((struct pair *)arg)->network;
}

static void wait_ms(struct pair *pair, int ms)
{
	int64_t until = loop_now(pair->engine.loop) + ms * NS_PER_MS;
	void *network = pair->network;

	pair->network = &until;
	assert_true(run_until(pair->engine.loop, "a while", has_looked, pair));
	pair->network = network;
}

static void who_is_heard_of_repairs_it_itself(void **state)
{
	struct pair *pair = *state;

	here.unheard_ms = 0;
	lose(pair, SOME);
	wait_ms(pair, 100);
	assert_int_equal(pair->rp->counts.reinjected, 0);
	here.unheard_ms = 100;
	arrives(pair, SOME);
	assert_true(pair->rp->counts.reinjected > 0);
}

/*
 * Its first acknowledgement behind a silence tells how long that was, and the kernel takes it for a
 * round trip. Others were full meanwhile.
 */
static void a_silence_makes_nobody_more_patient(void **state)
{
	struct pair *pair = *state;

	lose_while_others_are_full(pair, SOME);
	wait_ms(pair, 100);
	assert_true(pair->rp->pipes[0]->doubtful);
	assert_int_equal(pair->rp->counts.reinjected, 0);
	here.patience_ms = 100000;
	here.unheard_ms = 0;
	wait_ms(pair, 50);
	here.unheard_ms = 100;
	here.others_unsent = 0;
	arrives(pair, SOME);
	assert_true(pair->rp->counts.reinjected > 0);
}

/* Its TCP repairs what was lost by windows that begin with a segment. */
static void what_met_a_silence_goes_though_the_pipe_is_heard_of(void **state)
{
	struct pair *pair = *state;

	lose_while_others_are_full(pair, SOME);
	wait_ms(pair, 100);
	assert_true(pair->rp->pipes[0]->doubtful);
	here.unheard_ms = 0;
	wait_ms(pair, 50);
	assert_int_equal(pair->rp->counts.reinjected, 0);
	here.others_unsent = 0;
	arrives(pair, SOME);
	assert_true(pair->rp->counts.reinjected > 0);
}

/* What arrives behind a gap shows TCP the gap. Each PING may be lost as well. */
static void who_is_silent_is_asked_until_all_of_it_arrived(void **state)
{
	struct pair *pair = *state;
	const struct leg *leg = &pair->rp->ext->leg[0];
	uint64_t asked = leg->token;

	lose(pair, SOME);
	wait_ms(pair, 300);
	assert_in_range(leg->token - asked, 2, 6);
	here.lost = 0;
	wait_ms(pair, 100);
	asked = leg->token;
	wait_ms(pair, 200);
	assert_int_equal(leg->token, asked);
	for (unsigned int i = 1; i < pair->pipes; i++)
		assert_int_equal(pair->rp->ext->leg[i].token, 0);
}

static void what_went_once_goes_no_third_time(void **state)
{
	struct pair *pair = *state;
	uint64_t messages;

	lose(pair, SOME);
	arrives(pair, SOME);
	messages = pair->rp->counts.reinjected;
	wait_ms(pair, 100);
	assert_int_equal(pair->rp->counts.reinjected, messages);
	/* Its pipe ends: all of it is there by the other one. */
	pair->redials = true;
	pair_kill(pair, 0);
	pair_settle(pair);
	assert_true(run_until(pair->engine.loop, "ACKs", all_acknowledged, pair));
	assert_int_equal(pair->rp->counts.again, 0);
	assert_int_equal(pair->lp->counts.duplicates, 0);
}

/* They would send the same. */
static void tails_and_timely_share_the_work(void **state)
{
	struct pair *pair = *state;

	pair->settings.thin = THIN_COPY;
	lose(pair, SOME);
	arrives(pair, SOME);
	wait_ms(pair, 100);
	assert_int_equal(pair->lp->counts.duplicates, 0);
	assert_true(pair->rp->ext->copies + pair->rp->ext->reinjected <= here.lost);
}

static void what_costs_too_much_is_left_to_the_pipe(void **state)
{
	struct pair *pair = *state;
	const struct extended *x = pair->rp->ext;

	for (unsigned int i = 0; i < 20; i++)
		lose(pair, SOME);
	wait_ms(pair, 200);
	assert_true(x->reinjected > 0);
	assert_true(reinject_affords(x->sent, x->reinjected, 0));
	assert_true(x->reinjected < here.lost);
}

/* What is written to a far path first may wait for long; what a near one is given may not. */
static void the_soonest_look_counts(void **state)
{
	struct pair *pair = *state;
	struct session *s = pair->rp;
	struct timer *timer = &s->ext->reinjects_timer;
	struct pipe far = *s->pipes[1], near = *s->pipes[0];
	int64_t at;

	far.info.rtt_ms = 600;
	far.info.patience_ms = 1000;
	near.info.rtt_ms = 20;
	near.info.patience_ms = 10;
	loop_timer_stop(pair->engine.loop, timer);
	reinjecting_written(s, &far);
	at = timer->at;
	reinjecting_written(s, &near);
	assert_true(timer->at < at - 500 * NS_PER_MS);
	at = timer->at;
	reinjecting_written(s, &far);
	assert_int_equal(timer->at, at);
}

static void mpflex_sends_what_timed_out(void **state)
{
	struct pair *pair = *state;

	pair->settings.reinject = REINJECT_MPFLEX;
	lose(pair, SOME);
	wait_ms(pair, 100);
	assert_int_equal(pair->rp->counts.reinjected, 0);
	here.timed_out = true;
	arrives(pair, SOME);
	assert_true(pair->rp->counts.reinjected > 0);
}

static void mpflex_sends_one_message_for_each_ack_that_asks(void **state)
{
	struct pair *pair = *state;
	struct wire_ack ack = { .reorder_bytes = 800 };

	pair->settings.reinject = REINJECT_MPFLEX;
	pair->rp->ext->hello.reorder_limit = 1000;
	for (unsigned int i = 0; i < 3; i++)
		lose(pair, SOME);
	wait_ms(pair, 50);
	for (unsigned int i = 1; i <= 2; i++) {
		reinjecting_acked(pair->rp, &ack);
		wait_ms(pair, 50);
		assert_int_equal(pair->rp->counts.reinjected > 0, 1);
		assert_in_range(pair->rp->counts.reinjected_bytes, i, i * (SOME + 100));
	}
	ack.reorder_bytes = 750;
	reinjecting_acked(pair->rp, &ack);
	assert_false(pair->rp->ext->owed);
}

#define PAIR_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, pair_teardown)
#define PATHS_TEST(f) cmocka_unit_test_setup_teardown(f, set_up_paths, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR_TEST(timely_sends_what_a_silent_pipe_holds_on_another),
		PATHS_TEST(what_a_silent_path_holds_goes_on_another_path),
		PATHS_TEST(what_a_single_pipe_lost_may_go_on_the_same_path),
		PAIR_TEST(who_is_heard_of_repairs_it_itself),
		PAIR_TEST(a_silence_makes_nobody_more_patient),
		PAIR_TEST(what_met_a_silence_goes_though_the_pipe_is_heard_of),
		PAIR_TEST(who_is_silent_is_asked_until_all_of_it_arrived),
		PAIR_TEST(what_went_once_goes_no_third_time),
		PAIR_TEST(tails_and_timely_share_the_work),
		PAIR_TEST(what_costs_too_much_is_left_to_the_pipe),
		PAIR_TEST(the_soonest_look_counts),
		PAIR_TEST(mpflex_sends_what_timed_out),
		PAIR_TEST(mpflex_sends_one_message_for_each_ack_that_asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
