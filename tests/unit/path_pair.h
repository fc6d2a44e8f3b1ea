/* SPDX-License-Identifier: MIT */
/*
 * A pair of sessions (ext_pair.h) over two paths: pipes 0 and 1 are on the first, 2 and 3 on
 * the second, which costs more.
 */
#ifndef TM3_TEST_PATH_PAIR_H
#define TM3_TEST_PATH_PAIR_H

#include <stddef.h>

#include "ext_pair.h"

enum { MAIN, SPARE, PATHS };
enum { COST = 9, LOT = 300000 };

/* For cmocka: *state is a pair that has not begun. */
int path_pair_setup(void **state);
struct path *path_of(struct session *s, unsigned int number);
/* @len bytes each way on connection 0, LOT at most. */
void path_pair_carry(struct pair *pair, size_t len);

#endif
