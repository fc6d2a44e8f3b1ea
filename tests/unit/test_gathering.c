/* SPDX-License-Identifier: MIT */
/* What a batch brings, held back in a pipe over loopback and written together. */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "loopback.h"
#include "mux/base/sock.h"
#include "pipe_scene.h"

static struct {
	struct pipe_scene scene;
	unsigned int acked;
} here;

static void acked(struct pipe *p, const struct ack_asked *what, int64_t at)
{
	(void)p, (void)what, (void)at;
	here.acked++;
}

static size_t in_flight(const struct pipe *p)
{
	(void)p;
	return 0;
}

static const struct pipe_ops ops = { .acked = acked, .in_flight = in_flight };

static int set_up(void **state)
{
	(void)state;
	memset(&here, 0, sizeof(here));
	return pipe_scene_begin(&here.scene, &ops);
}

static int tear_down(void **state)
{
	(void)state;
	pipe_scene_end(&here.scene);
	return 0;
}

static bool one_was_told(void *arg)
{
	(void)arg;
	return here.acked == 1;
}

/* All that was written has been read. */
static bool drained(void *arg)
{
	char came[1 << 16];

	(void)arg;
	while (read_some(here.scene.peer, came, sizeof(came)) > 0)
		;
	return !here.scene.pipe->queue && !sock_outstanding(here.scene.pipe->fd);
}

static unsigned int segments_sent(void)
{
	struct tcp_info ti;
	socklen_t len = sizeof(ti);

	assert_int_equal(getsockopt(here.scene.pipe->fd, IPPROTO_TCP, TCP_INFO, &ti,
				    &len), 0);
	return ti.tcpi_data_segs_out;
}

static void assert_sent(unsigned int segments, size_t bytes)
{
	char came[4 * WIRE_MESSAGE_MAX];

	assert_int_equal(segments_sent(), segments);
	assert_int_equal(read_some(here.scene.peer, came, sizeof(came)),
			 bytes ? (long)bytes : -EAGAIN);
}

static void small_ones_wait_for_each_other(void **state)
{
	enum { LEN = WIRE_HEADER + 1 };
	uint64_t before = here.scene.pipe->tx_messages;

	(void)state;
	gathering_begin(&here.scene.shared.gathering);
	for (int i = 0; i < 3; i++) {
		pipe_scene_send(&here.scene);
		assert_int_equal(pipe_held(here.scene.pipe), (i + 1) * LEN);
		assert_false(pipe_is_blocked(here.scene.pipe));
	}
	assert_sent(0, 0);
	pipe_flush(here.scene.pipe);
	assert_sent(1, 3 * LEN);
	assert_int_equal(here.scene.pipe->tx_bytes, 3 * LEN);
	assert_int_equal(here.scene.pipe->tx_messages, before + 3);
	assert_int_equal(here.scene.pipe->tx_joined, 2);
	assert_int_equal(pipe_held(here.scene.pipe), 3 * LEN);
	assert_null(here.scene.pipe->queue);
	gathering_end(&here.scene.shared.gathering);
	pipe_scene_send(&here.scene);
	assert_sent(2, LEN);
	assert_int_equal(here.scene.pipe->tx_joined, 2);
}

static void who_holds_nothing_back_is_not_flushed(void **state)
{
	struct gathering *g = &here.scene.shared.gathering;

	(void)state;
	gathering_begin(g);
	assert_true(list_empty(&g->pipes));
	pipe_scene_send(&here.scene);
	pipe_scene_send(&here.scene);
	assert_ptr_equal(list_first(&g->pipes, struct pipe, gathering), here.scene.pipe);
	assert_ptr_equal(g->pipes.next, g->pipes.prev);
	gathering_flush(g);
	assert_true(list_empty(&g->pipes));
	assert_sent(1, 2 * (WIRE_HEADER + 1));
	pipe_scene_send(&here.scene);
	pipe_drop_queue(here.scene.pipe);
	assert_true(list_empty(&g->pipes));
	gathering_end(g);
	assert_sent(1, 0);
}

static void one_that_asks_for_its_acknowledgement_does_not_wait(void **state)
{
	enum { LEN = WIRE_HEADER + 1 };

	(void)state;
	gathering_begin(&here.scene.shared.gathering);
	pipe_scene_send(&here.scene);
	pipe_ask(here.scene.pipe, LEN, LEN);
	assert_sent(1, LEN);
	pipe_scene_send(&here.scene);
	assert_sent(2, LEN);
	assert_true(run_until(here.scene.shared.loop, "its acknowledgement",
			      one_was_told, NULL));
}

static void a_segment_of_them_does_not_wait(void **state)
{
	enum { LEN = WIRE_HEADER + 1 };
	int sent = 0;

	(void)state;
	gathering_begin(&here.scene.shared.gathering);
	here.scene.pipe->info.mss = 10 * LEN;
	while (sent == 0 || here.scene.pipe->gathered) {
		pipe_scene_send(&here.scene);
		sent++;
	}
	assert_int_equal(sent, 10);
	assert_sent(1, 10 * LEN);
}

static void what_the_socket_does_not_take_waits(void **state)
{
	enum { LEN = WIRE_HEADER + 1 };

	(void)state;
	small_buffers(here.scene.peer, here.scene.pipe->fd);
	fill_socket(here.scene.pipe->fd);
	gathering_begin(&here.scene.shared.gathering);
	pipe_scene_send(&here.scene);
	pipe_scene_send(&here.scene);
	assert_false(pipe_is_blocked(here.scene.pipe));
	pipe_flush(here.scene.pipe);
	assert_true(pipe_is_blocked(here.scene.pipe));
	assert_int_equal(here.scene.pipe->queued, 2 * LEN);
	pipe_scene_send(&here.scene);
	assert_int_equal(here.scene.pipe->queued, 3 * LEN);
	assert_true(run_until(here.scene.shared.loop, "the socket", drained, NULL));
	assert_int_equal(here.scene.pipe->queued, 0);
	assert_int_equal(here.scene.pipe->tx_bytes, 3 * LEN);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(small_ones_wait_for_each_other),
		T(who_holds_nothing_back_is_not_flushed),
		T(one_that_asks_for_its_acknowledgement_does_not_wait),
		T(a_segment_of_them_does_not_wait),
		T(what_the_socket_does_not_take_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
