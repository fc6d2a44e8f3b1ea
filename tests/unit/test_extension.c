/* SPDX-License-Identifier: MIT */
/* The pure parts of the extension one by one; test_ends.c has them together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mux/extension/admission.h"
#include "mux/extension/credit.h"
#include "mux/extension/kept.h"
#include "mux/extension/tally.h"
#include "mux/extension/use.h"
#include "random.h"

static void received_is_without_a_gap(void **state)
{
	struct tally t;

	(void)state;
	tally_init(&t);
	assert_int_equal(tally_put(&t, 2), TALLY_NEW);
	assert_int_equal(tally_put(&t, 3), TALLY_NEW);
	assert_int_equal(t.received, 0);
	assert_int_equal(tally_put(&t, 3), TALLY_SEEN);
	assert_int_equal(tally_put(&t, 1), TALLY_NEW);
	assert_int_equal(t.received, 3);
	assert_int_equal(tally_put(&t, 1), TALLY_SEEN);
	assert_int_equal(tally_put(&t, 0), TALLY_SEEN);
	assert_int_equal(tally_put(&t, 3 + TALLY_AHEAD), TALLY_NEW);
	assert_int_equal(tally_put(&t, 4 + TALLY_AHEAD), TALLY_TOO_FAR);
	assert_int_equal(tally_put(&t, UINT64_MAX), TALLY_TOO_FAR);
	assert_int_equal(t.received, 3);
}

static void any_order_is_counted(void **state)
{
	static uint32_t order[3 * TALLY_AHEAD];
	struct random r;
	struct tally t;

	(void)state;
	random_begin(&r, __func__);
	for (int round = 0; round < 20; round++) {
		uint32_t n = random_range(&r, 1, TALLY_AHEAD);

		tally_init(&t);
		for (uint32_t base = 0; base < 3 * n; base += n) {
			random_order(&r, order, n);
			for (uint32_t i = 0; i < n; i++)
				assert_int_equal(tally_put(&t, base + 1 +
							   order[i]),
						 TALLY_NEW);
			assert_int_equal(t.received, base + n);
		}
	}
}

static void low_bits_tell_the_count(void **state)
{
	struct tally t;

	(void)state;
	tally_init(&t);
	assert_int_equal(tally_from_low(&t, 7), 7);
	assert_int_equal(tally_from_low(&t, UINT32_MAX), 0);
	t.received = UINT32_MAX - 1u;
	assert_true(tally_from_low(&t, UINT32_MAX) == UINT32_MAX);
	assert_true(tally_from_low(&t, 5) == ((uint64_t)1 << 32) + 5);
	assert_true(tally_from_low(&t, UINT32_MAX - 9u) == UINT32_MAX - 9u);
	t.received = ((uint64_t)7 << 32) + 3;
	assert_true(tally_from_low(&t, UINT32_MAX) ==
		    ((uint64_t)7 << 32) - 1);
}

static void what_is_told_must_fit(void **state)
{
	struct tally t;

	(void)state;
	tally_init(&t);
	assert_int_equal(tally_told(&t, false, 0), TALLY_NEW);
	assert_int_equal(tally_told(&t, true, 2), TALLY_NEW);
	assert_int_equal(t.received, 0);
	assert_int_equal(tally_told(&t, true, 2), TALLY_SEEN);
	assert_int_equal(tally_told(&t, true, 1), TALLY_NEW);
	assert_int_equal(t.received, 2);
	assert_int_equal(tally_told(&t, true, 1), TALLY_SEEN);
	assert_int_equal(tally_told(&t, true, 0), TALLY_UNLIKE);
	assert_int_equal(tally_told(&t, false, 3), TALLY_UNLIKE);
	assert_int_equal(tally_told(&t, true, 3 + TALLY_AHEAD), TALLY_TOO_FAR);
	assert_int_equal(tally_told(&t, true, UINT32_MAX), TALLY_SEEN);
	assert_int_equal(t.received, 2);
	/* A stream's place and what SCTP tells are one and the same. */
	tally_next(&t);
	assert_int_equal(tally_told(&t, true, 3), TALLY_SEEN);
	assert_int_equal(tally_told(&t, true, 4), TALLY_NEW);
	assert_int_equal(t.received, 4);
	t.received = TALLY_MOST;
	assert_int_equal(tally_told(&t, true, (uint32_t)TALLY_MOST + 1), TALLY_NEW);
	assert_int_equal(t.received, (uint64_t)TALLY_MOST + 1);
}

