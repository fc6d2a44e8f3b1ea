/* SPDX-License-Identifier: MIT */
/*
 * Whatever a server answers, in whatever pieces it comes: what is known of its size is the same,
 * is never more than can be told, and goes down by each byte of the body.
 */
#include <string.h>

#include "mux/conn/http_size.h"
#include "mux/wire/wire_ext.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_step(const struct http_size *before,
		       const struct http_size *after, size_t len)
{
	uint64_t left = http_size_left(before);

	check(after->left <= WIRE_HINT_MOST + 2 || after->wrong ||
	      after->state != HTTP_BODY);
	check(http_size_left(after) <= WIRE_HINT_MOST);
	if (left > len)
		check(http_size_left(after) == left - len);
	if (before->state == HTTP_NONE)
		check(after->state == HTTP_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_size whole = { 0 }, pieces = { 0 };
	size_t step = size ? 1 + data[0] % 16 : 1, at;

	if (size)
		size--, data++;
	http_size_feed(&whole, data, size);
	for (at = 0; at < size; at += step) {
		size_t len = step < size - at ? step : size - at;
		struct http_size before = pieces;

		http_size_feed(&pieces, data + at, len);
		check_step(&before, &pieces, len);
	}
	check(whole.state == pieces.state && whole.left == pieces.left);
	return 0;
}
