/* SPDX-License-Identifier: MIT */
/* Large messages: who may send them, and what is made of the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/sock.h"
#include "mux/conn/chunk.h"
#include "mux/conn/conn.h"
#include "ext_hand.h"
#include "ext_pair.h"
#include "loopback.h"

/* --- what a length means --- */

static int judged(uint16_t id, size_t length, size_t largest)
{
	uint8_t header[WIRE_HEADER];
	struct wire_head head;
	struct wire_msg msg;
	int n;

	wire_put_data(header, id, 1, length - WIRE_HEADER);
	n = wire_read_up_to(header, sizeof(header), largest, &msg);
	assert_int_equal(wire_head_up_to(header, sizeof(header), largest, &head),
			 n >= 0);
	if (n >= 0)
		assert_int_equal(head.size, length);
	return n;
}

static void data_of_a_connection_alone_may_be_large(void **state)
{
	(void)state;
	assert_int_equal(judged(1, WIRE_LARGE_MAX, WIRE_LARGE_MAX), 0);
	assert_int_equal(judged(1, WIRE_LARGE_MAX + 1, WIRE_LARGE_MAX), -1);
	assert_int_equal(judged(0, WIRE_MESSAGE_MAX, WIRE_LARGE_MAX), 0);
	assert_int_equal(judged(0, WIRE_MESSAGE_MAX + 1, WIRE_LARGE_MAX), -1);
	assert_int_equal(judged(1, WIRE_MESSAGE_MAX + 1, WIRE_MESSAGE_MAX), -1);
}

/* --- at who receives --- */

static void says(struct hand *h, uint16_t id, uint32_t number, size_t len)
{
	static uint8_t buf[WIRE_LARGE_MAX + 1];

	for (size_t i = 0; i < len; i++)
		buf[WIRE_HEADER + i] = (uint8_t)(i * 7 + i / 256);
	wire_put_data(buf, id, number, len);
	hand_put(h, buf, WIRE_HEADER + len);
}

struct at_app {
	struct hand *h;
	uint8_t bytes[WIRE_LARGE_PAYLOAD + 1];
	size_t len;
};

static bool has_all(void *arg)
{
	struct at_app *a = arg;
	ssize_t n = recv(a->h->app, a->bytes + a->len, sizeof(a->bytes) - a->len,
			 MSG_DONTWAIT);

	if (n > 0)
		a->len += (size_t)n;
	return a->len >= WIRE_LARGE_PAYLOAD;
}

static void a_large_one_is_delivered(void **state)
{
	static struct at_app at;
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	at = (struct at_app){ .h = &h };
	hand_open(&h, 0);
	says(&h, ID, 1, WIRE_LARGE_PAYLOAD);
	assert_true(run_until(h.engine.loop, "its bytes", has_all, &at));
	assert_int_equal(at.len, WIRE_LARGE_PAYLOAD);
	for (size_t i = 0; i < at.len; i++)
		assert_int_equal(at.bytes[i], (uint8_t)(i * 7 + i / 256));
	goes_on(&h);
	hand_end(&h);
}

static void what_is_larger_breaks_the_framing(void **state)
{
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	hand_open(&h, 0);
	says(&h, ID, 1, WIRE_LARGE_PAYLOAD + 1);
	ends_the_session(&h);
}

static void the_session_s_own_are_small(void **state)
{
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	says(&h, 0, 0, WIRE_PAYLOAD_MAX + 1);
	ends_the_session(&h);
}

static void without_the_feature_none_is_large(void **state)
{
	struct hand h;

	(void)state;
	hand_begin(&h, true);	/* RP's WELCOME has version 1 alone */
	says(&h, ID, 1, WIRE_PAYLOAD_MAX + 1);
	ends_the_session(&h);
}

/* --- at who sends --- */

static size_t payload_at(const struct session *s, size_t allowance)
{
	struct pipe *p = s->paths.pipes[0];

	p->allowance = allowance;
	return pipe_payload(p);
}

static void on_fast_pipes_alone(void **state)
{
	struct pair *pair = *state;

	pair_begin(pair, PAIR_PIPES);
	assert_int_equal(payload_at(pair->rp, 64 << 10), WIRE_LARGE_PAYLOAD);
	assert_int_equal(payload_at(pair->lp, 64 << 10), WIRE_LARGE_PAYLOAD);
	assert_int_equal(payload_at(pair->rp, (64 << 10) - 1), WIRE_PAYLOAD_MAX);
	pair->settings.late = false;
	assert_int_equal(payload_at(pair->rp, 512 << 10), WIRE_PAYLOAD_MAX);
	pair->settings.late = true;
}

