/* SPDX-License-Identifier: MIT */
/*
 * A range of addresses: those that begin with the same bits.
 */
#ifndef TM3_CIDR_H
#define TM3_CIDR_H

#include <stdbool.h>
#include <stdint.h>

struct cidr {
	uint8_t addr[16];
	uint8_t len;		/* 4 or 16 */
	uint8_t prefix;		/* bits */
};

/*
 * "10.0.0.0/8", "2001:db8::/32", or an address alone. One of IPv6 that only wraps IPv4 is of
 * IPv4, as such addresses are everywhere. 0 or -EINVAL.
 */
int cidr_parse(struct cidr *c, const char *text);

bool cidr_covers(const struct cidr *c, const uint8_t *addr, unsigned int len);
/* Do both begin with the same bits? */
bool cidr_same_prefix(const uint8_t *a, const uint8_t *b, unsigned int prefix);

#endif
