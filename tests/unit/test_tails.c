/* SPDX-License-Identifier: MIT */
/*
 * The last messages of a pipe, when they are lost: what two engines make of it, of which
 * one has a pipe that loses what it is told to lose. And what waits for pipes that were full: copies, what goes
 * again, an answer.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "ext_pair.h"
#include "ext_write.h"
#include "loopback.h"
#include "mux/extension/tail.h"
#include "mux/sched/next.h"
#include "mux/sched/sched.h"

enum { SEGMENT = 1448 };

/* --- a pipe that loses --- */

/* RP's pipe 0, once it is told to: of what is written so many bytes still arrive. */
static struct {
	const struct carrier *real;
	size_t arrive, lost;
} hole;

static void look_at_hole(struct pipe *p)
{
	p->info = (struct pipe_info){
		.rtt_ms = 2, .rttmin_ms = 2, .patience_ms = 4, .unheard_ms = 100,
		.rate = 1e8, .cwnd = 1000, .mss = SEGMENT, .in_flight = hole.lost,
	};
}

static int write_to_hole(struct pipe *p, struct run *run)
{
	size_t n = run->len - run->sent;
	size_t arrive = n < hole.arrive ? n : hole.arrive;

	if (arrive)
		assert_int_equal(send(p->fd, run->buf + run->sent, arrive, 0),
				 arrive);
	hole.arrive -= arrive;
	hole.lost += n - arrive;
	pipe_wrote(p, run, n);
	p->tx_bytes += n;
	return 0;
}

static struct carrier carrier_hole, carrier_patient;

/* Nothing is late on this pipe, however busy the machine. */
static void look_patiently(struct pipe *p)
{
	hole.real->look(p);
	p->info.patience_ms = 0;
}

static void be_patient(struct session *s)
{
	for (unsigned int i = 0; i < s->npipes; i++) {
		s->pipes[i]->carrier = &carrier_patient;
		look_patiently(s->pipes[i]);
	}
}

/* All that RP writes goes to pipe 0 alone: the others stand by. */
static void use_only_the_first(struct pair *pair, bool only)
{
	for (unsigned int i = 1; i < pair->pipes; i++)
		pair->rp->pipes[i]->standby = only;
	loop_after(pair->engine.loop, &pair->rp->out.pump);
}

static void lose(struct pair *pair, size_t arrive)
{
	struct pipe *p = pair->rp->pipes[0];

	hole.arrive = arrive;
	hole.lost = 0;
	carrier_hole = *hole.real;
	carrier_hole.look = carrier_hole.look_at_queues = look_at_hole;
	carrier_hole.write = write_to_hole;
	p->carrier = &carrier_hole;
	pipe_look_closely(p, loop_now(pair->engine.loop));
	use_only_the_first(pair, true);
}

static bool all_acknowledged(void *arg)
{
	const struct pair *pair = arg;

	return !pair->rp->ext->kept && !pair->lp->ext->kept;
}

static int setup(void **state)
{
	struct pair *pair;

	pair_setup(state);
	pair = *state;
	hole.real = pair->rp->pipes[0]->carrier;
	carrier_patient = *hole.real;
	carrier_patient.look = look_patiently;
	be_patient(pair->rp);
	be_patient(pair->lp);
	pair_connect(pair, 0);
	/* Acknowledgements take long here: no pipe is suspect, on whatever machine. */
	pair->rp->ext->way[0].ack_takes = pair->lp->ext->way[0].ack_takes = 100 * NS_PER_SEC;
	assert_true(run_until(pair->engine.loop, "ACKs", all_acknowledged, pair));
	return 0;
}

static const uint8_t *some_bytes(size_t len)
{
	static uint8_t bytes[300000];

	assert_true(len <= sizeof(bytes));
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(i * 7 + (i >> 8));
	return bytes;
}

static void what_a_pipe_lost_last_comes_by_another(void **state)
{
	struct pair *pair = *state;
	const uint8_t *bytes = some_bytes(5000);

	lose(pair, 0);
	pair_send(pair, bytes, 5000);
	use_only_the_first(pair, false);
	pair_expect(pair, pair->conn[0].client, bytes, 5000);
	assert_true(pair->rp->counts.copies > 0);
	assert_int_equal(pair->rp->counts.again, 0);
	assert_int_equal(pair->lp->counts.copies, 0);
	assert_in_range(pair->rp->ext->copies, 5000, hole.lost);
}

