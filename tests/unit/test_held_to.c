/* SPDX-License-Identifier: MIT */
/*
 * What the other end is held to, played by hand: its windows, its early data, the
 * bound of what waits whatever was granted, and its connections at a time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/conn/conn.h"
#include "mux/session/queues.h"
#include "ext_hand.h"
#include "halted.h"
#include "loopback.h"

/* --- a window, and what is early --- */

enum { MANY = 24 };

static void open_again(struct hand *h, uint16_t id, uint32_t number)
{
	struct wire_ext what = {
		.type = WIRE_OPEN, .number = number,
		.open = {
			.id = id, .protocol = WIRE_PROTOCOL_TCP,
			.to = destination_name("x", 1, 80), .window = 65536,
		},
	};

	hand_ext(h, &what);
}

static void open_id(struct hand *h, uint16_t id)
{
	open_again(h, id, 0);
}

static struct conn *conn_of(struct hand *h, uint16_t id)
{
	return h->s->ext->channel[id]->conn;
}

static void more_than_its_window_ends_a_connection(void **state)
{
	struct hand h;
	struct want w;
	uint32_t next;

	(void)state;
	hand_begin(&h, false);
	h.s->ext->pool.limit.conn = 65536;	/* less than the window is */
	open_id(&h, ID);
	w = hand_hears(&h, WIRE_SYNACK);
	assert_int_equal(w.ext.synack.offset, WINDOW_FIRST);
	fill_socket(conn_of(&h, ID)->watch.fd);
	next = hand_fills(&h, ID, 1, WINDOW_FIRST / 4096, 4096);
	goes_on(&h);
	/* All of it is in order: not one byte beyond was granted meanwhile. */
	assert_int_equal(h.s->ext->channel[ID]->in.taken, WINDOW_FIRST);
	assert_int_equal(h.s->ext->channel[ID]->in.granted, WINDOW_FIRST);
	assert_int_equal(h.s->counts.protocol, 0);
	hand_data(&h, next, 1);
	ends_the_connection(&h);
	assert_int_equal(h.s->counts.protocol, 1);
	hand_end(&h);
}

static void more_early_data_than_all_may_send_ends_a_connection(void **state)
{
	enum { FIRST = 40 * 4096, SECOND = 10 * 4096 };
	struct hand h;
	uint32_t next;

	(void)state;
	hand_begin(&h, false);
	h.connects = true;
	h.s->ext->pool.limit.all = FIRST + SECOND;
	open_id(&h, 9);
	hand_fills(&h, 9, 1, FIRST / 4096, 4096);
	open_id(&h, ID);
	next = hand_fills(&h, ID, 1, SECOND / 4096, 4096);
	goes_on(&h);
	assert_int_equal(h.s->ext->pool.limit.used, FIRST + SECOND);
	assert_int_equal(h.s->counts.protocol, 0);
	hand_data(&h, next, 1);
	ends_the_connection(&h);
	assert_int_equal(h.s->counts.protocol, 1);
	/* The other one has what it sent, and stays. */
	assert_int_equal(h.s->ext->pool.limit.used, FIRST);
	assert_int_equal(conn_queued(conn_of(&h, 9)), FIRST);
	hand_end(&h);
}

/* --- the bound of what waits, whatever was granted --- */

static int app_of[MANY];

/* Opens an id whose application takes nothing. */
static void open_unread(struct hand *h, int i, uint32_t number)
{
	h->app = -1;
	open_again(h, (uint16_t)(ID + i), number);
	goes_on(h);
	assert_true(h->app >= 0);
	app_of[i] = h->app;
	h->app = -1;
	small_buffers(app_of[i], conn_of(h, (uint16_t)(ID + i))->watch.fd);
	fill_socket(conn_of(h, (uint16_t)(ID + i))->watch.fd);
}

static void close_apps(int n)
{
	while (n--)
		close(app_of[n]);
}

