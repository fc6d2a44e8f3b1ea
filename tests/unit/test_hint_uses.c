/* SPDX-License-Identifier: MIT */
/*
 * Of which use of its id a HINT is that came: it has no number, and is known by the message that it
 * stands beside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "ext_hand.h"
#include "loopback.h"
#include "mux/base/sock.h"
#include "mux/conn/conn.h"

static struct conn *conn_at(struct session *s, uint16_t id)
{
	struct channel *ch = s->ext->channel[id];

	return ch ? ch->conn : NULL;
}

static struct wire_ext hint_of(uint8_t urgency)
{
	return (struct wire_ext){ .type = WIRE_HINT, .hint = {
		.id = ID, .priority = urgency } };
}

/* What it says at once comes at once, as what an end writes at once does. */
static void begin(struct hand *h)
{
	hand_begin(h, false);
	sock_nodelay(h->fd[0]);
}

/* The connection is there. */
static void begin_opened(struct hand *h)
{
	begin(h);
	hand_open(h, 0);
	goes_on(h);
}

static void a_bad_one_is_dropped_alone(void **state)
{
	struct wire_ext what = { .type = WIRE_HINT, .hint = {
		.id = ID, .priority = 7, .remaining = WIRE_HINT_MOST } };
	struct hand h;

	(void)state;
	begin(&h);
	h.s->ext->welcome.features &= ~(uint32_t)WIRE_FEATURE_HINT;
	hand_ext(&h, &what);
	goes_on(&h);
	assert_int_equal(h.s->counts.hints_dropped, 0);
	assert_int_equal(h.s->counts.dropped, 1);	/* not agreed upon */
	h.s->ext->welcome.features |= WIRE_FEATURE_HINT;
	/* For nobody: there is no such connection yet. */
	hand_ext(&h, &what);
	goes_on(&h);
	assert_int_equal(h.s->counts.hints_dropped, 1);
	hand_open(&h, 0);
	hand_ext(&h, &what);
	goes_on(&h);
	assert_int_equal(conn_at(h.s, ID)->urgency, 7);
	what.hint.remaining++;
	what.hint.priority = 8;
	hand_ext(&h, &what);
	goes_on(&h);
	assert_int_equal(conn_at(h.s, ID)->urgency, 7);
	assert_int_equal(h.s->counts.hints_received, 1);
	assert_int_equal(h.s->counts.hints_dropped, 2);
	assert_int_equal(h.s->counts.dropped, 3);
	hand_end(&h);
}

/* Of an OPEN and what followed it on its pipe, which come again in the id's next use. */
static void a_copy_says_nothing_of_the_next_use(void **state)
{
	struct wire_ext what = hint_of(7);
	struct hand h;

	(void)state;
	begin(&h);
	hand_open(&h, 0);
	hand_ext(&h, &what);
	goes_on(&h);
	assert_int_equal(conn_at(h.s, ID)->urgency, 7);
	hand_fin(&h, ID, 1, WIRE_REASON_RST);
	hand_hears(&h, 0);
	hand_open(&h, 2);
	goes_on(&h);
	assert_int_equal(conn_at(h.s, ID)->urgency, 0);
	hand_open(&h, 0);
	hand_ext(&h, &what);
	goes_on(&h);
	assert_int_equal(conn_at(h.s, ID)->urgency, 0);
	assert_int_equal(h.s->counts.hints_dropped, 1);
	/* One by itself is of the present use, whatever came before it. */
	hand_ext(&h, &what);
	goes_on(&h);
	assert_int_equal(conn_at(h.s, ID)->urgency, 7);
	hand_end(&h);
}

