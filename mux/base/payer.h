/* SPDX-License-Identifier: MIT */
/*
 * Whom an address counts for, wherever something is counted by who asks for it: an
 * IPv4 address for itself, however it is wrapped; an IPv6 address for the 64 bits it
 * begins with, because whoever has one address of such a network has all of them.
 */
#ifndef TM3_PAYER_H
#define TM3_PAYER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
	PAYER_NET = 8,		/* bytes of an IPv6 address that count */
	PAYER_TEXT = 64,	/* "2001:db8:1:2::/64" and the end */
};

struct payer {
	uint8_t family;		/* 4, 6; 0: neither */
	uint8_t bytes[PAYER_NET];
	uint32_t scope;		/* of a link-local network: its link */
};

struct payer payer_of(const struct sockaddr_storage *addr);
bool payer_is(const struct payer *a, const struct payer *b);
/* Whom @addr counts for: "192.0.2.7" or "2001:db8::/64". */
const char *payer_name(const struct sockaddr_storage *addr,
		       char text[PAYER_TEXT]);

#endif