/* That a pipe was overdue once says nothing when all that it had is acknowledged. */
static void who_was_overdue_once_takes_copies(void **state)
{
	struct pair *pair = *state;
	const uint8_t *bytes = some_bytes(5000);

	lose(pair, 0);
	pair_send(pair, bytes, 5000);
	for (unsigned int i = 1; i < pair->pipes; i++)
		pair->rp->pipes[i]->overdue = true;
	use_only_the_first(pair, false);
	pair_expect(pair, pair->conn[0].client, bytes, 5000);
	assert_true(pair->rp->counts.copies > 0);
	assert_int_equal(pair->rp->counts.again, 0);
}

/* Of a run of several messages those that were acknowledged are not sent again. */
static void only_what_is_missing_is_copied(void **state)
{
	struct pair *pair = *state;
	const size_t message = WIRE_HEADER + WIRE_PAYLOAD_MAX;
	const uint8_t *bytes = some_bytes(3 * WIRE_PAYLOAD_MAX);

	pair->rp->shared.large = false;	/* else they are one message */
	lose(pair, message + 100);
	pair_send(pair, bytes, 3 * WIRE_PAYLOAD_MAX);
	use_only_the_first(pair, false);
	pair_expect(pair, pair->conn[0].client, bytes, 3 * WIRE_PAYLOAD_MAX);
	assert_int_equal(pair->rp->counts.copies, 2);
	assert_int_equal(pair->rp->ext->copies, 2 * message);
}

static bool is_doubted(void *arg)
{
	const struct pair *pair = arg;

	return pair->rp->pipes[0]->doubtful;
}

static bool trusts_the_first(void *arg)
{
	const struct pair *pair = arg;

	return !pair->rp->pipes[0]->doubtful;
}

/* It may be dead: what it was given now would be missed once more. */
static void what_is_overdue_gets_nothing_new(void **state)
{
	struct pair *pair = *state;
	const uint8_t *bytes = some_bytes(300000);
	size_t lost;

	pair->rp->sched.pipes = &sched_rr;	/* each in turn */
	lose(pair, 0);
	pair_send(pair, bytes, 5000);
	use_only_the_first(pair, false);
	pair_expect(pair, pair->conn[0].client, bytes, 5000);
	lost = hole.lost;
	for (int i = 0; i < 20; i++) {
		pair_send(pair, bytes, 10000);
		pair_expect(pair, pair->conn[0].client, bytes, 10000);
	}
	assert_int_equal(hole.lost, lost);
	/* It is as good as the others once something of it is acknowledged. */
	pair->rp->pipes[0]->carrier = &carrier_patient;
	pair_send(pair, bytes, 300000);
	pair_expect(pair, pair->conn[0].client, bytes, 300000);
	assert_true(run_until(pair->engine.loop, "its acknowledgement",
			      trusts_the_first, pair));
	assert_true(pair->rp->pipes[0]->tx_bytes > lost + 10000);
}

/* Its acknowledgement is told to nobody. */
static void who_waits_for_others_looks_again(void **state)
{
	struct pair *pair = *state;
	struct session *s = pair->rp;
	struct run run = { .len = 100 };
	struct view view = {
		.sched = &s->sched, .paths = &s->paths, .again = { &run },
		.now = loop_now(pair->engine.loop),
	};
	struct next next;

	lose(pair, 0);
	pair_send(pair, some_bytes(5000), 5000);
	assert_true(run_until(pair->engine.loop, "its tail", is_doubted, pair));
	for (unsigned int i = 1; i < pair->pipes; i++) {
		s->pipes[i]->standby = false;
		s->pipes[i]->allowance = 0;
	}
	next = sched_next(&view);
	assert_int_equal(next.act, NEXT_WAIT);
	assert_int_equal(next.wait, WAIT_FOR_PIPES);
	assert_in_range(next.until - view.now, 1, 100 * NS_PER_MS);
	s->pipes[0]->doubtful = false;
	assert_int_equal(sched_next(&view).act, NEXT_AGAIN);
}

/* With nothing better it is used on. */
static void where_all_are_overdue_all_are_used(void **state)
{
	struct pair *pair = *state;
	size_t lost;

	lose(pair, 0);
	pair_send(pair, some_bytes(5000), 5000);
	lost = hole.lost;
	assert_true(run_until(pair->engine.loop, "its tail", is_doubted, pair));
	pair_send(pair, some_bytes(5000), 5000);
	assert_true(hole.lost > lost);
}

static bool is_later(void *arg)
{
	const int64_t *at = arg;

	return loop_clock() >= *at;
}

/* Each is written long before the one before it is overdue. */
static void of_a_thin_connection_the_oldest_is_timed(void **state)
{
	struct pair *pair = *state;
	const uint8_t *bytes = some_bytes(40);

	lose(pair, 0);
	for (int i = 0; i < 20; i++) {
		int64_t next = loop_clock() + 10 * NS_PER_MS;

		pair_send(pair, bytes, 40);
		assert_true(run_until(pair->engine.loop, "the next", is_later,
				      &next));
	}
	assert_true(is_doubted(pair));
	use_only_the_first(pair, false);
	for (int i = 0; i < 20; i++)
		pair_expect(pair, pair->conn[0].client, bytes, 40);
}

