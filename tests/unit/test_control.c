/* SPDX-License-Identifier: MIT */
/*
 * What goes whatever bounds connections' bytes: their end, where the window is used up, and
 * control, where the limit is reached or all pipes rest. And when an ACK is said.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/conn/conn.h"
#include "ext_hand.h"
#include "halted.h"
#include "loopback.h"

enum {
	WINDOW = 16384,
	MUCH = 3 * WINDOW_FIRST / 4 / 4096,	/* messages, after which more is granted */
	PATIENCE_S = 5,		/* of who asks a pipe by PING */
};

static const uint8_t bytes[WINDOW];

/* A connection to the server at h->app, which may send WINDOW bytes. */
static void open_narrow(struct hand *h)
{
	struct wire_ext what = {
		.type = WIRE_OPEN,
		.open = {
			.id = ID, .protocol = WIRE_PROTOCOL_TCP,
			.to = destination_name("x", 1, 80), .window = WINDOW,
		},
	};

	hand_begin(h, false);
	hand_ext(h, &what);
	hand_hears(h, WIRE_SYNACK);
}

static struct channel *channel_of(struct hand *h)
{
	return h->s->ext->channel[ID];
}

static void server_sends(struct hand *h, size_t len)
{
	assert_int_equal(send(h->app, bytes, len, MSG_NOSIGNAL), len);
}

/* --- an end without credit --- */

static bool window_is_used_up(void *arg)
{
	struct hand *h = arg;

	return channel_of(h)->out.sent == WINDOW && !channel_of(h)->conn->ready;
}

/* Behind all that the window allows, though no WINDOW ever comes. */
static void hears_its_end(struct hand *h)
{
	struct want w = hand_hears(h, 0);

	assert_int_equal(w.fin.id, ID);
	assert_int_equal(w.fin.body[0], WIRE_REASON_NO_MORE);
	assert_int_equal(channel_of(h)->out.sent, WINDOW);
	assert_int_equal(credit_left(&channel_of(h)->out), 0);
	goes_on(h);
	hand_end(h);
}

static void an_end_goes_with_the_last_byte_of_a_window(void **state)
{
	struct hand h;

	(void)state;
	open_narrow(&h);
	server_sends(&h, WINDOW);
	shutdown(h.app, SHUT_WR);
	hears_its_end(&h);
}

static void an_end_goes_where_the_window_is_used_up(void **state)
{
	struct hand h;

	(void)state;
	open_narrow(&h);
	server_sends(&h, WINDOW);
	assert_true(run_until(h.engine.loop, "its last byte", window_is_used_up, &h));
	goes_on(&h);
	shutdown(h.app, SHUT_WR);
	hears_its_end(&h);
}

/* --- control, while bytes wait --- */

static bool bytes_wait(void *arg)
{
	struct hand *h = arg;

	return channel_of(h)->conn->ready &&
	       (h->s->out.wait == WAIT_FOR_LIMIT || h->s->out.wait == WAIT_FOR_PIPES);
}

/* Reads at the server what came, so that more may be granted. */
static bool is_granted_more(void *arg)
{
	static uint8_t buf[1 << 16];
	struct hand *h = arg;

	while (read_some(h->app, buf, sizeof(buf)) > 0)
		;
	return channel_of(h)->in.granted > WINDOW_FIRST;
}

/* ACKs come until one tells of @messages. */
static void hears_ack_of(struct hand *h, uint64_t messages)
{
	struct want w;

	do {
		w = hand_hears(h, WIRE_ACK);
		run_round(h->engine.loop);
	} while (w.ext.ack.pipe[0].received < messages);
	assert_int_equal(w.ext.ack.pipe[0].received, messages);
}

/* None of the server's bytes goes, and WINDOW, ACK and PONG do. */
static void control_goes(struct hand *h, enum next_wait why)
{
	server_sends(h, 100);
	assert_true(run_until(h->engine.loop, "bytes that wait", bytes_wait, h));
	hand_fills(h, ID, 1, MUCH, 4096);
	assert_true(run_until(h->engine.loop, "a larger window", is_granted_more, h));
	hand_hears(h, WIRE_WINDOW);
	hears_ack_of(h, 1 + MUCH);
	goes_on(h);
	assert_int_equal(h->s->out.wait, why);
	assert_int_equal(channel_of(h)->out.sent, 0);
}

static bool bytes_went(void *arg)
{
	struct hand *h = arg;

	return channel_of(h)->out.sent == 100;
}

static void control_passes_a_limit_that_is_reached(void **state)
{
	struct hand h;
	struct aggregate *a;

	(void)state;
	open_narrow(&h);
	a = &h.s->paths.path[0].aggregate;
	a->mode = AGGREGATE_OFF;	/* no acknowledgement changes the limit */
	a->limit = 0;
	control_goes(&h, WAIT_FOR_LIMIT);
	a->limit = AGGREGATE_NONE;
	assert_true(run_until(h.engine.loop, "its bytes", bytes_went, &h));
	hand_end(&h);
}

