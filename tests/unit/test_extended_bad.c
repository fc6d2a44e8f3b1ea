/* SPDX-License-Identifier: MIT */
/*
 * What ends with a bad message of the extension: the session, the connection,
 * the pipe, or the message alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/sock.h"
#include "mux/conn/conn.h"
#include "ext_hand.h"
#include "loopback.h"

/* --- the session --- */

static void framing_ends_the_session(void **state)
{
	static const uint8_t message[] = { 2, 0, 7, 0, 0, 0, 8, 0 };
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	hand_put(&h, message, sizeof(message));
	/* That pipe cannot be read any more, but it can be written. */
	ends_the_session(&h);
	assert_non_null(strstr(h.why, "length 8"));
}

static void a_syn_ends_the_session(void **state)
{
	uint8_t buf[WIRE_SYN_SIZE];
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	wire_put_syn(buf, ID, (uint8_t[]){ 1, 2, 3, 4 }, 80);
	hand_put(&h, buf, sizeof(buf));
	ends_the_session(&h);
}

static void the_wrong_way_ends_the_session(void **state)
{
	static const struct wire_ext up[] = {
		{ .type = WIRE_WELCOME },
		{ .type = WIRE_SYNACK, .synack.id = ID },
		{ .type = WIRE_OPEN, .open = { 40000, 6,
			{ DESTINATION_NAME, 1, 1, "x" }, 0 } },
	}, down[] = {
		{ .type = WIRE_PATH },
		{ .type = WIRE_OPEN, .open = { 5, 6,
			{ DESTINATION_NAME, 1, 1, "x" }, 0 } },
		/* The right way, but RP was not allowed to open. */
		{ .type = WIRE_OPEN, .open = { 40000, 6,
			{ DESTINATION_NAME, 1, 1, "x" }, 0 } },
	};
	struct hand h;

	(void)state;
	for (int i = 0; i < 3; i++) {
		hand_begin(&h, false);
		hand_ext(&h, &up[i]);
		ends_the_session(&h);
		hand_begin(&h, true);
		hand_ext(&h, &down[i]);
		ends_the_session(&h);
	}
}

static void what_cannot_be_due_ends_the_session(void **state)
{
	struct hand h;

	(void)state;
	hand_begin(&h, false);	/* OPEN in a use */
	hand_open(&h, 0);
	hand_open(&h, 1);
	ends_the_session(&h);
	hand_begin(&h, false);	/* data outside */
	hand_data(&h, 0, 10);
	ends_the_session(&h);
	hand_begin(&h, false);	/* a half-close outside */
	hand_fin(&h, ID, 0, WIRE_REASON_NO_MORE);
	ends_the_session(&h);
	hand_begin(&h, false);	/* data behind their end */
	hand_open(&h, 0);
	hand_fin(&h, ID, 1, WIRE_REASON_NO_MORE);
	hand_data(&h, 2, 10);
	ends_the_session(&h);
	hand_begin(&h, true);	/* SYNACK of what was not opened */
	hand_ext(&h, &(struct wire_ext){ .type = WIRE_SYNACK, .synack.id = ID });
	ends_the_session(&h);
}

static void an_ack_beyond_ends_the_session(void **state)
{
	struct wire_ext ack = {
		.type = WIRE_ACK,
		.ack = { .pipes = 1, .pipe[0] = { 0, 0, 1 } },
	};
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	hand_ext(&h, &ack);	/* WELCOME does not count */
	ends_the_session(&h);
	hand_begin(&h, false);
	hand_open(&h, 0);
	hand_hears(&h, WIRE_SYNACK);
	hand_ext(&h, &ack);
	goes_on(&h);
	assert_int_equal(h.s->ext->kept, 0);
	ack.ack.pipe[0].received = 1000;
	hand_ext(&h, &ack);
	ends_the_session(&h);
	assert_non_null(strstr(h.why, "an ACK of 1000 messages of pipe 0, which were not sent"));
}

