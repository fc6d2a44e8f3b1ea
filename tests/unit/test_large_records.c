/* SPDX-License-Identifier: MIT */
/*
 * Large messages on a pipe with a layer. Nobody makes them for it, but what was made for another
 * pipe may go on it again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mux/options/options.h"
#include "mux/pipe/pipe.h"
#include "loopback.h"
#include "toy_layer.h"

enum { SCRATCH = 1 << 18, MESSAGES = 5 };

static struct {
	struct settings settings;
	struct pipe_shared shared;
	struct toy_layers toys[2];
	size_t read_at_once;
	uint32_t came;
} here;

static uint8_t byte_at(uint32_t number, size_t i)
{
	return (uint8_t)(number * 31 + i * 7 + i / 256);
}

static bool message(struct pipe *p, const struct wire_msg *msg, uint64_t offset)
{
	(void)p;
	(void)offset;
	assert_int_equal(msg->number, here.came++);
	assert_int_equal(msg->body_len, WIRE_LARGE_PAYLOAD);
	for (size_t i = 0; i < msg->body_len; i++)
		assert_int_equal(msg->body[i], byte_at(msg->number, i));
	return true;
}

static void readable(struct pipe *p)
{
	here.shared.scratch_used = 0;
	pipe_read(p, here.read_at_once);
}

static void writable(struct pipe *p)
{
	pipe_want(p, false);
}

static const struct pipe_ops ops = {
	.message = message, .readable = readable, .writable = writable,
};

static struct run *a_large_one(uint32_t number)
{
	struct run *run = run_get(&here.shared.pool);

	run->id = 1;
	run->messages = 1;
	run->len = wire_put_data(run->buf, 1, number, WIRE_LARGE_PAYLOAD);
	for (size_t i = 0; i < WIRE_LARGE_PAYLOAD; i++)
		run->buf[run->len++] = byte_at(number, i);
	return run;
}

static bool all_came(void *arg)
{
	(void)arg;
	return here.came == MESSAGES;
}

static void shake_hands(struct conduit end[2])
{
	int fd[2];

	tcp_pair(fd);
	for (int i = 0; i < 2; i++) {
		toy_layers_init(&here.toys[i], "same");
		assert_int_equal(conduit_open(&end[i], &here.toys[i].layers, fd[i], !i), 0);
	}
	for (int tries = 0; tries < 1000; tries++) {
		bool there = !conduit_shake(end[0]);

		if (!conduit_shake(end[1]) && there)
			return;
	}
	fail_msg("no handshake");
}

static void pass(size_t read_at_once)
{
	struct pipe *writer, *reader;
	struct conduit end[2];

	memset(&here, 0, sizeof(here));
	settings_init(&here.settings);
	here.read_at_once = read_at_once;
	here.shared = (struct pipe_shared){
		.loop = loop_new(), .settings = &here.settings, .large = true,
		.scratch = malloc(SCRATCH), .scratch_size = SCRATCH,
	};
	assert_non_null(here.shared.scratch);
	shake_hands(end);
	writer = pipe_new(&here.shared, &ops, NULL, end[0]);
	reader = pipe_new(&here.shared, &ops, NULL, end[1]);
	assert_non_null(writer);
	assert_non_null(reader);
	for (uint32_t i = 0; i < MESSAGES; i++)
		pipe_send(writer, a_large_one(i));
	assert_true(run_until(here.shared.loop, "all messages", all_came, NULL));
	assert_int_equal(reader->partial.len, 0);
	pipe_free(writer);
	pipe_free(reader);
	run_pool_fini(&here.shared.pool);
	free(here.shared.scratch);
	loop_free(here.shared.loop);
}

static void they_pass_whole(void **state)
{
	(void)state;
	pass(SCRATCH - WIRE_LARGE_MAX);
}

static void they_pass_in_pieces(void **state)
{
	(void)state;
	pass(509);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_pass_whole),
		cmocka_unit_test(they_pass_in_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
