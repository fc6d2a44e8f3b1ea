/* SPDX-License-Identifier: MIT */
/*
 * A name's addresses, as getaddrinfo() has them. Who asks waits for them; the resolver asks
 * in threads.
 */
#ifndef TM3_ANSWER_H
#define TM3_ANSWER_H

#include <sys/socket.h>

enum {
	/*
	 * Addresses that are kept of a name: so many IPv4 and so many IPv6
	 * ones, or many of one family would hide the other.
	 */
	LOOKUP_OF_A_FAMILY = 8,
	LOOKUP_ADDRESSES = 2 * LOOKUP_OF_A_FAMILY,
};

struct answer {
	int error;		/* of getaddrinfo(): 0 or EAI_* */
	unsigned int count;	/* addresses; at least one unless error */
	struct sockaddr_storage addr[LOOKUP_ADDRESSES];	/* port 0 */
};

/* Looks @name up in @family (AF_UNSPEC: any). */
void answer_find(struct answer *answer, const char *name, int family);

#endif
