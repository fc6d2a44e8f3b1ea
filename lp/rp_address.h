/* SPDX-License-Identifier: MIT */
/*
 * "HOST[:PORT][,EXTPORT]": where RP is, as the command line says it. PORT is that of the
 * baseline, EXTPORT that of the extension. Only text: nothing is looked up.
 */
#ifndef TM3_RP_ADDRESS_H
#define TM3_RP_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "endpoint.h"

struct rp_address {
	struct endpoint baseline;	/* the default port, unless one was given */
	uint16_t extended;		/* so is this */
	bool extended_given;
};

/* Returns 0, or -1 with what is wrong in @why (a phrase). */
int rp_address_parse(struct rp_address *a, const char *text, char *why,
		     size_t why_len);
/*
 * Of several RPs on a host, each at a port of its own, nobody knows which one port 6010 is
 * of: it belongs to the one at the default port. Is the port of the extension known?
 */
bool rp_address_has_extended(const struct rp_address *a);

#endif
