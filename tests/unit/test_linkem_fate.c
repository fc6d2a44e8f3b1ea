/* SPDX-License-Identifier: MIT */
/* What chance does to packets, and that none is lost track of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "linkem_bed.h"
#include "random.h"

/* --- chance --- */

static void the_nth_packet_has_its_fate_whatever_else_happens(void **state)
{
	struct bed *quiet = bed_new("loss=ge:0.01,0.2,0.9 delay_ms=1", 9);
	struct bed *noisy = bed_new("loss=ge:0.01,0.2,0.9 delay_ms=40 "
				    "rate_mbps=50 queue_packets=5 jitter_ms=3 "
				    "duplicate=0.1 reorder=0.1 reorder_ms=5",
				    9);
	struct random r;
	int64_t at = 0;
	int lost = 0;

	(void)state;
	random_begin(&r, __func__);
	for (int i = 0; i < 20000; i++) {
		bed_ip(quiet, i * 1000, 100);
		at += random_below(&r, 200000);
		if (random_below(&r, 3) == 0)
			bed_arp(noisy, at);
		bed_ip(noisy, at, 60 + random_below(&r, FULL - 60));
	}
	bed_play_out(quiet);
	bed_play_out(noisy);
	for (int i = 0; i < 20000; i++) {
		assert_int_equal(quiet->lost[i], noisy->lost[i]);
		lost += quiet->lost[i];
	}
	assert_in_range(lost, 500, 1200);
	bed_assert_conserved(noisy);
	bed_free(quiet);
	bed_free(noisy);
}

/* What was under way is delivered, and counts as nothing of the new draw. */
static void a_restart_draws_as_a_new_link_does(void **state)
{
	const char *words = "loss=ge:0.05,0.2,0.9 delay_ms=5 rate_mbps=10";
	struct bed *fresh = bed_new(words, 9);
	struct bed *used = bed_new(words, 4);

	(void)state;
	for (int i = 0; i < 777; i++)
		bed_ip(used, i * NS_PER_MS, FULL);
	link_restart(&used->link, 9, used->now);
	assert_true(link_next(&used->link) != NEVER);
	memset(used->lost, 0, sizeof(used->lost));
	for (int i = 0; i < 5000; i++) {
		bed_ip(fresh, i * 2 * NS_PER_MS, FULL);
		bed_ip(used, (1000 + i * 2) * NS_PER_MS, FULL);
	}
	bed_play_out(fresh);
	bed_play_out(used);
	assert_memory_equal(fresh->lost, used->lost, sizeof(fresh->lost));
	assert_int_equal(used->link.next_index, 5000);
	assert_int_equal(used->link.count.in.packets, 5777);
	assert_int_equal(used->link.count.reordered, 0);
	bed_assert_conserved(used);
	bed_free(fresh);
	bed_free(used);
}

static void write_late(struct bed *bed, int64_t at)
{
	struct packet *p;

	link_run(&bed->link, at);
	p = link_exit(&bed->link, at);
	assert_non_null(p);
	link_done(&bed->link, p, true, at);
}

/* So that a run can tell how late its own packets were. */
static void a_restart_forgets_how_late_packets_were(void **state)
{
	struct bed *bed = bed_new("delay_ms=1", 1);

	(void)state;
	bed_ip(bed, 0, FULL);
	write_late(bed, 9 * NS_PER_MS);
	assert_int_equal(hist_count(&bed->link.late), 1);
	assert_int_equal(hist_quantile(&bed->link.late, 1), 8000);
	link_restart(&bed->link, 1, 9 * NS_PER_MS);
	assert_int_equal(hist_count(&bed->link.late), 0);
	bed_ip(bed, 10 * NS_PER_MS, FULL);
	write_late(bed, 13 * NS_PER_MS);
	assert_int_equal(hist_quantile(&bed->link.late, 1), 2000);
	bed_free(bed);
}

static void a_restart_begins_the_trace_anew(void **state)
{
	struct bed *bed = bed_new_traced("10\n70\n100\n", "delay_ms=0");

	(void)state;
	bed_play_until(bed, 20 * NS_PER_MS);
	link_restart(&bed->link, 1, bed->now);
	bed_ip(bed, 20 * NS_PER_MS, FULL);
	bed_play_out(bed);
	assert_int_equal(bed->out[0].at, 30 * NS_PER_MS);
	bed_free(bed);
}

