/* SPDX-License-Identifier: MIT */
/*
 * Applications of a pair of sessions (ext_pair.h) that write more than their socket takes at
 * once: both sessions go on meanwhile.
 */
#ifndef TM3_TEST_EXT_WRITE_H
#define TM3_TEST_EXT_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "ext_pair.h"

/* Returns when all of it is in the socket @fd. */
void pair_write(struct pair *pair, int fd, const uint8_t *bytes, size_t len);
/* The server of connection 0 writes. Returns when RP has given all of it to its pipes. */
void pair_send(struct pair *pair, const uint8_t *bytes, size_t len);

#endif
