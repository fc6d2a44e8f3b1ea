/* SPDX-License-Identifier: MIT */
/* Connections that wait for early bytes go on one after the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/conn/conn.h"
#include "ext_hand.h"
#include "loopback.h"

enum { MANY = 50, BYTES = 1000 };

static struct conn *conn[MANY];
static int app[MANY];
static const struct conn_ops *its_ops;
static unsigned int woken;

static void counts(struct conn *c)
{
	woken++;
	its_ops->ready(c);
}

static struct conn_ops counting;

static void begin(struct hand *h, uint64_t limit)
{
	hand_begin(h, true);
	its_ops = h->s->conn_owner.ops;
	counting = *its_ops;
	counting.ready = counts;
	h->s->conn_owner.ops = &counting;
	h->s->ext->pool.limit.all = limit;
}

/* Connection @i has @len bytes to send; its OPEN has gone, and what may with it. */
static void open_conn(struct hand *h, int i, size_t len)
{
	static const uint8_t bytes[BYTES];
	struct destination to = destination_name("x", 1, 80);
	int fd[2];

	app_pair(fd);
	app[i] = fd[0];
	assert_int_equal(send(app[i], bytes, len, MSG_NOSIGNAL), len);
	assert_int_equal(session_open(h->s, fd[1], &to, NULL), 0);
	conn[i] = list_entry(h->s->conns.prev, struct conn, member);
	while (!conn[i]->channel->use.open || conn[i]->ready)
		run_round(h->engine.loop);
}

static void answer(struct hand *h, int i)
{
	const struct channel *ch = conn[i]->channel;
	struct wire_ext what = {
		.type = WIRE_SYNACK, .number = 0,
		.synack = { .id = ch->id, .offset = 1 << 20 },
	};

	hand_ext(h, &what);
	while (!ch->use.answered)
		run_round(h->engine.loop);
	for (int k = 0; k < 5; k++)
		run_round(h->engine.loop);
}

static void end(struct hand *h)
{
	for (int i = 0; i < MANY; i++)
		close(app[i]);
	hand_end(h);
}

/* One has all that may be sent early; the others wait, and are answered one by one. */
static void an_answer_wakes_who_can_send(void **state)
{
	struct hand h;

	(void)state;
	begin(&h, BYTES);
	for (int i = 0; i < MANY; i++)
		open_conn(&h, i, BYTES);
	woken = 0;
	for (int i = 0; i < MANY; i++) {
		answer(&h, i);
		assert_int_equal(conn[i]->tx_bytes, BYTES);
		assert_true(h.s->ext->pool.limit.used <= BYTES);
	}
	assert_in_range(woken, MANY - 1, 4 * MANY);
	end(&h);
}

/* Room for all of them, which a single answer makes. */
static void one_after_the_other_all_go_on(void **state)
{
	struct hand h;

	(void)state;
	begin(&h, BYTES);
	open_conn(&h, 0, BYTES);
	for (int i = 1; i < MANY; i++)
		open_conn(&h, i, BYTES / MANY);
	woken = 0;
	answer(&h, 0);
	for (int i = 1; i < MANY; i++)
		assert_int_equal(conn[i]->tx_bytes, BYTES / MANY);
	assert_in_range(woken, MANY - 1, 2 * MANY);
	end(&h);
}

/* Who was woken may go before it has sent. */
static void who_goes_lets_the_next_one_on(void **state)
{
	struct hand h;

	(void)state;
	begin(&h, BYTES);
	for (int i = 0; i < MANY; i++)
		open_conn(&h, i, i < 3 ? BYTES : 1);
	h.s->ext->pool.limit.all = 2 * BYTES;
	conn_credited(conn[1]);
	list_del(&conn[1]->channel->line);
	conn_reset(conn[1], CONN_END_LOCAL_RESET);
	for (int i = 0; i < 5; i++)
		run_round(h.engine.loop);
	assert_int_equal(conn[2]->tx_bytes, BYTES);
	end(&h);
}

/* It would be woken in vain, and the others not at all. */
static void who_met_its_own_limit_is_in_nobodys_way(void **state)
{
	struct hand h;

	(void)state;
	begin(&h, 2 * BYTES);
	h.s->ext->pool.limit.conn = BYTES / 2;
	for (int i = 0; i < MANY; i++)
		open_conn(&h, i, BYTES);
	assert_int_equal(conn[3]->tx_bytes, BYTES / 2);
	assert_int_equal(conn[4]->tx_bytes, 0);
	answer(&h, 0);
	assert_int_equal(conn[0]->tx_bytes, BYTES);
	assert_int_equal(conn[4]->tx_bytes, BYTES / 2);
	assert_int_equal(conn[5]->tx_bytes, 0);
	end(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_wakes_who_can_send),
		cmocka_unit_test(one_after_the_other_all_go_on),
		cmocka_unit_test(who_goes_lets_the_next_one_on),
		cmocka_unit_test(who_met_its_own_limit_is_in_nobodys_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
