/* SPDX-License-Identifier: MIT */
#include "peer.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/sock.h"
#include "mux/conn/conn.h"
#include "mux/options/options.h"
#include "mux/session/greeting.h"
#include "loopback.h"

static void on_syn(struct session *s, struct conn *c)
{
	struct peer *peer = session_owner(s);
	struct peer_conn *pc = &peer->conn[c->id];
	int fd[2];

	app_pair(fd);
	if (pc->app >= 0)
		close(pc->app);
	pc->app = fd[0];
	pc->syns++;
	conn_attach(c, fd[1]);
}

static void on_ended(struct session *s)
{
	struct peer *peer = session_owner(s);

	snprintf(peer->why, sizeof(peer->why), "%s", session_why(s));
	peer->s = NULL;
}

static const struct session_role rp_role = {
	.open = on_syn,
	.ended = on_ended,
};

static const struct session_role lp_role = {
	.ended = on_ended,
};

void peer_init(struct peer *peer)
{
	memset(peer, 0, sizeof(*peer));
	settings_init(&peer->settings);
	peer->settings.seed = 0;	/* the first id is 1 */
	peer->settings.seed_given = true;
	log_init(&peer->log, "test", LOG_ERROR);
	for (int i = 0; i < PEER_IDS; i++)
		peer->conn[i].app = -1;
}

void peer_open(struct peer *peer, bool rp)
{
	int near[PEER_PIPES];

	assert_int_equal(engine_init(&peer->engine, &peer->settings, &peer->log),
			 0);
	for (int i = 0; i < PEER_PIPES; i++) {
		int fd[2];

		tcp_pair(fd);
		near[i] = fd[0];
		peer->fd[i] = fd[1];
		peer->partial[i] = malloc(WIRE_MESSAGE_MAX);
	}
	peer->s = greet_baseline(&peer->engine, rp ? &rp_role : &lp_role, peer,
			      "the peer", near, PEER_PIPES);
	assert_non_null(peer->s);
}

void peer_close(struct peer *peer)
{
	for (int i = 0; i < PEER_PIPES; i++) {
		close(peer->fd[i]);
		free(peer->partial[i]);
	}
	if (peer->s)
		assert_true(peer_waits_for_end(peer));
	for (int i = 0; i < PEER_IDS; i++) {
		if (peer->conn[i].app >= 0)
			close(peer->conn[i].app);
	}
	engine_fini(&peer->engine);
	log_fini(&peer->log);
}

int peer_setup(void **state)
{
	struct peer *peer = malloc(sizeof(*peer));

	peer_init(peer);
	*state = peer;
	return 0;
}

int peer_setup_rp(void **state)
{
	peer_setup(state);
	peer_open(*state, true);
	return 0;
}

int peer_setup_lp(void **state)
{
	peer_setup(state);
	peer_open(*state, false);
	return 0;
}

int peer_teardown(void **state)
{
	peer_close(*state);
	free(*state);
	return 0;
}

bool peer_put(struct peer *peer, unsigned int pipe, const void *bytes,
	      size_t len)
{
	const uint8_t *at = bytes;

	while (len) {
		ssize_t n = send(peer->fd[pipe], at, len, MSG_NOSIGNAL);

		if (n > 0) {
			at += n;
			len -= (size_t)n;
			continue;
		}
		if (errno != EAGAIN || !peer->s || peer->s->in.paused)
			return false;
		run_round(peer->engine.loop);
	}
	return true;
}

void peer_data(struct peer *peer, unsigned int pipe, uint16_t id,
	       uint32_t number, size_t len)
{
	uint8_t buf[WIRE_MESSAGE_MAX];

	wire_put_data(buf, id, number, len);
	for (size_t i = 0; i < len; i++)
		buf[WIRE_HEADER + i] = (uint8_t)(number + i);
	assert_true(peer_put(peer, pipe, buf, WIRE_HEADER + len));
}

void peer_syn(struct peer *peer, unsigned int pipe, uint16_t id)
{
	static const uint8_t addr[4] = { 192, 0, 2, 1 };
	uint8_t buf[WIRE_SYN_SIZE];

	wire_put_syn(buf, id, addr, 80);
	assert_true(peer_put(peer, pipe, buf, sizeof(buf)));
}

void peer_fin(struct peer *peer, unsigned int pipe, uint16_t id,
	      uint32_t number, uint8_t reason)
{
	uint8_t buf[WIRE_FIN_SIZE];

	wire_put_fin(buf, id, number, reason);
	assert_true(peer_put(peer, pipe, buf, sizeof(buf)));
}

/* --- what the session says --- */

