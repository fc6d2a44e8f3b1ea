/* SPDX-License-Identifier: MIT */
/* The fuzzer's bytes, taken one by one; 0 when there are no more. */
#ifndef TM3_FUZZ_INPUT_H
#define TM3_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>

struct input {
	const uint8_t *at;
	size_t left;
};

static inline uint8_t input_take(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

#endif
