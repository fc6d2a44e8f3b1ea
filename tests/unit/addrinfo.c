/* SPDX-License-Identifier: MIT */
#include "addrinfo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mux/base/addr.h"

struct addrinfo *an_address(const char *text, struct addrinfo *next)
{
	struct addrinfo *ai = calloc(1, sizeof(*ai));
	struct sockaddr_storage *addr = calloc(1, sizeof(*addr));

	assert_true(ai && addr);
	assert_int_equal(addr_parse(text, NULL, 0, addr, &ai->ai_addrlen), 0);
	ai->ai_family = addr->ss_family;
	ai->ai_addr = (struct sockaddr *)addr;
	ai->ai_next = next;
	return ai;
}

void freeaddrinfo(struct addrinfo *ai)
{
	while (ai) {
		struct addrinfo *next = ai->ai_next;

		free(ai->ai_addr);
		free(ai);
		ai = next;
	}
}
