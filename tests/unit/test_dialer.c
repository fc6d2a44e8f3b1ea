/* SPDX-License-Identifier: MIT */
/*
 * LP dials an RP with several addresses, of which the first is dark: a listener of
 * 127.0.0.1 whose queue is full, so that the kernel drops what comes for it. RP is at
 * 127.0.0.2. getaddrinfo() is our own, and gives them in that order.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "lp/dialer.h"
#include "mux/base/addr.h"
#include "mux/base/log.h"
#include "mux/base/race.h"
#include "mux/base/sock.h"
#include "mux/options/options.h"
#include "mux/session/greeting.h"
#include "addrinfo.h"
#include "loopback.h"

enum { FILLERS = 8 };

static struct {
	struct loop *loop;
	struct log log;
	struct settings settings;
	struct dialer *dialer;
	uint16_t port;			/* of both */
	int dark, filler[FILLERS], there;
	struct greeting *greeting;
	unsigned int accepted, welcomed, dialed, failed;
	int64_t accepted_at;
} here;

int getaddrinfo(const char *name, const char *service,
		const struct addrinfo *hints, struct addrinfo **found)
{
	(void)name, (void)service, (void)hints;
	*found = an_address("127.0.0.1", an_address("127.0.0.2", NULL));
	return 0;
}

/* --- RP --- */

static void hello_came(struct greeting *g, const struct wire_ext *said)
{
	struct wire_ext what = {
		.type = WIRE_WELCOME,
		.welcome = { .version = 1, .features = WIRE_FEATURES_VERSION_1 },
	};
	uint8_t buf[WIRE_MESSAGE_MAX];
	size_t len = wire_ext_put(buf, &what);
	int fd = greeting_take(g).fd;

	(void)said;
	here.greeting = NULL;
	assert_int_equal(send(fd, buf, len, MSG_NOSIGNAL), len);
	close(fd);
}

/* Who only knocked. */
static void hello_failed(struct greeting *g, enum greeting_failure why)
{
	(void)why;
	here.greeting = NULL;
	greeting_free(g);
}

static const struct greeting_ops rp_ops = { .came = hello_came, .failed = hello_failed };