/* Late on a pipe of whose acknowledgements nothing is known, or not. */
static void look_calmly(struct pipe *p)
{
	hole.real->look(p);
	p->info.rtt_ms = 50;
	p->info.patience_ms = 100;
}

static bool knows_it_is_prompt(void *arg)
{
	const struct pair *pair = arg;

	return promptness_is_known(&pair->rp->ext->promptness);
}

static void the_other_end_is_found_to_be_prompt(void **state)
{
	struct pair *pair = *state;
	const uint8_t *bytes = some_bytes(40);
	struct carrier calm = *hole.real;

	calm.look = look_calmly;
	for (unsigned int i = 0; i < pair->pipes; i++)
		pair->rp->pipes[i]->carrier = &calm;
	assert_false(knows_it_is_prompt(pair));
	for (int i = 0; i < 4 * PROMPTNESS_TRIAL; i++) {
		int64_t next = loop_clock() + 25 * NS_PER_MS;

		pair_send(pair, bytes, 40);
		pair_expect(pair, pair->conn[0].client, bytes, 40);
		assert_true(run_until(pair->engine.loop, "the next", is_later,
				      &next));
		if (knows_it_is_prompt(pair))
			break;
	}
	assert_true(knows_it_is_prompt(pair));
	be_patient(pair->rp);
}

static bool is_decided(void *arg)
{
	const struct pair *pair = arg;

	return pair->rp->ext->leg[0].copied == pair->rp->pipes[0]->tx_bytes;
}

static void what_costs_too_much_is_left_to_the_pipe(void **state)
{
	struct pair *pair = *state;
	const struct extended *x = pair->rp->ext;
	size_t len = TAIL_BURST + 100000;

	lose(pair, 0);
	pair_send(pair, some_bytes(len), len);
	use_only_the_first(pair, false);
	assert_true(run_until(pair->engine.loop, "all copies", is_decided, pair));
	assert_true(x->copies <= TAIL_BURST + x->sent / TAIL_SHARE);
	assert_true(x->copies < hole.lost);
}

static bool looks_no_more(void *arg)
{
	const struct pair *pair = arg;

	return !pair->rp->ext->tails_timer.slot &&
	       !pair->lp->ext->tails_timer.slot;
}

static void without_copies_nobody_looks(void **state)
{
	static const enum thin_mode without[] = { THIN_SAME_PIPE, THIN_OFF };
	struct pair *pair = *state;

	for (int i = 0; i < 2; i++) {
		pair->settings.thin = without[i];
		assert_true(run_until(pair->engine.loop, "rest", looks_no_more,
				      pair));
		lose(pair, 0);
		pair_send(pair, some_bytes(5000), 5000);
		use_only_the_first(pair, false);
		assert_true(looks_no_more(pair));
		assert_false(is_doubted(pair));
	}
	/* It is the mode that keeps them from it. */
	pair->settings.thin = THIN_COPY;
	lose(pair, 0);
	pair_send(pair, some_bytes(5000), 5000);
	assert_false(looks_no_more(pair));
}

static void nobody_looks_when_nothing_is_outstanding(void **state)
{
	struct pair *pair = *state;
	const uint8_t *bytes = some_bytes(5000);

	pair_send(pair, bytes, 5000);
	pair_expect(pair, pair->conn[0].client, bytes, 5000);
	assert_true(run_until(pair->engine.loop, "rest", looks_no_more, pair));
	lose(pair, 0);
	pair_send(pair, bytes, 5000);
	use_only_the_first(pair, false);
	pair_expect(pair, pair->conn[0].client, bytes, 5000);
	/* What was copied once is not looked at again. */
	assert_true(run_until(pair->engine.loop, "rest", looks_no_more, pair));
}

/* --- pipes that were full --- */

static struct carrier carrier_full;

static void look_full(struct pipe *p)
{
	hole.real->look(p);
	p->info.patience_ms = 0;
	p->info.unsent = 1 << 20;
}

/* All but the first. When they are so no more nobody says it but their sockets. */
static void be_full(struct pair *pair, bool full)
{
	carrier_full = *hole.real;
	carrier_full.look = carrier_full.look_at_queues = look_full;
	for (unsigned int i = 1; i < pair->pipes; i++) {
		struct pipe *p = pair->rp->pipes[i];

		p->carrier = full ? &carrier_full : &carrier_patient;
		p->idle.bytes = UINT64_MAX;	/* it did not write that itself */
		if (full)
			pipe_look_closely(p, loop_now(pair->engine.loop));
	}
}