static void a_hint_that_overtakes_its_open_waits_with_the_bytes_behind_it(void **state)
{
	struct wire_ext what = hint_of(7);
	struct hand h;

	(void)state;
	begin(&h);
	hand_ext(&h, &what);
	hand_data(&h, 1, 10);
	goes_on(&h);
	assert_null(conn_at(h.s, ID));
	assert_int_equal(h.s->counts.hints_dropped, 0);
	hand_open(&h, 0);
	goes_on(&h);
	assert_int_equal(conn_at(h.s, ID)->urgency, 7);
	assert_int_equal(h.s->counts.hints_received, 1);
	assert_int_equal(h.s->counts.dropped, 0);
	hand_end(&h);
}

/* It tells what remains when it comes, not when these bytes are due. */
static void a_hint_that_was_heeded_does_not_wait(void **state)
{
	struct wire_ext what = hint_of(7);
	struct hand h;

	(void)state;
	begin_opened(&h);
	hand_ext(&h, &what);
	hand_data(&h, 2, 10);
	goes_on(&h);
	assert_int_equal(conn_at(h.s, ID)->urgency, 7);
	hand_data(&h, 1, 10);
	goes_on(&h);
	assert_int_equal(h.s->counts.hints_received, 1);
	assert_int_equal(h.s->counts.dropped, 0);
	hand_end(&h);
}

/* Neither another connection's bytes tell whose it is, nor another HINT. */
static void a_hint_that_stands_beside_nothing_that_waits_is_nobodys(void **state)
{
	struct wire_ext what = { .type = WIRE_HINT, .hint = {
		.id = ID + 1, .priority = 7 } };
	struct hand h;

	(void)state;
	begin(&h);
	hand_ext(&h, &what);
	hand_data(&h, 1, 10);
	goes_on(&h);
	assert_int_equal(h.s->counts.hints_dropped, 1);
	hand_ext(&h, &what);
	hand_ext(&h, &what);
	goes_on(&h);
	assert_int_equal(h.s->counts.hints_dropped, 3);
	hand_open(&h, 0);
	goes_on(&h);
	assert_int_equal(conn_at(h.s, ID)->urgency, 0);
	assert_int_equal(h.s->counts.hints_received, 0);
	hand_end(&h);
}

/* Messages of the id's last use are late. What was said of the next one is not of that. */
static void a_hint_behind_an_open_that_waits_waits_with_it(void **state)
{
	struct wire_ext what = hint_of(7);
	struct hand h;

	(void)state;
	begin_opened(&h);
	shutdown(h.app, SHUT_WR);
	hand_hears(&h, 0);
	hand_open(&h, 2);
	hand_ext(&h, &what);
	goes_on(&h);
	assert_int_equal(conn_at(h.s, ID)->urgency, 0);
	hand_fin(&h, ID, 1, WIRE_REASON_NO_MORE);
	goes_on(&h);
	assert_int_equal(conn_at(h.s, ID)->urgency, 7);
	assert_int_equal(h.s->counts.hints_received, 1);
	assert_int_equal(h.s->counts.dropped, 0);
	hand_end(&h);
}

static void put_on_second(const struct hand *h, const struct wire_ext *what)
{
	uint8_t buf[WIRE_MESSAGE_MAX];
	size_t len = wire_ext_put(buf, what);

	assert_int_equal(send(h->fd[1], buf, len, MSG_NOSIGNAL), len);
}

static bool a_copy_came(void *arg)
{
	return ((const struct hand *)arg)->s->counts.duplicates == 1;
}

static bool a_hint_came(void *arg)
{
	const struct stats_counts *n = &((const struct hand *)arg)->s->counts;

	return n->hints_received || n->hints_dropped;
}

