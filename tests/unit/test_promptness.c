/* SPDX-License-Identifier: MIT */
/*
 * Small messages over eight pipes in virtual time, to an end that acknowledges them as the
 * test says: at once, late, now and then late, by a path that varies, by one that loses.
 * When a lost one is copied, and how many are that were not lost.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "mux/base/loop.h"
#include "mux/extension/promptness.h"
#include "mux/extension/tail.h"
#include "random.h"

#define MS NS_PER_MS
#define ROUND_TRIP (20 * MS)
#define DELAYED_ACK (40 * MS)
#define PROBE (250 * MS)	/* TCP's own, when nothing else tells of a loss */

enum { LANES = 8, UNDER_WAY = 64, SIZE = 60, SEGMENT = 1448 };

struct other_end {
	double loss;		/* of messages, and of acknowledgements */
	double delayed;		/* so many of a whole are held back */
	double jitter_ms;	/* mean of an exponential distribution */
	int64_t every;
};

struct message {
	uint64_t end;
	int64_t sent_at, acked_at;
	bool lost, unheard;	/* it; or what acknowledged it */
	bool copied;
};

struct lane {
	struct sample sample;
	struct message message[UNDER_WAY];
	unsigned int n;
	uint64_t end, arrived;
	uint32_t again;
	bool doubtful;
};

struct found {
	unsigned int messages, copies, needless;
	unsigned int lost, soon;	/* of the lost so many within 1.5 round trips */
};

static struct {
	const struct other_end *is;
	struct random random;
	struct promptness promptness;
	struct lane lane[LANES];
	unsigned int last;
	struct found found;
} here;

static bool happens(double share)
{
	return random_below(&here.random, 1000000) < share * 1e6;
}

/* What the kernel makes of it: mean, and mean deviation. */
static int64_t round_trip(void)
{
	return ROUND_TRIP + (int64_t)(here.is->jitter_ms * MS);
}

static int64_t patience(void)
{
	return round_trip() + 4 * (int64_t)(here.is->jitter_ms * MS * 2 / M_E);
}

static int64_t jitter(void)
{
	double u = (random_below(&here.random, 1000000) + 1) / 1e6;

	return (int64_t)(-log(u) * here.is->jitter_ms * MS);
}

/* What follows tells of it, or stands for it. */
static void follow(struct message *m, int64_t acked_at)
{
	int64_t repaired = acked_at + (m->lost ? ROUND_TRIP : 0);

	if (m->acked_at > repaired)
		m->acked_at = repaired;
}

/* The one that is kept to (thin.c), or any that has nothing under way. */
static struct lane *next_lane(void)
{
	struct lane *l = &here.lane[here.last];

	while (l->doubtful || !l->n) {
		here.last = (here.last + 1) % LANES;
		l = &here.lane[here.last];
		if (!l->n)
			break;
	}
	return l;
}

static void send_one(int64_t now)
{
	struct lane *l = next_lane();
	struct message *m = &l->message[l->n];
	int64_t held = happens(here.is->delayed) ? DELAYED_ACK : 0;

	assert_true(l->n < UNDER_WAY);
	l->end += SIZE;
	*m = (struct message){ .end = l->end, .sent_at = now };
	m->lost = happens(here.is->loss);
	m->unheard = !m->lost && happens(here.is->loss);
	m->acked_at = now + ROUND_TRIP + held + jitter();
	for (unsigned int i = 0; i < l->n && !m->lost && !m->unheard; i++)
		follow(&l->message[i], m->acked_at);
	if (m->lost || m->unheard)
		m->acked_at = now + PROBE;
	l->n++;
	here.found.messages++;
	here.found.lost += m->lost;
	if (l->sample.end)
		l->sample.followed = true;
	else
		sample_begin(&l->sample, m->end, now,
			     tail_patience(round_trip(), patience()), l->again);
}

static void hear(struct lane *l, int64_t now)
{
	while (l->n && l->message[0].acked_at <= now) {
		const struct message *m = &l->message[0];

		l->again += m->lost || m->acked_at == m->sent_at + PROBE;
		l->arrived = m->end;
		l->doubtful = false;
		memmove(&l->message[0], &l->message[1],
			--l->n * sizeof(l->message[0]));
	}
}

static int64_t overdue_at(const struct lane *l)
{
	struct tail t = {
		.written_at = l->message[0].sent_at,
		.outstanding = l->n * SIZE, .in_flight = l->n * SIZE,
		.segment = SEGMENT, .left_at_once = true,
		.round_trip = round_trip(), .patience = patience(),
		.prompt = promptness_is_known(&here.promptness),
	};

	return tail_overdue_at(&t);
}

static void copy_overdue(struct lane *l, int64_t now)
{
	struct message *m = &l->message[0];

	if (!l->n || m->copied || overdue_at(l) > now)
		return;
	m->copied = l->doubtful = true;
	here.found.copies++;
	here.found.needless += !m->lost;
	here.found.soon += m->lost && now <= m->sent_at + ROUND_TRIP * 8 / 5;
}

static bool has_nothing_to_do(const struct lane *l)
{
	return !l->n && !l->sample.end;
}

/* Whether some lane has something to do. */
static bool all_do(int64_t next[LANES], int64_t now)
{
	bool some = false;

	for (unsigned int i = 0; i < LANES; i++) {
		struct lane *l = &here.lane[i];

		if (has_nothing_to_do(l))
			continue;
		hear(l, now);
		if (now >= next[i]) {
			sample_look(&l->sample, &here.promptness, l->arrived,
				    l->again, now);
			next[i] = l->sample.end ?
				sample_next(&l->sample, now) : 0;
		}
		copy_overdue(l, now);
		some |= !has_nothing_to_do(l);
	}
	return some;
}

