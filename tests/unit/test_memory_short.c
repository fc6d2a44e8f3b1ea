/* SPDX-License-Identifier: MIT */
/*
 * A pipe whose socket has no memory for what it is given. It calls itself writable all the time
 * then, so whoever waited for that would run in circles.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bounded_send.h"
#include "loopback.h"
#include "pipe_scene.h"

#define AGAIN (10 * NS_PER_MS)	/* so soon it asks for memory again */

enum { ROUNDS = 20 };

static struct {
	struct pipe_scene scene;
	unsigned int writable;
} here;

static void writable(struct pipe *p)
{
	here.writable++;
	pipe_want(p, false);
}

static const struct pipe_ops ops = { .writable = writable };

static int set_up(void **state)
{
	(void)state;
	memset(&here, 0, sizeof(here));
	if (pipe_scene_begin(&here.scene, &ops) < 0)
		return -1;
	bounded_send = (struct bounded_send){ .fd = here.scene.pipe->fd };
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	pipe_scene_end(&here.scene);
	return 0;
}

/* A message for which there is no memory. */
static void send_in_vain(int err)
{
	bounded_send.bounded = true;
	bounded_send.err = err;
	pipe_scene_send(&here.scene);
	assert_int_equal(bounded_send.refused, 1);
}

static void assert_asked_in_time(int64_t begun)
{
	for (unsigned int round = 0; round < ROUNDS; round++)
		run_round(here.scene.shared.loop);
	assert_in_range(bounded_send.refused, 1, 1 + (loop_clock() - begun) / AGAIN);
}

static bool is_sent(void *arg)
{
	char came[WIRE_MESSAGE_MAX];

	(void)arg;
	return read_some(here.scene.peer, came, sizeof(came)) == WIRE_HEADER + 1;
}

static void it_is_asked_for_in_time(int err)
{
	int64_t begun = loop_clock();

	send_in_vain(err);
	assert_asked_in_time(begun);
	bounded_send.bounded = false;
	assert_true(run_until(here.scene.shared.loop, "the message", is_sent, NULL));
}

static void memory_of_the_socket_is_asked_for_in_time(void **state)
{
	(void)state;
	it_is_asked_for_in_time(ENOBUFS);
}

static void memory_of_the_kernel_is_asked_for_in_time(void **state)
{
	(void)state;
	it_is_asked_for_in_time(ENOMEM);
}

static bool was_writable(void *arg)
{
	(void)arg;
	return here.writable > 0;
}

static void who_wants_to_send_is_told_as_soon(void **state)
{
	int64_t begun = loop_clock();

	(void)state;
	send_in_vain(ENOBUFS);
	pipe_want(here.scene.pipe, true);
	assert_asked_in_time(begun);
	assert_true(run_until(here.scene.shared.loop, "to be told", was_writable, NULL));
	bounded_send.bounded = false;
	assert_true(run_until(here.scene.shared.loop, "the message", is_sent, NULL));
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(memory_of_the_socket_is_asked_for_in_time),
		T(memory_of_the_kernel_is_asked_for_in_time),
		T(who_wants_to_send_is_told_as_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
