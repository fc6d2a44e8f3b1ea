/* SPDX-License-Identifier: MIT */
/*
 * Any interleaving over any pipes delivers the bytes, once, in order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mux/conn/reorder.h"
#include "mux/conn/waits.h"
#include "random.h"

enum { MESSAGES = 400, PIPES = 8, BODY_MAX = 40 };

struct sent {
	uint8_t body[BODY_MAX];
	uint16_t len;
};

/* A connection as its receiver sees it, checked byte for byte. */
struct receiver {
	struct reorder q;
	struct waits *waits;
	const struct sent *sent;
	uint32_t first;		/* number of sent[0] */
	uint32_t delivered;
};

static void deliver(struct receiver *rx, uint32_t number, const uint8_t *body,
		    uint16_t len)
{
	const struct sent *want = &rx->sent[rx->delivered];

	assert_int_equal(number, rx->first + rx->delivered);
	assert_int_equal(len, want->len);
	assert_memory_equal(body, want->body, len);
	rx->delivered++;
}

static enum reorder_verdict arrive(struct receiver *rx, uint32_t index)
{
	struct wire_msg msg = {
		.type = WIRE_DATA,
		.id = 1,
		.number = rx->first + index,
		.body = rx->sent[index].body,
		.body_len = rx->sent[index].len,
	};
	enum reorder_verdict verdict = reorder_put(&rx->q, &msg, index);
	struct reorder_early *held;

	if (verdict != REORDER_DUE)
		return verdict;
	deliver(rx, msg.number, msg.body, msg.body_len);
	while ((held = reorder_take(&rx->q))) {
		assert_int_equal(held->came_at, held->number - rx->first);
		waits_taken(&rx->waits, &rx->q, held, 1);
		deliver(rx, held->number, held->body, held->body_len);
		reorder_release(held);
	}
	return verdict;
}

static void make_messages(struct random *r, struct sent *sent, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		sent[i].len = (uint16_t)random_range(r, 1, BODY_MAX);
		random_fill(r, sent[i].body, sent[i].len);
	}
}

static void receiver_init(struct random *r, struct receiver *rx,
			  const struct sent *sent)
{
	/* Every other run passes the end of the circle. */
	rx->first = random_below(r, 2) ? 0u - random_below(r, MESSAGES)
				       : (uint32_t)random_next(r);
	rx->sent = sent;
	rx->delivered = 0;
	rx->waits = NULL;
	reorder_init(&rx->q, rx->first);
}

static void assert_owns_nothing(const struct reorder *q)
{
	assert_int_equal(reorder_count(q), 0);
	assert_int_equal(reorder_bytes(q), 0);
	assert_int_equal(reorder_payload(q), 0);
	assert_null(q->waiting);
}

/* Each pipe keeps the order of its messages; between pipes there is none. */
static uint32_t deal_to_pipes(struct random *r, uint32_t n,
			      uint32_t order[MESSAGES])
{
	uint32_t queue[PIPES][MESSAGES], len[PIPES] = { 0 }, at[PIPES] = { 0 };
	uint32_t pipes = random_range(r, 1, PIPES);
	uint32_t out = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t p = random_below(r, pipes);

		queue[p][len[p]++] = i;
	}
	while (out < n) {
		uint32_t p = random_below(r, pipes);
		uint32_t burst = random_range(r, 1, 50);

		while (burst-- && at[p] < len[p])
			order[out++] = queue[p][at[p]++];
	}
	return pipes;
}

static void any_interleaving_of_pipes(void **state)
{
	static struct sent sent[MESSAGES];
	static uint32_t order[MESSAGES];
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int round = 0; round < 300; round++) {
		uint32_t n = random_range(&r, 1, MESSAGES);
		struct receiver rx;
		uint32_t pipes;

		make_messages(&r, sent, n);
		receiver_init(&r, &rx, sent);
		pipes = deal_to_pipes(&r, n, order);
		for (uint32_t i = 0; i < n; i++)
			arrive(&rx, order[i]);
		assert_int_equal(rx.delivered, n);
		assert_owns_nothing(&rx.q);
		if (pipes == 1)
			assert_null(rx.waits);
		free(rx.waits);
	}
}

