/* SPDX-License-Identifier: MIT */
/* A session of the extension over several paths: what both ends know of them and do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "ext_write.h"
#include "loopback.h"
#include "path_pair.h"

static void lose(struct pair *pair, unsigned int index)
{
	uint32_t serial = pair->rp->pipes[index]->serial;

	pair_kill(pair, index);
	while (pair->lp->pipes[index] ||
	       (pair->rp->pipes[index] &&
		pair->rp->pipes[index]->serial == serial))
		run_round(pair->engine.loop);
}

static void lose_path(struct pair *pair, unsigned int number)
{
	pair->redials = false;
	lose(pair, 2 * number);
	lose(pair, 2 * number + 1);
}

static void rp_knows_which_pipe_is_on_which_path(void **state)
{
	struct pair *pair = *state;
	struct session *ends[2];

	pair_begin(pair, 4);
	ends[0] = pair->lp;
	ends[1] = pair->rp;
	for (int i = 0; i < 2; i++) {
		struct session *s = ends[i];

		assert_int_equal(s->paths.npaths, PATHS);
		for (unsigned int p = 0; p < 4; p++)
			assert_int_equal(paths_number(&s->paths, s->pipes[p]),
					 p / 2);
		assert_int_equal(path_of(s, MAIN)->cost, 0);
		assert_int_equal(path_of(s, SPARE)->cost, COST);
		assert_false(path_of(s, SPARE)->backup);
	}
	/* Where the first one comes from RP has seen. */
	assert_int_equal(pair->told[MAIN], 0);
	assert_int_equal(pair->told[SPARE], 1);
}

static void both_paths_are_used(void **state)
{
	struct pair *pair = *state;

	pair_begin(pair, 4);
	pair_connect(pair, 0);
	for (int i = 0; i < 5; i++)
		path_pair_carry(pair, LOT);
	assert_true(path_of(pair->lp, MAIN)->written > 0);
	assert_true(path_of(pair->rp, MAIN)->written > 0);
	path_of(pair->lp, MAIN)->cost = path_of(pair->rp, MAIN)->cost = COST + 1;
	path_of(pair->lp, SPARE)->written = path_of(pair->rp, SPARE)->written = 0;
	for (int i = 0; i < 5; i++)
		path_pair_carry(pair, LOT);
	assert_true(path_of(pair->lp, SPARE)->written > 0);
	assert_true(path_of(pair->rp, SPARE)->written > 0);
}

/* It is dialled all the same, so that it is there at once. */
static void a_backup_carries_nothing_while_another_path_lives(void **state)
{
	struct pair *pair = *state;

	pair->settings.paths.path[SPARE].backup = true;
	pair_begin(pair, 4);
	assert_true(path_of(pair->rp, SPARE)->backup);
	pair_connect(pair, 0);
	path_pair_carry(pair, LOT);
	assert_int_equal(path_of(pair->lp, SPARE)->written, 0);
	assert_int_equal(path_of(pair->rp, SPARE)->written, 0);
	lose_path(pair, MAIN);
	path_pair_carry(pair, LOT);
	assert_true(path_of(pair->lp, SPARE)->written > LOT);
	assert_true(path_of(pair->rp, SPARE)->written > LOT);
	pair->redials = true;
	while (session_lacks(pair->lp))
		pair_dial(pair);
	pair_settle(pair);
	path_of(pair->lp, SPARE)->written = path_of(pair->rp, SPARE)->written = 0;
	path_pair_carry(pair, LOT);
	assert_int_equal(path_of(pair->lp, SPARE)->written, 0);
	assert_int_equal(path_of(pair->rp, SPARE)->written, 0);
}

/* What was on it goes again on the other one, in its order. */
static void what_was_on_a_path_that_is_gone_arrives(void **state)
{
	struct pair *pair = *state;
	static uint8_t bytes[LOT];
	struct pair_conn *pc = &pair->conn[0];

	pair_begin(pair, 4);
	pair_connect(pair, 0);
	for (size_t i = 0; i < LOT; i++)
		bytes[i] = (uint8_t)(i * 31 + i / 251);
	for (unsigned int round = 0; round < 10; round++) {
		pair->redials = false;
		pair_write(pair, pc->client, bytes, LOT);
		for (unsigned int i = 0; i < round; i++)
			run_round(pair->engine.loop);
		lose_path(pair, round % PATHS);
		pair_expect(pair, pc->server, bytes, LOT);
		pair->redials = true;
		while (session_lacks(pair->lp))
			pair_dial(pair);
		pair_settle(pair);
	}
}

