/* SPDX-License-Identifier: MIT */
/* What a connection may send, over the extension, while bytes before those that came are missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mux/conn/conn.h"
#include "ext_hand.h"
#include "flow.h"
#include "halted.h"
#include "loopback.h"

enum {
	MESSAGE = 4096,
	A_QUARTER = WINDOW_FIRST / 4 / MESSAGE,		/* messages */
	FIRST_DATA = 1,					/* behind OPEN */
};

/* A connection whose round began @late ns before now. */
static struct channel *opened_by(struct hand *h, int64_t late)
{
	struct channel *ch;

	hand_begin(h, false);
	hand_open(h, 0);
	hand_hears(h, WIRE_SYNACK);
	ch = h->s->ext->channel[ID];
	ch->round_at = loop_clock() - late;
	return ch;
}

#define NEVER_LATE (-60 * NS_PER_SEC)

/*
 * What goes over a near path waits for what went over a far one before: no application
 * can take it sooner, and the sender shall not meet the window meanwhile.
 */
static void a_window_is_doubled_by_what_waits_for_other_bytes(void **state)
{
	struct hand h;
	struct channel *ch = opened_by(&h, NEVER_LATE);
	struct want w;

	(void)state;
	hand_fills(&h, ID, FIRST_DATA + 1, A_QUARTER - 1, MESSAGE);
	goes_on(&h);
	assert_int_equal(ch->window, WINDOW_FIRST);
	hand_fills(&h, ID, FIRST_DATA + A_QUARTER, 1, MESSAGE);
	w = hand_hears(&h, WIRE_WINDOW);
	assert_int_equal(w.ext.window.id, ID);
	assert_int_equal(w.ext.window.offset, 2 * WINDOW_FIRST);
	assert_int_equal(ch->in.taken, 0);
	hand_end(&h);
}

static void not_where_it_took_longer_than_a_round_trip(void **state)
{
	struct hand h;
	struct channel *ch = opened_by(&h, NEVER_LATE);

	(void)state;
	hand_fills(&h, ID, FIRST_DATA + 1, A_QUARTER / 2, MESSAGE);
	goes_on(&h);
	ch->round_at = loop_clock() - NS_PER_SEC;
	hand_fills(&h, ID, FIRST_DATA + 1 + A_QUARTER / 2, A_QUARTER / 2, MESSAGE);
	goes_on(&h);
	assert_int_equal(reorder_payload(&ch->order), A_QUARTER * MESSAGE);
	assert_int_equal(ch->window, WINDOW_FIRST);
	hand_end(&h);
}

/*
 * Each after a round trip by itself, as over a slow path. A gap of which TCP loses the repair
 * too stays for seconds, and the window is all that the other pipes may send meanwhile.
 */
static void but_where_half_of_it_lies_behind_a_gap(void **state)
{
	struct hand h;
	struct channel *ch = opened_by(&h, NEVER_LATE);
	struct want w;

	(void)state;
	for (int i = 0; i < 2 * A_QUARTER; i++) {
		assert_int_equal(ch->window, WINDOW_FIRST);
		ch->round_at = loop_clock() - NS_PER_SEC;
		hand_fills(&h, ID, FIRST_DATA + 1 + i, 1, MESSAGE);
		goes_on(&h);
	}
	w = hand_hears(&h, WIRE_WINDOW);
	assert_int_equal(w.ext.window.offset, 2 * WINDOW_FIRST);
	assert_int_equal(ch->window, 2 * WINDOW_FIRST);
	assert_int_equal(ch->in.taken, 0);
	/* No other one begins with more for that. */
	assert_int_equal(h.s->ext->window, WINDOW_FIRST);
	hand_end(&h);
}

/* The first bytes come more than a round trip after OPEN: that was no time to take any in. */
static void a_round_does_not_begin_with_a_wait(void **state)
{
	struct hand h;
	struct channel *ch = opened_by(&h, NS_PER_SEC);
	int64_t before = loop_clock();

	(void)state;
	hand_fills(&h, ID, FIRST_DATA + 1, 1, MESSAGE);
	goes_on(&h);
	assert_true(ch->round_at >= before);
	ch->round_at = loop_clock() - NEVER_LATE;
	hand_fills(&h, ID, FIRST_DATA + 2, A_QUARTER - 1, MESSAGE);
	goes_on(&h);
	assert_int_equal(ch->window, 2 * WINDOW_FIRST);
	hand_end(&h);
}

/* Its bytes would lie there as well, were they in order. */
static void nor_where_the_application_leaves_what_it_has(void **state)
{
	struct hand h;
	struct channel *ch = opened_by(&h, NEVER_LATE);

	(void)state;
	fill_socket(ch->conn->watch.fd);
	hand_data(&h, FIRST_DATA, MESSAGE);
	goes_on(&h);
	assert_int_equal(conn_queued(ch->conn), MESSAGE);
	hand_fills(&h, ID, FIRST_DATA + 2, 2 * A_QUARTER, MESSAGE);
	goes_on(&h);
	assert_int_equal(reorder_payload(&ch->order), 2 * A_QUARTER * MESSAGE);
	assert_int_equal(ch->window, WINDOW_FIRST);
	hand_end(&h);
}

