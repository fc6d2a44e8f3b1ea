/* SPDX-License-Identifier: MIT */
/*
 * A pipe over loopback whose kernel reports what nobody asked for any more.
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "loopback.h"
#include "mux/options/options.h"
#include "mux/pipe/pipe.h"

static struct {
	struct settings settings;
	struct pipe_shared shared;
	struct pipe *pipe;
	int peer;
	unsigned int acked, readable;
} here;

static void readable(struct pipe *p)
{
	(void)p;
	here.readable++;
}

static void acked(struct pipe *p, const struct ack_asked *what, int64_t at)
{
	(void)p, (void)what, (void)at;
	here.acked++;
}

static const struct pipe_ops ops = { .readable = readable, .acked = acked };

static int set_up(void **state)
{
	int fd[2];

	(void)state;
	memset(&here, 0, sizeof(here));
	settings_init(&here.settings);
	here.shared.loop = loop_new();
	here.shared.settings = &here.settings;
	tcp_pair(fd);
	here.peer = fd[1];
	here.pipe = pipe_new(&here.shared, &ops, NULL,
			     conduit_plain(fd[0]));
	return here.pipe && acks_can_ask(&here.pipe->acks) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	pipe_free(here.pipe);
	close(here.peer);
	loop_free(here.shared.loop);
	return 0;
}

/* Written, and reported by the kernel, which the loop has not heard of yet. */
static void have_stamp(uint64_t offset)
{
	struct ack_asked what = { .clean = true };
	struct pollfd p = { .fd = here.pipe->fd };

	assert_int_equal(acks_send(&here.pipe->acks, here.pipe->fd, "x", 1,
				   offset, &what), 1);
	assert_int_equal(poll(&p, 1, 5000), 1);
	assert_true(p.revents & POLLERR);
}

static void assert_told(unsigned int times)
{
	struct pollfd p = { .fd = here.pipe->fd };

	run_round(here.shared.loop);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(here.acked, times);
	assert_int_equal(here.readable, 0);
}

static void what_is_awaited_is_told(void **state)
{
	(void)state;
	have_stamp(0);
	assert_told(1);
}

/* It was given up for lost; left there, it would wake the loop for ever. */
static void what_is_awaited_no_more_is_taken_all_the_same(void **state)
{
	(void)state;
	have_stamp(0);
	here.pipe->acks.count = 0;
	assert_told(0);
	have_stamp(1);
	assert_told(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_awaited_is_told, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			what_is_awaited_no_more_is_taken_all_the_same, set_up,
			tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
