/* SPDX-License-Identifier: MIT */
/*
 * What ends with a bad message of the extension: the session, the connection,
 * the pipe, or the message alone. One end is a session, the other is played by
 * hand on one or two pipes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/log.h"
#include "mux/conn/conn.h"
#include "mux/options/options.h"
#include "mux/session/extended.h"
#include "loopback.h"

enum { ID = 7, HEARD = 1 << 16, PIPES = 2 };

struct hand {
	struct engine engine;
	struct settings settings;
	struct log log;
	struct session *s;
	bool lp;			/* what the session is */
	char why[160];
	struct wire_hello hello;
	int fd[PIPES];
	int app, opened;
	bool connects;			/* and does not come to an end of it */
	uint8_t heard[HEARD];		/* on pipe 0 */
	size_t len;
	bool closed;
};

static void on_open(struct session *s, struct conn *c)
{
	struct hand *h = session_owner(s);
	int fd[2];

	h->opened++;
	if (h->connects)
		return;
	tcp_pair(fd);
	if (h->app >= 0)
		close(h->app);
	h->app = fd[0];
	conn_attach(c, fd[1]);
}

static void on_ended(struct session *s)
{
	struct hand *h = session_owner(s);

	snprintf(h->why, sizeof(h->why), "%s", session_why(s));
	h->s = NULL;
}

static const struct session_role rp_role = { .open = on_open, .ended = on_ended };
static const struct session_role lp_role = { .ended = on_ended };

static void hand_begin(struct hand *h, bool lp)
{
	struct wire_welcome welcome = {
		.version = 1, .features = WIRE_FEATURES_VERSION_1,
		.connections = 100, .conn_early = 65536,
		.session_early = 1 << 20, .wait_s = 10,
	};
	int fd[2];

	memset(h, 0, sizeof(*h));
	settings_init(&h->settings);
	log_init(&h->log, "test", LOG_ERROR);
	h->app = h->fd[1] = -1;
	h->lp = lp;
	assert_int_equal(engine_init(&h->engine, &h->settings, &h->log), 0);
	assert_int_equal(greet_hello(&h->hello, PIPES), 0);
	tcp_pair(fd);
	h->fd[0] = fd[1];
	h->s = lp ? greet_welcomed(&h->engine, &lp_role, h, "rp", &h->hello,
				   &welcome, fd[0]) :
		    greet_new(&h->engine, &rp_role, h, "lp", &h->hello, fd[0]);
	assert_non_null(h->s);
}

/* Reads what the session says on pipe 0. */
static void listen_on(struct hand *h)
{
	long n = h->closed ? 0 : read_some(h->fd[0], h->heard + h->len,
					   HEARD - h->len);

	if (n > 0)
		h->len += (size_t)n;
	else if (n != -EAGAIN)
		h->closed = true;
}

static bool is_over(void *arg)
{
	struct hand *h = arg;

	listen_on(h);
	if (h->closed && h->fd[0] >= 0)
		shutdown(h->fd[0], SHUT_RDWR);
	return !h->s;
}

static void hand_end(struct hand *h)
{
	if (h->s)
		session_stop(h->s, "the test is over");
	for (int i = 0; i < PIPES; i++) {
		if (h->s && h->fd[i] >= 0)
			shutdown(h->fd[i], SHUT_WR);
	}
	assert_true(run_until(h->engine.loop, "its end", is_over, h));
	for (int i = 0; i < PIPES; i++) {
		if (h->fd[i] >= 0)
			close(h->fd[i]);
	}
	if (h->app >= 0)
		close(h->app);
	engine_fini(&h->engine);
	log_fini(&h->log);
}

/* --- what the hand says --- */

static void put(struct hand *h, const void *bytes, size_t len)
{
	assert_int_equal(send(h->fd[0], bytes, len, MSG_NOSIGNAL), len);
}

static void put_ext(struct hand *h, const struct wire_ext *what)
{
	uint8_t buf[WIRE_MESSAGE_MAX];
	size_t len = wire_ext_put(buf, what);

	assert_true(len > 0);
	put(h, buf, len);
}