/* --- the connection --- */

static void a_bad_open_is_answered(void **state)
{
	struct wire_ext open = {
		.type = WIRE_OPEN,
		.open = { ID, WIRE_PROTOCOL_UDP,
			  { DESTINATION_IPV4, 4, 53, { 1, 2, 3, 4 } }, 0 },
	};
	uint8_t body[WIRE_PAYLOAD_MAX] = { WIRE_OPEN, ID, 0, 6, 5, 4, 1, 2, 3,
					   4, 80, 0, 0, 0, 0, 0 };
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	hand_ext(&h, &open);	/* UDP was not agreed upon */
	ends_the_connection(&h);
	assert_int_equal(h.opened, 0);
	hand_fin(&h, ID, 1, WIRE_REASON_RST);
	hand_open(&h, 2);
	while (!h.opened)
		run_round(h.engine.loop);
	hand_end(&h);
	hand_begin(&h, false);
	hand_body(&h, body, 16);	/* kind 5 */
	ends_the_connection(&h);
	assert_int_equal(h.opened, 0);
	hand_end(&h);
}

static void an_unknown_reason_ends_its_connection(void **state)
{
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	hand_open(&h, 0);
	hand_fin(&h, ID, 1, WIRE_REASON_FIN);
	ends_the_connection(&h);
	hand_open(&h, 2);
	while (h.opened < 2)
		run_round(h.engine.loop);
	hand_end(&h);
}

static void more_than_early_ends_its_connection(void **state)
{
	struct hand h;
	uint32_t number = 1;

	(void)state;
	hand_begin(&h, false);
	h.connects = true;
	hand_open(&h, 0);
	for (size_t sent = 0; sent < EARLY_CONN; sent += 4096)
		hand_data(&h, number++, 4096);
	goes_on(&h);
	assert_int_equal(h.s->in.queued, EARLY_CONN);
	assert_int_equal(h.s->counts.protocol, 0);
	hand_data(&h, number, 1);
	ends_the_connection(&h);
	assert_int_equal(h.s->in.queued, 0);
	assert_int_equal(h.s->ext->pool.limit.used, 0);
	hand_end(&h);
}

static void the_largest_out_of_order_is_ended_and_its_id_goes_on(void **state)
{
	struct hand h;
	uint32_t next;

	(void)state;
	hand_begin(&h, false);
	hand_open(&h, 0);
	hand_fills(&h, 9, 2, 256, 4096);
	next = hand_fills(&h, ID, 2, REORDER_MAX_SESSION / 4096, 4096);
	hand_hears(&h, WIRE_SYNACK);
	ends_the_connection(&h);
	assert_int_equal(h.s->counts.reorder_limit, 1);
	assert_true(h.s->in.early < REORDER_MAX_SESSION / 8);
	assert_true(h.s->in.early > 1 << 20);	/* the other one's */
	/* All of them come to be due, and the next use begins behind them. */
	hand_data(&h, 1, 1);
	hand_fin(&h, ID, next, WIRE_REASON_RST);
	hand_open(&h, next + 1);
	goes_on(&h);
	assert_int_equal(h.opened, 2);
	assert_null(h.s->ext->channel[ID]->order.waiting);
	hand_end(&h);
}

/* No connection is there to be ended for them. */
static void bytes_that_nobody_opened_for_count_in_the_memory(void **state)
{
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	hand_memory(&h, 1 << 20);
	hand_fills(&h, ID, 1, 2048, 4096);
	goes_on(&h);
	assert_true(h.engine.hoard.bytes <= h.engine.hoard.max);
	hand_end(&h);
}

/* Each id that was named goes on with its numbers as long as the session. */
static void ids_count_in_the_memory(void **state)
{
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	for (uint16_t id = 1; id <= 1000; id++)
		hand_fin(&h, id, 0, WIRE_REASON_RST);
	goes_on(&h);
	assert_int_equal(h.engine.hoard.bytes, 1000 * sizeof(struct channel));
	hand_end(&h);
}