static void be_rp(void)
{
	int fd = here.greeting ? -1 : accept4(here.there, NULL, NULL,
					      SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (!here.accepted++)
		here.accepted_at = loop_clock();
	here.greeting = greeting_await(here.loop, conduit_plain(fd),
				       2 * NS_PER_SEC, &rp_ops, NULL);
}

/* --- LP --- */

static int on_welcomed(void *owner, const struct wire_hello *hello,
		       const struct wire_welcome *welcome,
		       struct conduit conduit,
		       const struct sockaddr_storage *addr)
{
	(void)owner, (void)hello, (void)welcome;
	assert_int_equal(addr_port(addr), here.port);
	here.welcomed++;
	close(conduit.fd);
	return 0;
}

static int on_dialed(void *owner, const int *fds, unsigned int n)
{
	(void)owner;
	here.dialed++;
	while (n)
		close(fds[--n]);
	return 0;
}

static void on_failed(void *owner)
{
	(void)owner;
	here.failed++;
}

static const struct dialer_ops dialer_ops = {
	.dialed = on_dialed, .welcomed = on_welcomed, .failed = on_failed,
};

static bool is_welcomed(void *arg)
{
	be_rp();
	return here.welcomed == *(const unsigned int *)arg;
}


static int64_t until_welcomed(unsigned int times)
{
	here.accepted = 0;
	assert_true(run_until(here.loop, "WELCOME", is_welcomed, &times));
	return here.accepted_at;
}

/* --- the scene --- */

/* -1: somebody has that port. */
static int listen_at(const char *text, uint16_t port)
{
	struct sockaddr_storage addr;
	socklen_t len;
	int fd;

	assert_int_equal(addr_parse(text, NULL, port, &addr, &len), 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (!bind(fd, (struct sockaddr *)&addr, len) && !listen(fd, 16))
		return fd;
	close(fd);
	return -1;
}

static void listen_at_both(bool same_port)
{
	for (;;) {
		here.dark = tcp_listen(0, &here.port);
		here.there = listen_at("127.0.0.2", same_port ? here.port : 0);
		if (here.there >= 0)
			return;
		close(here.dark);
	}
}

/* RP @speaks the extension, or has a baseline's port beside it alone. */
static void begin(enum extend extend, bool speaks)
{
	struct dialer_options options = {
		.extend = extend, .pipes = 1,
	};
	struct sockaddr_storage addr;

	memset(&here, 0, sizeof(here));
	settings_init(&here.settings);
	log_init(&here.log, "test", LOG_ERROR - 1);
	here.loop = loop_new();
	listen_at_both(speaks);
	for (int i = 0; i < FILLERS; i++)
		here.filler[i] = tcp_connect(here.port);
	strcpy(options.rp.host, "rp.example.net");
	options.extended_port = here.port;
	assert_int_equal(sock_address(here.there, &addr), 0);
	options.rp.port = addr_port(&addr);
	options.transports = &here.settings.transports;
	options.paths = &here.settings.paths;
	here.dialer = dialer_new(here.loop, &here.log, &options, &dialer_ops,
				 NULL);
	assert_non_null(here.dialer);
	dialer_start(here.dialer);
}

static void end(void)
{
	dialer_free(here.dialer);
	greeting_free(here.greeting);
	for (int i = 0; i < FILLERS; i++)
		close(here.filler[i]);
	close(here.dark);
	close(here.there);
	loop_free(here.loop);
	log_fini(&here.log);
}

/* --- tests --- */

static void a_dark_address_costs_a_quarter_of_a_second(void **state)
{
	int64_t began = loop_clock(), took;

	(void)state;
	begin(EXTEND_ALWAYS, true);
	took = until_welcomed(1) - began;
	assert_in_range(took, RACE_STEP_MS * NS_PER_MS, 4 * RACE_STEP_MS * NS_PER_MS);
	end();
}

static bool has_lasted(void *arg)
{
	return loop_clock() > *(const int64_t *)arg;
}

static void who_answered_last_is_asked_first(void **state)
{
	int64_t lasts, began;

	(void)state;
	begin(EXTEND_ALWAYS, true);
	until_welcomed(1);
	lasts = loop_clock() + (LASTED_MS + 100) * NS_PER_MS;
	assert_true(run_until(here.loop, "a session that lasts", has_lasted,
			      &lasts));
	began = loop_clock();
	dialer_begin_anew(here.dialer, "the test says so");
	assert_in_range(until_welcomed(2) - began, 0,
			RACE_STEP_MS * NS_PER_MS - 1);
	assert_int_equal(here.accepted, 1);
	assert_int_equal(here.failed, 0);
	end();
}

/* Nobody is to wait for the session after one that was lost at once. */
static void after_a_brief_session_the_next_is_a_while_away(void **state)
{
	(void)state;
	begin(EXTEND_ALWAYS, true);
	until_welcomed(1);
	dialer_begin_anew(here.dialer, "the test says so");
	assert_int_equal(here.failed, 1);
	until_welcomed(2);
	assert_int_equal(here.failed, 1);
	end();
}

static bool is_dialed(void *arg)
{
	(void)arg;
	return here.dialed;
}

/* Nobody listens for the extension at the other address: that is an answer. */
static void who_refuses_is_there(void **state)
{
	int64_t began = loop_clock();

	(void)state;
	begin(EXTEND_AUTO, false);
	assert_true(run_until(here.loop, "the baseline", is_dialed, NULL));
	assert_in_range(loop_clock() - began, RACE_STEP_MS * NS_PER_MS,
			4 * RACE_STEP_MS * NS_PER_MS);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dark_address_costs_a_quarter_of_a_second),
		cmocka_unit_test(who_answered_last_is_asked_first),
		cmocka_unit_test(after_a_brief_session_the_next_is_a_while_away),
		cmocka_unit_test(who_refuses_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