static void not_where_a_loss_is_a_chunk(void **state)
{
	struct pair *pair = *state;
	struct pipe *p;

	pair_begin(pair, PAIR_PIPES);
	p = pair->rp->paths.pipes[0];
	p->info.mss = 1400;
	p->transport = TRANSPORT_SCTP;
	assert_int_equal(payload_at(pair->rp, 512 << 10), 1400 - WIRE_HEADER);
	p->transport = TRANSPORT_TCP;
}

static bool has_come(void *arg)
{
	struct conn *c = arg;

	return sock_unread(c->watch.fd) > 4 * WIRE_LARGE_PAYLOAD;
}

/* One of its paths may be slow, whatever the pipe is that took its beginning. */
static void what_paths_share_is_cut_small(void **state)
{
	static uint8_t bytes[5 * WIRE_LARGE_PAYLOAD];
	struct pair *pair = *state;
	struct session *s;
	struct conn *c;
	struct run *run;

	pair->settings.path_policy = &path_dems_s;
	pair_begin(pair, PAIR_PIPES);
	pair_connect(pair, 0);
	s = pair->lp;
	c = list_first(&s->conns, struct conn, member);
	assert_true(c->tx_messages > 0);
	assert_int_equal(send(pair->conn[0].client, bytes, sizeof(bytes), MSG_NOSIGNAL),
			 sizeof(bytes));
	while (!has_come(c))
		assert_int_equal(usleep(1000), 0);
	c->readable = true;	/* as the loop is about to say */
	run = run_get(&s->shared.pool);
	cutting_frame(s, &(struct next){ .conn = c, .pipe = s->paths.pipes[0],
					 .payload = WIRE_LARGE_PAYLOAD, .bytes = 1 }, run);
	assert_non_null(conn_outlook(c)->chunk);
	assert_int_equal(conn_outlook(c)->chunk->payload, WIRE_PAYLOAD_MAX);
	assert_int_equal(run->len, WIRE_MESSAGE_MAX);
	run_put(&s->shared.pool, run);
}

static void to_who_has_the_feature_alone(void **state)
{
	struct pair *pair = *state;

	pair->lacks = WIRE_FEATURE_LARGE;
	pair_begin(pair, PAIR_PIPES);
	assert_int_equal(payload_at(pair->rp, 512 << 10), WIRE_PAYLOAD_MAX);
	assert_int_equal(payload_at(pair->lp, 512 << 10), WIRE_PAYLOAD_MAX);
}

static void both_ways(void **state)
{
	static uint8_t all[48 * WIRE_LARGE_PAYLOAD + 5];
	struct pair *pair = *state;
	struct pair_conn *pc = &pair->conn[0];

	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (uint8_t)(i * 31 + i / 4096);
	pair_begin(pair, PAIR_PIPES);
	pair_connect(pair, 0);
	for (int way = 0; way < 2; way++) {
		size_t sent = 0;

		while (sent < sizeof(all)) {
			size_t part = sizeof(all) - sent < 40000 ? sizeof(all) - sent : 40000;

			for (unsigned int i = 0; i < PAIR_PIPES; i++) {
				pair->rp->paths.pipes[i]->allowance = 512 << 10;
				pair->lp->paths.pipes[i]->allowance = 512 << 10;
			}
			assert_int_equal(send(way ? pc->client : pc->server, all + sent,
					      part, MSG_NOSIGNAL), part);
			pair_expect(pair, way ? pc->server : pc->client, all + sent, part);
			sent += part;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_of_a_connection_alone_may_be_large),
		cmocka_unit_test(a_large_one_is_delivered),
		cmocka_unit_test(what_is_larger_breaks_the_framing),
		cmocka_unit_test(the_session_s_own_are_small),
		cmocka_unit_test(without_the_feature_none_is_large),
		cmocka_unit_test_setup_teardown(on_fast_pipes_alone,
						pair_setup_new, pair_teardown),
		cmocka_unit_test_setup_teardown(not_where_a_loss_is_a_chunk,
						pair_setup_new, pair_teardown),
		cmocka_unit_test_setup_teardown(what_paths_share_is_cut_small,
						pair_setup_paths, pair_teardown),
		cmocka_unit_test_setup_teardown(to_who_has_the_feature_alone,
						pair_setup_new, pair_teardown),
		cmocka_unit_test_setup_teardown(both_ways, pair_setup_new, pair_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
