/* SPDX-License-Identifier: MIT */
#include "endpoint.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "../mux/base/addr.h"

/*
 * What could stand in a name or an address. Resolvers know best what a name may
 * be; this only keeps out what is surely a slip.
 */
static int host_set(struct endpoint *e, const char *host, size_t len,
		    char *why, size_t why_len)
{
	size_t i;

	if (!len) {
		snprintf(why, why_len, "the host is missing");
		return -1;
	}
	if (len > HOST_MAX) {
		snprintf(why, why_len, "the host has more than %d characters",
			 HOST_MAX);
		return -1;
	}
	for (i = 0; i < len; i++) {
		if (!isgraph((unsigned char)host[i]) ||
		    strchr("[]/@,", host[i])) {
			snprintf(why, why_len, "'%.*s' is not a host",
				 (int)len, host);
			return -1;
		}
	}
	memcpy(e->host, host, len);
	e->host[len] = '\0';
	return 0;
}

static int port_set(struct endpoint *e, const char *text, char *why,
		    size_t why_len)
{
	if (!port_parse(text, 1, &e->port))
		return 0;
	snprintf(why, why_len, "'%s' is not a port from 1 to 65535", text);
	return -1;
}

/* Where the host ends and what stands behind it: the end, or ':' and a port. */
static const char *host_end(const char *text)
{
	const char *first = strchr(text, ':');

	if (!first)
		return text + strlen(text);
	return strchr(first + 1, ':') ? text + strlen(text) : first;
}

int endpoint_parse(struct endpoint *e, const char *text, uint16_t port,
		   char *why, size_t why_len)
{
	const char *end, *behind;

	e->port = port;
	if (*text == '[') {
		end = strchr(++text, ']');
		if (!end || (end[1] && end[1] != ':')) {
			snprintf(why, why_len, "the brackets do not match");
			return -1;
		}
		behind = end + 1;
	} else {
		end = behind = host_end(text);
	}
	if (host_set(e, text, (size_t)(end - text), why, why_len))
		return -1;
	if (*behind)
		return port_set(e, behind + 1, why, why_len);
	if (port)
		return 0;
	snprintf(why, why_len, "the port is missing");
	return -1;
}

const char *endpoint_text(const struct endpoint *e, char text[ENDPOINT_TEXT])
{
	snprintf(text, ENDPOINT_TEXT,
		 strchr(e->host, ':') ? "[%s]:%u" : "%s:%u", e->host, e->port);
	return text;
}
