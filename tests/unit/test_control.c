/* SPDX-License-Identifier: MIT */
/* What goes whatever bounds connections' bytes: their end, where the window is used up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "mux/conn/conn.h"
#include "ext_hand.h"
#include "loopback.h"

enum { WINDOW = 16384 };

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_goes_with_the_last_byte_of_a_window),
		cmocka_unit_test(an_end_goes_where_the_window_is_used_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
