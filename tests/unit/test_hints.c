/* SPDX-License-Identifier: MIT */
/* HINT: what one end tells the other of the bytes that this one sends. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "dark_net.h"
#include "ext_pair.h"
#include "loopback.h"
#include "mux/sched/path_policy.h"

enum { MAIN, SPARE };
enum { LOT = 200000, FIRST_ID = 1 };

static const struct hint some = { .bytes = 5000, .urgency = 3, .paths = 2 };

static void assert_told(const struct conn *c, const struct hint *wanted)
{
	assert_int_equal(hint_left(conn_outlook(c)->told_to, c->tx_bytes),
			 wanted->bytes);
	assert_int_equal(c->urgency, wanted->urgency);
	assert_int_equal(c->paths, 0);	/* there is one path */
}

static struct conn *conn_at(struct session *s, uint16_t id)
{
	struct channel *ch = s->ext->channel[id];

	return ch ? ch->conn : NULL;
}

struct arrival {
	const struct conn *c;
	uint8_t urgency;
};

static bool has_arrived(void *arg)
{
	const struct arrival *it = arg;

	return it->c->urgency == it->urgency;
}

/* One connection is open: LP's end of it. */
static struct conn *begin_connected(struct pair *pair)
{
	pair_begin(pair, PAIR_PIPES);
	pair_connect(pair, 0);
	return conn_at(pair->lp, FIRST_ID);
}

static void await_hint(struct pair *pair, struct session *at, uint8_t urgency)
{
	struct arrival it = { conn_at(at, FIRST_ID), urgency };

	assert_true(run_until(pair->engine.loop, "HINT", has_arrived, &it));
}

/* --- saying and hearing --- */

static void both_ends_agree_to_it(void **state)
{
	struct pair *pair = *state;

	pair_begin(pair, PAIR_PIPES);
	assert_true(pair->lp->ext->welcome.features & WIRE_FEATURE_HINT);
	assert_true(pair->rp->ext->welcome.features & WIRE_FEATURE_HINT);
}

/* It came with OPEN; and once more, as there is no telling whether that OPEN was due then. */
static void what_is_said_at_once_follows_open(void **state)
{
	struct pair *pair = *state;
	struct conn *c;

	pair_begin(pair, PAIR_PIPES);
	pair_open(pair, 0);
	c = conn_at(pair->lp, FIRST_ID);
	assert_int_equal(session_hint(pair->lp, c, &some), 0);
	while (c->syn_pending)
		run_round(pair->engine.loop);
	assert_int_equal(pair->lp->counts.hints_sent, 1);
	while (!conn_at(pair->rp, FIRST_ID))
		run_round(pair->engine.loop);
	c = conn_at(pair->rp, FIRST_ID);
	await_hint(pair, pair->rp, some.urgency);
	assert_told(c, &some);
	assert_int_equal(pair->rp->counts.hints_dropped, 0);
	while (pair->rp->counts.hints_received < 2)
		run_round(pair->engine.loop);
	assert_told(c, &some);
	assert_int_equal(pair->lp->counts.hints_sent, 2);
}

/* OPEN has gone, and SYNACK has not come. */
static struct conn *begin_unanswered(struct pair *pair)
{
	struct conn *c;

	pair_begin(pair, PAIR_PIPES);
	pair_open(pair, 0);
	c = conn_at(pair->lp, FIRST_ID);
	while (c->syn_pending)
		run_round(pair->engine.loop);
	assert_false(c->channel->use.answered);
	return c;
}

static bool is_heard_twice(void *arg)
{
	const struct session *rp = arg;

	return rp->counts.hints_received == 2;
}

/* On another pipe it may come before that OPEN. */
static void what_is_said_before_synack_is_said_once_more(void **state)
{
	struct pair *pair = *state;
	struct conn *c;

	c = begin_unanswered(pair);
	assert_int_equal(session_hint(pair->lp, c, &some), 0);
	assert_true(run_until(pair->engine.loop, "two HINTs", is_heard_twice,
			      pair->rp));
	assert_told(conn_at(pair->rp, FIRST_ID), &some);
	assert_int_equal(pair->lp->counts.hints_sent, 2);
}