static void ids_beyond_the_memory_end_the_session(void **state)
{
	struct hand h;
	struct want w;

	(void)state;
	hand_begin(&h, false);
	hand_memory(&h, 100000);
	hand_open(&h, 0);
	for (uint16_t id = ID + 1; id <= 1000 && session_is_up(h.s); id++) {
		hand_fin(&h, id, 0, WIRE_REASON_RST);
		run_round(h.engine.loop);
	}
	w = hand_hears(&h, WIRE_GOODBYE);
	assert_int_equal(w.ext.goodbye.reason, WIRE_GOODBYE_LIMIT);
	assert_true(run_until(h.engine.loop, "the end", hand_has_ended, &h));
	assert_int_equal(h.engine.hoard.bytes, 0);
	hand_end(&h);
}

/* One that waits for its id to be used is gone before the ids are. */
static void a_hint_that_waits_goes_with_the_ids(void **state)
{
	struct wire_ext hint = { .type = WIRE_HINT, .hint = { .id = 9 } };
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	sock_nodelay(h.fd[0]);
	hand_memory(&h, 100000);
	hand_ext(&h, &hint);
	hand_fin(&h, 9, 5, WIRE_REASON_RST);	/* early */
	goes_on(&h);
	assert_int_equal(h.s->ext->nhints_waiting, 1);
	for (uint16_t id = 100; id <= 1200 && session_is_up(h.s); id++) {
		hand_fin(&h, id, 0, WIRE_REASON_RST);
		run_round(h.engine.loop);
	}
	assert_true(run_until(h.engine.loop, "the end", hand_has_ended, &h));
	hand_end(&h);
}

/* Who holds bytes pays with them first. */
static void ids_stay_where_bytes_are_enough(void **state)
{
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	hand_memory(&h, 300000);
	for (uint16_t id = 100; id <= 500; id++)
		hand_fin(&h, id, 0, WIRE_REASON_RST);
	hand_fills(&h, ID, 1, 64, 4096);
	goes_on(&h);
	assert_in_range(h.engine.hoard.bytes, 400 * sizeof(struct channel),
			h.engine.hoard.max);
	assert_true(session_is_up(h.s));
	hand_end(&h);
}

static void crumbs_out_of_order_end_the_session(void **state)
{
	struct hand h;
	struct want w;

	(void)state;
	hand_begin(&h, false);
	for (uint16_t id = 1; id < 10 && session_is_up(h.s); id++)
		hand_fills(&h, id, 2, 1000000, 1);
	w = hand_hears(&h, WIRE_GOODBYE);
	assert_int_equal(w.ext.goodbye.reason, WIRE_GOODBYE_LIMIT);
	assert_true(run_until(h.engine.loop, "the end", hand_has_ended, &h));
	hand_end(&h);
}

static void a_number_far_ahead_ends_its_connection(void **state)
{
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	hand_open(&h, 0);
	hand_data(&h, 2 + WIRE_NUMBER_WINDOW, 1);
	ends_the_connection(&h);
	hand_end(&h);
}

static struct conn *asks(struct hand *h)
{
	struct destination to = destination_name("x", 1, 80);
	struct conn *c = session_ask(h->s, &to);

	assert_non_null(c);
	return c;
}

/* Two connections would have one channel otherwise. */
static void an_id_that_lp_never_used_is_not_free_twice(void **state)
{
	struct hand h;

	(void)state;
	hand_begin(&h, true);
	hand_fin(&h, 2, 0, WIRE_REASON_RST);
	goes_on(&h);
	for (int i = 0; i < 3; i++)
		asks(&h);
	for (uint16_t id = 1; id <= 3; id++)
		assert_int_equal(h.s->ext->channel[id]->conn->id, id);
	assert_int_equal(h.s->ext->idle, 0);
	hand_end(&h);
}

