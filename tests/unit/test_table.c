/* SPDX-License-Identifier: MIT */
/*
 * Whose message is it: ids that are live, at rest, used again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mux/conn/conn.h"
#include "mux/conn/table.h"
#include "mux/settings/settings.h"
#include "random.h"

#define REST (REST_SECONDS * NS_PER_SEC)

enum { ID = 7, CONNS = 8 };

struct scene {
	struct table *t;
	struct conn conn[CONNS];
	int64_t now;
};

static int setup(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	scene->t = table_new();
	scene->now = 1000 * NS_PER_SEC;
	for (int i = 0; i < CONNS; i++)
		scene->conn[i].id = ID;
	*state = scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *scene = *state;

	table_free(scene->t);
	free(scene);
	return 0;
}

static struct table_route route(struct scene *scene, enum wire_type type,
				uint32_t number, unsigned int pipe)
{
	struct wire_msg msg = { .type = type, .id = ID, .number = number };
	struct wire_head head = { .id = ID, .number = number };
	struct table_route foreseen =
		table_foresee(scene->t, &head, pipe, true);
	struct table_route r =
		table_route(scene->t, &msg, pipe, true, scene->now);

	if (type != WIRE_SYN) {
		assert_int_equal(foreseen.verdict, r.verdict);
		assert_ptr_equal(foreseen.conn, r.conn);
	}
	return r;
}

static void assert_route(struct scene *scene, enum wire_type type,
			 uint32_t number, unsigned int pipe,
			 enum table_verdict verdict, const struct conn *c)
{
	struct table_route r = route(scene, type, number, pipe);

	assert_int_equal(r.verdict, verdict);
	assert_ptr_equal(r.conn, c);
	assert_null(r.evicted);
}

/* A connection of which everything below @next was delivered. */
static struct conn *add(struct scene *scene, int i, uint32_t next)
{
	struct conn *c = &scene->conn[i];

	c->had_syn = true;
	c->reorder.next = next;
	table_add(scene->t, c);
	return c;
}

static void the_unknown_are_new_to_who_accepts(void **state)
{
	struct wire_msg msg = { .type = WIRE_DATA, .id = ID, .number = 3 };
	struct wire_head head = { .id = ID, .number = 3 };
	struct scene *scene = *state;
	struct table_route r;

	assert_route(scene, WIRE_DATA, 3, 0, TABLE_NEW, NULL);
	assert_route(scene, WIRE_SYN, 0, 0, TABLE_NEW, NULL);
	r = table_foresee(scene->t, &head, 0, false);
	assert_int_equal(r.verdict, TABLE_LATE);
	r = table_route(scene->t, &msg, 0, false, scene->now);
	assert_int_equal(r.verdict, TABLE_LATE);
	assert_int_equal(table_conns(scene->t), 0);
}

static void the_live_get_what_is_theirs(void **state)
{
	struct scene *scene = *state;
	struct conn *c = add(scene, 0, 1);

	for (uint32_t number = 0; number < 100; number++)
		assert_route(scene, WIRE_DATA, number, number % 4, TABLE_CONN,
			     c);
	assert_int_equal(table_conns(scene->t), 1);
	table_remove(scene->t, c, true, scene->now);
	assert_int_equal(table_conns(scene->t), 0);
}

/* A connection made by data is given its SYN, not replaced by it. */
static void a_syn_behind_its_data_is_no_successor(void **state)
{
	struct scene *scene = *state;
	struct conn *c = add(scene, 0, 0);

	c->had_syn = false;
	assert_route(scene, WIRE_SYN, 0, 1, TABLE_CONN, c);
	assert_int_equal(table_formers(scene->t), 0);
}