static void put_open(struct hand *h, uint32_t number)
{
	struct wire_ext what = {
		.type = WIRE_OPEN, .number = number,
		.open = {
			.id = ID, .protocol = WIRE_PROTOCOL_TCP,
			.to = destination_name("x", 1, 80), .window = 65536,
		},
	};

	put_ext(h, &what);
}

static void put_data(struct hand *h, uint32_t number, size_t len)
{
	uint8_t buf[WIRE_MESSAGE_MAX] = { 0 };

	wire_put_data(buf, ID, number, len);
	put(h, buf, WIRE_HEADER + len);
}

static void put_fin(struct hand *h, uint16_t id, uint32_t number, int reason)
{
	uint8_t buf[WIRE_FIN_SIZE];

	wire_put_fin(buf, id, number, WIRE_REASON_RST);
	buf[WIRE_HEADER] = (uint8_t)reason;
	put(h, buf, sizeof(buf));
}

/* A message of the extension with @len bytes, whatever they mean. */
static void put_body(struct hand *h, const uint8_t *body, size_t len)
{
	uint8_t buf[WIRE_MESSAGE_MAX];

	wire_put_data(buf, 0, 0, len);
	memcpy(buf + WIRE_HEADER, body, len);
	put(h, buf, WIRE_HEADER + len);
}

/* --- what it hears --- */

/* The last message of @type, or a FIN (@type 0), that was heard. */
static bool heard(struct hand *h, unsigned int type, struct wire_ext *ext,
		  struct wire_msg *fin)
{
	struct wire_msg msg;
	bool found = false;
	size_t at = 0;
	int n;

	listen_on(h);
	while ((n = wire_read(h->heard + at, h->len - at, &msg)) > 0) {
		struct wire_ext said;

		at += (size_t)n;
		assert_int_equal(wire_ext_get(&msg, !h->lp, &said), 0);
		if (type ? said.type == type : msg.type == WIRE_FIN) {
			*ext = said;
			*fin = msg;
			found = true;
		}
	}
	assert_int_equal(n, 0);
	return found;
}

struct want {
	struct hand *h;
	unsigned int type;
	struct wire_ext ext;
	struct wire_msg fin;
};

static bool has_heard(void *arg)
{
	struct want *w = arg;

	return heard(w->h, w->type, &w->ext, &w->fin);
}

static struct want hear(struct hand *h, unsigned int type)
{
	struct want w = { .h = h, .type = type };

	assert_true(run_until(h->engine.loop, wire_ext_name(type), has_heard,
			      &w));
	return w;
}

static void ends_the_session(struct hand *h)
{
	struct want w = hear(h, WIRE_GOODBYE);

	assert_int_equal(w.ext.goodbye.reason, WIRE_GOODBYE_PROTOCOL);
	assert_true(run_until(h->engine.loop, "the session's end", is_over, h));
	hand_end(h);
}

/* It answers a PING, so it and its pipe are there. */
static void goes_on(struct hand *h)
{
	static uint64_t token = 100;
	struct wire_ext ping = { .type = WIRE_PING, .ping.token = ++token };
	struct want w = { .h = h };

	put_ext(h, &ping);
	do
		w = hear(h, WIRE_PONG);
	while (w.ext.ping.token != token && (run_round(h->engine.loop), true));
	assert_non_null(h->s);
}

static void ends_the_connection(struct hand *h)
{
	struct want w;

	hear(h, WIRE_SYNACK);
	w = hear(h, 0);
	assert_int_equal(w.fin.id, ID);
	assert_int_equal(w.fin.body[0], WIRE_REASON_RST);
	goes_on(h);
}

/* --- the session --- */

static void framing_ends_the_session(void **state)
{
	static const uint8_t message[] = { 2, 0, 7, 0, 0, 0, 8, 0 };
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	put(&h, message, sizeof(message));
	/* That pipe cannot be read any more, but it can be written. */
	ends_the_session(&h);
	assert_non_null(strstr(h.why, "length 8"));
}

