/* SPDX-License-Identifier: MIT */
#include "rp_address.h"

#include <string.h>

#include "../mux/base/addr.h"
#include "../mux/base/reject.h"
#include "../mux/wire/wire.h"

int rp_address_parse(struct rp_address *a, const char *text, char *why,
		     size_t why_len)
{
	const char *comma = strrchr(text, ',');
	size_t len = comma ? (size_t)(comma - text) : strlen(text);
	char endpoint[ENDPOINT_TEXT];

	a->extended = WIRE_PORT_EXTENDED;
	a->extended_given = comma;
	if (len >= sizeof(endpoint))
		return reject(why, why_len, "it is too long");
	memcpy(endpoint, text, len);
	endpoint[len] = '\0';
	if (endpoint_parse(&a->baseline, endpoint, WIRE_PORT, why, why_len))
		return -1;
	if (comma && port_parse(comma + 1, 1, &a->extended))
		return reject(why, why_len, "'%s' is not a port from 1 to 65535",
			      comma + 1);
	return 0;
}

bool rp_address_has_extended(const struct rp_address *a)
{
	return a->extended_given || a->baseline.port == WIRE_PORT;
}