/* It was the last that a pipe brought. The next incarnation begins with a HINT. */
static void a_copy_says_nothing_of_the_next_pipe(void **state)
{
	struct wire_ext open = { .type = WIRE_OPEN, .open = {
		.id = ID, .protocol = WIRE_PROTOCOL_TCP, .window = 65536,
		.to = destination_name("x", 1, 80) } };
	struct wire_ext hint = hint_of(7);
	struct hand h;

	(void)state;
	begin_opened(&h);
	assert_true(hand_joins(&h, 1, PIPES, 0));
	put_on_second(&h, &open);
	assert_true(run_until(h.engine.loop, "OPEN", a_copy_came, &h));
	assert_true(hand_joins(&h, 1, PIPES, 1));
	put_on_second(&h, &hint);
	assert_true(run_until(h.engine.loop, "HINT", a_hint_came, &h));
	assert_int_equal(h.s->counts.hints_dropped, 0);
	assert_int_equal(conn_at(h.s, ID)->urgency, 7);
	hand_end(&h);
}

/* What stood ahead of data comes again with them in the id's next use. */
static void a_copy_with_its_bytes_says_nothing_of_the_next_use(void **state)
{
	struct wire_ext what = hint_of(7);
	struct hand h;

	(void)state;
	begin_opened(&h);
	hand_ext(&h, &what);
	hand_data(&h, 1, 10);
	goes_on(&h);
	assert_int_equal(conn_at(h.s, ID)->urgency, 7);
	hand_fin(&h, ID, 2, WIRE_REASON_RST);
	hand_hears(&h, 0);
	hand_open(&h, 3);
	goes_on(&h);
	assert_int_equal(conn_at(h.s, ID)->urgency, 0);
	hand_ext(&h, &what);
	hand_data(&h, 1, 10);
	goes_on(&h);
	assert_int_equal(h.s->counts.duplicates, 1);
	assert_int_equal(conn_at(h.s, ID)->urgency, 0);
	assert_int_equal(h.s->counts.hints_dropped, 1);
	assert_int_equal(h.s->counts.hints_received, 1);
	hand_end(&h);
}

/* Its pipe had ended behind OPEN, and all goes again. */
static void a_hint_behind_a_copy_of_its_open_is_heeded_once(void **state)
{
	struct wire_ext what = hint_of(7), again = hint_of(3);
	struct hand h;

	(void)state;
	begin_opened(&h);
	hand_open(&h, 0);
	hand_ext(&h, &what);
	hand_data(&h, 1, 10);
	goes_on(&h);
	assert_int_equal(conn_at(h.s, ID)->urgency, 7);
	assert_int_equal(h.s->counts.hints_dropped, 0);
	/* What comes now is a copy of that, and may say what was so before. */
	hand_open(&h, 0);
	hand_ext(&h, &again);
	hand_data(&h, 1, 10);
	hand_ext(&h, &again);
	hand_data(&h, 1, 10);
	goes_on(&h);
	assert_int_equal(h.s->counts.duplicates, 4);
	assert_int_equal(conn_at(h.s, ID)->urgency, 7);
	assert_int_equal(h.s->counts.hints_received, 1);
	assert_int_equal(h.s->counts.hints_dropped, 2);
	hand_end(&h);
}

/* What goes on two paths comes twice, and a HINT may stand ahead of either. */
static void a_hint_ahead_of_a_copy_of_later_bytes_is_heeded(void **state)
{
	struct wire_ext what = hint_of(7), next = hint_of(3);
	struct hand h;

	(void)state;
	begin(&h);
	hand_open(&h, 0);
	hand_ext(&h, &what);
	hand_data(&h, 1, 10);
	hand_data(&h, 2, 10);
	hand_ext(&h, &next);
	hand_data(&h, 2, 10);
	goes_on(&h);
	assert_int_equal(h.s->counts.duplicates, 1);
	assert_int_equal(conn_at(h.s, ID)->urgency, 3);
	assert_int_equal(h.s->counts.hints_received, 2);
	assert_int_equal(h.s->counts.hints_dropped, 0);
	hand_end(&h);
}

/* Nothing tells that more follows it: what was read ends. */
static void a_hint_that_nothing_follows_is_heeded(void **state)
{
	struct wire_ext what = hint_of(7);
	struct hand h;

	(void)state;
	begin_opened(&h);
	hand_ext(&h, &what);
	for (unsigned int i = 0; i < 5; i++)
		run_round(h.engine.loop);
	assert_int_equal(conn_at(h.s, ID)->urgency, 7);
	hand_end(&h);
}

