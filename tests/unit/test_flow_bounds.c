/* SPDX-License-Identifier: MIT */
/* How many flows of datagrams a session may have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "loopback.h"
#include "sides.h"

static void number_of_flows_is_bounded(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(7);
	unsigned int n = 0;

	sides_wait = true;
	while (n < 2 * FLOWS_MAX && flow_open(pair->lp, &to, &side_ops, &lp_side[0]))
		n++;
	assert_int_equal(n, FLOWS_MAX);
	sides_expect(pair, &sides_asked, FLOWS_MAX);
}

/* Its FIN stays at LP, as on a pipe that is slower than the others. */
static struct conn *end_late(struct pair *pair, struct flow *f)
{
	struct conn *c = pair->lp->ext->channel[flow_conn(f)->id]->conn;

	flow_close(f);
	conn_idle(c);
	return c;
}

static bool rp_has_most(void *arg)
{
	struct pair *pair = arg;

	return pair->rp->ext->nflows == FLOWS_MAX;
}

/* LP has room at once where it ends one; the next OPEN may overtake that FIN. */
static void late_fins_do_not_refuse_the_next(void **state)
{
	static struct conn *leaving[FLOWS_MAX];
	struct pair *pair = *state;
	struct destination to = sides_server(7);
	struct flow *f[FLOWS_MAX];
	const uint64_t *refused = &pair->engine.incidents.count[INCIDENT_FLOWS];

	for (int i = 0; i < FLOWS_MAX; i++)
		f[i] = flow_open(pair->lp, &to, &side_ops, &lp_side[0]);
	sides_expect(pair, &sides_asked, FLOWS_MAX);
	for (int i = 0; i < FLOWS_MAX; i++) {
		leaving[i] = end_late(pair, f[i]);
		f[i] = flow_open(pair->lp, &to, &side_ops, &lp_side[1]);
		flow_send(f[i], NULL, (const uint8_t *)"x", 1);
		sides_expect(pair, &lp_side[1].came, (unsigned int)i + 1);
	}
	assert_int_equal(pair->rp->ext->nflows, FLOWS_MAX * FLOWS_LEAVING);
	end_late(pair, f[0]);
	sides_begin(pair, 2, &to);
	assert_int_equal(*refused, 0);
	sides_expect(pair, &lp_side[2].ended, 1);	/* RP's own limit */
	assert_int_equal(*refused, 1);
	assert_int_equal(lp_side[1].ended, 0);
	for (int i = 0; i < FLOWS_MAX; i++)
		conn_ask(leaving[i]);
	assert_true(run_until(pair->engine.loop, "the ends", rp_has_most,
			      pair));
}

static bool has_opened(void *arg)
{
	return ((struct pair *)arg)->conn[1].opened > 0;
}

static bool has_refused_one(void *arg)
{
	const struct pair *pair = arg;

	return pair->engine.incidents.count[INCIDENT_FLOWS] == 1;
}

/* With few places LP opens a quarter of them, */
static void few_places_are_shared(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(7);

	pair->settings.max_conns = 8;
	sides_begin(pair, 0, &to);
	sides_begin(pair, 1, &to);
	assert_true(flows_are_full(pair->lp));
	assert_null(flow_open(pair->lp, &to, &side_ops, &lp_side[2]));
	pair->settings.max_conns = 1;
	flow_close(lp_side[0].flow);
	flow_close(lp_side[1].flow);
	pair_at_rest(pair);
	sides_begin(pair, 2, &to);
	assert_true(flows_are_full(pair->lp));
}

/* and RP keeps half of them for connections, whatever LP opens. */
static void half_of_the_places_is_not_for_flows(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(7);
	const uint64_t *refused = pair->engine.incidents.count;

	for (int i = 0; i < 5; i++)
		sides_begin(pair, i, &to);
	pair->settings.max_conns = 8;
	assert_true(run_until(pair->engine.loop, "a refusal", has_refused_one,
			      pair));
	sides_expect(pair, &sides_asked, 4);
	pair_open(pair, 1);
	assert_true(run_until(pair->engine.loop, "the connection", has_opened,
			      pair));
	assert_int_equal(refused[INCIDENT_CONNECTIONS], 0);
}

/* What a connection costs in memory a flow does, too: see test_memory.c. */
static void is_refused_where_its_session_has_many(void **state)
{
	struct pair *pair = *state;
	struct engine *engine = &pair->engine;
	struct destination to = sides_server(PAIR_PORT);

	pair->settings.max_memory = 12 * CONNS_SHARE * CONN_MEMORY;
	for (int i = 0; i < 3; i++)
		sides_begin(pair, i, &to);
	sides_expect(pair, &sides_asked, 3);
	assert_true(session_has_room(pair->lp));
	sides_begin(pair, 3, &to);
	engine->conns += 2;		/* somebody else's */
	sides_expect(pair, &lp_side[3].ended, 1);
	assert_int_equal(sides_asked, 3);
	assert_int_equal(engine->incidents.count[INCIDENT_CONNECTIONS], 1);
	engine->conns -= 2;
}

/* Programs that ask from ever other ports shall not shut out connections. */
static void half_of_the_ids_is_not_for_flows(void **state)
{
	struct pair *pair = *state;
	struct destination to = sides_server(PAIR_PORT);

	pair->lp->ext->nresting = WIRE_ID_LP_MAX / 2;
	assert_null(flow_open(pair->lp, &to, &side_ops, &lp_side[0]));
	assert_true(session_has_room(pair->lp));
	pair->lp->ext->nresting--;
	sides_begin(pair, 0, &to);
	pair->lp->ext->nresting = 0;
	flow_close(lp_side[0].flow);
	pair_at_rest(pair);
	assert_int_equal(pair->lp->ext->nresting, 1);
}

#define FLOW_TEST(f) \
	cmocka_unit_test_setup_teardown(f, sides_set_up, sides_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLOW_TEST(number_of_flows_is_bounded),
		FLOW_TEST(late_fins_do_not_refuse_the_next),
		FLOW_TEST(few_places_are_shared),
		FLOW_TEST(half_of_the_places_is_not_for_flows),
		FLOW_TEST(is_refused_where_its_session_has_many),
		FLOW_TEST(half_of_the_ids_is_not_for_flows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
