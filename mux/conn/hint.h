/* SPDX-License-Identifier: MIT */
/*
 * What is known of a connection's bytes before they come. The other end told it (HINT), or this
 * end read it. It only orders what is sent: whatever it says, all bytes go.
 */
#ifndef TM3_HINT_H
#define TM3_HINT_H

#include <stdint.h>

struct hint {
	uint64_t bytes;		/* that remain; 0: not known */
	uint8_t urgency;	/* the higher, the more urgent */
	uint8_t paths;		/* as WIRE_HINT_PATHS and _COPIES have them; 0: any */
};

/* Where a connection that is @at so many bytes is when these have gone; 0: not known. */
static inline uint64_t hint_end(uint64_t bytes, uint64_t at)
{
	return bytes ? at + bytes : 0;
}

/* And what remains of them @at another place. */
static inline uint64_t hint_left(uint64_t end, uint64_t at)
{
	return end > at ? end - at : 0;
}

#endif
