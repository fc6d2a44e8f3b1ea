/* SPDX-License-Identifier: MIT */
/*
 * The kernel's stamps of acknowledgements over a loopback connection; that those it drops are
 * not waited for; and that those that tell a wrong time are not believed.
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "halted.h"
#include "loopback.h"
#include "mux/base/loop.h"
#include "mux/pipe/acks.h"

#define HOUR (3600 * NS_PER_SEC)

struct scene {
	int fd[2];
	struct acks acks;
	uint64_t written;
};

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	tcp_pair(s->fd);
	if (acks_enable(&s->acks, s->fd[0]))
		return -1;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	close(s->fd[0]);
	close(s->fd[1]);
	free(s);
	return 0;
}

static void ask_for(struct scene *s, const struct ack_asked *what)
{
	char buf[100];

	assert_true(acks_can_ask(&s->acks));
	assert_int_equal(acks_send(&s->acks, s->fd[0], "0123456789", 10,
				   s->written, what), 10);
	s->written += 10;
	while (read_some(s->fd[1], buf, sizeof(buf)) > 0)
		;
}

static void ask(struct scene *s, size_t held)
{
	ask_for(s, &(struct ack_asked){ .clean = true, .held = held });
}

/* Waits for a stamp, which the kernel has at hand soon. */
static void wait_for_stamp(struct scene *s)
{
	struct pollfd p = { .fd = s->fd[0], .events = 0 };

	assert_int_equal(poll(&p, 1, 5000), 1);
	assert_true(p.revents & POLLERR);
}

/* As though the kernel had had no room for it. */
static void lose_stamp(struct scene *s)
{
	char control[512];
	struct msghdr mh = { .msg_control = control,
			     .msg_controllen = sizeof(control) };

	wait_for_stamp(s);
	assert_true(recvmsg(s->fd[0], &mh, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0);
}

static void a_stamp_tells_of_what_was_asked_for(void **state)
{
	struct scene *s = *state;
	struct ack_asked what;
	int64_t at;

	ask(s, 7);
	wait_for_stamp(s);
	assert_int_equal(acks_next(&s->acks, s->fd[0], &what, &at), ACKS_ACKED);
	assert_int_equal(what.held, 7);
	assert_true(at >= what.sent_at);
	assert_int_equal(acks_next(&s->acks, s->fd[0], &what, &at), ACKS_NO_MORE);
}

static void stamps_that_do_not_come_are_not_waited_for(void **state)
{
	struct scene *s = *state;
	struct ack_asked what;
	int64_t at;

	for (int i = 0; i < 2 * ACKS_MAX; i++) {
		ask(s, 1);
		lose_stamp(s);
	}
	ask(s, 2);
	wait_for_stamp(s);
	assert_int_equal(acks_next(&s->acks, s->fd[0], &what, &at), ACKS_ACKED);
	assert_int_equal(what.held, 2);
	assert_int_equal(s->acks.count, 0);
}

/* A long path with few pipes: more was asked for than is remembered before anything is heard. */
static void of_many_under_way_the_oldest_is_known(void **state)
{
	struct scene *s = *state;
	struct ack_asked what;
	size_t before = 0;
	int64_t at;

	for (size_t i = 1; i <= 2 * ACKS_MAX; i++)
		ask(s, i);
	wait_for_stamp(s);
	assert_int_equal(acks_next(&s->acks, s->fd[0], &what, &at), ACKS_ACKED);
	assert_int_equal(what.held, 1);
	while (s->acks.count) {
		int n = acks_next(&s->acks, s->fd[0], &what, &at);

		if (n < 0)
			wait_for_stamp(s);
		if (n < 1)
			continue;
		assert_true(what.held > before);
		before = what.held;
	}
	assert_int_equal(before, 2 * ACKS_MAX);
}

/* Whatever else comes before it. */
static struct ack_asked next_acked(struct scene *s)
{
	struct ack_asked what;
	int64_t at;
	int n;

	while ((n = acks_next(&s->acks, s->fd[0], &what, &at)) != ACKS_ACKED)
		if (n < 0)
			wait_for_stamp(s);
	assert_true(at >= what.sent_at);
	assert_true(at <= loop_clock());
	return what;
}

/* It says that something was acknowledged, but not when. */
static void who_sets_the_clock_makes_no_sample(void **state)
{
	static const int64_t set[] = { -HOUR, HOUR };
	struct scene *s = *state;

	for (unsigned int i = 0; i < 2; i++) {
		ask(s, 3);
		wait_for_stamp(s);
		clock_set_wall(set[i]);
		assert_false(next_acked(s).clean);
		clock_set_wall(0);
		ask(s, 4);
		assert_true(next_acked(s).clean);
	}
}

/* By the time of its acknowledgement that may have arrived. */
static void what_left_late_is_told_with_what_it_met(void **state)
{
	const struct ack_asked waits = { .schedule = true };
	struct scene *s = *state;
	struct ack_asked what;
	int64_t at;

	ask_for(s, &waits);
	wait_for_stamp(s);
	assert_int_equal(acks_next(&s->acks, s->fd[0], &what, &at), ACKS_LEFT);
	acks_met(&s->acks, &what, 4711);
	assert_int_equal(next_acked(s).in_flight, 4711);
	acks_met(&s->acks, &what, 1);	/* it is not awaited any more */
}

/* The time is wrong at which a message left that waited in its socket. */
static void nor_one_of_what_left_before(void **state)
{
	const struct ack_asked waits = { .schedule = true };
	struct scene *s = *state;
	struct ack_asked what;
	int64_t at;

	ask_for(s, &waits);
	assert_true(next_acked(s).clean);
	ask_for(s, &waits);
	wait_for_stamp(s);
	clock_set_wall(-HOUR);
	assert_int_equal(acks_next(&s->acks, s->fd[0], &what, &at), ACKS_OTHER);
	clock_set_wall(0);
	assert_false(next_acked(s).clean);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_stamp_tells_of_what_was_asked_for, setup, teardown),
		cmocka_unit_test_setup_teardown(
			of_many_under_way_the_oldest_is_known, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			stamps_that_do_not_come_are_not_waited_for, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			who_sets_the_clock_makes_no_sample, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_left_late_is_told_with_what_it_met, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			nor_one_of_what_left_before, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