static void assert_bound(struct hand *h, size_t most, int n)
{
	goes_on(h);
	assert_true(h->s->in.queued <= most + (size_t)n * WINDOW_LEAST);
	/* No more than had to be. */
	assert_true(h->s->in.queued > most / 2);
	assert_int_equal(h->s->counts.protocol, 0);
	assert_true(h->s->counts.queue_limit > 0);
}

/* What an opener may send ahead of SYNACK is more than the memory has for it. */
static void early_data_of_many_do_not_pass_the_bound(void **state)
{
	const size_t memory = 2 << 20;
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	h.settings.window_memory = memory;
	for (int i = 0; i < MANY; i++) {
		open_unread(&h, i, 0);
		hand_fills(&h, (uint16_t)(ID + i), 1, WINDOW_FIRST / 4096, 4096);
		goes_on(&h);
		assert_true(h.s->in.queued <= memory + MANY * WINDOW_LEAST);
	}
	assert_bound(&h, memory, MANY);
	hand_end(&h);
	close_apps(MANY);
}

/* Ids keep what their last connections were granted, and others are granted as much. */
static void ids_that_are_used_again_do_not_pass_the_bound(void **state)
{
	enum { HALF = 7 };
	/* Of which 13/16 are for those that begin. */
	const size_t memory = 9 * WINDOW_FIRST;
	struct hand h;
	uint32_t number;
	int i;

	(void)state;
	hand_begin(&h, false);
	h.settings.window_memory = memory;
	h.s->ext->pool.limit.conn = 0;
	for (i = 0; i < HALF; i++) {
		open_unread(&h, i, 0);
		hand_fin(&h, (uint16_t)(ID + i), 1, WIRE_REASON_RST);
	}
	goes_on(&h);
	assert_int_equal(h.s->ext->idle, HALF * WINDOW_FIRST);
	close_apps(HALF);
	/* The others first: they are granted what is left. */
	for (i = 0; i < HALF; i++)
		open_unread(&h, HALF + i, 0);
	for (i = 0; i < HALF; i++)
		open_unread(&h, i, 2);
	/* All that was granted is allowed to come: nearly twice the memory. */
	assert_int_equal(h.s->ext->promised, 2 * HALF * WINDOW_FIRST);
	for (i = 0; i < 2 * HALF; i++) {
		number = i < HALF ? 3 : 1;
		hand_fills(&h, (uint16_t)(ID + i), number, WINDOW_FIRST / 4096,
			   4096);
	}
	assert_bound(&h, memory, 2 * HALF);
	hand_end(&h);
	close_apps(2 * HALF);
}

static void who_took_something_lately_is_the_last_to_go(void **state)
{
	static const uint32_t pages[] = { 50, 25, 10 };
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	h.settings.window_memory = 85 * 4096;
	for (int i = 0; i < 3; i++) {
		open_unread(&h, i, 0);
		hand_fills(&h, (uint16_t)(ID + i), 1, pages[i], 4096);
	}
	goes_on(&h);
	assert_int_equal(h.s->in.queued, 85 * 4096);
	assert_int_equal(h.s->counts.queue_limit, 0);
	clock_halt();	/* what is lately stays so, however long this takes */
	conn_of(&h, ID)->channel->taken_at = loop_clock();
	conn_of(&h, ID + 1)->channel->taken_at -= 2 * NS_PER_SEC;
	conn_of(&h, ID + 2)->channel->taken_at -= 2 * NS_PER_SEC;
	hand_fills(&h, ID, 1 + pages[0], 4, 4096);
	for (int i = 0; i < 10000 && !h.s->counts.queue_limit; i++)
		run_round(h.engine.loop);
	clock_go_on();
	goes_on(&h);
	assert_int_equal(h.s->in.queued, 64 * 4096);
	assert_int_equal(conn_queued(conn_of(&h, ID)), 54 * 4096);
	assert_int_equal(conn_queued(conn_of(&h, ID + 2)), 10 * 4096);
	assert_int_equal(h.s->counts.queue_limit, 1);
	hand_end(&h);
	close_apps(3);
}