static void note(struct peer *peer, const struct wire_msg *msg)
{
	struct peer_conn *pc;

	assert_in_range(msg->id, 1, PEER_IDS - 1);
	pc = &peer->conn[msg->id];
	pc->messages++;
	if (msg->type == WIRE_DATA)
		pc->bytes += msg->body_len;
	if (msg->type == WIRE_FIN) {
		pc->fins++;
		pc->reason = msg->body[0];
	}
}

static void read_pipe(struct peer *peer, int i)
{
	uint8_t buf[65536 + WIRE_MESSAGE_MAX];
	size_t len = peer->partial_len[i], at = 0;
	struct wire_msg msg;
	long got;
	int n;

	memcpy(buf, peer->partial[i], len);
	got = read_some(peer->fd[i], buf + len, 65536);
	if (got <= 0)
		return;
	len += (size_t)got;
	while ((n = wire_read(buf + at, len - at, &msg)) > 0) {
		note(peer, &msg);
		at += (size_t)n;
	}
	assert_int_equal(n, 0);
	peer->partial_len[i] = len - at;
	memcpy(peer->partial[i], buf + at, len - at);
}

static void read_pipes(struct peer *peer)
{
	for (int i = 0; i < PEER_PIPES; i++)
		read_pipe(peer, i);
}

/* All that was put has been read by the session. */
static bool session_is_even(const struct peer *peer)
{
	for (int i = 0; i < PEER_PIPES; i++) {
		struct pollfd pfd = { peer->s->pipes[i]->fd, POLLIN, 0 };

		if (sock_outstanding(peer->fd[i]) || poll(&pfd, 1, 0))
			return false;
	}
	return true;
}

void peer_settle(struct peer *peer)
{
	int64_t deadline = loop_clock() + 5 * NS_PER_SEC;

	do {
		run_round(peer->engine.loop);
		read_pipes(peer);
		assert_true(loop_clock() < deadline);
	} while (peer->s && !session_is_even(peer));
	run_round(peer->engine.loop);
	read_pipes(peer);
}

struct wait {
	struct peer *peer;
	uint16_t id;
};

static bool fin_came(void *arg)
{
	struct wait *wait = arg;

	read_pipes(wait->peer);
	return wait->peer->conn[wait->id].fins > 0;
}

bool peer_waits_for_fin(struct peer *peer, uint16_t id)
{
	struct wait wait = { peer, id };

	return run_until(peer->engine.loop, "a FIN", fin_came, &wait);
}

static bool ended(void *arg)
{
	return !((struct peer *)arg)->s;
}

bool peer_waits_for_end(struct peer *peer)
{
	return run_until(peer->engine.loop, "the session's end", ended, peer);
}

/* --- scenes --- */

void peer_text(struct peer *peer, unsigned int pipe, uint16_t id,
	       uint32_t number, const char *text)
{
	uint8_t buf[128];
	size_t n = wire_put_data(buf, id, number, strlen(text));

	memcpy(buf + n, text, strlen(text));
	assert_true(peer_put(peer, pipe, buf, n + strlen(text)));
}

void assert_app_reads(struct peer *peer, uint16_t id, const char *want)
{
	char got[64] = "";
	long n = read_some(peer->conn[id].app, got, sizeof(got) - 1);

	assert_int_equal(n, strlen(want));
	assert_string_equal(got, want);
}

void assert_reset(struct peer *peer, uint16_t id)
{
	char byte;

	assert_true(peer_waits_for_fin(peer, id));
	assert_int_equal(peer->conn[id].reason, WIRE_REASON_RST);
	assert_int_equal(peer->conn[id].fins, 1);
	if (peer->conn[id].app >= 0)
		assert_int_equal(read_some(peer->conn[id].app, &byte, 1),
				 -ECONNRESET);
}

void peer_open_conn(struct peer *peer, uint16_t id)
{
	peer_syn(peer, 0, id);
	peer_text(peer, 0, id, 1, "open");
	peer_settle(peer);
	assert_app_reads(peer, id, "open");
}

void peer_fill_until_paused(struct peer *peer)
{
	static uint8_t message[WIRE_MESSAGE_MAX];
	uint32_t number = 2;

	peer_open_conn(peer, 1);
	do {
		wire_put_data(message, 1, number++, WIRE_PAYLOAD_MAX);
		assert_true(number < 20000);
	} while (peer_put(peer, 0, message, sizeof(message)));
	assert_true(peer->s->in.paused);
	assert_true(peer->s->in.queued > QUEUE_MAX);
	assert_true(peer->s->in.queued < QUEUE_MAX + (2 << 20));
}