static void control_goes_where_all_pipes_rest(void **state)
{
	struct hand h;

	(void)state;
	open_narrow(&h);
	h.s->pipes[0]->standby = true;
	control_goes(&h, WAIT_FOR_PIPES);
	h.s->pipes[0]->standby = false;
	loop_after(h.engine.loop, &h.s->out.pump);
	assert_true(run_until(h.engine.loop, "its bytes", bytes_went, &h));
	hand_end(&h);
}

static struct pipe *pipe_of(struct hand *h)
{
	return h->s->pipes[0];
}

/* More than its socket takes, which nobody reads. */
static void fill(struct hand *h)
{
	struct wire_ext what = { .type = WIRE_PONG };

	while (!pipe_of(h)->queue)
		assert_true(control_say(h->s, pipe_of(h), &what));
}

static bool owes_pong(void *arg)
{
	struct hand *h = arg;

	return h->s->ext->leg[0].pong_due && h->s->out.control_waits;
}

/* What fills the socket is read, and tells nothing. */
static bool said_pong(void *arg)
{
	static uint8_t waste[1 << 16];
	struct hand *h = arg;

	while (read_some(h->fd[0], waste, sizeof(waste)) > 0)
		;
	return !h->s->ext->leg[0].pong_due;
}

/* Nothing else happens that would have it tried again. */
static void control_goes_once_a_pipe_that_rests_takes_it(void **state)
{
	struct wire_ext ping = { .type = WIRE_PING };
	int64_t began;
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	fill(&h);
	pipe_of(&h)->standby = true;
	hand_ext(&h, &ping);
	assert_true(run_until(h.engine.loop, "a PONG that is due", owes_pong, &h));
	began = loop_clock();
	assert_true(run_until(h.engine.loop, "a PONG", said_pong, &h));
	assert_true(loop_clock() - began < PATIENCE_S * NS_PER_SEC);
	hand_end(&h);
}

/* --- when an ACK is said --- */

static bool one_was_told(void *arg)
{
	struct hand *h = arg;
	const struct leg *leg = &h->s->ext->leg[0];

	return leg->told == leg->tally.received;
}

static bool one_is_untold(void *arg)
{
	struct hand *h = arg;

	return !one_was_told(h);
}

/* Whatever is done at once is done. */
static void come_to_rest(struct hand *h)
{
	for (int i = 0; i < 10; i++)
		run_round(h->engine.loop);
}

/* The clock stands, and a message came for which no ACK is due at once. */
static void one_comes(struct hand *h, uint32_t number)
{
	uint64_t acks = pipe_of(h)->tx_acks;

	hand_data(h, number, 1);
	assert_true(run_rounds(h->engine.loop, "a message", one_is_untold, h));
	come_to_rest(h);
	assert_int_equal(pipe_of(h)->tx_acks, acks);
}

/* The clock stands. A message comes, and another one that does not put its ACK off. */
static void is_told_after(struct hand *h, uint32_t number, int64_t ms)
{
	uint64_t acks;

	come_to_rest(h);
	acks = pipe_of(h)->tx_acks;
	one_comes(h, number);
	clock_pass((ms - 5) * NS_PER_MS);
	one_comes(h, number + 1);
	clock_pass(4 * NS_PER_MS);
	come_to_rest(h);
	assert_int_equal(pipe_of(h)->tx_acks, acks);
	clock_pass(NS_PER_MS);
	come_to_rest(h);
	assert_int_equal(pipe_of(h)->tx_acks, acks + 1);
	assert_true(one_was_told(h));
}

static void an_ack_comes_after_100_ms_at_the_latest(void **state)
{
	struct hand h;

	(void)state;
	open_narrow(&h);
	assert_true(run_until(h.engine.loop, "the ACK of OPEN", one_was_told, &h));
	clock_halt();
	is_told_after(&h, 1, 100);
	clock_go_on();
	hand_end(&h);
}

static bool has_one_pipe(void *arg)
{
	const struct hand *h = arg;

	return h->s->paths.npipes == 1;
}

static void second_pipe_comes_and_dies(struct hand *h)
{
	assert_true(hand_joins(h, 1, PIPES, 0));
	close(h->fd[1]);
	h->fd[1] = -1;
	assert_true(run_until(h->engine.loop, "one pipe", has_one_pipe, h));
}

/* What came on the next one that dies, and was not acknowledged, would go twice. */
static void acks_come_sooner_while_pipes_die(void **state)
{
	struct hand h;

	(void)state;
	open_narrow(&h);
	second_pipe_comes_and_dies(&h);
	assert_true(run_until(h.engine.loop, "the ACK of OPEN", one_was_told, &h));
	clock_halt();
	is_told_after(&h, 1, 25);
	clock_pass(2 * NS_PER_SEC);
	is_told_after(&h, 3, 100);
	clock_go_on();
	hand_end(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_goes_with_the_last_byte_of_a_window),
		cmocka_unit_test(an_end_goes_where_the_window_is_used_up),
		cmocka_unit_test(control_passes_a_limit_that_is_reached),
		cmocka_unit_test(control_goes_where_all_pipes_rest),
		cmocka_unit_test(control_goes_once_a_pipe_that_rests_takes_it),
		cmocka_unit_test(an_ack_comes_after_100_ms_at_the_latest),
		cmocka_unit_test(acks_come_sooner_while_pipes_die),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
