/* SPDX-License-Identifier: MIT */
/* Pipes that look dead: one is dialled again for all of them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "ext_pair.h"
#include "mux/sched/sched.h"
#include "loopback.h"

enum { HOPS = 16, TRANSIT = 65536 };

/* In the middle of a pipe: LP's side and RP's. */
struct hop {
	int fd[2];
	bool dark;		/* it carries nothing, and says nothing of it */
};

static struct network {
	struct hop hop[HOPS];
	int hops;
} net;

static void add_hop(struct pair *pair, int fd[2])
{
	struct hop *h = &net.hop[net.hops++];
	int lp[2], rp[2];

	(void)pair;
	assert_true(net.hops <= HOPS);
	tcp_pair(lp);
	tcp_pair(rp);
	fd[0] = rp[0];
	fd[1] = lp[0];
	*h = (struct hop){ .fd = { lp[1], rp[1] } };
}

/* What one side closed is closed at the other; for it nothing is carried any more. */
static void carry(struct hop *h, int side)
{
	static uint8_t buf[TRANSIT];
	long n = read_some(h->fd[side], buf, sizeof(buf));

	if (n > 0 && send(h->fd[!side], buf, (size_t)n, MSG_NOSIGNAL) == n)
		return;
	if (n != -EAGAIN)
		shutdown(h->fd[!side], SHUT_RDWR);
}

static void be_network(void)
{
	for (int i = 0; i < net.hops; i++) {
		if (net.hop[i].dark)
			continue;
		carry(&net.hop[i], 0);
		carry(&net.hop[i], 1);
	}
}

static void be_dark(bool dark)
{
	for (int i = 0; i < net.hops; i++)
		net.hop[i].dark = dark;
}

struct wait {
	struct pair *pair;
	bool (*is)(struct pair *pair);
};

static void drain(struct pair *pair)
{
	static uint8_t buf[1 << 18];

	while (read_some(pair->conn[0].server, buf, sizeof(buf)) > 0)
		;
}

/* The network, and who reads at the server. */
static void carry_on(struct pair *pair)
{
	be_network();
	if (pair->conn[0].server >= 0)
		drain(pair);
}

static bool it_is(void *arg)
{
	struct wait *w = arg;

	carry_on(w->pair);
	return w->is(w->pair);
}

static void until(struct pair *pair, const char *what,
		  bool (*is)(struct pair *pair))
{
	struct wait w = { pair, is };

	assert_true(run_until(pair->engine.loop, what, it_is, &w));
}

static int setup(void **state)
{
	struct pair *pair;

	pair_setup_new(state);
	pair = *state;
	net.hops = 0;
	pair->connect = add_hop;
	pair->carry = carry_on;
	pair->settings.pipe_policy = &sched_rr;
	pair_start(pair, PAIR_PIPES);
	return 0;
}

static int teardown(void **state)
{
	be_dark(false);
	pair_teardown(state);
	for (int i = 0; i < net.hops; i++) {
		close(net.hop[i].fd[0]);
		close(net.hop[i].fd[1]);
	}
	return 0;
}

static bool answered(struct pair *pair)
{
	return pair->conn[0].answered;
}

static bool nothing_is_kept(struct pair *pair)
{
	return !pair->lp->ext->kept && !pair->rp->ext->kept;
}

static void begin(struct pair *pair)
{
	pair_settle(pair);
	pair_open(pair, 0);
	until(pair, "SYNACK", answered);
	until(pair, "rest", nothing_is_kept);
}

/* As much as several pipes take, so that no other one is free. */
static void say_much(struct pair *pair)
{
	static const uint8_t bytes[1 << 18];

	assert_true(send(pair->conn[0].client, bytes, sizeof(bytes),
			 MSG_NOSIGNAL) > 0);
}

static bool one_is_lacking(struct pair *pair)
{
	return session_lacks(pair->lp) == 1;
}

static bool two_are_lacking(struct pair *pair)
{
	return session_lacks(pair->lp) == 2;
}

/* All are dark for so long that one is given up, and then they go on. */
static void stall_once(struct pair *pair)
{
	be_dark(true);
	say_much(pair);
	until(pair, "one to be given up", one_is_lacking);
	be_dark(false);
	until(pair, "rest", nothing_is_kept);
}

static unsigned int dialled_again(const struct pair *pair)
{
	unsigned int n = 0;

	for (int i = 0; i < PAIR_PIPES; i++)
		n += pair->lp->ext->leg[i].incarnation;
	return n;
}

static void one_is_dialled_for_all(void **state)
{
	struct pair *pair = *state;

	begin(pair);
	be_dark(true);
	say_much(pair);
	until(pair, "one to be given up", one_is_lacking);
	pair->redials = true;
	pair_dial(pair);	/* along a way that works */
	pair_settle(pair);
	assert_in_range(dialled_again(pair), 2, PAIR_PIPES);
	until(pair, "rest", nothing_is_kept);
}

/* It was dialled and never welcomed. */
static void who_goes_on_ends_a_probe(void **state)
{
	struct pair *pair = *state;
	int64_t began;

	begin(pair);
	stall_once(pair);
	be_dark(true);
	say_much(pair);
	began = loop_clock();
	until(pair, "another to be given up", two_are_lacking);
	/* That is sooner than by its own silence. */
	assert_in_range(loop_clock() - began, 1 * NS_PER_SEC, 4 * NS_PER_SEC);
}

static bool is_whole(struct pair *pair)
{
	return session_lacks(pair->lp) == 0 && pair_is_settled(pair);
}

static int64_t dark_until;

static bool it_was_dark(struct pair *pair)
{
	(void)pair;
	return loop_clock() > dark_until;
}

/* Pipes whose acknowledgements take long are not dead for that. */
static void a_probe_that_is_late_ends_nobody(void **state)
{
	struct pair *pair = *state;

	begin(pair);
	stall_once(pair);
	pair->lp->ext->ack_takes = 10 * NS_PER_SEC;
	be_dark(true);
	say_much(pair);
	dark_until = loop_clock() + 1200 * NS_PER_MS;
	until(pair, "1.2 s", it_was_dark);
	pair_dial(pair);
	until(pair, "all pipes", is_whole);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_is_dialled_for_all),
		TEST(who_goes_on_ends_a_probe),
		TEST(a_probe_that_is_late_ends_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