/* --- the pipe --- */

static bool is_alone(void *arg)
{
	struct hand *h = arg;

	hand_listens(h);
	return h->closed && !h->s->paths.npipes;
}

static void a_second_hello_closes_its_pipe(void **state)
{
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	hand_ext(&h, &(struct wire_ext){ .type = WIRE_HELLO, .hello = h.hello });
	assert_true(run_until(h.engine.loop, "no pipe", is_alone, &h));
	assert_non_null(h.s);
	hand_end(&h);
}

static void pipes_join_by_index_count_and_incarnation(void **state)
{
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	assert_false(hand_joins(&h, 0, PIPES, 0));	/* no redial */
	assert_false(hand_joins(&h, 1, PIPES + 1, 0));
	assert_true(hand_joins(&h, 1, PIPES, 5));
	assert_false(hand_joins(&h, 1, PIPES, 5));
	assert_false(hand_joins(&h, 1, PIPES, 4));
	goes_on(&h);
	assert_true(hand_joins(&h, 1, PIPES, 6));	/* the older one goes */
	goes_on(&h);
	assert_int_equal(h.s->paths.npipes, 2);
	assert_int_equal(h.s->open_pipes, 2);
	hand_end(&h);
}

/* --- what is said of it --- */

/* How many lines of what was said have @text. */
static int lines_with(FILE *told, const char *text)
{
	char line[512];
	int n = 0;

	rewind(told);
	while (fgets(line, sizeof(line), told))
		n += strstr(line, text) != NULL;
	return n;
}

/* From here on @h's log goes to the file. */
static FILE *told_by(struct hand *h)
{
	FILE *told = tmpfile();

	assert_non_null(told);
	setvbuf(told, NULL, _IONBF, 0);
	h->log.level = LOG_WARN;
	writer_fini(&h->log.out);
	writer_init(&h->log.out, fileno(told));
	return told;
}

static void what_is_dropped_is_named(void **state)
{
	static const struct wire_ext dropped[] = {
		{ .type = WIRE_HINT, .hint = { .id = ID + 1 } },
		{ .type = WIRE_HINT, .hint = { .id = ID, .remaining = WIRE_HINT_MOST + 1 } },
	};
	const struct wire_path nowhere = { .path = PATHS_MAX, .serial = 1 };
	struct hand h;
	FILE *told;

	(void)state;
	hand_begin(&h, false);
	told = told_by(&h);
	h.log.level = LOG_INFO;
	h.s->ext->welcome.features |= WIRE_FEATURE_PATH | WIRE_FEATURE_HINT;
	hand_open(&h, 0);
	for (size_t i = 0; i < sizeof(dropped) / sizeof(*dropped); i++)
		hand_ext(&h, &dropped[i]);
	goes_on(&h);
	ways_came(h.s, &nowhere);
	assert_int_equal(lines_with(told, "a HINT was dropped: connection 8 sends nothing"), 1);
	assert_int_equal(lines_with(told, "a HINT was dropped: 1125899906842625 bytes that remain on connection 7 are more than"), 1);
	assert_int_equal(lines_with(told, "a PATH was dropped: path 7, state 0"), 1);
	hand_end(&h);
	fclose(told);
}