/* What was written is lost, and nobody has anything new. */
static void lose_all(struct pair *pair, const uint8_t *bytes, size_t len)
{
	lose(pair, 0);
	pair_send(pair, bytes, len);
	be_full(pair, true);
	use_only_the_first(pair, false);
	assert_true(run_until(pair->engine.loop, "its tail", is_doubted, pair));
	assert_int_equal(pair->rp->sched.ready, 0);
	assert_int_equal(pair->rp->counts.copies, 0);
}

static void a_copy_goes_on_a_pipe_that_is_full_no_more(void **state)
{
	struct pair *pair = *state;
	const uint8_t *bytes = some_bytes(5000);

	lose_all(pair, bytes, 5000);
	be_full(pair, false);
	pair_expect(pair, pair->conn[0].client, bytes, 5000);
	assert_true(pair->rp->counts.copies > 0);
}

static bool has_lost_the_first(void *arg)
{
	const struct pair *pair = arg;

	return !pair->rp->pipes[0];
}

static void what_goes_again_goes_on_a_pipe_that_is_full_no_more(void **state)
{
	struct pair *pair = *state;
	const uint8_t *bytes = some_bytes(5000);

	lose_all(pair, bytes, 5000);
	pair_kill(pair, 0);
	assert_true(run_until(pair->engine.loop, "a pipe's end",
			      has_lost_the_first, pair));
	assert_true(keeping_has_again(pair->rp->ext));
	assert_int_equal(pair->rp->sched.ready, 0);
	be_full(pair, false);
	pair_expect(pair, pair->conn[0].client, bytes, 5000);
	assert_true(pair->rp->counts.again > 0);
}

static int write_nothing(struct pipe *p, struct run *run)
{
	(void)p;
	(void)run;
	return -EAGAIN;
}

static bool nobody_is_wanted(void *arg)
{
	const struct pair *pair = arg;

	for (unsigned int i = 1; i < pair->pipes; i++) {
		if (pair->rp->pipes[i]->wanted)
			return false;
	}
	return pair->rp->out.control_waits;
}

/* An answer waits for its pipe: others that have room say so for nobody. */
static void who_is_full_no_more_is_not_asked_for_ever(void **state)
{
	struct pair *pair = *state;
	struct leg *leg = &pair->rp->ext->leg[0];

	lose(pair, 0);
	carrier_hole.write = write_nothing;
	be_full(pair, true);
	use_only_the_first(pair, false);
	for (int i = 0; i < 2; i++) {
		leg->pong_due = true;
		loop_after(pair->engine.loop, &pair->rp->out.pump);
		run_round(pair->engine.loop);
	}
	assert_true(pair->rp->out.control_waits);
	assert_true(pair->rp->pipes[1]->wanted);
	be_full(pair, false);
	assert_true(run_until(pair->engine.loop, "no more of it",
			      nobody_is_wanted, pair));
	pair->rp->pipes[0]->carrier = &carrier_patient;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			what_a_pipe_lost_last_comes_by_another, setup, pair_teardown),
		cmocka_unit_test_setup_teardown(
			who_was_overdue_once_takes_copies, setup, pair_teardown),
		cmocka_unit_test_setup_teardown(
			only_what_is_missing_is_copied, setup, pair_teardown),
		cmocka_unit_test_setup_teardown(
			what_costs_too_much_is_left_to_the_pipe, setup, pair_teardown),
		cmocka_unit_test_setup_teardown(
			what_is_overdue_gets_nothing_new, setup, pair_teardown),
		cmocka_unit_test_setup_teardown(
			who_waits_for_others_looks_again, setup, pair_teardown),
		cmocka_unit_test_setup_teardown(
			where_all_are_overdue_all_are_used, setup, pair_teardown),
		cmocka_unit_test_setup_teardown(
			of_a_thin_connection_the_oldest_is_timed, setup,
			pair_teardown),
		cmocka_unit_test_setup_teardown(
			the_other_end_is_found_to_be_prompt, setup,
			pair_teardown),
		cmocka_unit_test_setup_teardown(
			without_copies_nobody_looks, setup,
			pair_teardown),
		cmocka_unit_test_setup_teardown(
			nobody_looks_when_nothing_is_outstanding, setup, pair_teardown),
		cmocka_unit_test_setup_teardown(
			a_copy_goes_on_a_pipe_that_is_full_no_more, setup,
			pair_teardown),
		cmocka_unit_test_setup_teardown(
			what_goes_again_goes_on_a_pipe_that_is_full_no_more, setup,
			pair_teardown),
		cmocka_unit_test_setup_teardown(
			who_is_full_no_more_is_not_asked_for_ever, setup,
			pair_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