static bool is_due(void *arg)
{
	static uint8_t buf[1 << 16];
	struct hand *h = arg;

	while (read_some(h->app, buf, sizeof(buf)) > 0)
		;
	return !list_empty(&h->s->ext->windows_due);
}

/* A WINDOW is kept: a peer that acknowledges nothing is granted nothing more. */
static void a_window_waits_where_no_more_may_be_kept(void **state)
{
	struct wire_ext ack = {
		.type = WIRE_ACK,
		.ack = { .pipes = 1, .pipe[0] = { 0, 0, 1 } },
	};
	struct hand h;
	struct want w;
	size_t kept;

	(void)state;
	hand_begin(&h, false);
	open_id(&h, ID);
	hand_hears(&h, WIRE_SYNACK);
	h.settings.keep = kept = h.s->ext->kept;	/* with SYNACK it is full */
	assert_true(kept > 0);
	hand_fills(&h, ID, 1, 3 * WINDOW_FIRST / 4 / 4096, 4096);
	assert_true(run_until(h.engine.loop, "a WINDOW to be due", is_due, &h));
	goes_on(&h);
	assert_true(is_due(&h));
	assert_int_equal(h.s->ext->kept, kept);
	hand_ext(&h, &ack);
	w = hand_hears(&h, WIRE_WINDOW);
	assert_int_equal(w.ext.window.id, ID);
	assert_true(w.ext.window.offset > WINDOW_FIRST);
	assert_false(is_due(&h));
	hand_end(&h);
}

/* --- connections at a time --- */

static void rp_takes_no_more_connections_than_it_said(void **state)
{
	struct hand h;
	struct want w;

	(void)state;
	hand_begin(&h, false);
	h.connects = true;
	h.settings.max_conns = 2;
	open_id(&h, 9);
	open_id(&h, 10);
	goes_on(&h);
	assert_int_equal(h.opened, 2);
	open_id(&h, ID);
	w = hand_hears(&h, WIRE_SYNACK);
	assert_int_equal(w.ext.synack.id, ID);
	assert_int_equal(w.ext.synack.result, WIRE_SYNACK_LIMIT);
	ends_the_connection(&h);
	assert_int_equal(h.opened, 2);
	/* Both ends of it have ended: one of the two may be followed by another. */
	hand_fin(&h, ID, 1, WIRE_REASON_RST);
	hand_fin(&h, 9, 1, WIRE_REASON_RST);
	goes_on(&h);
	hand_open(&h, 2);
	goes_on(&h);
	assert_int_equal(h.opened, 3);
	hand_end(&h);
}

static void lp_opens_no_more_connections_than_rp_said(void **state)
{
	struct destination to = destination_name("x", 1, 80);
	struct hand h;
	unsigned int n;

	(void)state;
	hand_begin(&h, true);
	for (n = 0; session_has_room(h.s); n++)
		assert_non_null(session_ask(h.s, &to));
	assert_int_equal(n, h.s->ext->welcome.connections);
	hand_end(&h);
}

static void who_holds_messages_out_of_order_misses_one(void **state)
{
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	hand_open(&h, 0);
	hand_fills(&h, ID, 2, 3, 100);
	goes_on(&h);
	assert_int_equal(queues_of(h.s).connections, 1);
	assert_int_equal(queues_of(h.s).missing, 1);
	hand_data(&h, 1, 1);
	goes_on(&h);
	assert_int_equal(queues_of(h.s).missing, 0);
	hand_end(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_than_its_window_ends_a_connection),
		cmocka_unit_test(
			more_early_data_than_all_may_send_ends_a_connection),
		cmocka_unit_test(early_data_of_many_do_not_pass_the_bound),
		cmocka_unit_test(ids_that_are_used_again_do_not_pass_the_bound),
		cmocka_unit_test(who_took_something_lately_is_the_last_to_go),
		cmocka_unit_test(a_window_waits_where_no_more_may_be_kept),
		cmocka_unit_test(rp_takes_no_more_connections_than_it_said),
		cmocka_unit_test(lp_opens_no_more_connections_than_rp_said),
		cmocka_unit_test(who_holds_messages_out_of_order_misses_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