static void a_syn_ends_the_session(void **state)
{
	uint8_t buf[WIRE_SYN_SIZE];
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	wire_put_syn(buf, ID, (uint8_t[]){ 1, 2, 3, 4 }, 80);
	put(&h, buf, sizeof(buf));
	ends_the_session(&h);
}

static void the_wrong_way_ends_the_session(void **state)
{
	static const struct wire_ext up[] = {
		{ .type = WIRE_WELCOME },
		{ .type = WIRE_SYNACK, .synack.id = ID },
		{ .type = WIRE_OPEN, .open = { 40000, 6,
			{ DESTINATION_NAME, 1, "x", 1 }, 0 } },
	}, down[] = {
		{ .type = WIRE_PATH },
		{ .type = WIRE_OPEN, .open = { 5, 6,
			{ DESTINATION_NAME, 1, "x", 1 }, 0 } },
		/* The right way, but RP was not allowed to open. */
		{ .type = WIRE_OPEN, .open = { 40000, 6,
			{ DESTINATION_NAME, 1, "x", 1 }, 0 } },
	};
	struct hand h;

	(void)state;
	for (int i = 0; i < 3; i++) {
		hand_begin(&h, false);
		put_ext(&h, &up[i]);
		ends_the_session(&h);
		hand_begin(&h, true);
		put_ext(&h, &down[i]);
		ends_the_session(&h);
	}
}

static void what_cannot_be_due_ends_the_session(void **state)
{
	struct hand h;

	(void)state;
	hand_begin(&h, false);	/* OPEN in a use */
	put_open(&h, 0);
	put_open(&h, 1);
	ends_the_session(&h);
	hand_begin(&h, false);	/* data outside */
	put_data(&h, 0, 10);
	ends_the_session(&h);
	hand_begin(&h, false);	/* a half-close outside */
	put_fin(&h, ID, 0, WIRE_REASON_NO_MORE);
	ends_the_session(&h);
	hand_begin(&h, false);	/* data behind their end */
	put_open(&h, 0);
	put_fin(&h, ID, 1, WIRE_REASON_NO_MORE);
	put_data(&h, 2, 10);
	ends_the_session(&h);
	hand_begin(&h, true);	/* SYNACK of what was not opened */
	put_ext(&h, &(struct wire_ext){ .type = WIRE_SYNACK, .synack.id = ID });
	ends_the_session(&h);
}

static void an_ack_beyond_ends_the_session(void **state)
{
	struct wire_ext ack = {
		.type = WIRE_ACK,
		.ack = { .pipes = 1, .pipe[0] = { 0, 0, 1 } },
	};
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	put_ext(&h, &ack);	/* WELCOME does not count */
	ends_the_session(&h);
	hand_begin(&h, false);
	put_open(&h, 0);
	hear(&h, WIRE_SYNACK);
	put_ext(&h, &ack);
	goes_on(&h);
	assert_int_equal(h.s->ext->kept, 0);
	ack.ack.pipe[0].received = 1000;
	put_ext(&h, &ack);
	ends_the_session(&h);
}

/* --- the connection --- */

static void a_bad_open_is_answered(void **state)
{
	struct wire_ext open = {
		.type = WIRE_OPEN,
		.open = { ID, WIRE_PROTOCOL_UDP,
			  { DESTINATION_IPV4, 4, { 1, 2, 3, 4 }, 53 }, 0 },
	};
	uint8_t body[WIRE_PAYLOAD_MAX] = { WIRE_OPEN, ID, 0, 6, 5, 4, 1, 2, 3,
					   4, 80, 0, 0, 0, 0, 0 };
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	put_ext(&h, &open);	/* UDP was not agreed upon */
	ends_the_connection(&h);
	assert_int_equal(h.opened, 0);
	put_fin(&h, ID, 1, WIRE_REASON_RST);
	put_open(&h, 2);
	while (!h.opened)
		run_round(h.engine.loop);
	hand_end(&h);
	hand_begin(&h, false);
	put_body(&h, body, 16);	/* kind 5 */
	ends_the_connection(&h);
	assert_int_equal(h.opened, 0);
	hand_end(&h);
}