/* Each that came is heeded, or counted as dropped, whatever took its place. */
static void none_goes_uncounted(void **state)
{
	struct wire_ext what = hint_of(7), other = hint_of(3);
	struct hand h;

	(void)state;
	begin(&h);
	assert_true(hand_joins(&h, 1, PIPES, 0));
	hand_ext(&h, &what);
	hand_data(&h, 2, 10);
	hand_ext(&h, &other);
	hand_data(&h, 1, 10);
	goes_on(&h);
	assert_int_equal(h.s->counts.hints_dropped, 1);
	hand_open(&h, 0);
	goes_on(&h);
	assert_int_equal(conn_at(h.s, ID)->urgency, 7);
	assert_int_equal(h.s->counts.hints_received, 1);
	/* The last that its pipe brought, but for a part of a message. */
	what.hint.id = ID + 1;
	put_on_second(&h, &what);
	assert_int_equal(send(h.fd[1], "x", 1, MSG_NOSIGNAL), 1);
	for (unsigned int i = 0; i < 20; i++)
		goes_on(&h);
	assert_int_equal(h.s->counts.hints_dropped, 1);
	assert_true(hand_joins(&h, 1, PIPES, 1));
	assert_int_equal(h.s->counts.hints_dropped, 2);
	/* The last, with nothing behind it. */
	put_on_second(&h, &what);
	for (unsigned int i = 0; i < 20; i++)
		goes_on(&h);
	assert_int_equal(h.s->counts.hints_dropped, 3);
	assert_int_equal(h.s->counts.dropped, 3);
	hand_end(&h);
}

enum { WAITING = 256 };

static void so_many_wait_and_no_more(void **state)
{
	static uint8_t buf[(WAITING + 1) * WIRE_MESSAGE_MAX];
	struct hand h;
	size_t len = 0;

	(void)state;
	begin(&h);
	for (uint16_t id = 1; id <= WAITING + 1; id++) {
		struct wire_ext what = hint_of(7);

		what.hint.id = id;
		len += wire_ext_put(buf + len, &what);
		wire_put_data(buf + len, id, 1, 1);
		buf[len + WIRE_HEADER] = 'x';
		len += WIRE_HEADER + 1;
	}
	hand_put(&h, buf, len);
	goes_on(&h);
	assert_int_equal(h.s->ext->nhints_waiting, WAITING);
	assert_int_equal(h.s->counts.hints_dropped, 1);
	hand_open(&h, 0);
	goes_on(&h);
	assert_int_equal(conn_at(h.s, ID)->urgency, 7);
	assert_int_equal(h.s->ext->nhints_waiting, WAITING - 1);
	hand_end(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bad_one_is_dropped_alone),
		cmocka_unit_test(a_copy_says_nothing_of_the_next_use),
		cmocka_unit_test(a_hint_that_overtakes_its_open_waits_with_the_bytes_behind_it),
		cmocka_unit_test(a_hint_that_was_heeded_does_not_wait),
		cmocka_unit_test(a_hint_that_stands_beside_nothing_that_waits_is_nobodys),
		cmocka_unit_test(a_hint_behind_an_open_that_waits_waits_with_it),
		cmocka_unit_test(a_copy_says_nothing_of_the_next_pipe),
		cmocka_unit_test(a_copy_with_its_bytes_says_nothing_of_the_next_use),
		cmocka_unit_test(a_hint_behind_a_copy_of_its_open_is_heeded_once),
		cmocka_unit_test(a_hint_ahead_of_a_copy_of_later_bytes_is_heeded),
		cmocka_unit_test(a_hint_that_nothing_follows_is_heeded),
		cmocka_unit_test(none_goes_uncounted),
		cmocka_unit_test(so_many_wait_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