static bool was_told_again(void *arg)
{
	struct pair *pair = arg;

	return pair->told[SPARE] == 2 && pair_is_settled(pair);
}

/* RP saw a pipe come from an address that it did not expect. */
static void who_is_sent_away_tells_of_the_path_again(void **state)
{
	struct pair *pair = *state;

	pair_begin(pair, 4);
	pair->redials = false;
	pair->joins = PAIR_SENT_AWAY;
	lose(pair, 3);
	pair_dial(pair);
	while (pair->told[SPARE] < 2)
		run_round(pair->engine.loop);
	/* Not before RP can have heard of it. */
	assert_false(pair->lp->ext->way[SPARE].due);
	pair->joins = PAIR_JOINS;
	pair->redials = true;
	assert_true(run_until(pair->engine.loop, "it joins", was_told_again,
			      pair));
	assert_int_equal(pair->told[MAIN], 0);
}

static void without_a_pipe_to_tell_it_on_all_are_dialled(void **state)
{
	struct pair *pair = *state;

	pair_begin(pair, 4);
	pair->redials = false;
	for (unsigned int i = 0; i < 4; i++) {
		if (i == 3)
			ways_announce(&pair->lp->ext->way[SPARE]);
		lose(pair, i);
	}
	assert_int_equal(session_lacks(pair->lp), 4);
	pair->redials = true;
	pair_dial(pair);
	while (session_lacks(pair->lp))
		pair_dial(pair);
	pair_settle(pair);
}

static void of_two_path_messages_the_later_counts(void **state)
{
	struct pair *pair = *state;
	struct wire_path said = { .path = SPARE, .state = WIRE_PATH_BACKUP,
				  .cost = 5, .serial = 7 };
	struct path *path;

	pair_begin(pair, 4);
	path = path_of(pair->rp, SPARE);
	ways_came(pair->rp, &said);
	assert_true(path->backup);
	assert_int_equal(path->cost, 5);
	assert_true(pair->rp->pipes[2]->standby);
	said = (struct wire_path){ .path = SPARE, .state = WIRE_PATH_USE,
				   .cost = 6, .serial = 7 };
	ways_came(pair->rp, &said);	/* a copy */
	said.serial = 3;
	ways_came(pair->rp, &said);	/* a late one */
	assert_true(path->backup);
	assert_int_equal(path->cost, 5);
	assert_int_equal(pair->rp->counts.stale, 2);
	said.serial = 8;
	ways_came(pair->rp, &said);
	assert_false(path->backup);
	assert_int_equal(path->cost, 6);
	assert_false(pair->rp->pipes[2]->standby);
	said.state = WIRE_PATH_OFF;
	said.serial = 9;
	ways_came(pair->rp, &said);
	assert_true(path->off);
	assert_true(pair->rp->pipes[3]->standby);
	assert_int_equal(pair->rp->counts.dropped, 2);
	/* A HELLO says how it was when it was dialled. */
	pair->redials = true;
	lose(pair, 2);
	pair_settle(pair);
	assert_true(path->off);
}

static void what_no_path_can_be_is_dropped(void **state)
{
	struct pair *pair = *state;
	struct wire_path said = { .path = PATHS_MAX, .serial = 7 };

	pair_begin(pair, 4);
	ways_came(pair->rp, &said);
	said = (struct wire_path){ .path = 0, .state = WIRE_PATH_OFF + 1,
				   .serial = 7 };
	ways_came(pair->rp, &said);
	assert_int_equal(pair->rp->counts.dropped, 2);
	assert_int_equal(pair->rp->engine->incidents.count[INCIDENT_PROTOCOL],
			 2);
	assert_int_equal(pair->told[0], 0);
	assert_true(session_is_up(pair->rp));
}

static void who_did_not_agree_to_several_has_one(void **state)
{
	struct pair *pair = *state;
	struct wire_path said = { .path = SPARE, .state = WIRE_PATH_OFF,
				  .serial = 1 };

	pair->settings.paths.n = 1;
	pair->settings.paths.path[MAIN].pipes = 4;
	pair_begin(pair, 4);
	ways_came(pair->rp, &said);
	assert_int_equal(pair->rp->counts.dropped, 1);
	assert_int_equal(pair->told[SPARE], 0);
	assert_int_equal(pair->rp->paths.npaths, 1);
	assert_int_equal(pair->lp->paths.npaths, 1);
}

/* --- beside the rule which of TCP and SCTP is in use --- */

static void is_in_use(struct pair *pair, const char *in_use)
{
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(!pair->lp->pipes[i]->standby, in_use[i] == 'x');
}

