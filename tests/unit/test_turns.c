/* SPDX-License-Identifier: MIT */
/*
 * Two sessions of one loop, one of which asks for more than there is time: the other one has
 * its turn in each round. The clock goes only when a connection is opened.
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sys/socket.h>

#include "mux/base/log.h"
#include "mux/conn/conn.h"
#include "mux/options/options.h"
#include "mux/session/greeting.h"
#include "mux/session/session_inside.h"
#include "mux/wire/wire.h"
#include "halted.h"
#include "loopback.h"

#define EACH (20 * NS_PER_US)	/* that a connection takes */

enum {
	FLOOD = 4000, ROUNDS = 30, MORE = 4,
	FIRST = 4096 / WIRE_SYN_SIZE + 1,	/* connections that the first read opens, */
	LEAST = 512 / WIRE_SYN_SIZE + 1,	/* and each later one, at least */
};

struct side {
	struct session *s;
	int fd, its;		/* the other end of its only pipe, and its own */
	uint16_t id;
	unsigned int opened;
};

static struct {
	struct settings settings;
	struct engine engine;
	struct log log;
	struct side busy, idle, more[MORE];
	struct budget shared;	/* of @more */
} here;

static void on_open(struct session *s, struct conn *c)
{
	struct side *side = session_owner(s);

	side->opened++;
	clock_pass(EACH);
	conn_reset(c, CONN_END_DENIED);
}

static void on_ended(struct session *s)
{
	struct side *side = session_owner(s);

	side->s = NULL;
}

static const struct session_role role = { .open = on_open, .ended = on_ended };

static void open_side(struct side *side)
{
	int fd[2];

	tcp_pair(fd);
	side->fd = fd[1];
	side->its = fd[0];
	side->s = greet_baseline(&here.engine, &role, side, "a peer", fd, 1);
	assert_non_null(side->s);
}

static int set_up(void **state)
{
	(void)state;
	memset(&here, 0, sizeof(here));
	settings_init(&here.settings);
	log_init(&here.log, "test", LOG_ERROR);
	assert_int_equal(engine_init(&here.engine, &here.settings, &here.log),
			 0);
	open_side(&here.busy);
	open_side(&here.idle);
	return 0;
}

static bool all_ended(void *arg)
{
	(void)arg;
	return !here.busy.s && !here.idle.s;
}

static int tear_down(void **state)
{
	(void)state;
	clock_go_on();
	close(here.busy.fd);
	close(here.idle.fd);
	assert_true(run_until(here.engine.loop, "the ends", all_ended, NULL));
	engine_fini(&here.engine);
	log_fini(&here.log);
	return 0;
}

static void ask(struct side *side, unsigned int n)
{
	static const uint8_t addr[4] = { 192, 0, 2, 1 };
	static uint8_t buf[FLOOD * WIRE_SYN_SIZE];
	size_t len = 0;

	while (n--)
		len += wire_put_syn(buf + len, ++side->id, addr, 80);
	assert_int_equal(send(side->fd, buf, len, MSG_NOSIGNAL), len);
	/* On a busy machine the kernel hands them on a little later. */
	assert_int_equal(poll(&(struct pollfd){ side->its, POLLIN, 0 }, 1, 5000), 1);
}

/* What is looked at before each round, until there were so many. */
static struct {
	struct task task;
	unsigned int left, busy, idle;
	int64_t longest;
} rounds;

/* What the busy one took in the last round; and the other one asked for one connection, and got it. */
static void look(struct task *t)
{
	int64_t took = (here.busy.opened - rounds.busy) * EACH;

	if (took > rounds.longest)
		rounds.longest = took;
	rounds.busy = here.busy.opened;
	assert_in_range(here.idle.opened + 2, rounds.idle, rounds.idle + 2);
	if (!rounds.left--) {
		loop_stop(here.engine.loop);
		return;
	}
	ask(&here.idle, 1);
	rounds.idle++;
	loop_after(here.engine.loop, t);
}

/* The longest of @n. What is left is done when the loop ends. */
static int64_t longest_round(unsigned int n)
{
	rounds.left = n;
	rounds.longest = 0;
	rounds.busy = here.busy.opened;
	rounds.idle = here.idle.opened;
	loop_task_init(&rounds.task, look);
	loop_after(here.engine.loop, &rounds.task);
	clock_halt();
	loop_run(here.engine.loop);
	clock_go_on();
	return rounds.longest;
}

/* What a connection costs is known after the first read, which is owed. */
static void who_asks_for_much_is_cut_short(void **state)
{
	(void)state;
	ask(&here.busy, FLOOD / 4);
	longest_round(ROUNDS);
	ask(&here.busy, FLOOD);
	/* The least that is read at once may begin when a little is left. */
	assert_in_range(longest_round(ROUNDS), 1,
			2 * BUDGET_ROUND_US * NS_PER_US + LEAST * EACH);
}

/* As longest_round(), of two. */
static int64_t longest_alone(void)
{
	unsigned int before = here.busy.opened;

	clock_halt();
	run_round(here.engine.loop);
	clock_go_on();
	return (here.busy.opened - before) * EACH;
}

/* Of one that ends, the other one is alone. */
static void who_is_alone_is_not(void **state)
{
	(void)state;
	close(here.idle.fd);
	here.idle.fd = -1;
	while (here.idle.s)
		run_round(here.engine.loop);
	ask(&here.busy, FLOOD);
	assert_true(longest_alone() >= FLOOD / 2 * EACH);
}

static void open_more(void)
{
	budget_init(&here.shared, &here.engine.budgets);
	for (int i = 0; i < MORE; i++) {
		open_side(&here.more[i]);
		session_takes_time_of(here.more[i].s, &here.shared);
		ask(&here.more[i], FLOOD / MORE);
	}
}

static void close_more(void)
{
	for (int i = 0; i < MORE; i++) {
		session_takes_time_of(here.more[i].s, NULL);
		close(here.more[i].fd);
		while (here.more[i].s)
			run_round(here.engine.loop);
	}
	budget_fini(&here.shared);
}

static unsigned int opened_by_more(void)
{
	unsigned int sum = 0;

	for (int i = 0; i < MORE; i++) {
		assert_true(here.more[i].opened > 0);
		sum += here.more[i].opened;
	}
	return sum;
}

/* Four sessions of one peer have together what one would have. */
static void those_who_share_wait_for_each_other(void **state)
{
	const int64_t round = BUDGET_ROUND_US * NS_PER_US;
	int64_t used, took;	/* rounds */
	uint64_t began;

	(void)state;
	open_more();
	began = loop_round(here.engine.loop);
	longest_round(4 * ROUNDS);
	used = opened_by_more() * EACH;
	took = (int64_t)(loop_round(here.engine.loop) - began);
	assert_true(used <= (took + 1) * round + FIRST * EACH);
	close_more();
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		test(who_asks_for_much_is_cut_short),
		test(who_is_alone_is_not),
		test(those_who_share_wait_for_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
