/* SPDX-License-Identifier: MIT */
/*
 * Where rp may listen for local proxies: what --permit-listen says, and nowhere else.
 *
 * "[ADDR:]PORT[-PORT]": ADDR is numeric, IPv6 in brackets; 0.0.0.0 and [::] stand for all
 * addresses of their family, and for themselves. Without ADDR it is loopback's, of either family.
 *
 * No sockets.
 */
#ifndef TM3_RP_PERMITS_H
#define TM3_RP_PERMITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct permit {
	struct sockaddr_storage addr;	/* of family AF_UNSPEC: any of loopback's */
	uint16_t first, last;
};

struct permits {
	struct permit *permit;
	unsigned int n;
};

/* 0, -EINVAL when @text is no such thing, -ENOMEM. */
int permits_add(struct permits *p, const char *text);
void permits_fini(struct permits *p);

bool permits_cover(const struct permits *p, const struct sockaddr_storage *addr);

#endif
