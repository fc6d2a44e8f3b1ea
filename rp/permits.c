/* SPDX-License-Identifier: MIT */
#include "permits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../mux/base/addr.h"

enum { PORTS_TEXT = sizeof("65535-65535") };

/* "PORT[-PORT]" */
static int parse_ports(struct permit *p, const char *text)
{
	char copy[PORTS_TEXT];
	char *dash;

	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, text);
	dash = strchr(copy, '-');
	if (dash)
		*dash++ = '\0';
	if (port_parse(copy, 1, &p->first) ||
	    port_parse(dash ? dash : copy, 1, &p->last) || p->first > p->last)
		return -EINVAL;
	return 0;
}

/* With a port, so that what looks like one is not part of an IPv6 address. */
static int parse_address(struct permit *p, const char *text, size_t len)
{
	char copy[ADDR_TEXT];
	socklen_t size;

	if (len + sizeof(":1") > sizeof(copy))
		return -EINVAL;
	snprintf(copy, sizeof(copy), "%.*s:1", (int)len, text);
	if (addr_parse(copy, NULL, 0, &p->addr, &size) ||
	    addr_port(&p->addr) != 1)
		return -EINVAL;
	addr_unmap(&p->addr);
	return 0;
}

static int parse(struct permit *p, const char *text)
{
	const char *colon = strrchr(text, ':');

	memset(p, 0, sizeof(*p));
	if (colon && parse_address(p, text, (size_t)(colon - text)))
		return -EINVAL;
	return parse_ports(p, colon ? colon + 1 : text);
}

int permits_add(struct permits *p, const char *text)
{
	struct permit *more = realloc(p->permit, (p->n + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	p->permit = more;
	if (parse(&more[p->n], text))
		return -EINVAL;
	p->n++;
	return 0;
}

void permits_fini(struct permits *p)
{
	free(p->permit);
	*p = (struct permits){ .n = 0 };
}

static bool covers(const struct permit *p, const struct sockaddr_storage *addr)
{
	if (addr_port(addr) < p->first || addr_port(addr) > p->last)
		return false;
	if (p->addr.ss_family == AF_UNSPEC)
		return addr_is_loopback(addr);
	if (addr_is_any(&p->addr))
		return p->addr.ss_family == addr->ss_family;
	return addr_same_host(&p->addr, addr);
}

bool permits_cover(const struct permits *p, const struct sockaddr_storage *addr)
{
	unsigned int i;

	for (i = 0; i < p->n; i++) {
		if (covers(&p->permit[i], addr))
			return true;
	}
	return false;
}