static void an_unknown_reason_ends_its_connection(void **state)
{
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	put_open(&h, 0);
	put_fin(&h, ID, 1, WIRE_REASON_FIN);
	ends_the_connection(&h);
	put_open(&h, 2);
	while (h.opened < 2)
		run_round(h.engine.loop);
	hand_end(&h);
}

static void more_than_early_ends_its_connection(void **state)
{
	struct hand h;
	uint32_t number = 1;

	(void)state;
	hand_begin(&h, false);
	h.connects = true;
	put_open(&h, 0);
	for (size_t sent = 0; sent < EARLY_CONN; sent += 4096)
		put_data(&h, number++, 4096);
	goes_on(&h);
	assert_int_equal(h.s->in.queued, EARLY_CONN);
	assert_int_equal(h.s->counts.protocol, 0);
	put_data(&h, number, 1);
	ends_the_connection(&h);
	assert_int_equal(h.s->in.queued, 0);
	assert_int_equal(h.s->ext->pool.limit.used, 0);
	hand_end(&h);
}

/* As long as the session takes it. */
static void put_all(struct hand *h, const uint8_t *at, size_t len)
{
	while (len && h->s && session_is_up(h->s)) {
		ssize_t n = send(h->fd[0], at, len, MSG_NOSIGNAL);

		if (n < 0)
			run_round(h->engine.loop);
		at += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
}

/* @n messages of @size bytes. Returns the number behind the last. */
static uint32_t fill(struct hand *h, uint16_t id, uint32_t number, uint32_t n,
		     size_t size)
{
	static uint8_t buf[64 * WIRE_MESSAGE_MAX];
	size_t len = 0;

	while (n--) {
		wire_put_data(buf + len, id, number++, size);
		len += WIRE_HEADER + size;
		if (n && len + WIRE_MESSAGE_MAX <= sizeof(buf))
			continue;
		put_all(h, buf, len);
		len = 0;
	}
	return number;
}

static void the_largest_out_of_order_is_ended_and_its_id_goes_on(void **state)
{
	struct hand h;
	uint32_t next;

	(void)state;
	hand_begin(&h, false);
	put_open(&h, 0);
	fill(&h, 9, 2, 256, 4096);
	next = fill(&h, ID, 2, REORDER_MAX_SESSION / 4096, 4096);
	hear(&h, WIRE_SYNACK);
	ends_the_connection(&h);
	assert_int_equal(h.s->counts.reorder_limit, 1);
	assert_true(h.s->in.early < REORDER_MAX_SESSION / 8);
	assert_true(h.s->in.early > 1 << 20);	/* the other one's */
	/* All of them come to be due, and the next use begins behind them. */
	put_data(&h, 1, 1);
	put_fin(&h, ID, next, WIRE_REASON_RST);
	put_open(&h, next + 1);
	goes_on(&h);
	assert_int_equal(h.opened, 2);
	assert_int_equal(h.s->ext->channel[ID]->order.count, 0);
	hand_end(&h);
}

static void crumbs_out_of_order_end_the_session(void **state)
{
	struct hand h;
	struct want w;

	(void)state;
	hand_begin(&h, false);
	for (uint16_t id = 1; id < 10 && session_is_up(h.s); id++)
		fill(&h, id, 2, 1000000, 1);
	w = hear(&h, WIRE_GOODBYE);
	assert_int_equal(w.ext.goodbye.reason, WIRE_GOODBYE_LIMIT);
	assert_true(run_until(h.engine.loop, "the end", is_over, &h));
	hand_end(&h);
}

static void a_number_far_ahead_ends_its_connection(void **state)
{
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	put_open(&h, 0);
	put_data(&h, 2 + WIRE_NUMBER_WINDOW, 1);
	ends_the_connection(&h);
	hand_end(&h);
}

/* --- the pipe --- */

static bool is_alone(void *arg)
{
	struct hand *h = arg;

	listen_on(h);
	return h->closed && !h->s->path.npipes;
}

static void a_second_hello_closes_its_pipe(void **state)
{
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	put_ext(&h, &(struct wire_ext){ .type = WIRE_HELLO, .hello = h.hello });
	assert_true(run_until(h.engine.loop, "no pipe", is_alone, &h));
	assert_non_null(h.s);
	hand_end(&h);
}

/* A pipe that was welcomed hears WELCOME, another one hears nothing. */
static bool joins(struct hand *h, uint8_t index, uint8_t count,
		  uint32_t incarnation)
{
	struct wire_hello hello = h->hello;
	int fd[2];
	bool ok;

	hello.pipe = index;
	hello.pipes = count;
	hello.incarnation = incarnation;
	tcp_pair(fd);
	assert_ptr_equal(greet_find(&h->engine, &hello), h->s);
	ok = greet_join(h->s, &hello, fd[0]);
	if (h->fd[1] >= 0)
		close(h->fd[1]);
	h->fd[1] = fd[1];
	return ok;
}

static void pipes_join_by_index_count_and_incarnation(void **state)
{
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	assert_false(joins(&h, 0, PIPES, 0));	/* no redial */
	assert_false(joins(&h, 1, PIPES + 1, 0));
	assert_true(joins(&h, 1, PIPES, 5));
	assert_false(joins(&h, 1, PIPES, 5));
	assert_false(joins(&h, 1, PIPES, 4));
	goes_on(&h);
	assert_true(joins(&h, 1, PIPES, 6));	/* the older one goes */
	goes_on(&h);
	assert_int_equal(h.s->path.npipes, 2);
	assert_int_equal(h.s->open_pipes, 2);
	hand_end(&h);
}

/* --- the message alone --- */

static void some_are_dropped_and_counted(void **state)
{
	static const uint8_t unknown[] = { 10, 1, 2, 3 }, brief[] = { WIRE_OPEN };
	struct wire_ext window = { .type = WIRE_WINDOW, .window = { ID, 1000 } };
	struct wire_ext ack = {
		.type = WIRE_ACK,
		.ack = { .pipes = 1, .pipe[0] = { 0, 9, 1000 } },
	};
	struct hand h;
	struct want w;

	(void)state;
	hand_begin(&h, false);
	put_body(&h, unknown, sizeof(unknown));
	put_body(&h, brief, sizeof(brief));
	put_ext(&h, &window);			/* of no use so far */
	put_fin(&h, 0, 0, WIRE_REASON_RST);
	put_ext(&h, &ack);			/* of another incarnation */
	put_open(&h, 0);
	put_ext(&h, &window);			/* below OPEN's */
	goes_on(&h);
	assert_int_equal(h.s->counts.dropped, 6);
	assert_int_equal(h.s->counts.protocol, 0);
	assert_int_equal(h.opened, 1);
	/* ACK does not count; all others of these do. */
	w = hear(&h, WIRE_ACK);
	assert_int_equal(w.ext.ack.pipe[0].received, 6);
	hand_end(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(framing_ends_the_session),
		cmocka_unit_test(a_syn_ends_the_session),
		cmocka_unit_test(the_wrong_way_ends_the_session),
		cmocka_unit_test(what_cannot_be_due_ends_the_session),
		cmocka_unit_test(an_ack_beyond_ends_the_session),
		cmocka_unit_test(a_bad_open_is_answered),
		cmocka_unit_test(an_unknown_reason_ends_its_connection),
		cmocka_unit_test(more_than_early_ends_its_connection),
		cmocka_unit_test(
			the_largest_out_of_order_is_ended_and_its_id_goes_on),
		cmocka_unit_test(crumbs_out_of_order_end_the_session),
		cmocka_unit_test(a_number_far_ahead_ends_its_connection),
		cmocka_unit_test(a_second_hello_closes_its_pipe),
		cmocka_unit_test(pipes_join_by_index_count_and_incarnation),
		cmocka_unit_test(some_are_dropped_and_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