static void a_restart_begins_the_delays_anew(void **state)
{
	struct bed *bed = bed_new_delayed("10 3\n100 40\n", "");

	(void)state;
	bed_ip(bed, 20 * NS_PER_MS, FULL);
	bed_play_until(bed, 70 * NS_PER_MS);
	link_restart(&bed->link, 1, bed->now);
	bed_ip(bed, 75 * NS_PER_MS, FULL);
	bed_play_out(bed);
	assert_true(bed->out[0].at == 60 * NS_PER_MS);
	assert_true(bed->out[1].at == 78 * NS_PER_MS);
	bed_free(bed);
}

static void arp_takes_the_delay_and_nothing_else(void **state)
{
	struct bed *bed = bed_new("rate_mbps=0.1 delay_ms=10 loss=1", 1);

	(void)state;
	bed_ip(bed, 0, FULL);
	bed_arp(bed, 5 * NS_PER_MS);
	assert_int_equal(bed->link.count.other_in, 1);
	assert_true(link_next(&bed->link) == 15 * NS_PER_MS);
	bed_play_out(bed);
	assert_int_equal(bed->link.count.other_out, 1);
	assert_int_equal(bed->link.count.in.packets, 1);
	bed_free(bed);
}

static void loss_at_exit_takes_its_share_of_the_rate(void **state)
{
	struct bed *entry = bed_new("rate_mbps=10 loss=every:2", 1);
	struct bed *exit_ = bed_new("rate_mbps=10 loss=every:2 loss_at=exit",
				    1);

	(void)state;
	for (int i = 0; i < 100; i++) {
		bed_ip(entry, 0, FULL);
		bed_ip(exit_, 0, FULL);
	}
	bed_play_out(entry);
	bed_play_out(exit_);
	assert_int_equal(entry->n, 50);
	assert_int_equal(exit_->n, 50);
	assert_true(entry->out[49].at == 50 * 1211200);
	assert_true(exit_->out[49].at == 99 * 1211200);
	for (int i = 0; i < 50; i++)
		assert_int_equal(entry->out[i].index, exit_->out[i].index);
	bed_free(entry);
	bed_free(exit_);
}

static struct bed *stream(const char *words)
{
	struct bed *bed = bed_new(words, 4);

	for (int i = 0; i < 20000; i++)
		bed_ip(bed, i * NS_PER_MS, FULL);
	bed_play_out(bed);
	bed_assert_conserved(bed);
	return bed;
}

static void jitter_keeps_the_order_unless_told(void **state)
{
	struct bed *kept = stream("delay_ms=20 jitter_ms=10");
	struct bed *mixed = stream("delay_ms=20 jitter_ms=10 jitter_reorder=yes");
	double sum = 0;

	(void)state;
	assert_int_equal(bed_out_of_order(kept), 0);
	assert_int_equal(kept->link.count.reordered, 0);
	assert_true(bed_out_of_order(mixed) > 5000);
	assert_int_equal(mixed->link.count.reordered, bed_out_of_order(mixed));
	for (int i = 0; i < mixed->n; i++) {
		int64_t delay = mixed->out[i].at - mixed->out[i].entered;

		assert_in_range(delay, 10 * NS_PER_MS, 30 * NS_PER_MS);
		sum += (double)delay / NS_PER_MS;
	}
	assert_true(sum / mixed->n > 19.8 && sum / mixed->n < 20.2);
	bed_free(kept);
	bed_free(mixed);
}

static void reordering_holds_packets_back(void **state)
{
	struct bed *bed = stream("delay_ms=20 reorder=0.1 reorder_ms=3.5");
	int held = 0;

	(void)state;
	for (int i = 0; i < bed->n; i++) {
		int64_t delay = bed->out[i].at - bed->out[i].entered;

		assert_true(delay == 20 * NS_PER_MS ||
			    delay == 23500 * 1000);
		held += delay != 20 * NS_PER_MS;
	}
	assert_in_range(held, 1850, 2150);
	assert_int_equal(bed->link.count.held, held);
	/* Not overtaken only where the next three are held as well. */
	assert_in_range(bed->link.count.reordered, held - 25, held);
	bed_free(bed);
}

/* All in front of it that are not held themselves have left before. */
static void who_is_held_back_overtakes_nobody(void **state)
{
	struct bed *bed = stream("delay_ms=20 jitter_ms=10 "
				 "reorder=0.1 reorder_ms=3.5");
	uint64_t to_come = bed->link.next_index;

	(void)state;
	for (int i = bed->n; i--;) {
		if (bed->out[i].held)
			assert_true(bed->out[i].index < to_come);
		else
			to_come = bed->out[i].index;
	}
	assert_true(bed_out_of_order(bed) > 100);
	bed_free(bed);
}