/* Counts in any order, no two more than TALLY_AHEAD apart, against a plain list of them. */
static void holes_are_remembered(void **state)
{
	enum { ALL = 200000 };
	static bool came[ALL + 1];
	uint64_t received = 0, n = 0;
	struct random r;
	struct tally t;

	(void)state;
	random_begin(&r, __func__);
	memset(came, 0, sizeof(came));
	tally_init(&t);
	while (received < ALL) {
		uint64_t most = received + TALLY_AHEAD;
		uint32_t count = (uint32_t)random_range(&r, 1, 3) == 1 ?
			(uint32_t)received + 1 :
			random_range(&r, received > 50 ? (uint32_t)received - 50 : 1,
				     most < ALL ? (uint32_t)most : ALL);

		assert_int_equal(tally_told(&t, true, count),
				 came[count] ? TALLY_SEEN : TALLY_NEW);
		n += !came[count];
		came[count] = true;
		while (received < ALL && came[received + 1])
			received++;
		assert_int_equal(t.received, received);
	}
	assert_int_equal(n, ALL);
}

/* One message kept for two pipes, and then for a third. */
static void add_twins(struct kept k[3], struct kept_item item[3])
{
	for (unsigned int i = 0; i < 3; i++) {
		kept_init(&k[i], 1);
		kept_add(&k[i], &item[i], 1, 1);
		if (i)
			kept_twin(&item[i], &item[i - 1]);
	}
}

static void a_twin_stands_for_its_message(void **state)
{
	struct kept_item item[3], *freed;
	struct kept k[3];

	(void)state;
	add_twins(k, item);
	assert_false(kept_goes_again(kept_end(&k[1])));
	assert_false(kept_goes_again(kept_end(&k[0])));
	assert_true(kept_goes_again(kept_end(&k[2])));
	/* What came by one pipe the others need not send again. */
	add_twins(k, item);
	assert_int_equal(kept_ack(&k[1], 1, 1, &freed), KEPT_OK);
	kept_arrived(freed);
	assert_true(item[0].there && item[2].there);
	assert_false(kept_goes_again(kept_end(&k[0])));
	assert_false(kept_goes_again(kept_end(&k[2])));
}

static uint32_t length(const struct kept_item *list)
{
	uint32_t n = 0;

	for (; list; list = list->next)
		n++;
	return n;
}

static void what_is_acknowledged_is_freed(void **state)
{
	struct kept_item item[4], *freed;
	struct kept k;

	(void)state;
	kept_init(&k, 7);
	for (uint32_t i = 0; i < 4; i++)
		kept_add(&k, &item[i], i + 1, 100);
	assert_int_equal(k.sent, 10);
	assert_int_equal(k.bytes, 400);
	/* 3 messages: the first item has 1, the second 2. */
	assert_int_equal(kept_ack(&k, 7, 3, &freed), KEPT_OK);
	assert_ptr_equal(freed, &item[0]);
	assert_int_equal(length(freed), 2);
	assert_int_equal(k.bytes, 200);
	/* What is left is there from either end. */
	assert_ptr_equal(k.last, &item[3]);
	assert_ptr_equal(k.last->prev, &item[2]);
	assert_null(k.last->prev->prev);
	/* Not all of the third; and an older ACK comes late. */
	assert_int_equal(kept_ack(&k, 7, 5, &freed), KEPT_OK);
	assert_null(freed);
	assert_int_equal(kept_ack(&k, 7, 3, &freed), KEPT_OK);
	assert_null(freed);
	assert_int_equal(k.received, 5);
	freed = kept_end(&k);
	assert_ptr_equal(freed, &item[2]);
	assert_int_equal(length(freed), 2);
	assert_int_equal(k.bytes, 0);
	assert_null(kept_end(&k));
	assert_null(k.last);
}

static void an_ack_is_of_its_incarnation(void **state)
{
	struct kept_item item, *freed;
	struct kept k;

	(void)state;
	kept_init(&k, 7);
	kept_add(&k, &item, 1, 1);
	assert_int_equal(kept_ack(&k, 6, 1, &freed), KEPT_OTHER);
	assert_int_equal(kept_ack(&k, 6, 99, &freed), KEPT_OTHER);
	assert_int_equal(kept_ack(&k, 7, 2, &freed), KEPT_BEYOND);
	assert_null(freed);
	assert_int_equal(kept_ack(&k, 7, 1, &freed), KEPT_OK);
	assert_ptr_equal(freed, &item);
	/* And it goes on behind an empty list. */
	kept_add(&k, &item, 2, 1);
	assert_int_equal(kept_ack(&k, 7, 3, &freed), KEPT_OK);
	assert_ptr_equal(freed, &item);
}

