/* SPDX-License-Identifier: MIT */
#include "dark_net.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/sock.h"
#include "mux/sched/sched.h"
#include "halted.h"
#include "loopback.h"

enum { TRANSIT = 65536, WORDS = 8 };

struct network net;

static void add_hop(struct pair *pair, int fd[2])
{
	struct hop *h = &net.hop[net.hops++];
	int lp[2], rp[2];

	(void)pair;
	assert_true(net.hops <= HOPS);
	tcp_pair(lp);
	tcp_pair(rp);
	sock_nodelay(lp[1]);
	sock_nodelay(rp[1]);
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

void net_be_dark(bool dark)
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
	long n;

	while ((n = read_some(pair->conn[0].server, buf, sizeof(buf))) > 0)
		net.read += (size_t)n;
}

/* The network, and who reads at the server. */
void net_carry_on(struct pair *pair)
{
	be_network();
	if (pair->conn[0].server >= 0)
		drain(pair);
}

static bool it_is(void *arg)
{
	struct wait *w = arg;

	net_carry_on(w->pair);
	return w->is(w->pair);
}

void net_until(struct pair *pair, const char *what,
		  bool (*is)(struct pair *pair))
{
	struct wait w = { pair, is };

	assert_true(run_until(pair->engine.loop, what, it_is, &w));
}

static int setup_new(void **state)
{
	struct pair *pair;

	pair_setup_new(state);
	pair = *state;
	net.hops = 0;
	net.read = net.written = 0;
	net.lost = 0;
	net.rtt_ms = 1;
	tcp_pair(net.last);
	pair->connect = add_hop;
	pair->carry = net_carry_on;
	pair->settings.pipe_policy = &sched_rr;
	return 0;
}

int net_setup(void **state)
{
	setup_new(state);
	pair_start(*state, PAIR_PIPES);
	return 0;
}

int net_setup_paths(void **state)
{
	struct pair *pair;

	setup_new(state);
	pair = *state;
	pair_set_paths(pair);
	pair_start(pair, PAIR_PIPES);
	pair_settle(pair);
	pair->redials = false;
	return 0;
}

int net_teardown(void **state)
{
	clock_go_on();
	net_be_dark(false);
	pair_teardown(state);
	for (int i = 0; i < net.hops; i++) {
		close(net.hop[i].fd[0]);
		close(net.hop[i].fd[1]);
	}
	close(net.last[0]);
	close(net.last[1]);
	return 0;
}

static bool answered(struct pair *pair)
{
	return pair->conn[0].answered;
}

bool net_nothing_is_kept(struct pair *pair)
{
	return !pair->lp->ext->kept && !pair->rp->ext->kept;
}

void net_begin(struct pair *pair)
{
	pair_settle(pair);
	pair_open(pair, 0);
	net_until(pair, "SYNACK", answered);
	net_until(pair, "rest", net_nothing_is_kept);
}

unsigned int net_dialled_again(const struct pair *pair)
{
	unsigned int n = 0;

	for (int i = 0; i < PAIR_PIPES; i++)
		n += pair_redialled(pair, (unsigned int)i);
	return n;
}

/*
 * The kernel has delivered what was sent: on a busy machine it does so later, and the clock
 * that stands does not wait for it.
 */
static void let_arrive(void)
{
	struct pollfd last = { .fd = net.last[1], .events = POLLIN };
	char byte = 'x';

	assert_int_equal(send(net.last[0], &byte, 1, 0), 1);
	assert_int_equal(poll(&last, 1, 5000), 1);
	assert_int_equal(recv(net.last[1], &byte, 1, 0), 1);
}

/*
 * The kernel delays acknowledgements by the machine's clock, for longer than a test takes that has
 * another one. Who is asked for them now has none to delay.
 */
static void acknowledge(void)
{
	int now = 1;

	for (int i = 0; i < 2 * net.hops; i++)
		setsockopt(net.hop[i / 2].fd[i % 2], IPPROTO_TCP, TCP_QUICKACK,
			   &now, sizeof(now));
}

void net_come_and_go(struct pair *pair)
{
	for (int i = 0; i < 4; i++) {
		let_arrive();
		acknowledge();
		net_carry_on(pair);
		let_arrive();
		run_round(pair->engine.loop);
	}
}

/* Its clock goes on, and on a busy machine its round trips take long. */
static void do_not_ask_the_kernel(struct session *s)
{
	for (unsigned int i = 0; s && i < s->paths.npipes; i++) {
		s->paths.pipes[i]->info.rtt_ms = net.rtt_ms;
		s->paths.pipes[i]->looked_at = loop_clock();
	}
}

void net_live(struct pair *pair, int64_t ns)
{
	for (int64_t at = 0; at < ns; at += 10 * MS) {
		clock_pass(10 * MS);
		do_not_ask_the_kernel(pair->lp);
		do_not_ask_the_kernel(pair->rp);
		net_come_and_go(pair);
	}
}

/* Messages of a byte: each pipe that may take something has two of them, or more. */
void net_say_words(struct pair *pair)
{
	for (int i = 0; i < WORDS; i++) {
		assert_int_equal(send(pair->conn[0].client, "?", 1,
				      MSG_NOSIGNAL), 1);
		net.written++;
		net_come_and_go(pair);
	}
}

/*
 * No copies of tails: they go by the acknowledgements of the kernel, whose clock is
 * another one.
 */
void net_begin_halted(struct pair *pair)
{
	net_begin(pair);
	pair->lp->ext->copies = pair->rp->ext->copies = UINT32_MAX;
	/* Acknowledgements took as long as the machine was busy. */
	for (int i = 0; i < PATHS_MAX; i++)
		pair->lp->ext->way[i].ack_takes = pair->rp->ext->way[i].ack_takes = 0;
	clock_halt();
}

struct leg *net_leg(struct pair *pair, int i)
{
	return &pair->lp->ext->leg[i];
}
