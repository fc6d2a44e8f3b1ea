/* SPDX-License-Identifier: MIT */
/*
 * Messages on a pipe as its other end sees them: those that went into it, told by
 * their bytes and without mux/'s reader, and those that a session wrote.
 */
#ifndef TM3_FUZZ_FRAMING_H
#define TM3_FUZZ_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mux/wire/wire.h"

/* All zeros at its beginning. */
struct framing {
	uint8_t head[WIRE_HEADER];
	size_t of_head;
	size_t of_body;		/* bytes of the message still to come */
	bool has_type;		/* of that message; its id is 0 */
	uint8_t type;
	bool broken;
	bool large;		/* data of a connection may have up to 16392 bytes */
};

/*
 * True: @byte is the last one of a message. Of a message of the extension, whose id
 * is 0, f->type is known then, and f->has_type.
 */
bool framing_ends(struct framing *f, uint8_t byte);

/* What a session wrote, and what was read of a message so far. */
struct hearing {
	uint8_t buf[2 * WIRE_LARGE_MAX];
	size_t len;
	bool large;		/* as in framing */
};

/* Reads what is there on @fd, of whole messages; anything else fails the run. */
void hearing_read(struct hearing *h, int fd,
		  void (*heard)(void *owner, const struct wire_msg *msg),
		  void *owner);

#endif
