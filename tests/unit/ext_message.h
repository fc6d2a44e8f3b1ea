/* SPDX-License-Identifier: MIT */
/* Random messages of the extension for tests, and a reader of their bytes. */
#ifndef TM3_TEST_EXT_MESSAGE_H
#define TM3_TEST_EXT_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "mux/wire/wire_ext.h"
#include "random.h"

enum { EXT_TYPES = 15 };

/* The size of each type's message, as docs/wire-format.md has it; of OPEN and
 * DATAGRAM without address and payload, of ACK without pipes. */
extern const struct ext_layout {
	enum wire_ext_type type;
	size_t size;
} ext_layout[EXT_TYPES];

/* Which way a message of this type and @id goes; LP has the lower ids. */
int ext_is_downlink(enum wire_ext_type type, uint16_t id);

/* A sound message of @type. All that is no field is 0, so that two messages
 * can be compared as bytes. */
void ext_random(struct random *r, enum wire_ext_type type,
		struct wire_ext *ext);

/* Reads exactly these body bytes, in a block of their size. */
enum wire_ext_result ext_decode_way(const uint8_t *body, size_t len,
				    uint32_t number, int downlink,
				    struct wire_ext *ext);

/* The same in the direction that fits the message. */
enum wire_ext_result ext_decode(const uint8_t *body, size_t len,
				uint32_t number, struct wire_ext *ext);

#endif
