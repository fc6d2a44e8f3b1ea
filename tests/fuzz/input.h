/* SPDX-License-Identifier: MIT */
/* The fuzzer's bytes: one by one, as text, or as a file. */
#ifndef TM3_FUZZ_INPUT_H
#define TM3_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>

/* Taken one by one; 0 when there are no more. */
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

/* With a NUL behind them. The caller frees it. */
char *input_text(const uint8_t *data, size_t size);

struct input_file {
	int fd;
	char path[32];
	unsigned int lines;	/* with the last one, which may be empty */
};

void input_file_open(struct input_file *file, const uint8_t *data, size_t size);
void input_file_close(struct input_file *file);

#endif
