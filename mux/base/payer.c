/* SPDX-License-Identifier: MIT */
#include "payer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "addr.h"

struct payer payer_of(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	struct payer p = { 0 };

	if (addr_v4(addr, p.bytes)) {
		p.family = 4;
	} else if (addr->ss_family == AF_INET6) {
		p.family = 6;
		p.scope = in6->sin6_scope_id;
		memcpy(p.bytes, &in6->sin6_addr, PAYER_NET);
	}
	return p;
}

bool payer_is(const struct payer *a, const struct payer *b)
{
	return a->family == b->family && a->scope == b->scope &&
	       !memcmp(a->bytes, b->bytes, PAYER_NET);
}

static const char *payer_text(const struct payer *p, char text[PAYER_TEXT])
{
	uint8_t v6[16] = { 0 };
	size_t used;

	switch (p->family) {
	case 4:
		inet_ntop(AF_INET, p->bytes, text, PAYER_TEXT);
		break;
	case 6:
		memcpy(v6, p->bytes, PAYER_NET);
		inet_ntop(AF_INET6, v6, text, PAYER_TEXT);
		used = strlen(text);
		if (p->scope)
			snprintf(text + used, PAYER_TEXT - used, "%%%u/64",
				 p->scope);
		else
			snprintf(text + used, PAYER_TEXT - used, "/64");
		break;
	default:
		strcpy(text, "unknown");
	}
	return text;
}

const char *payer_name(const struct sockaddr_storage *addr,
		       char text[PAYER_TEXT])
{
	struct payer p = payer_of(addr);

	return payer_text(&p, text);
}