/* Each counts once: neither for the next round, nor when the missing one comes. */
static void nor_again_by_the_same_bytes_in_order(void **state)
{
	struct hand h;
	struct channel *ch = opened_by(&h, NEVER_LATE);

	(void)state;
	hand_fills(&h, ID, FIRST_DATA + 1, 2 * A_QUARTER, MESSAGE);
	goes_on(&h);
	assert_int_equal(ch->window, 2 * WINDOW_FIRST);
	ch->round_at = loop_clock() - NEVER_LATE;
	hand_data(&h, FIRST_DATA, MESSAGE);
	goes_on(&h);
	assert_int_equal(ch->in.taken, (2 * A_QUARTER + 1) * MESSAGE);
	assert_int_equal(reorder_payload(&ch->order), 0);
	assert_int_equal(ch->window, 2 * WINDOW_FIRST);
	hand_end(&h);
}

struct taking {
	struct hand *h;
	struct channel *ch;
};

static bool some_was_taken(void *arg)
{
	struct taking *t = arg;
	uint8_t bytes[MESSAGE];

	read_some(t->h->app, bytes, sizeof(bytes));
	return conn_queued(t->ch->conn) < A_QUARTER * MESSAGE;
}

/* It took less than what counted as taken while others were missing. */
static void nor_where_it_takes_little_of_them(void **state)
{
	struct hand h;
	struct channel *ch = opened_by(&h, NEVER_LATE);
	struct taking t = { &h, ch };

	(void)state;
	small_buffers(h.app, ch->conn->watch.fd);
	fill_socket(ch->conn->watch.fd);
	hand_fills(&h, ID, FIRST_DATA + 1, A_QUARTER, MESSAGE);
	goes_on(&h);
	assert_int_equal(ch->window, 2 * WINDOW_FIRST);
	ch->round_at = loop_clock() - NEVER_LATE;
	hand_data(&h, FIRST_DATA, MESSAGE);
	goes_on(&h);
	assert_true(run_until(h.engine.loop, "a reader", some_was_taken, &t));
	assert_true(conn_queued(ch->conn) > 0);
	assert_int_equal(ch->window, 2 * WINDOW_FIRST);
	hand_end(&h);
}

/* It lay there before something came behind it: however fast it is taken then, that is late. */
static void nor_where_it_takes_them_late(void **state)
{
	struct hand h;
	struct channel *ch = opened_by(&h, NEVER_LATE);
	int64_t long_ago = loop_clock() - NS_PER_SEC;

	(void)state;
	fill_socket(ch->conn->watch.fd);
	hand_fills(&h, ID, FIRST_DATA, A_QUARTER, MESSAGE);
	goes_on(&h);
	assert_int_equal(conn_queued(ch->conn), A_QUARTER * MESSAGE);
	ch->round_at = long_ago;
	hand_data(&h, FIRST_DATA + A_QUARTER, MESSAGE);
	goes_on(&h);
	assert_int_equal(ch->round_at, long_ago);
	hand_end(&h);
}

static bool is_not_in_use(void *arg)
{
	const struct channel *ch = arg;

	return !ch->in_use;
}

/* Nothing came to it for long, so it was counted apart: it is no more. */
static void what_it_is_granted_then_counts_once(void **state)
{
	struct hand h;
	struct channel *ch = opened_by(&h, NEVER_LATE);
	struct extended *ext = h.s->ext;

	(void)state;
	h.settings.window_memory = WINDOW_FIRST;
	ch->taken_at -= WINDOW_IDLE_SECONDS * NS_PER_SEC;
	loop_timer_in(h.engine.loop, &ext->window_timer, 0);
	assert_true(run_until(h.engine.loop, "a look", is_not_in_use, ch));
	assert_int_equal(ext->idle, WINDOW_FIRST);
	h.settings.window_memory = 4 * WINDOW_FIRST;
	hand_fills(&h, ID, FIRST_DATA + 1, A_QUARTER, MESSAGE);
	goes_on(&h);
	assert_int_equal(ext->idle, 0);
	assert_int_equal(ext->promised, 2 * WINDOW_FIRST);
	assert_int_equal(channel_promised(ch), 2 * WINDOW_FIRST);
	hand_end(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_is_doubled_by_what_waits_for_other_bytes),
		cmocka_unit_test(not_where_it_took_longer_than_a_round_trip),
		cmocka_unit_test(but_where_half_of_it_lies_behind_a_gap),
		cmocka_unit_test(a_round_does_not_begin_with_a_wait),
		cmocka_unit_test(nor_where_the_application_leaves_what_it_has),
		cmocka_unit_test(nor_again_by_the_same_bytes_in_order),
		cmocka_unit_test(nor_where_it_takes_little_of_them),
		cmocka_unit_test(nor_where_it_takes_them_late),
		cmocka_unit_test(what_it_is_granted_then_counts_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