static void the_last_one_counts(void **state)
{
	const struct hint other = { .bytes = 9, .urgency = 8, .paths = 0x81 };
	struct pair *pair = *state;
	struct conn *c;

	c = begin_connected(pair);
	assert_int_equal(session_hint(pair->lp, c, &some), 0);
	assert_int_equal(session_hint(pair->lp, c, &other), 0);
	await_hint(pair, pair->rp, other.urgency);
	assert_told(conn_at(pair->rp, FIRST_ID), &other);
	/* One message says it all. */
	assert_int_equal(pair->lp->counts.hints_sent, 1);
	/* And the other way round. */
	assert_int_equal(session_hint(pair->rp, conn_at(pair->rp, FIRST_ID),
				      &some), 0);
	await_hint(pair, pair->lp, some.urgency);
	assert_int_equal(pair->rp->counts.hints_sent, 1);
	/* But paths are LP's. */
	assert_int_equal(conn_at(pair->lp, FIRST_ID)->paths, 0);
}

static void what_came_remains_no_more(void **state)
{
	static const uint8_t bytes[3000];
	struct pair *pair = *state;
	struct conn *lp, *rp;

	lp = begin_connected(pair);
	rp = conn_at(pair->rp, FIRST_ID);
	assert_int_equal(session_hint(pair->lp, lp, &some), 0);
	await_hint(pair, pair->rp, some.urgency);
	assert_int_equal(conn_size(rp), 5000);
	assert_int_equal(send(pair->conn[0].server, bytes, 3000, 0), 3000);
	pair_expect(pair, pair->conn[0].client, bytes, 3000);
	assert_int_equal(conn_size(rp), 2000);
	assert_int_equal(session_hinted(lp).bytes, 2000);
	assert_int_equal(session_hinted(lp).urgency, some.urgency);
	/* More than was said: nobody knows how many. */
	assert_int_equal(send(pair->conn[0].server, bytes, 3000, 0), 3000);
	pair_expect(pair, pair->conn[0].client, bytes, 3000);
	assert_int_equal(conn_size(rp), UINT64_MAX);
	assert_int_equal(session_hinted(lp).bytes, 0);
}

static bool one_is_dropped(void *arg)
{
	return ((const struct session *)arg)->counts.dropped == 1;
}

static void who_did_not_agree_says_nothing(void **state)
{
	const struct wire_ext said = { .type = WIRE_HINT, .hint = {
		.id = FIRST_ID, .priority = 1 } };
	struct pair *pair = *state;
	struct conn *c;

	pair->lacks = WIRE_FEATURE_HINT;
	c = begin_connected(pair);
	assert_int_equal(session_hint(pair->lp, c, &some), -EPROTONOSUPPORT);
	assert_int_equal(session_hinted(c).urgency, 0);
	assert_true(control_say(pair->lp, pair->lp->pipes[0], &said));
	assert_true(run_until(pair->engine.loop, "HINT", one_is_dropped,
			      pair->rp));
	assert_int_equal(conn_at(pair->rp, FIRST_ID)->urgency, 0);
	assert_int_equal(pair->rp->counts.dropped, 1);
	assert_int_equal(pair->rp->counts.hints_dropped, 0);
}

static void nothing_is_said_of_what_has_ended(void **state)
{
	const struct hint most = { .bytes = WIRE_HINT_MOST };
	struct hint more = { .bytes = WIRE_HINT_MOST + 1 };
	struct pair *pair = *state;
	struct conn *c;

	c = begin_connected(pair);
	assert_int_equal(session_hint(pair->lp, c, &most), 0);
	assert_int_equal(session_hint(pair->lp, c, &more), -EOVERFLOW);
	assert_int_equal(session_hinted(c).bytes, WIRE_HINT_MOST);
	shutdown(pair->conn[0].server, SHUT_WR);
	pair_expect_end(pair, pair->conn[0].client, 0);
	assert_int_equal(session_hint(pair->lp, c, &some), -ENOTCONN);
}

/* --- paths --- */

static uint64_t written(const struct session *s, unsigned int path)
{
	return s->paths.path[path].written;
}

static bool is_read(struct pair *pair)
{
	(void)pair;
	return net.read == net.written;
}

static uint64_t said_on_main(const struct session *s)
{
	return s->pipes[0]->tx_messages + s->pipes[1]->tx_messages;
}

