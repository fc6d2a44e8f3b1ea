/* SPDX-License-Identifier: MIT */
/*
 * However two paths take turns at the two ends of a chunk: each byte goes once, with its number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mux/conn/chunk.h"
#include "random.h"

enum { FIRST = 7, PAYLOAD = 10, SIZE_MAX_HERE = 101 };

static struct chunk *a_chunk(size_t size)
{
	struct chunk *chunk = chunk_new(size, PAYLOAD);

	assert_non_null(chunk);
	chunk->first = UINT32_MAX - FIRST;	/* numbers wrap */
	for (size_t i = 0; i < size; i++)
		chunk->bytes[i] = (uint8_t)i;
	return chunk;
}

static void take_all(struct random *r, size_t size)
{
	struct chunk *chunk = a_chunk(size);
	uint32_t messages = (uint32_t)((size + PAYLOAD - 1) / PAYLOAD);
	unsigned int seen[SIZE_MAX_HERE] = { 0 };

	assert_int_equal(chunk_messages(chunk), messages);
	while (chunk_left(chunk)) {
		struct chunk_part part = chunk_take(chunk, random_below(r, 2));
		uint32_t place = part.number - chunk->first;

		assert_in_range(part.len, 1, PAYLOAD);
		assert_true(place < messages);
		assert_true(part.len == PAYLOAD || place == messages - 1);
		for (size_t i = 0; i < part.len; i++) {
			assert_int_equal(part.bytes[i], place * PAYLOAD + i);
			seen[part.bytes[i]]++;
		}
	}
	for (size_t i = 0; i < size; i++)
		assert_int_equal(seen[i], 1);
	free(chunk);
}

static void each_byte_goes_once(void **state)
{
	struct random r;

	(void)state;
	random_begin(&r, __func__);
	for (size_t size = 1; size < SIZE_MAX_HERE; size++) {
		for (int i = 0; i < 50; i++)
			take_all(&r, size);
	}
}

static void the_ends_are_the_ends(void **state)
{
	struct chunk *chunk = a_chunk(25);
	struct chunk_part part = chunk_take(chunk, true);

	(void)state;
	assert_int_equal(part.len, 5);
	assert_int_equal(part.bytes[0], 20);
	part = chunk_take(chunk, false);
	assert_int_equal(part.bytes[0], 0);
	assert_int_equal(chunk_left(chunk), 10);
	/* The message between the two, by either. */
	part = chunk_take(chunk, true);
	assert_int_equal(part.bytes[0], 10);
	assert_int_equal(part.number, chunk->first + 1);
	assert_int_equal(chunk_left(chunk), 0);
	free(chunk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_byte_goes_once),
		cmocka_unit_test(the_ends_are_the_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
