/* SPDX-License-Identifier: MIT */
/* Keys that lp showed before, over layers that are nothing but counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lp/past_keys.h"
#include "mux/options/key_file.h"
#include "mux/pipe/conduit.h"

struct counted {
	struct layers layers;
	const struct keys *keys;
};

static struct {
	struct past_keys past;
	struct counted first;
	struct layers *layers;	/* the present ones */
	struct keys keys;	/* of lp's file */
	unsigned int beside;	/* beside the first one there are */
	bool no_memory;
} here;

static struct counted *counted(struct layers *layers)
{
	return (struct counted *)layers;
}

static struct layers *beside(struct layers *from)
{
	struct counted *c = here.no_memory ? NULL : malloc(sizeof(*c));

	if (!c)
		return NULL;
	*c = *counted(from);
	here.beside++;
	return &c->layers;
}

static void put_beside(struct layers *layers)
{
	here.beside--;
	free(layers);
}

static void take(struct layers *layers, const struct keys *keys)
{
	counted(layers)->keys = keys;
}

static struct keys key(uint8_t secret)
{
	struct keys keys = { calloc(1, sizeof(struct key)), 1 };

	assert_non_null(keys.key);
	keys.key[0].secret[0] = secret;
	return keys;
}

static uint8_t shown_by(struct layers *layers)
{
	return counted(layers)->keys->key[0].secret[0];
}

static int set_up(void **state)
{
	(void)state;
	memset(&here, 0, sizeof(here));
	here.first.layers = (struct layers){
		.beside = beside, .put_beside = put_beside, .take = take,
	};
	here.keys = key(1);
	here.layers = here.past.first = &here.first.layers;
	take(here.layers, &here.keys);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	past_keys_fini(&here.past, here.layers);
	assert_int_equal(here.beside, 0);
	keys_fini(&here.keys);
	return 0;
}

/* As lp's SIGHUP does it; a session uses @in_use. */
static void another_key(uint8_t secret, const struct layers *in_use)
{
	struct keys before = here.keys;
	struct layers *layers;

	here.keys = key(secret);
	layers = past_keys_add(&here.past, here.layers, &before, &here.keys);
	here.layers = layers ? layers : here.layers;
	past_keys_keep(&here.past, in_use, &here.keys);
}

static void none_is_kept_that_nobody_uses(void **state)
{
	(void)state;
	for (uint8_t i = 2; i < 200; i++) {
		another_key(i, NULL);
		assert_int_equal(here.beside, 1);
		assert_int_equal(shown_by(here.layers), i);
		assert_int_equal(shown_by(here.past.first), i);
	}
}

static void a_session_goes_on_with_its_own(void **state)
{
	struct layers *used;

	(void)state;
	for (uint8_t i = 2; i < 10; i++)
		another_key(i, &here.first.layers);
	assert_int_equal(shown_by(&here.first.layers), 1);
	assert_int_equal(here.beside, 1);
	used = here.layers;
	for (uint8_t i = 10; i < 20; i++)
		another_key(i, used);
	assert_int_equal(shown_by(used), 9);
	assert_int_equal(shown_by(here.layers), 19);
	assert_int_equal(here.beside, 2);
	another_key(20, here.layers);
	assert_int_equal(here.beside, 2);
}

/* Then it has the new one. */
static void without_memory_there_is_one_key(void **state)
{
	struct layers *used = here.layers;

	(void)state;
	another_key(2, used);
	here.no_memory = true;
	another_key(3, used);
	assert_int_equal(shown_by(used), 1);
	assert_int_equal(shown_by(here.layers), 3);
	another_key(4, NULL);
	assert_int_equal(shown_by(here.layers), 4);
	assert_int_equal(here.beside, 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(none_is_kept_that_nobody_uses),
		TEST(a_session_goes_on_with_its_own),
		TEST(without_memory_there_is_one_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