/* Both ends of an id; what one sends is due at the other at once. */
struct pair {
	struct use lp, rp;
};

static enum use_verdict up(struct pair *p, enum use_kind kind)
{
	assert_true(use_may_send(&p->lp, kind));
	use_send(&p->lp, kind);
	return use_due(&p->rp, kind);
}

static enum use_verdict down(struct pair *p, enum use_kind kind)
{
	assert_true(use_may_send(&p->rp, kind));
	use_send(&p->rp, kind);
	return use_due(&p->lp, kind);
}

static void numbers_go_on_over_uses(void **state)
{
	struct pair p;

	(void)state;
	use_init(&p.lp, UINT32_MAX - 3u);
	use_init(&p.rp, 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(p.lp.number, UINT32_MAX - 3u + 3 * i);
		assert_int_equal(p.rp.number, 3 * i);
		assert_int_equal(up(&p, USE_OPEN), USE_TAKE);
		assert_false(use_may_send(&p.lp, USE_OPEN));
		assert_int_equal(up(&p, USE_DATA), USE_TAKE);
		assert_false(use_may_send(&p.rp, USE_DATA));
		assert_int_equal(down(&p, USE_SYNACK), USE_TAKE);
		assert_int_equal(up(&p, USE_NO_MORE), USE_TAKE);
		assert_false(use_may_send(&p.lp, USE_DATA));
		assert_true(p.rp.open && p.lp.open);
		assert_int_equal(down(&p, USE_DATA), USE_TAKE);
		assert_int_equal(down(&p, USE_NO_MORE), USE_TAKE);
		assert_false(p.rp.open || p.lp.open);
	}
}

static void a_reset_is_answered_by_one(void **state)
{
	struct pair p;

	(void)state;
	use_init(&p.lp, 0);
	use_init(&p.rp, 0);
	up(&p, USE_OPEN);
	assert_int_equal(up(&p, USE_RESET), USE_TAKE);
	assert_true(use_owes_reset(&p.rp));
	/* SYNACK stands before it, or it would be of the use before. */
	assert_false(use_may_send(&p.rp, USE_RESET));
	assert_int_equal(down(&p, USE_SYNACK), USE_TAKE);
	assert_true(p.lp.open);
	assert_int_equal(down(&p, USE_RESET), USE_DROP);
	assert_false(p.lp.open || p.rp.open || use_owes_reset(&p.rp));
}

static void behind_an_own_reset_all_is_dropped(void **state)
{
	struct pair p;

	(void)state;
	use_init(&p.lp, 0);
	use_init(&p.rp, 0);
	up(&p, USE_OPEN);
	down(&p, USE_SYNACK);
	use_send(&p.lp, USE_RESET);
	assert_int_equal(down(&p, USE_DATA), USE_DROP);
	assert_int_equal(down(&p, USE_NO_MORE), USE_DROP);
	assert_false(p.lp.open);
	assert_int_equal(use_due(&p.rp, USE_RESET), USE_TAKE);
	assert_false(p.rp.open || use_owes_reset(&p.rp));
}

static void a_reset_behind_the_end_is_of_the_use_before(void **state)
{
	struct pair p;

	(void)state;
	use_init(&p.lp, 0);
	use_init(&p.rp, 0);
	up(&p, USE_OPEN);
	down(&p, USE_SYNACK);
	up(&p, USE_DATA);
	/* RP ends and then resets; LP has ended, and opens again. */
	assert_int_equal(down(&p, USE_NO_MORE), USE_TAKE);
	use_send(&p.rp, USE_RESET);
	assert_int_equal(up(&p, USE_NO_MORE), USE_DROP);
	assert_int_equal(up(&p, USE_OPEN), USE_TAKE);
	assert_int_equal(use_due(&p.lp, USE_RESET), USE_DROP);
	assert_false(p.lp.peer_reset);
	assert_int_equal(down(&p, USE_SYNACK), USE_TAKE);
}

static void what_cannot_be_due_ends_the_session(void **state)
{
	struct use use;

	(void)state;
	use_init(&use, 0);
	assert_int_equal(use_due(&use, USE_DATA), USE_BROKEN);
	assert_int_equal(use_due(&use, USE_NO_MORE), USE_BROKEN);
	assert_int_equal(use_due(&use, USE_SYNACK), USE_BROKEN);
	assert_int_equal(use_due(&use, USE_RESET), USE_DROP);
	assert_int_equal(use_due(&use, USE_OPEN), USE_TAKE);
	assert_int_equal(use_due(&use, USE_OPEN), USE_BROKEN);
	assert_int_equal(use_due(&use, USE_SYNACK), USE_BROKEN);
	assert_int_equal(use_due(&use, USE_NO_MORE), USE_TAKE);
	assert_int_equal(use_due(&use, USE_DATA), USE_BROKEN);
	assert_int_equal(use_due(&use, USE_NO_MORE), USE_BROKEN);
	assert_int_equal(use_due(&use, USE_RESET), USE_TAKE);
	assert_int_equal(use_due(&use, USE_RESET), USE_BROKEN);
}

