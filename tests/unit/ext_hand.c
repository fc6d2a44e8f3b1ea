/* SPDX-License-Identifier: MIT */
#include "ext_hand.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/conn/conn.h"
#include "mux/options/options.h"
#include "loopback.h"

static void on_open(struct session *s, struct conn *c)
{
	struct hand *h = session_owner(s);
	int fd[2];

	h->opened++;
	if (h->connects)
		return;
	app_pair(fd);
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

void hand_begin(struct hand *h, bool lp)
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
				   &welcome, conduit_plain(fd[0])) :
		    greet_new(&h->engine, &rp_role, h, "lp", &h->hello,
			      conduit_plain(fd[0]));
	assert_non_null(h->s);
}

bool hand_joins(struct hand *h, uint8_t index, uint8_t count,
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
	ok = greet_join(h->s, &hello, conduit_plain(fd[0]));
	if (h->fd[1] >= 0)
		close(h->fd[1]);
	h->fd[1] = fd[1];
	return ok;
}

void hand_memory(struct hand *h, size_t most)
{
	h->settings.max_memory = most;
	engine_balance(&h->engine);
}

/* Reads what the session says on pipe 0. */
void hand_listens(struct hand *h)
{
	long n = h->closed ? 0 : read_some(h->fd[0], h->heard + h->len,
					   HEARD - h->len);

	if (n > 0)
		h->len += (size_t)n;
	else if (n != -EAGAIN)
		h->closed = true;
}

bool hand_has_ended(void *arg)
{
	struct hand *h = arg;

	hand_listens(h);
	if (h->closed && h->fd[0] >= 0)
		shutdown(h->fd[0], SHUT_RDWR);
	return !h->s;
}

void hand_end(struct hand *h)
{
	if (h->s)
		session_stop(h->s, "the test is over");
	for (int i = 0; i < PIPES; i++) {
		if (h->s && h->fd[i] >= 0)
			shutdown(h->fd[i], SHUT_WR);
	}
	assert_true(run_until(h->engine.loop, "its end", hand_has_ended, h));
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

void hand_put(struct hand *h, const void *bytes, size_t len)
{
	assert_int_equal(send(h->fd[0], bytes, len, MSG_NOSIGNAL), len);
}

void hand_ext(struct hand *h, const struct wire_ext *what)
{
	uint8_t buf[WIRE_MESSAGE_MAX];
	size_t len = wire_ext_put(buf, what);

	assert_true(len > 0);
	hand_put(h, buf, len);
}

void hand_open(struct hand *h, uint32_t number)
{
	struct wire_ext what = {
		.type = WIRE_OPEN, .number = number,
		.open = {
			.id = ID, .protocol = WIRE_PROTOCOL_TCP,
			.to = destination_name("x", 1, 80), .window = 65536,
		},
	};

	hand_ext(h, &what);
}

void hand_data(struct hand *h, uint32_t number, size_t len)
{
	uint8_t buf[WIRE_MESSAGE_MAX] = { 0 };

	wire_put_data(buf, ID, number, len);
	hand_put(h, buf, WIRE_HEADER + len);
}

void hand_fin(struct hand *h, uint16_t id, uint32_t number, int reason)
{
	uint8_t buf[WIRE_FIN_SIZE];

	wire_put_fin(buf, id, number, WIRE_REASON_RST);
	buf[WIRE_HEADER] = (uint8_t)reason;
	hand_put(h, buf, sizeof(buf));
}

/* A message of the extension with @len bytes, whatever they mean. */
void hand_body(struct hand *h, const uint8_t *body, size_t len)
{
	uint8_t buf[WIRE_MESSAGE_MAX];

	wire_put_data(buf, 0, 0, len);
	memcpy(buf + WIRE_HEADER, body, len);
	hand_put(h, buf, WIRE_HEADER + len);
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

	hand_listens(h);
	while ((n = wire_read_up_to(h->heard + at, h->len - at, WIRE_LARGE_MAX,
				    &msg)) > 0) {
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

static bool has_heard(void *arg)
{
	struct want *w = arg;

	return heard(w->h, w->type, &w->ext, &w->fin);
}

struct want hand_hears(struct hand *h, unsigned int type)
{
	struct want w = { .h = h, .type = type };

	assert_true(run_until(h->engine.loop, wire_ext_name(type), has_heard,
			      &w));
	return w;
}

void ends_the_session(struct hand *h)
{
	struct want w = hand_hears(h, WIRE_GOODBYE);

	assert_int_equal(w.ext.goodbye.reason, WIRE_GOODBYE_PROTOCOL);
	assert_true(run_until(h->engine.loop, "the session's end", hand_has_ended, h));
	hand_end(h);
}

/* It answers a PING, so it and its pipe are there. */
void goes_on(struct hand *h)
{
	static uint64_t token = 100;
	struct wire_ext ping = { .type = WIRE_PING, .ping.token = ++token };
	struct want w = { .h = h };

	hand_ext(h, &ping);
	do
		w = hand_hears(h, WIRE_PONG);
	while (w.ext.ping.token != token && (run_round(h->engine.loop), true));
	assert_non_null(h->s);
}

void ends_the_connection(struct hand *h)
{
	struct want w;

	hand_hears(h, WIRE_SYNACK);
	w = hand_hears(h, 0);
	assert_int_equal(w.fin.id, ID);
	assert_int_equal(w.fin.body[0], WIRE_REASON_RST);
	goes_on(h);
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
uint32_t hand_fills(struct hand *h, uint16_t id, uint32_t number, uint32_t n,
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
