/* SPDX-License-Identifier: MIT */
/*
 * The kernel's stamps of acknowledgements over a loopback connection; and that
 * those it drops are not waited for.
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "loopback.h"
#include "mux/pipe/acks.h"

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

static void ask(struct scene *s, size_t held)
{
	struct ack_asked what = { .clean = true, .held = held };
	char buf[100];

	assert_true(acks_can_ask(&s->acks));
	assert_int_equal(acks_send(&s->acks, s->fd[0], "0123456789", 10,
				   s->written, &what), 10);
	s->written += 10;
	while (read_some(s->fd[1], buf, sizeof(buf)) > 0)
		;
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
	assert_int_equal(acks_next(&s->acks, s->fd[0], &what, &at), 1);
	assert_int_equal(what.held, 7);
	assert_true(at >= what.sent_at);
	assert_int_equal(acks_next(&s->acks, s->fd[0], &what, &at), -1);
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
	assert_int_equal(acks_next(&s->acks, s->fd[0], &what, &at), 1);
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
	assert_int_equal(acks_next(&s->acks, s->fd[0], &what, &at), 1);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
