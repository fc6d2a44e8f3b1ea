/* SPDX-License-Identifier: MIT */
/*
 * What a connection takes of memory while it does nothing; and that what it needed beside that
 * goes as soon as it has nothing under way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "mux/conn/backlog.h"
#include "mux/conn/channel.h"
#include "mux/pipe/partial.h"
#include "mux/wire/run.h"
#include "conn_scene.h"
#include "random.h"

/*
 * Both lie side by side with others (slab.h). An id has a place in a table as well: two pointers
 * in the baseline, else one.
 */
static void an_idle_connection_takes_less_than_half_a_KiB(void **state)
{
	(void)state;
	assert_true(sizeof(struct conn) + 2 * sizeof(void *) <= 330);
	assert_true(sizeof(struct conn) + sizeof(void *) +
		    sizeof(struct channel) <= 480);
}

static void it_has_nothing_that_nobody_asked_for(void **state)
{
	struct scene *scene = *state;
	const struct conn *c = scene->c;

	scene_attach(scene);
	assert_int_equal(send(scene->app, bulk, 1000, MSG_NOSIGNAL), 1000);
	scene_frame_all(scene);
	assert_int_equal(scene->framed_len, 1000);
	scene_deliver(scene, 0, 1000);
	assert_null(c->outlook);
	assert_null(c->backlog);
	assert_null(c->waits);
	assert_null(c->reorder.waiting);
}

static void a_destination_is_kept_where_there_is_room(void **state)
{
	static const uint8_t v4[4] = { 192, 0, 2, 1 }, v6[16] = { 0x20 };
	const struct destination to[] = {
		destination_ipv4(v4, 80),
		destination_name("a.example", 9, 80),
		destination_ipv6(v6, 80),
		destination_ipv4(v4, 81),
		destination_ipv4(v4, 82),
	};
	struct scene *scene = *state;
	struct conn *c = scene->c;

	for (unsigned int i = 0; i < sizeof(to) / sizeof(*to); i++) {
		struct destination kept;

		assert_int_equal(conn_set_destination(c, &to[i]), 0);
		kept = destination_copy(c->dst);
		assert_memory_equal(&kept, &to[i], sizeof(kept));
		assert_int_equal((const void *)c->dst == &c->dst_place,
				 to[i].kind == DESTINATION_IPV4);
	}
}

static void a_backlog_goes_with_its_last_byte(void **state)
{
	struct scene *scene = *state;

	scene_attach(scene);
	scene_deliver(scene, 0, BULK);
	assert_true(conn_queued(scene->c) > 0);
	assert_true(run_until(scene->loop, "all bytes", app_read_all, scene));
	assert_null(scene->c->backlog);
	assert_memory_equal(scene->got, bulk, BULK);
}

/* For how long it held up others is not forgotten in between. */
static void one_that_was_full_stays(void **state)
{
	struct scene *scene = *state;

	scene_attach(scene);
	scene_deliver(scene, 0, BULK);
	scene->c->backlog->full_at = 1;
	scene->c->backlog->stall.spent = 2;
	assert_true(run_until(scene->loop, "all bytes", app_read_all, scene));
	assert_int_equal(conn_queued(scene->c), 0);
	assert_int_equal(scene->c->backlog->stall.spent, 2);
}

static void what_is_told_of_it_makes_an_outlook(void **state)
{
	struct scene *scene = *state;
	const struct outlook *o;

	conn_tell_size(scene->c, 0);
	assert_null(scene->c->outlook);
	assert_int_equal(conn_size(scene->c), UINT64_MAX);
	conn_tell_size(scene->c, 5);
	o = scene->c->outlook;
	assert_int_equal(conn_size(scene->c), 5);
	conn_tell_size(scene->c, 0);
	assert_ptr_equal(scene->c->outlook, o);
	assert_int_equal(conn_size(scene->c), UINT64_MAX);
}

/* --- those that are done --- */

enum { DONE = 3 };

static uint16_t gone[DONE];
static unsigned int ngone;

static void note(struct conn *c)
{
	(void)c;
}

static void note_gone(struct conn *c)
{
	gone[ngone++] = c->id;
	conn_free(c);
}

static const struct conn_ops ops = { .ended = note, .gone = note_gone };

/* An owner with some that are done. */
static void own(struct conn_owner *owner, struct scene *scene)
{
	conn_owner_init(owner, scene->loop, &scene->room, &ops,
			&conn_speech_baseline, NULL);
	ngone = 0;
	for (uint16_t id = 1; id <= DONE; id++)
		conn_abort(conn_new(owner, id), CONN_END_SESSION);
}

static void those_that_are_done_go_one_by_one(void **state)
{
	struct conn_owner owner;

	own(&owner, *state);
	assert_int_equal(ngone, 0);	/* not in the batch */
	for (unsigned int i = 0; i < DONE; i++) {
		struct task *t = &owner.reap;

		assert_false(list_empty(&t->node));
		loop_task_stop(t);
		t->run(t);
		assert_int_equal(ngone, i + 1);
		assert_int_equal(gone[i], i + 1);
	}
	assert_true(list_empty(&owner.reap.node));
	conn_owner_fini(&owner);
}

