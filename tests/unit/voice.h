/* SPDX-License-Identifier: MIT */
/*
 * The bytes that an application sends, and those that it has received. A seed
 * tells each byte that it will ever send, so nothing need be kept: whoever reads
 * them compares them with what the writer's seed says.
 */
#ifndef TM3_TEST_VOICE_H
#define TM3_TEST_VOICE_H

#include <stddef.h>
#include <stdint.h>

#include "random.h"

struct voice {
	uint8_t seed;
	size_t to_send, sent;	/* in all, and so far */
	size_t got;		/* of the other application's bytes */
};

/*
 * Writes a random number of the bytes that are left to @fd. Returns how many
 * were taken, 0 when none is left, -EAGAIN when none is taken now, -errno.
 */
long voice_speak(struct voice *v, struct random *r, int fd);

/*
 * Reads a random number of bytes at @fd; with @r NULL as many as one read gives.
 * Fails the test if they are not the next ones that @writer sent. Returns how
 * many there were, 0 at the end, -EAGAIN when there are none now, -errno.
 */
long voice_listen(struct voice *v, const struct voice *writer,
		  struct random *r, int fd);

#endif