static void a_closed_id_remembers(void **state)
{
	struct scene *scene = *state;
	struct conn *c = add(scene, 0, 10);

	table_remove(scene->t, c, false, scene->now);
	assert_int_equal(table_formers(scene->t), 1);
	assert_route(scene, WIRE_DATA, 10, 0, TABLE_LATE, NULL);
	assert_route(scene, WIRE_DATA, 11, 1, TABLE_LATE, NULL);
	assert_route(scene, WIRE_DATA, 9, 2, TABLE_NEW, NULL);
	assert_route(scene, WIRE_SYN, 0, 3, TABLE_NEW, NULL);
}

static void the_comparison_goes_round_the_circle(void **state)
{
	struct scene *scene = *state;
	struct conn *c = add(scene, 0, UINT32_MAX);

	table_remove(scene->t, c, false, scene->now);
	assert_route(scene, WIRE_DATA, UINT32_MAX, 0, TABLE_LATE, NULL);
	assert_route(scene, WIRE_DATA, 5, 1, TABLE_LATE, NULL);
	assert_route(scene, WIRE_DATA, UINT32_MAX - 1, 2, TABLE_NEW, NULL);
}

/* Messages of one pipe keep their order. */
static void behind_a_successor_all_is_the_successors(void **state)
{
	struct scene *scene = *state;
	struct conn *c = add(scene, 0, 10);
	struct conn *successor;

	table_remove(scene->t, c, false, scene->now);
	assert_route(scene, WIRE_SYN, 0, 0, TABLE_NEW, NULL);
	successor = add(scene, 1, 1);
	assert_route(scene, WIRE_DATA, 12, 0, TABLE_CONN, successor);
	assert_route(scene, WIRE_DATA, 12, 1, TABLE_LATE, NULL);
	assert_route(scene, WIRE_DATA, 3, 1, TABLE_CONN, successor);
	assert_route(scene, WIRE_DATA, 12, 1, TABLE_CONN, successor);
}

/* Over SCTP what is sent again comes behind what was sent later. */
static void a_pipe_without_order_tells_by_number_alone(void **state)
{
	struct scene *scene = *state;
	struct conn *c = add(scene, 0, 10);
	struct conn *successor;

	table_remove(scene->t, c, false, scene->now);
	assert_route(scene, WIRE_SYN, 0, TABLE_NO_ORDER, TABLE_NEW, NULL);
	successor = add(scene, 1, 1);
	assert_route(scene, WIRE_DATA, 3, TABLE_NO_ORDER, TABLE_CONN,
		     successor);
	assert_route(scene, WIRE_DATA, 12, TABLE_NO_ORDER, TABLE_LATE, NULL);
	/* Nor did it tell anything about the pipes that keep order. */
	assert_route(scene, WIRE_DATA, 12, 63, TABLE_LATE, NULL);
	assert_route(scene, WIRE_DATA, 3, 63, TABLE_CONN, successor);
	assert_route(scene, WIRE_DATA, 12, 63, TABLE_CONN, successor);
}

/* A SYN on it detaches as any does; what is the old one's still is. */
static void a_syn_without_order_detaches(void **state)
{
	struct scene *scene = *state;
	struct conn *old = add(scene, 0, 10);
	struct conn *new;

	assert_route(scene, WIRE_SYN, 0, TABLE_NO_ORDER, TABLE_NEW, NULL);
	new = add(scene, 1, 1);
	assert_route(scene, WIRE_DATA, 11, TABLE_NO_ORDER, TABLE_CONN, old);
	assert_route(scene, WIRE_DATA, 4, TABLE_NO_ORDER, TABLE_CONN, new);
}

static void memory_ends_with_the_rest(void **state)
{
	struct scene *scene = *state;
	struct conn *c = add(scene, 0, 10);

	table_remove(scene->t, c, false, scene->now);
	assert_true(table_expiry(scene->t) == scene->now + REST);
	scene->now += REST - 1;
	assert_null(table_expire(scene->t, scene->now));
	assert_route(scene, WIRE_DATA, 10, 0, TABLE_LATE, NULL);
	scene->now += 1;
	assert_null(table_expire(scene->t, scene->now));
	assert_int_equal(table_formers(scene->t), 0);
	assert_true(table_expiry(scene->t) == 0);
	assert_route(scene, WIRE_DATA, 10, 0, TABLE_NEW, NULL);
}