static void any_permutation_with_copies(void **state)
{
	static struct sent sent[MESSAGES];
	static uint32_t order[MESSAGES];
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int round = 0; round < 300; round++) {
		uint32_t n = random_range(&r, 1, MESSAGES);
		struct receiver rx;

		make_messages(&r, sent, n);
		receiver_init(&r, &rx, sent);
		random_order(&r, order, n);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t old = order[random_below(&r, i + 1)];

			assert_int_not_equal(arrive(&rx, order[i]),
					     REORDER_DUPLICATE);
			assert_int_equal(arrive(&rx, old), REORDER_DUPLICATE);
		}
		assert_int_equal(rx.delivered, n);
		assert_owns_nothing(&rx.q);
		free(rx.waits);
	}
}

/* Every order of a handful, rather than some of many. */
static void every_permutation_of_six(void **state)
{
	enum { N = 6, ALL = 720 };
	struct sent sent[N];
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	make_messages(&r, sent, N);
	for (uint32_t which = 0; which < ALL; which++) {
		uint32_t left[N] = { 0, 1, 2, 3, 4, 5 };
		uint32_t code = which;
		struct receiver rx = { .sent = sent, .first = UINT32_MAX - 2 };

		reorder_init(&rx.q, rx.first);
		for (uint32_t n = N; n > 0; code /= n, n--) {
			uint32_t pick = code % n;

			arrive(&rx, left[pick]);
			left[pick] = left[n - 1];
		}
		assert_int_equal(rx.delivered, N);
		assert_owns_nothing(&rx.q);
		free(rx.waits);
	}
}

/* The books kept on the side, from sizes alone. */
static void the_books_are_right_at_every_step(void **state)
{
	static struct sent sent[MESSAGES];
	static uint32_t order[MESSAGES];
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int round = 0; round < 100; round++) {
		uint8_t came[MESSAGES] = { 0 };
		struct waits most = { 0 };
		struct receiver rx;

		make_messages(&r, sent, MESSAGES);
		receiver_init(&r, &rx, sent);
		random_order(&r, order, MESSAGES);
		for (uint32_t i = 0; i < MESSAGES; i++) {
			size_t payload = 0;
			uint32_t count = 0;

			came[order[i]] = 1;
			arrive(&rx, order[i]);
			for (uint32_t m = rx.delivered; m < MESSAGES; m++) {
				count += came[m];
				payload += came[m] ? sent[m].len : 0;
			}
			if (payload > most.most_payload)
				most.most_payload = payload;
			if (count > most.most_messages)
				most.most_messages = count;
			assert_int_equal(reorder_count(&rx.q), count);
			assert_int_equal(reorder_payload(&rx.q), payload);
			assert_true(reorder_bytes(&rx.q) >= payload +
				    count * sizeof(struct reorder_early));
		}
		assert_int_equal(rx.waits->most_messages, most.most_messages);
		assert_int_equal(rx.waits->most_payload, most.most_payload);
		free(rx.waits);
	}
}

/* A record tells of them as well: they may be what a limit ended the connection for. */
static void what_is_dropped_has_waited(void **state)
{
	static struct sent sent[4];
	struct receiver rx = { .sent = sent };
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	make_messages(&r, sent, 4);
	reorder_init(&rx.q, 0);
	waits_dropped(&rx.waits, &rx.q);
	assert_null(rx.waits);
	for (uint32_t i = 1; i < 4; i++)
		assert_int_equal(arrive(&rx, i), REORDER_EARLY);
	waits_dropped(&rx.waits, &rx.q);
	assert_int_equal(rx.waits->most_messages, 3);
	assert_int_equal(rx.waits->most_payload,
			 sent[1].len + sent[2].len + sent[3].len);
	assert_int_equal(hist_count(&rx.waits->delays), 0);
	reorder_fini(&rx.q);
	free(rx.waits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_interleaving_of_pipes),
		cmocka_unit_test(any_permutation_with_copies),
		cmocka_unit_test(every_permutation_of_six),
		cmocka_unit_test(the_books_are_right_at_every_step),
		cmocka_unit_test(what_is_dropped_has_waited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