/* Else an answer could go over any path, since the one that the HINT goes on may be slow. */
static void first_bytes_are_behind_what_binds_them(void **state)
{
	struct pair *pair = *state;
	struct conn *c;
	uint64_t before;

	net_begin(pair);
	c = conn_at(pair->lp, FIRST_ID);
	net.hop[0].dark = net.hop[1].dark = true;
	before = said_on_main(pair->lp);
	session_bind(pair->lp, c, 1 << SPARE);
	net.written += (size_t)send(pair->conn[0].client, "?", 1, MSG_NOSIGNAL);
	net_until(pair, "first bytes", is_read);
	assert_int_equal(conn_at(pair->rp, FIRST_ID)->paths, 1 << SPARE);
	/* There, and at once on the other path, for what rp sends before they come. */
	assert_int_equal(pair->lp->counts.hints_sent, 2);
	assert_int_equal(said_on_main(pair->lp), before + 1);
}

static bool is_answered_and_read(void *arg)
{
	const struct pair *pair = arg;

	return pair->conn[0].answered && pair->rp->counts.hints_received >= 2 &&
	       conn_at(pair->rp, FIRST_ID)->rx_bytes;
}

/* Nothing that may answer these bytes breaks a rule by it. */
static void what_binds_to_no_path_does_not_go_ahead_of_first_bytes(void **state)
{
	const struct hint hint = { .bytes = 5000, .urgency = 3 };
	struct pair *pair = *state;
	struct conn *c;

	c = begin_unanswered(pair);
	assert_int_equal(session_hint(pair->lp, c, &hint), 0);
	assert_int_equal(send(pair->conn[0].client, "?", 1, MSG_NOSIGNAL), 1);
	assert_true(run_until(pair->engine.loop, "HINTs and bytes",
			      is_answered_and_read, pair));
	for (unsigned int i = 0; i < 50; i++)
		run_round(pair->engine.loop);
	/* At once, and behind SYNACK. */
	assert_int_equal(pair->lp->counts.hints_sent, 2);
	assert_int_equal(pair->rp->counts.hints_received, 2);
}

static bool is_gone_at_rp(void *arg)
{
	return !conn_at(((struct pair *)arg)->rp, FIRST_ID);
}

static void what_never_went_is_not_counted(void **state)
{
	struct pair *pair = *state;
	struct conn *c;

	c = begin_connected(pair);
	session_bind(pair->lp, c, 1 << SPARE);
	conn_reset(c, CONN_END_LOCAL_RESET);
	assert_true(run_until(pair->engine.loop, "its end", is_gone_at_rp, pair));
	assert_int_equal(pair->lp->counts.hints_sent,
			 pair->rp->counts.hints_received +
			 pair->rp->counts.hints_dropped);
	assert_int_equal(pair->lp->counts.hints_sent, 1);
}

enum { CHUNK = 3000, PAYLOAD = 1000 };

/* A chunk of all that may be sent would leave no credit that says that bytes follow. */
static void what_binds_goes_ahead_of_bytes_that_could_be_cut(void **state)
{
	static const uint8_t bytes[CHUNK];
	struct pair *pair = *state;
	struct session *lp;
	struct conn *c;
	struct run *run;
	struct wire_msg msg;
	struct wire_ext said;
	int n;

	pair->settings.path_policy = &path_dems_b;
	c = begin_connected(pair);
	lp = pair->lp;
	session_bind(lp, c, 1 << MAIN | 1 << SPARE);
	assert_int_equal(send(pair->conn[0].client, bytes, CHUNK, MSG_NOSIGNAL),
			 CHUNK);
	c->readable = true;
	c->channel->out.allowed = c->channel->out.sent + CHUNK;
	assert_true(path_choice_cuts(&lp->sched.path, c));
	run = run_get(&lp->shared.pool);
	cutting_frame(lp, &(struct next){ .conn = c, .pipe = lp->pipes[0],
					  .bytes = CHUNK, .payload = PAYLOAD },
		      run);
	n = wire_read(run->buf, run->len, &msg);
	assert_true(n > 0);
	assert_int_equal(wire_ext_get(&msg, true, &said), 0);
	assert_int_equal(said.type, WIRE_HINT);
	assert_true(wire_read(run->buf + n, run->len - (size_t)n, &msg) > 0);
	assert_int_equal(msg.type, WIRE_DATA);
	assert_int_equal(msg.id, FIRST_ID);
	/* Over SCTP, too, where what is in no order may overtake. */
	assert_int_equal(lp->counts.hints_sent, 1);
	assert_false(run->heard);
	run->paths = c->paths;
	run->of_conn = true;
	pipe_send(lp->pipes[0], keeping_add(lp, lp->pipes[0], run));
	pair_expect(pair, pair->conn[0].server, bytes, CHUNK);
}

