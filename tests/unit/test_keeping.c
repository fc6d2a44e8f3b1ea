/* SPDX-License-Identifier: MIT */
/* What is kept until it is acknowledged: no more memory than it needs, and all of that counted. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "ext_hand.h"
#include "loopback.h"
#include "mux/session/sent_run.h"
#include "mux/wire/run.h"

enum { WINDOW = 60000, ROUNDING = 24 };	/* the heap's, of one block */

static const uint8_t bytes[WINDOW];

static struct leg *leg_of(struct hand *h)
{
	return &h->s->ext->leg[0];
}

/* That is what the heap gave for all that is kept. */
static void assert_counted(struct hand *h)
{
	size_t held = 0, blocks = 0;
	struct kept_item *item;

	for (item = leg_of(h)->kept.first; item; item = item->next) {
		held += malloc_usable_size(sent_run_of(item));
		held += malloc_usable_size(sent_run_of(item)->run);
		blocks += 2;
	}
	assert_in_range(h->s->ext->kept, held - blocks * ROUNDING, held);
	assert_int_equal(h->engine.kept, h->s->ext->kept);
}

static void acknowledge(struct hand *h)
{
	struct wire_ext ack = {
		.type = WIRE_ACK,
		.ack = { .pipes = 1, .pipe[0] = { .received = leg_of(h)->kept.sent } },
	};

	hand_ext(h, &ack);
	goes_on(h);
	assert_null(leg_of(h)->kept.first);
	assert_int_equal(h->s->ext->kept, 0);
	assert_int_equal(h->engine.kept, 0);
}

/* The server's first @len bytes are kept, and nothing else is. */
static void send_bytes(struct hand *h, size_t len)
{
	uint64_t sent = h->s->ext->channel[ID]->out.sent + len;

	assert_int_equal(send(h->app, bytes, len, MSG_NOSIGNAL), len);
	while (h->s->ext->channel[ID]->out.sent < sent)
		run_round(h->engine.loop);
}

static void begin(struct hand *h)
{
	hand_begin(h, false);
	hand_open(h, 0);
	hand_hears(h, WIRE_SYNACK);
	acknowledge(h);
}

/* Each has a run of its own. */
static void small_messages_are_kept_in_little_memory(void **state)
{
	enum { MESSAGES = 20, MOST = 512 };
	struct hand h;

	(void)state;
	begin(&h);
	for (int i = 1; i <= MESSAGES; i++) {
		send_bytes(&h, 10);
		assert_in_range(h.s->ext->kept, 1, i * MOST);
		assert_counted(&h);
	}
	acknowledge(&h);
	hand_end(&h);
}

static void what_is_mostly_full_is_counted_as_it_is(void **state)
{
	struct hand h;

	(void)state;
	begin(&h);
	send_bytes(&h, WINDOW);
	assert_true(h.s->ext->kept > WINDOW);
	assert_counted(&h);
	acknowledge(&h);
	hand_end(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_messages_are_kept_in_little_memory),
		cmocka_unit_test(what_is_mostly_full_is_counted_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