static void duplicates_come_right_behind(void **state)
{
	struct bed *bed = stream("delay_ms=20 duplicate=0.05");
	int copies = 0;

	(void)state;
	for (int i = 0; i < bed->n; i++) {
		copies += bed->out[i].copy;
		if (bed->out[i].copy)
			assert_int_equal(bed->out[i - 1].index,
					 bed->out[i].index);
	}
	assert_in_range(copies, 900, 1100);
	assert_int_equal(bed->link.count.duplicated.packets, copies);
	assert_int_equal(bed->n, 20000 + copies);
	assert_int_equal(bed->link.next_index, 20000);
	bed_free(bed);
}

/* --- bounds --- */

static void without_memory_packets_are_counted_as_dropped(void **state)
{
	struct bed *bed = bed_new("delay_ms=1000", 1);
	uint8_t frame[FULL] = { [12] = 8 };
	struct packet *p;
	int n = 0;

	(void)state;
	bed->pool.slots_max = 256;
	while ((p = pool_get(&bed->pool))) {
		memcpy(p->data, frame, sizeof(frame));
		p->len = sizeof(frame);
		link_enter(&bed->link, p, n++);
	}
	link_enter_lost(&bed->link, frame, sizeof(frame), n);
	assert_int_equal(bed->link.count.in.packets, n + 1);
	assert_int_equal(bed->link.count.dropped[LINK_MEMORY].packets, 1);
	bed_assert_conserved(bed);
	bed_play_out(bed);
	assert_int_equal(bed->n, n);
	bed_free(bed);
}

/* Whatever is set whenever: nothing vanishes, nothing leaves early. */
static void nothing_vanishes(void **state)
{
	static const char *const words[] = {
		"rate_mbps=10", "rate_mbps=none", "rate_mbps=0.5", "delay_ms=0",
		"delay_ms=30", "jitter_ms=5", "jitter_ms=0",
		"jitter_dist=pareto", "jitter_dist=normal",
		"jitter_reorder=yes", "jitter_reorder=no", "queue_ms=20",
		"queue_ms=none", "queue_packets=3", "aqm=codel", "aqm=tail",
		"loss=0.1", "loss=none", "loss=every:3", "loss_at=exit",
		"loss_at=entry", "duplicate=0.2", "duplicate=0", "reorder=0.2",
		"reorder_ms=4", "overhead_bytes=38", "codel_target_ms=1",
	};
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (int run = 0; run < 20; run++) {
		struct bed *bed = run % 3 ? bed_new("", random_next(&r))
					  : bed_new_traced("1\n3\n3\n50\n", "");

		for (int i = 0; i < 3000; i++) {
			int64_t at = bed->now + random_below(&r, 2000000);

			if (random_below(&r, 20) == 0)
				bed_configure(bed, words[random_below(
						&r, sizeof(words) /
						sizeof(words[0]))]);
			bed_ip(bed, at, 60 + random_below(&r, FULL - 60));
			bed_assert_conserved(bed);
		}
		bed_play_out(bed);
		bed_assert_conserved(bed);
		assert_int_equal(bed->pool.in_use, 0);
		for (int i = 0; i < bed->n; i++)
			assert_true(bed->out[i].at >= bed->out[i].entered);
		bed_free(bed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			the_nth_packet_has_its_fate_whatever_else_happens),
		cmocka_unit_test(a_restart_draws_as_a_new_link_does),
		cmocka_unit_test(a_restart_forgets_how_late_packets_were),
		cmocka_unit_test(a_restart_begins_the_trace_anew),
		cmocka_unit_test(a_restart_begins_the_delays_anew),
		cmocka_unit_test(arp_takes_the_delay_and_nothing_else),
		cmocka_unit_test(loss_at_exit_takes_its_share_of_the_rate),
		cmocka_unit_test(jitter_keeps_the_order_unless_told),
		cmocka_unit_test(reordering_holds_packets_back),
		cmocka_unit_test(who_is_held_back_overtakes_nobody),
		cmocka_unit_test(duplicates_come_right_behind),
		cmocka_unit_test(without_memory_packets_are_counted_as_dropped),
		cmocka_unit_test(nothing_vanishes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
