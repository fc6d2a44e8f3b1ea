/* SPDX-License-Identifier: MIT */
/*
 * Sessions over layers of TLS: what becomes of them with their pipes, and what pipes
 * with keys count in the account of memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "ext_pair.h"
#include "loopback.h"
#include "mux/options/key_file.h"
#include "mux/session/session_inside.h"
#include "tls/tls.h"
#include "tls/tls_inside.h"

static struct key house[] = {
	{ .name = "laptop", .len = 32, .secret = { 1, 2, 3 } },
};

static struct {
	struct log log;
	struct keys keys;
	struct layers *layers;	/* of both ends */
} here;

static int set_up(void **state)
{
	(void)state;
	log_init(&here.log, "test", LOG_ERROR);
	here.keys = (struct keys){ house, 1 };
	here.layers = tls_layers_new(&here.keys, &here.log);
	return here.layers ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	tls_layers_free(here.layers);
	return 0;
}

static void a_session_outlives_a_pipe_with_keys_too(void **state)
{
	static struct pair pair;

	(void)state;
	pair_init(&pair);
	pair.layers = here.layers;
	pair.redials = true;
	pair_begin(&pair, PAIR_PIPES);
	pair_connect(&pair, 0);
	for (unsigned int i = 0; i < PAIR_PIPES; i++) {
		pair_kill(&pair, i);
		assert_int_equal(send(pair.conn[0].client, "alive", 6, 0), 6);
		pair_expect(&pair, pair.conn[0].server, "alive", 6);
		pair_settle(&pair);
	}
	pair_end(&pair);
}

static bool both_ended(void *arg)
{
	const struct pair *pair = arg;

	return !pair->lp && !pair->rp;
}

static bool one_less(void *arg)
{
	const struct session *s = arg;

	return s->layered == (PAIR_PIPES - 1) * LAYER_MEMORY;
}

static bool have_all(void *arg)
{
	const struct pair *pair = arg;

	return pair->lp->layered == PAIR_PIPES * LAYER_MEMORY &&
	       pair->rp->layered == PAIR_PIPES * LAYER_MEMORY;
}

/* What pipes take counts while they are there; a session that holds nothing else ends. */
static void layers_are_in_the_account(void **state)
{
	static struct pair pair;
	struct hoard *all = &pair.engine.hoard;
	size_t before;

	(void)state;
	pair_init(&pair);
	pair.layers = here.layers;
	pair.redials = true;
	pair_begin(&pair, PAIR_PIPES);
	assert_int_equal(pair.lp->layered, PAIR_PIPES * LAYER_MEMORY);
	assert_int_equal(pair.rp->layered, PAIR_PIPES * LAYER_MEMORY);
	assert_true(all->bytes >= 2 * PAIR_PIPES * LAYER_MEMORY);
	pair_kill(&pair, 1);
	assert_true(run_until(pair.engine.loop, "a pipe to go", one_less,
			      pair.lp));
	assert_true(run_until(pair.engine.loop, "a pipe to come", have_all,
			      &pair));
	before = all->bytes;
	all->max = before - 1;
	hoard_relieve(all);
	assert_int_not_equal(session_is_up(pair.lp), session_is_up(pair.rp));
	assert_true(all->bytes <= before - PAIR_PIPES * LAYER_MEMORY);
	assert_true(run_until(pair.engine.loop, "the end of both", both_ended,
			      &pair));
	assert_int_equal(all->bytes, 0);
	pair_end(&pair);
}

/* With keys an eighth is for those who have not shown theirs, and for no others. */
static void strangers_have_a_part(void **state)
{
	struct engine engine = { .layers = here.layers, .parts = 1 };
	struct settings settings = { .max_memory = 64 << 20 };

	(void)state;
	engine.settings = &settings;
	assert_int_equal(engine_may_wait(&engine, 1024),
			 (8 << 20) / LAYER_MEMORY_SHAKING);
	assert_int_equal(engine_may_wait(&engine, 20), 20);
	engine_balance(&engine);
	assert_int_equal(engine.hoard.max, 56 << 20);
	engine.layers = NULL;
	assert_int_equal(engine_may_wait(&engine, 1024), 1024);
	engine_balance(&engine);
	assert_int_equal(engine.hoard.max, 64 << 20);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_session_outlives_a_pipe_with_keys_too),
		T(layers_are_in_the_account),
		T(strangers_have_a_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
