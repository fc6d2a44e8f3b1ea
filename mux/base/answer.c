/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "answer.h"

#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

static unsigned int count_of(const struct answer *answer, int family)
{
	unsigned int n = 0, i;

	for (i = 0; i < answer->count; i++)
		n += answer->addr[i].ss_family == family;
	return n;
}

/*
 * A name may end in a scope that means nothing to its address, as "::1%7". With it the address
 * would pass for that of another host.
 */
static void drop_scope(struct sockaddr_storage *addr)
{
	struct sockaddr_in6 *in6 = (void *)addr;

	if (addr->ss_family == AF_INET6 &&
	    !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
		in6->sin6_scope_id = 0;
}

static void keep_address(struct answer *answer, const struct addrinfo *ai)
{
	struct sockaddr_storage *addr = &answer->addr[answer->count];

	if ((ai->ai_family != AF_INET && ai->ai_family != AF_INET6) ||
	    count_of(answer, ai->ai_family) == LOOKUP_OF_A_FAMILY)
		return;
	memcpy(addr, ai->ai_addr, ai->ai_addrlen);
	drop_scope(addr);
	answer->count++;
}

void answer_find(struct answer *answer, const char *name, int family)
{
	const struct addrinfo hints = {
		.ai_family = family,
		.ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *found = NULL, *ai;

	*answer = (struct answer){ 0 };
	answer->error = getaddrinfo(name, NULL, &hints, &found);
	if (answer->error)
		return;
	for (ai = found; ai; ai = ai->ai_next)
		keep_address(answer, ai);
	freeaddrinfo(found);
	if (!answer->count)
		answer->error = EAI_NONAME;
}
