/* SPDX-License-Identifier: MIT */
#include "cidr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static int parse_prefix(const char *text, unsigned int max, uint8_t *prefix)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long value;

	if (!digits || digits > 3 || text[digits])
		return -EINVAL;
	value = strtoul(text, NULL, 10);
	if (value > max)
		return -EINVAL;
	*prefix = (uint8_t)value;
	return 0;
}

static void unmap(struct cidr *c)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

	if (c->len != 16 || c->prefix < 96 ||
	    memcmp(c->addr, mapped, sizeof(mapped)))
		return;
	memmove(c->addr, c->addr + 12, 4);
	memset(c->addr + 4, 0, 12);
	c->len = 4;
	c->prefix = (uint8_t)(c->prefix - 96);
}

int cidr_parse(struct cidr *c, const char *text)
{
	char host[INET6_ADDRSTRLEN];
	size_t len = strcspn(text, "/");
	int err = 0;

	memset(c, 0, sizeof(*c));
	if (len >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	if (inet_pton(AF_INET, host, c->addr) == 1)
		c->len = 4;
	else if (inet_pton(AF_INET6, host, c->addr) == 1)
		c->len = 16;
	else
		return -EINVAL;
	c->prefix = (uint8_t)(c->len * 8);
	if (text[len])
		err = parse_prefix(text + len + 1, c->len * 8u, &c->prefix);
	if (!err)
		unmap(c);
	return err;
}

bool cidr_same_prefix(const uint8_t *a, const uint8_t *b, unsigned int prefix)
{
	unsigned int whole = prefix / 8;
	uint8_t mask = (uint8_t)(0xff00u >> prefix % 8);

	if (memcmp(a, b, whole))
		return false;
	return !(prefix % 8) || !((a[whole] ^ b[whole]) & mask);
}

bool cidr_covers(const struct cidr *c, const uint8_t *addr, unsigned int len)
{
	return c->len == len && cidr_same_prefix(c->addr, addr, c->prefix);
}
