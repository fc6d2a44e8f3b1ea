/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mux/base/slab.h"
#include "random.h"

enum { LIVE = 100, STEPS = 100000 };

struct thing {
	uint64_t first;
	uint8_t middle[21];
	uint8_t place;
	uint16_t last;
};

/* Under a sanitizer a slab has an object in each block unless it is told otherwise. */
static void begin(struct slab *slab, uint8_t each)
{
	slab_init(slab, struct thing, place, each);
	slab->each = each;
}

static void fill(struct thing *t, unsigned int with)
{
	t->first = with;
	memset(t->middle, (int)with, sizeof(t->middle));
	t->last = (uint16_t)with;
}

static bool is_filled(const struct thing *t, unsigned int with)
{
	struct thing wanted = { .place = t->place };

	fill(&wanted, with);
	return t->first == wanted.first && t->last == wanted.last &&
	       !memcmp(t->middle, wanted.middle, sizeof(t->middle));
}

/* Nothing of one is another's, whatever was made and freed before. */
static void objects_come_and_go(void **state)
{
	static const uint8_t each[] = { 1, 2, 3, 32, 254 };
	struct thing *live[LIVE] = { NULL };
	struct slab slab;
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (unsigned int way = 0; way < sizeof(each); way++) {
		begin(&slab, each[way]);
		for (unsigned int step = 0; step < STEPS; step++) {
			unsigned int at = random_below(&r, LIVE);

			if (live[at]) {
				assert_true(is_filled(live[at], at + 1));
				slab_put(&slab, live[at]);
				live[at] = NULL;
				continue;
			}
			live[at] = slab_get(&slab);
			assert_non_null(live[at]);
			assert_true(is_filled(live[at], 0));
			fill(live[at], at + 1);
		}
		for (unsigned int at = 0; at < LIVE; at++) {
			if (live[at])
				slab_put(&slab, live[at]);
			live[at] = NULL;
		}
		assert_true(list_empty(&slab.roomy));
	}
}

/* In a row, as an array has them. */
static void a_block_is_filled_before_another_one_is_made(void **state)
{
	struct slab slab;
	struct thing *got[8];

	(void)state;
	begin(&slab, 4);
	for (unsigned int i = 0; i < 8; i++)
		got[i] = slab_get(&slab);
	for (unsigned int i = 0; i < 8; i++)
		assert_ptr_equal(got[i], got[i / 4 * 4] + i % 4);
	assert_true(list_empty(&slab.roomy));
	slab_put(&slab, got[5]);
	assert_ptr_equal(slab_get(&slab), got[5]);
	for (unsigned int i = 0; i < 8; i++)
		slab_put(&slab, got[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_come_and_go),
		cmocka_unit_test(a_block_is_filled_before_another_one_is_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