static void take_for_dead(struct pair *pair, unsigned int index, bool dead)
{
	pair->lp->pipes[index]->relieved = dead;
	standby_find(pair->lp);
}

/* Each path has a pipe of either kind: 1 and 3 are taken for SCTP's. */
static void backups_rest_and_so_do_pipes_of_the_kind_not_in_use(void **state)
{
	struct pair *pair = *state;
	struct session *s;

	pair->settings.paths.path[SPARE].backup = true;
	pair_begin(pair, 4);
	s = pair->lp;
	s->pipes[1]->transport = s->pipes[3]->transport = TRANSPORT_SCTP;
	path_of(s, MAIN)->losses.on_sctp = true;
	path_of(s, SPARE)->losses.on_sctp = false;
	standby_find(s);
	is_in_use(pair, ".x..");
	take_for_dead(pair, 1, true);
	is_in_use(pair, "x...");
	take_for_dead(pair, 0, true);
	is_in_use(pair, "..x.");
	take_for_dead(pair, 2, true);
	is_in_use(pair, "...x");
	take_for_dead(pair, 0, false);
	is_in_use(pair, "x...");
	take_for_dead(pair, 1, false);
	is_in_use(pair, ".x..");
	path_of(s, MAIN)->off = true;
	take_for_dead(pair, 2, false);
	is_in_use(pair, "..x.");
	s->pipes[1]->transport = s->pipes[3]->transport = TRANSPORT_TCP;
}

static bool heard_a_hint(void *arg)
{
	const struct pair *pair = arg;

	return pair->rp->counts.hints_received > 0;
}

/* Of this connection alone all that RP sends goes over both. */
static void copies_of_one_connection_go_over_all_paths(void **state)
{
	static uint8_t bytes[LOT];
	struct hint hint = { .paths = WIRE_HINT_COPIES };
	struct pair *pair = *state;
	struct conn *c;
	uint64_t before;

	pair_begin(pair, 4);
	pair_connect(pair, 0);
	c = list_first(&pair->lp->conns, struct conn, member);
	assert_int_equal(session_hint(pair->lp, c, &hint), 0);
	pair_connect(pair, 1);
	assert_true(run_until(pair->engine.loop, "HINT", heard_a_hint, pair));
	memset(bytes, 'y', LOT);
	pair_write(pair, pair->conn[0].server, bytes, LOT);
	pair_expect(pair, pair->conn[0].client, bytes, LOT);
	while (pair->rp->ext->kept)
		run_round(pair->engine.loop);
	before = pair->rp->counts.reinjected_bytes;
	assert_in_range(before, 1, 2 * LOT);
	assert_int_equal(pair->lp->counts.reinjected, 0);
	pair_write(pair, pair->conn[1].server, bytes, LOT);
	pair_expect(pair, pair->conn[1].client, bytes, LOT);
	assert_int_equal(pair->rp->counts.reinjected_bytes, before);
}

/* The number of a pipe's path is looked at before it may join. */
static void no_pipe_is_on_an_eighth_path(void **state)
{
	struct admission admission = { .pipes = 4 };
	struct wire_hello hello = { .pipe = 1, .pipes = 4,
				    .path = PATHS_MAX,
				    .features = WIRE_FEATURE_PATH };

	(void)state;
	assert_int_equal(admission_enter(&admission, &hello), ADMISSION_PATH);
	hello.path--;
	assert_int_equal(admission_enter(&admission, &hello), ADMISSION_OK);
	hello.path = 255;
	hello.incarnation++;
	hello.features = 0;
	assert_int_equal(admission_enter(&admission, &hello), ADMISSION_OK);
}

#define WAYS_TEST(name) cmocka_unit_test_setup_teardown(name, path_pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WAYS_TEST(rp_knows_which_pipe_is_on_which_path),
		WAYS_TEST(both_paths_are_used),
		WAYS_TEST(a_backup_carries_nothing_while_another_path_lives),
		WAYS_TEST(what_was_on_a_path_that_is_gone_arrives),
		WAYS_TEST(who_is_sent_away_tells_of_the_path_again),
		WAYS_TEST(without_a_pipe_to_tell_it_on_all_are_dialled),
		WAYS_TEST(of_two_path_messages_the_later_counts),
		WAYS_TEST(what_no_path_can_be_is_dropped),
		WAYS_TEST(who_did_not_agree_to_several_has_one),
		WAYS_TEST(backups_rest_and_so_do_pipes_of_the_kind_not_in_use),
		WAYS_TEST(copies_of_one_connection_go_over_all_paths),
		cmocka_unit_test(no_pipe_is_on_an_eighth_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