static void an_owner_that_ends_frees_those_that_are_done(void **state)
{
	struct scene *scene = *state;
	struct conn_owner owner;

	own(&owner, scene);
	conn_owner_fini(&owner);
	assert_int_equal(ngone, 0);
	run_round(scene->loop);
}

/* --- runs --- */

static struct run *run_of(struct run_pool *pool, size_t len)
{
	struct run *run = run_get(pool);

	assert_int_equal(run->size, RUN_SIZE);
	run->id = 7;
	run->first = 9;
	run->len = len;
	memcpy(run->buf, bulk, len);
	return run;
}

static void a_run_that_waits_takes_what_it_needs(void **state)
{
	static const size_t len[] = {
		1, RUN_COPIED, RUN_COPIED + 1, RUN_SIZE / 2, RUN_SIZE / 2 + 1,
		RUN_SIZE,
	};
	struct run_pool pool = { 0 };

	(void)state;
	for (unsigned int i = 0; i < sizeof(len) / sizeof(*len); i++) {
		bool half = len[i] > RUN_SIZE / 2;
		struct run *run = run_trim(&pool, run_of(&pool, len[i]));

		assert_int_equal(run->size, half ? RUN_SIZE : len[i]);
		assert_int_equal(run->len, len[i]);
		assert_int_equal(run->id, 7);
		assert_int_equal(run->first, 9);
		assert_memory_equal(run->buf, bulk, len[i]);
		run_put(&pool, run);
	}
	run_pool_fini(&pool);
}

/* So the next one need not be made. */
static void the_run_of_a_small_one_is_used_again(void **state)
{
	struct run_pool pool = { 0 };
	struct run *run = run_of(&pool, 100), *small;

	(void)state;
	small = run_trim(&pool, run);
	assert_ptr_equal(run_get(&pool), run);
	run_put(&pool, run);
	run_put(&pool, small);
	assert_int_equal(pool.bytes, RUN_SIZE);
	run_pool_fini(&pool);
}

static void empty_runs_go_once_nobody_took_any(void **state)
{
	struct run_pool pool = { 0 };

	(void)state;
	run_put(&pool, run_get(&pool));
	run_put(&pool, run_get_large(&pool));
	assert_false(run_pool_release(&pool));
	assert_int_equal(pool.bytes, RUN_SIZE + RUN_LARGE);
	run_put(&pool, run_get(&pool));
	assert_false(run_pool_release(&pool));
	assert_int_equal(pool.bytes, RUN_SIZE + RUN_LARGE);
	assert_true(run_pool_release(&pool));
	assert_int_equal(pool.bytes, 0);
	assert_null(pool.spare);
	assert_null(pool.large);
	assert_false(run_pool_release(&pool));
}

/* Not while there is a part of a message, nor right after that. */
static void a_part_of_a_message_takes_nothing_once_it_is_complete(void **state)
{
	static const uint8_t said[] = "what a read brought";
	struct partial partial = { 0 };
	uint8_t heard[sizeof(said)];

	(void)state;
	assert_int_equal(partial_copy(&partial, heard), 0);
	assert_true(partial_set(&partial, said, sizeof(said), 4104));
	assert_false(partial_release(&partial));
	assert_false(partial_release(&partial));
	assert_int_equal(partial_copy(&partial, heard), sizeof(said));
	assert_memory_equal(heard, said, sizeof(said));
	assert_true(partial_set(&partial, said, 4, 4104));
	assert_true(partial_set(&partial, said, 0, 4104));
	assert_false(partial_release(&partial));
	assert_non_null(partial.bytes);
	assert_true(partial_release(&partial));
	assert_null(partial.bytes);
	assert_false(partial_release(&partial));
}

/* Of a session whose messages became larger. */
static void a_longer_part_finds_room(void **state)
{
	static uint8_t said[16392];
	struct partial partial = { 0 };

	(void)state;
	assert_true(partial_set(&partial, said, 4104, 4104));
	assert_true(partial_set(&partial, said, sizeof(said), sizeof(said)));
	assert_int_equal(partial.len, sizeof(said));
	partial_fini(&partial);
}

#define REST_TEST(f) \
	cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_connection_takes_less_than_half_a_KiB),
		REST_TEST(it_has_nothing_that_nobody_asked_for),
		REST_TEST(a_destination_is_kept_where_there_is_room),
		REST_TEST(a_backlog_goes_with_its_last_byte),
		REST_TEST(one_that_was_full_stays),
		REST_TEST(what_is_told_of_it_makes_an_outlook),
		REST_TEST(those_that_are_done_go_one_by_one),
		REST_TEST(an_owner_that_ends_frees_those_that_are_done),
		cmocka_unit_test(a_run_that_waits_takes_what_it_needs),
		cmocka_unit_test(the_run_of_a_small_one_is_used_again),
		cmocka_unit_test(a_part_of_a_message_takes_nothing_once_it_is_complete),
		cmocka_unit_test(a_longer_part_finds_room),
		cmocka_unit_test(empty_runs_go_once_nobody_took_any),
	};
	struct random r = { .state = 1 };

	random_fill(&r, bulk, sizeof(bulk));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