/* A millisecond at a time, and between messages only while there is something to do. */
static struct found run(struct other_end is, unsigned int messages)
{
	int64_t next[LANES] = { 0 };

	memset(&here, 0, sizeof(here));
	here.is = &is;
	here.random.state = 1;
	promptness_init(&here.promptness);
	for (int64_t now = 0; here.found.messages < messages;) {
		bool some = all_do(next, now);

		if (now % is.every == 0) {
			send_one(now);
			some = true;
		}
		now += some ? MS : is.every - now % is.every;
	}
	return here.found;
}

static void assert_few(const struct found *f, const char *which)
{
	if (f->needless > 1 + f->messages / 1000)
		fail_msg("%s: %u of %u copied, and not one was lost", which,
			 f->needless, f->messages);
}

static void where_nothing_is_late_nothing_is_copied(void **state)
{
	struct found f = run((struct other_end){ .every = 50 * MS }, 5000);

	(void)state;
	assert_int_equal(f.copies, 0);
	assert_true(promptness_is_known(&here.promptness));
}

/* Not even where it is copied on account of one that comes later still. */
static void an_end_that_waits_has_its_time(void **state)
{
	static const int64_t every[] = { 30 * MS, 50 * MS, 100 * MS };

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct found f = run((struct other_end){
			.every = every[i], .delayed = 1 }, 5000);

		assert_int_equal(f.copies, 0);
		assert_false(promptness_is_known(&here.promptness));
	}
}

static void an_end_that_waits_now_and_then_costs_few_copies(void **state)
{
	static const double share[] = { 0.001, 0.003, 0.01, 0.03, 0.1, 0.5 };

	(void)state;
	for (unsigned int i = 0; i < sizeof(share) / sizeof(*share); i++) {
		struct found f = run((struct other_end){
			.every = 100 * MS, .delayed = share[i] }, 20000);

		assert_few(&f, "delayed");
	}
}

static void a_path_that_varies_costs_few_copies(void **state)
{
	static const double mean_ms[] = { 0.5, 1, 2, 5, 10 };

	(void)state;
	for (unsigned int i = 0; i < sizeof(mean_ms) / sizeof(*mean_ms); i++) {
		struct found f = run((struct other_end){
			.every = 100 * MS, .jitter_ms = mean_ms[i] }, 20000);

		assert_few(&f, "jitter");
	}
}

/* Before the next one is sent, and so before TCP could repair it. */
static void what_is_lost_is_copied_soon(void **state)
{
	static const int64_t every[] = { 50 * MS, 100 * MS };

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct found f = run((struct other_end){
			.every = every[i], .loss = 0.02 }, 20000);

		if (f.soon < 0.95 * f.lost)
			fail_msg("%u of %u lost ones soon", f.soon, f.lost);
		/* Whose acknowledgement was lost is copied, too. */
		assert_in_range(f.copies, f.lost, f.messages * 5 / 100);
	}
}

static void of_one_that_waits_what_is_lost_is_copied_late(void **state)
{
	struct found f = run((struct other_end){
		.every = 100 * MS, .loss = 0.02, .delayed = 1 }, 20000);

	(void)state;
	assert_true(f.copies > 0.9 * f.lost);
	assert_int_equal(f.soon, 0);
}

/* --- one message --- */

static int32_t balance_after(int64_t acked_after, bool again, bool followed)
{
	struct promptness of = { 0 };
	struct sample s;

	sample_begin(&s, 100, 1000 * MS, 30 * MS, 7);
	assert_int_equal(sample_next(&s, 1000 * MS), 1030 * MS);
	if (acked_after > 30 * MS)
		assert_false(sample_look(&s, &of, 99, 7, 1030 * MS));
	s.followed = followed;
	assert_true(sample_look(&s, &of, 100, 7 + again,
				1000 * MS + acked_after));
	assert_int_equal(s.end, 0);
	return of.balance;
}

static void what_was_sent_again_was_lost_and_not_late(void **state)
{
	(void)state;
	assert_true(balance_after(20 * MS, false, false) > 0);
	assert_true(balance_after(20 * MS, true, false) > 0);
	assert_true(balance_after(60 * MS, false, false) < 0);
	assert_true(balance_after(60 * MS, true, false) > 0);
	/* By whose acknowledgement is not known. */
	assert_int_equal(balance_after(60 * MS, false, true), 0);
}

static void what_stays_away_is_looked_for_ever_more_rarely(void **state)
{
	struct promptness of = { 0 };
	struct sample s;
	unsigned int looks = 0;

	(void)state;
	sample_begin(&s, 100, 0, 30 * MS, 0);
	for (int64_t now = 0; now < 100 * NS_PER_SEC; looks++) {
		now = sample_next(&s, now);
		assert_false(sample_look(&s, &of, 0, 0, now));
	}
	assert_true(looks < 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_nothing_is_late_nothing_is_copied),
		cmocka_unit_test(an_end_that_waits_has_its_time),
		cmocka_unit_test(
			an_end_that_waits_now_and_then_costs_few_copies),
		cmocka_unit_test(a_path_that_varies_costs_few_copies),
		cmocka_unit_test(what_is_lost_is_copied_soon),
		cmocka_unit_test(of_one_that_waits_what_is_lost_is_copied_late),
		cmocka_unit_test(what_was_sent_again_was_lost_and_not_late),
		cmocka_unit_test(
			what_stays_away_is_looked_for_ever_more_rarely),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