static void who_is_told_again_and_again_is_counted(void **state)
{
	enum { TIMES = 50 };
	struct hand h;
	FILE *told;

	(void)state;
	hand_begin(&h, false);
	told = told_by(&h);
	for (int i = 0; i < TIMES; i++)
		assert_false(hand_joins(&h, 0, PIPES, 0));
	assert_int_equal(lines_with(told, "may not join"), 1);
	assert_int_equal(h.engine.incidents.count[INCIDENT_JOIN], TIMES);
	hand_open(&h, 0);
	for (uint32_t i = 0; i < TIMES; i++) {
		hand_data(&h, 2 * i + 2 + WIRE_NUMBER_WINDOW, 1);
		goes_on(&h);
		hand_fin(&h, ID, 2 * i + 1, WIRE_REASON_RST);
		hand_open(&h, 2 * i + 2);
	}
	goes_on(&h);
	assert_int_equal(lines_with(told, "was ended"), INCIDENT_LINES);
	assert_int_equal(h.engine.incidents.count[INCIDENT_PROTOCOL], TIMES);
	/* A pipe that ends for cause is of the same kind. */
	hand_ext(&h, &(struct wire_ext){ .type = WIRE_HELLO, .hello = h.hello });
	assert_true(run_until(h.engine.loop, "no pipe", is_alone, &h));
	assert_int_equal(lines_with(told, "second HELLO"), 0);
	assert_int_equal(h.engine.incidents.count[INCIDENT_PROTOCOL],
			 TIMES + 1);
	hand_end(&h);
	fclose(told);
}

/* --- the message alone --- */

static void some_are_dropped_and_counted(void **state)
{
	static const uint8_t unknown[] = { 10, 1, 2, 3 }, brief[] = { WIRE_OPEN };
	struct wire_ext window = { .type = WIRE_WINDOW, .window = { ID, 1000 } };
	struct wire_ext ack = {
		.type = WIRE_ACK,
		.ack = { .pipes = 1, .pipe[0] = { 0, 9, 1000 } },
	};
	struct hand h;
	struct want w;

	(void)state;
	hand_begin(&h, false);
	hand_body(&h, unknown, sizeof(unknown));
	hand_body(&h, brief, sizeof(brief));
	hand_ext(&h, &window);			/* of no use so far */
	hand_fin(&h, 0, 0, WIRE_REASON_RST);
	hand_ext(&h, &ack);			/* of another incarnation */
	hand_open(&h, 0);
	hand_ext(&h, &window);			/* below OPEN's */
	goes_on(&h);
	assert_int_equal(h.s->counts.dropped, 6);
	assert_int_equal(h.s->counts.stale, 2);
	assert_int_equal(h.s->counts.protocol, 0);
	assert_int_equal(h.opened, 1);
	/* ACK does not count; all others of these do. */
	w = hand_hears(&h, WIRE_ACK);
	assert_int_equal(w.ext.ack.pipe[0].received, 6);
	hand_end(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(framing_ends_the_session),
		cmocka_unit_test(a_syn_ends_the_session),
		cmocka_unit_test(the_wrong_way_ends_the_session),
		cmocka_unit_test(what_cannot_be_due_ends_the_session),
		cmocka_unit_test(an_ack_beyond_ends_the_session),
		cmocka_unit_test(a_bad_open_is_answered),
		cmocka_unit_test(an_unknown_reason_ends_its_connection),
		cmocka_unit_test(more_than_early_ends_its_connection),
		cmocka_unit_test(
			the_largest_out_of_order_is_ended_and_its_id_goes_on),
		cmocka_unit_test(bytes_that_nobody_opened_for_count_in_the_memory),
		cmocka_unit_test(ids_count_in_the_memory),
		cmocka_unit_test(ids_beyond_the_memory_end_the_session),
		cmocka_unit_test(a_hint_that_waits_goes_with_the_ids),
		cmocka_unit_test(ids_stay_where_bytes_are_enough),
		cmocka_unit_test(crumbs_out_of_order_end_the_session),
		cmocka_unit_test(a_number_far_ahead_ends_its_connection),
		cmocka_unit_test(an_id_that_lp_never_used_is_not_free_twice),
		cmocka_unit_test(a_second_hello_closes_its_pipe),
		cmocka_unit_test(pipes_join_by_index_count_and_incarnation),
		cmocka_unit_test(what_is_dropped_is_named),
		cmocka_unit_test(who_is_told_again_and_again_is_counted),
		cmocka_unit_test(some_are_dropped_and_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