static void credit_only_grows(void **state)
{
	struct credit_out out = { 0 };
	struct credit_in in = { 0 };

	(void)state;
	assert_int_equal(credit_left(&out), 0);
	assert_true(credit_allow(&out, credit_grant(&in, 100)));
	assert_false(credit_allow(&out, 99));
	assert_false(credit_allow(&out, 100));
	out.sent = 60;
	assert_int_equal(credit_left(&out), 40);
	assert_true(credit_take(&in, 60));
	assert_int_equal(credit_grant(&in, 10), 100);
	assert_int_equal(credit_grant(&in, 50), 110);
	assert_true(credit_take(&in, 50));
	assert_false(credit_take(&in, 1));
}

static void early_bytes_are_never_too_many(void **state)
{
	struct credit_out out = { .sent = 1000, .allowed = 1000 };
	struct credit_in in = { .taken = 1000, .granted = 1000 };
	struct early early = { .conn = 100, .all = 150 };

	(void)state;
	credit_begin_early(&in, 100);
	assert_int_equal(early_left(&early, 0), 100);
	early.used = 90;
	assert_int_equal(early_left(&early, 30), 60);
	assert_int_equal(early_left(&early, 70), 30);
	assert_int_equal(early_left(&early, 100), 0);
	/* SYNACK allows 10, and meets 100 that are under way. */
	out.sent += 100;
	credit_allow(&out, credit_grant(&in, 10));
	assert_int_equal(credit_left(&out), 0);
	assert_true(credit_take(&in, 100));
	assert_false(credit_take(&in, 1));
}

static void a_pipe_enters_with_a_new_incarnation(void **state)
{
	struct admission a = { 0 };
	struct wire_hello hello = { .pipe = 63, .pipes = 64 };

	(void)state;
	assert_int_equal(admission_enter(&a, &hello), ADMISSION_OK);
	assert_int_equal(admission_enter(&a, &hello), ADMISSION_OLD);
	hello.incarnation = 9;
	assert_int_equal(admission_enter(&a, &hello), ADMISSION_OK);
	hello.incarnation = 8;
	assert_int_equal(admission_enter(&a, &hello), ADMISSION_OLD);
	hello.pipe = 0;
	assert_int_equal(admission_enter(&a, &hello), ADMISSION_OK);
	hello.pipe = 1;
	hello.pipes = 4;
	assert_int_equal(admission_enter(&a, &hello), ADMISSION_COUNT);
}

static void version_1_is_whole_or_not_there(void **state)
{
	(void)state;
	assert_int_equal(admission_features(0x5F, 0x5F), 0x5F);
	assert_int_equal(admission_features(0xFFFFFFFF, 0x7F), 0x7F);
	assert_int_equal(admission_features(0x7F, 0xDF), 0x5F);
	for (int bit = 0; bit < 7; bit++)
		assert_int_equal(admission_features(0x7F & ~(1u << bit), 0x7F),
				 bit == 5 ? 0x5F : 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(received_is_without_a_gap),
		cmocka_unit_test(any_order_is_counted),
		cmocka_unit_test(low_bits_tell_the_count),
		cmocka_unit_test(what_is_told_must_fit),
		cmocka_unit_test(holes_are_remembered),
		cmocka_unit_test(what_is_acknowledged_is_freed),
		cmocka_unit_test(an_ack_is_of_its_incarnation),
		cmocka_unit_test(a_twin_stands_for_its_message),
		cmocka_unit_test(numbers_go_on_over_uses),
		cmocka_unit_test(a_reset_is_answered_by_one),
		cmocka_unit_test(behind_an_own_reset_all_is_dropped),
		cmocka_unit_test(a_reset_behind_the_end_is_of_the_use_before),
		cmocka_unit_test(what_cannot_be_due_ends_the_session),
		cmocka_unit_test(credit_only_grows),
		cmocka_unit_test(early_bytes_are_never_too_many),
		cmocka_unit_test(a_pipe_enters_with_a_new_incarnation),
		cmocka_unit_test(version_1_is_whole_or_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