/* All up to its FIN came late: nothing more can. */
static void memory_ends_with_the_last_message(void **state)
{
	struct scene *scene = *state;
	struct conn *c = add(scene, 0, 10);

	table_remove(scene->t, c, false, scene->now);
	assert_route(scene, WIRE_FIN, 12, 0, TABLE_LATE, NULL);
	assert_route(scene, WIRE_DATA, 10, 1, TABLE_LATE, NULL);
	assert_int_equal(table_formers(scene->t), 1);
	assert_route(scene, WIRE_DATA, 11, 2, TABLE_LATE, NULL);
	assert_int_equal(table_formers(scene->t), 0);
}

static void a_complete_one_needs_no_memory(void **state)
{
	struct scene *scene = *state;
	struct conn *c = add(scene, 0, 10);

	table_remove(scene->t, c, true, scene->now);
	assert_int_equal(table_formers(scene->t), 0);
	assert_route(scene, WIRE_DATA, 10, 0, TABLE_NEW, NULL);
}

static void a_syn_for_the_live_detaches_them(void **state)
{
	struct scene *scene = *state;
	struct conn *old = add(scene, 0, 10);
	struct conn *new;

	assert_route(scene, WIRE_SYN, 0, 2, TABLE_NEW, NULL);
	assert_int_equal(table_formers(scene->t), 1);
	new = add(scene, 1, 1);
	assert_int_equal(table_conns(scene->t), 2);
	assert_route(scene, WIRE_DATA, 10, 0, TABLE_CONN, old);
	assert_route(scene, WIRE_DATA, 1, 0, TABLE_CONN, new);
	assert_route(scene, WIRE_DATA, 10, 2, TABLE_CONN, new);
	/* The old one's FIN was delivered: it leaves no memory behind. */
	table_remove(scene->t, old, true, scene->now);
	assert_int_equal(table_conns(scene->t), 1);
	assert_route(scene, WIRE_DATA, 10, 3, TABLE_CONN, new);
}

static void a_third_owner_evicts_the_first(void **state)
{
	struct scene *scene = *state;
	struct conn *first = add(scene, 0, 10), *second;
	struct table_route r;

	route(scene, WIRE_SYN, 0, 0);
	second = add(scene, 1, 5);
	r = route(scene, WIRE_SYN, 0, 1);
	assert_ptr_equal(r.evicted, first);
	assert_int_equal(r.verdict, TABLE_NEW);
	table_remove(scene->t, first, false, scene->now);
	add(scene, 2, 1);
	assert_int_equal(table_conns(scene->t), 2);
	assert_route(scene, WIRE_DATA, 5, 3, TABLE_CONN, second);
}

static void a_detached_one_is_given_up_in_time(void **state)
{
	struct scene *scene = *state;
	struct conn *old = add(scene, 0, 10);

	route(scene, WIRE_SYN, 0, 0);
	add(scene, 1, 1);
	assert_null(table_expire(scene->t, scene->now + REST - 1));
	assert_ptr_equal(table_expire(scene->t, scene->now + REST), old);
	table_remove(scene->t, old, false, scene->now + REST);
	assert_null(table_expire(scene->t, scene->now + REST));
	assert_int_equal(table_conns(scene->t), 1);
	assert_int_equal(table_formers(scene->t), 0);
}

/* --- ids given out --- */

/* A thousand seats: who sits down gets an id, and who got up before gave one
 * back. Some 20,000 ids are at rest at any time. */
