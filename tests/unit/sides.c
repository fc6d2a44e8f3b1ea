/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "halted.h"
#include "loopback.h"
#include "sides.h"

struct side lp_side[SIDES], rp_side[SIDES];
unsigned int sides_asked;
bool sides_echo, sides_wait;
struct side_put side_put;

static void came(struct flow *f, const struct destination *at,
		 const uint8_t *payload, size_t len)
{
	struct side *side = flow_owner(f);

	side->came++;
	side->at = *at;
	side->len = len;
	memcpy(side->last, payload, len);
	if (side_put.fd >= 0) {
		flow_put(f, side_put.fd, &side_put.to,
			 &(struct iovec){ side->last, len }, 1);
		flow_close(f);
		side->flow = NULL;
		return;
	}
	if (sides_echo && side >= rp_side && side < rp_side + SIDES)
		flow_send(f, at->kind ? at : NULL, payload, len);
}

static void ended(struct flow *f)
{
	struct side *side = flow_owner(f);

	flow_charge(f, -(int64_t)flow_charged(f));
	side->ended++;
	side->flow = NULL;
}

static void unsent(struct flow *f, int err)
{
	(void)f;
	(void)err;
	side_put.unsent++;
}

static void told_mtu(struct flow *f, unsigned int mtu)
{
	struct side *side = flow_owner(f);

	side->told++;
	side->mtu = mtu;
}

const struct flow_ops side_ops = {
	.came = came, .ended = ended, .unsent = unsent, .told_mtu = told_mtu,
};

static void rp_opens(struct pair *pair, struct conn *c)
{
	struct side *side = &rp_side[sides_asked++ % SIDES];

	if (pair->refuse) {
		conn_reset(c, pair->refuse);
		return;
	}
	side->flow = flow_take(c, &side_ops, side);
	if (!sides_wait)
		flow_answer(side->flow);
}

void sides_prepare(struct pair *pair)
{
	memset(lp_side, 0, sizeof(lp_side));
	memset(rp_side, 0, sizeof(rp_side));
	sides_asked = 0;
	sides_echo = true;
	sides_wait = false;
	side_put.fd = -1;
	side_put.unsent = 0;
	pair->open_flow = rp_opens;
}

int sides_set_up(void **state)
{
	pair_setup(state);
	sides_prepare(*state);
	return 0;
}

int sides_tear_down(void **state)
{
	clock_go_on();
	return pair_teardown(state);
}

struct destination sides_server(uint16_t port)
{
	return destination_ipv4((uint8_t[]){ 192, 0, 2, 1 }, port);
}

void sides_begin(struct pair *pair, int i, const struct destination *to)
{
	lp_side[i].flow = flow_open(pair->lp, to, &side_ops, &lp_side[i]);
	assert_non_null(lp_side[i].flow);
}

struct wait {
	const unsigned int *count;
	unsigned int n;
};

static bool has_come(void *arg)
{
	const struct wait *w = arg;

	return *w->count >= w->n;
}

void sides_expect(struct pair *pair, const unsigned int *count,
		  unsigned int n)
{
	struct wait w = { count, n };

	assert_true(run_rounds(pair->engine.loop, "a datagram", has_come, &w));
	assert_int_equal(*count, n);
}
