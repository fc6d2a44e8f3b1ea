/* SPDX-License-Identifier: MIT */
/* HELLO and WELCOME on a descriptor, before there is a session. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/loop.h"
#include "mux/session/greeting.h"
#include "loopback.h"

#define PATIENCE (200 * NS_PER_MS)

struct scene {
	struct loop *loop;
	struct greeting *g;
	int far;		/* the other end, by hand */
	bool ended, came;
	enum greeting_failure why;
	struct wire_ext said;
};

static void on_came(struct greeting *g, const struct wire_ext *said)
{
	struct scene *s = greeting_owner(g);

	s->ended = s->came = true;
	s->said = *said;
}

static void on_failed(struct greeting *g, enum greeting_failure why)
{
	struct scene *s = greeting_owner(g);

	s->ended = true;
	s->why = why;
}

static const struct greeting_ops ops = { .came = on_came, .failed = on_failed };

static bool has_ended(void *arg)
{
	return ((struct scene *)arg)->ended;
}

static void settle(struct scene *s)
{
	assert_true(run_until(s->loop, "the greeting", has_ended, s));
}

static struct scene begin(void)
{
	struct scene s = { .loop = loop_new() };

	return s;
}

static void await_hello(struct scene *s)
{
	int fd[2];

	tcp_pair(fd);
	s->far = fd[1];
	s->g = greeting_await(s->loop, conduit_plain(fd[0]), PATIENCE,
			      &ops, s);
	assert_non_null(s->g);
}

static void end(struct scene *s)
{
	greeting_free(s->g);
	close(s->far);
	loop_free(s->loop);
}

static size_t put_hello(uint8_t *buf)
{
	struct wire_ext what = { .type = WIRE_HELLO };

	assert_int_equal(greet_hello(&what.hello, 3), 0);
	return wire_ext_put(buf, &what);
}

static void a_hello_comes_in_any_pieces_and_no_byte_behind_it(void **state)
{
	struct scene s = begin();
	uint8_t buf[WIRE_MESSAGE_MAX];
	size_t len = put_hello(buf);
	char behind[8] = "";

	(void)state;
	await_hello(&s);
	for (size_t i = 0; i < len; i++) {
		assert_false(s.ended);
		assert_int_equal(send(s.far, buf + i, 1, 0), 1);
		run_round(s.loop);
	}
	assert_int_equal(send(s.far, "next", 4, 0), 4);
	settle(&s);
	assert_true(s.came);
	assert_int_equal(s.said.hello.pipes, 3);
	int fd = greeting_take(s.g).fd;
	s.g = NULL;
	assert_int_equal(recv(fd, behind, sizeof(behind), 0), 4);
	assert_string_equal(behind, "next");
	close(fd);
	end(&s);
}

static void failing(const void *bytes, size_t len, bool shut,
		    enum greeting_failure why)
{
	struct scene s = begin();

	await_hello(&s);
	assert_int_equal(send(s.far, bytes, len, 0), len);
	if (shut)
		shutdown(s.far, SHUT_WR);
	settle(&s);
	assert_false(s.came);
	assert_int_equal(s.why, why);
	end(&s);
}

static void what_is_no_hello_is_told_apart(void **state)
{
	uint8_t buf[WIRE_MESSAGE_MAX], welcome[WIRE_MESSAGE_MAX];
	struct wire_ext what = { .type = WIRE_WELCOME };
	size_t len = put_hello(buf);
	uint8_t data[WIRE_HEADER + 1];

	(void)state;
	failing(buf, len - 1, false, GREETING_SILENT);
	failing(buf, len - 1, true, GREETING_CLOSED);
	failing("GET / HTTP/1.0\r\n", 16, false, GREETING_WRONG);
	wire_put_data(data, 1, 0, 1);		/* of the baseline */
	failing(data, sizeof(data), false, GREETING_WRONG);
	failing(welcome, wire_ext_put(welcome, &what), false, GREETING_WRONG);
	buf[30] = 3;				/* index not below the count */
	failing(buf, len, false, GREETING_WRONG);
}

static void hello_is_said_and_a_refusal_heard(void **state)
{
	struct scene lp = begin(), rp = begin();
	struct wire_hello hello;
	int fd[2];

	(void)state;
	loop_free(rp.loop);
	rp.loop = lp.loop;
	tcp_pair(fd);
	assert_int_equal(greet_hello(&hello, 8), 0);
	rp.g = greeting_await(rp.loop, conduit_plain(fd[0]), PATIENCE, &ops,
			      &rp);
	lp.g = greeting_say(lp.loop, conduit_plain(fd[1]), &hello, PATIENCE,
			    &ops, &lp);
	settle(&rp);
	assert_true(rp.came);
	assert_memory_equal(rp.said.hello.session, hello.session,
			    sizeof(hello.session));
	greet_decline(greeting_take(rp.g), WIRE_WELCOME_BUSY);
	settle(&lp);
	assert_true(lp.came);
	assert_int_equal(lp.said.welcome.status, WIRE_WELCOME_BUSY);
	greeting_free(lp.g);
	loop_free(lp.loop);
}

static void a_hello_is_judged(void **state)
{
	struct wire_hello hello;

	(void)state;
	assert_int_equal(greet_hello(&hello, 64), 0);
	assert_int_equal(greet_objection(&hello), WIRE_WELCOME_NEW);
	hello.incarnation = 1;
	assert_int_equal(greet_objection(&hello), WIRE_WELCOME_UNKNOWN);
	hello.features &= ~UINT32_C(0x40);
	assert_int_equal(greet_objection(&hello), WIRE_WELCOME_REFUSED);
	assert_int_equal(greet_hello(&hello, 64), 0);
	hello.features |= WIRE_FEATURE_PATH;
	hello.path = WIRE_EXT_PATHS_MAX;
	assert_int_equal(greet_objection(&hello), WIRE_WELCOME_REFUSED);
	hello.features &= ~WIRE_FEATURE_PATH;	/* it names none */
	assert_int_equal(greet_objection(&hello), WIRE_WELCOME_NEW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_hello_comes_in_any_pieces_and_no_byte_behind_it),
		cmocka_unit_test(what_is_no_hello_is_told_apart),
		cmocka_unit_test(hello_is_said_and_a_refusal_heard),
		cmocka_unit_test(a_hello_is_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