static void download(struct pair *pair)
{
	static const uint8_t bytes[LOT];
	struct pair_conn *pc = &pair->conn[0];
	size_t sent = 0;

	while (sent < LOT) {
		ssize_t n = send(pc->server, bytes + sent, LOT - sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		sent += n > 0 ? (size_t)n : 0;
		run_round(pair->engine.loop);
		if (n > 0)
			pair_expect(pair, pc->client, bytes, (size_t)n);
	}
}

static void only_named_paths_carry_it(void **state)
{
	struct hint hint = { .urgency = 1, .paths = 1 << SPARE };
	struct pair *pair = *state;
	struct conn *c;
	uint64_t before;

	c = begin_connected(pair);
	session_hint(pair->lp, c, &hint);
	await_hint(pair, pair->rp, 1);
	before = written(pair->rp, MAIN);
	download(pair);
	assert_int_equal(written(pair->rp, MAIN), before);
	assert_true(written(pair->rp, SPARE) > LOT);
	hint = (struct hint){ .urgency = 2, .paths = 1 << MAIN };
	session_hint(pair->lp, c, &hint);
	await_hint(pair, pair->rp, 2);
	before = written(pair->rp, SPARE);
	download(pair);
	assert_int_equal(written(pair->rp, SPARE), before);
}

/* Its pipes may be on their way. */
static void a_path_that_was_never_there_is_waited_for(void **state)
{
	struct hint hint = { .urgency = 1, .paths = 1 << 5 };
	struct pair *pair = *state;
	struct conn *c;
	uint64_t before;

	c = begin_connected(pair);
	session_hint(pair->lp, c, &hint);
	await_hint(pair, pair->rp, 1);
	before = written(pair->rp, MAIN) + written(pair->rp, SPARE);
	assert_int_equal(send(pair->conn[0].server, "x", 1, MSG_NOSIGNAL), 1);
	for (unsigned int i = 0; i < 200; i++)
		run_round(pair->engine.loop);
	assert_int_equal(written(pair->rp, MAIN) + written(pair->rp, SPARE), before);
	hint = (struct hint){ .urgency = 2, .paths = 1 << SPARE | 1 << 5 };
	session_hint(pair->lp, c, &hint);
	await_hint(pair, pair->rp, 2);
	before = written(pair->rp, MAIN);
	pair_expect(pair, pair->conn[0].client, "x", 1);
	download(pair);
	assert_int_equal(written(pair->rp, MAIN), before);
}

#define PAIR_TEST(name) cmocka_unit_test_setup_teardown(name, pair_setup_new, pair_teardown)
#define PATHS_TEST(name) cmocka_unit_test_setup_teardown(name, pair_setup_paths, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR_TEST(both_ends_agree_to_it),
		PAIR_TEST(what_is_said_at_once_follows_open),
		PAIR_TEST(what_is_said_before_synack_is_said_once_more),
		PAIR_TEST(the_last_one_counts),
		PAIR_TEST(what_came_remains_no_more),
		PAIR_TEST(who_did_not_agree_says_nothing),
		PAIR_TEST(nothing_is_said_of_what_has_ended),
		NET_PATHS_TEST(first_bytes_are_behind_what_binds_them),
		PATHS_TEST(what_binds_to_no_path_does_not_go_ahead_of_first_bytes),
		PATHS_TEST(what_never_went_is_not_counted),
		PATHS_TEST(what_binds_goes_ahead_of_bytes_that_could_be_cut),
		PATHS_TEST(only_named_paths_carry_it),
		PATHS_TEST(a_path_that_was_never_there_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