static void ids_never_come_back_early(void **state)
{
	enum { SEATS = 1000, STEPS = 100000 };
	static struct conn conn[SEATS];
	static int64_t over_at[WIRE_ID_LP_MAX + 1];
	static bool in_use[WIRE_ID_LP_MAX + 1];
	struct scene *scene = *state;
	unsigned int used_again = 0;
	struct random r;

	random_begin(&r, __func__);
	for (int i = 0; i < STEPS; i++) {
		struct conn *c = &conn[random_below(&r, SEATS)];

		scene->now += random_below(&r, 3 * NS_PER_MS);
		table_expire(scene->t, scene->now);
		if (c->id) {
			table_remove(scene->t, c, false, scene->now);
			over_at[c->id] = scene->now;
			in_use[c->id] = false;
		}
		assert_true(table_has_id(scene->t));
		c->id = table_next_id(scene->t, scene->now);
		assert_in_range(c->id, 1, WIRE_ID_LP_MAX);
		assert_false(in_use[c->id]);
		in_use[c->id] = true;
		used_again += over_at[c->id] != 0;
		assert_true(!over_at[c->id] ||
			    scene->now >= over_at[c->id] + REST);
		table_add(scene->t, c);
	}
	assert_true(used_again > STEPS / 2);
}

static void without_a_free_id_there_is_none(void **state)
{
	static struct conn conn[WIRE_ID_LP_MAX + 1];
	struct scene *scene = *state;

	for (unsigned int i = 1; i <= WIRE_ID_LP_MAX; i++) {
		assert_true(table_has_id(scene->t));
		assert_int_equal(table_next_id(scene->t, scene->now), i);
		conn[i].id = (uint16_t)i;
		table_add(scene->t, &conn[i]);
	}
	assert_false(table_has_id(scene->t));
	assert_int_equal(table_next_id(scene->t, scene->now), 0);
	table_remove(scene->t, &conn[99], false, scene->now);
	assert_false(table_has_id(scene->t));
	assert_int_equal(table_next_id(scene->t, scene->now), 0);
	scene->now += REST;
	table_expire(scene->t, scene->now);
	assert_true(table_has_id(scene->t));
	assert_int_equal(table_next_id(scene->t, scene->now), 99);
}

static void ids_begin_where_they_are_told_to(void **state)
{
	static const uint16_t want[] = { WIRE_ID_LP_MAX, 1, 2 };
	struct scene *scene = *state;

	table_begin_at(scene->t, WIRE_ID_LP_MAX);
	for (int i = 0; i < 3; i++) {
		assert_false(table_gave(scene->t, want[i]));
		assert_int_equal(table_next_id(scene->t, scene->now), want[i]);
		assert_true(table_gave(scene->t, want[i]));
	}
	assert_false(table_gave(scene->t, 3));
	assert_false(table_gave(scene->t, WIRE_ID_MAX));
}

#define TABLE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TABLE_TEST(the_unknown_are_new_to_who_accepts),
		TABLE_TEST(the_live_get_what_is_theirs),
		TABLE_TEST(a_syn_behind_its_data_is_no_successor),
		TABLE_TEST(a_closed_id_remembers),
		TABLE_TEST(the_comparison_goes_round_the_circle),
		TABLE_TEST(behind_a_successor_all_is_the_successors),
		TABLE_TEST(a_pipe_without_order_tells_by_number_alone),
		TABLE_TEST(a_syn_without_order_detaches),
		TABLE_TEST(memory_ends_with_the_rest),
		TABLE_TEST(memory_ends_with_the_last_message),
		TABLE_TEST(a_complete_one_needs_no_memory),
		TABLE_TEST(a_syn_for_the_live_detaches_them),
		TABLE_TEST(a_third_owner_evicts_the_first),
		TABLE_TEST(a_detached_one_is_given_up_in_time),
		TABLE_TEST(ids_never_come_back_early),
		TABLE_TEST(without_a_free_id_there_is_none),
		TABLE_TEST(ids_begin_where_they_are_told_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
