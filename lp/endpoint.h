/* SPDX-License-Identifier: MIT */
/*
 * "HOST:PORT" as it is given on the command line. HOST is a name, an IPv4
 * address, or an IPv6 address in brackets. Only text: nothing is looked up.
 */
#ifndef TM3_ENDPOINT_H
#define TM3_ENDPOINT_H

#include <stddef.h>
#include <stdint.h>

enum {
	HOST_MAX = 253,		/* characters of a name, as DNS has it */
	ENDPOINT_TEXT = HOST_MAX + 10,	/* brackets, colon, port, end */
};

struct endpoint {
	char host[HOST_MAX + 1];	/* without brackets */
	uint16_t port;
};

/*
 * Reads @text. A @port of 0 says that one must be named, else it is the
 * default. IPv6 addresses without brackets are taken as long as no port
 * follows. Returns 0, or -1 with what is wrong in @why (a phrase).
 */
int endpoint_parse(struct endpoint *e, const char *text, uint16_t port,
		   char *why, size_t why_len);

/* The opposite: "example:80", "[2001:db8::1]:6000". */
const char *endpoint_text(const struct endpoint *e, char text[ENDPOINT_TEXT]);

#endif
