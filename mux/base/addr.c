/* SPDX-License-Identifier: MIT */
#include "addr.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- from text --- */

int port_parse(const char *text, uint16_t least, uint16_t *port)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long value;

	if (!digits || digits > 5 || text[digits])
		return -1;
	value = strtoul(text, NULL, 10);
	if (value < least || value > UINT16_MAX)
		return -1;
	*port = (uint16_t)value;
	return 0;
}

static int parse_v4(const char *host, uint16_t port,
		    struct sockaddr_storage *addr, socklen_t *len)
{
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)addr;

	memset(addr, 0, sizeof(*addr));
	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	*len = sizeof(*in);
	return inet_pton(AF_INET, host, &in->sin_addr) == 1 ? 0 : -1;
}

/* @host is cut at its scope, if it names one. */
static int parse_v6(char *host, uint16_t port, struct sockaddr_storage *addr,
		    socklen_t *len)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)addr;
	char *scope = strchr(host, '%');

	memset(addr, 0, sizeof(*addr));
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	*len = sizeof(*in6);
	if (scope) {
		*scope++ = '\0';
		in6->sin6_scope_id = if_nametoindex(scope);
		if (!in6->sin6_scope_id)
			return -1;
	}
	return inet_pton(AF_INET6, host, &in6->sin6_addr) == 1 ? 0 : -1;
}

/* "[V6]" or "[V6]:PORT"; @host is a copy to cut up. */
static int parse_bracketed(char *host, uint16_t port,
			   struct sockaddr_storage *addr, socklen_t *len)
{
	char *end = strchr(host, ']');

	if (!end)
		return -1;
	*end++ = '\0';
	if (*end && (*end != ':' || port_parse(end + 1, 0, &port)))
		return -1;
	return parse_v6(host + 1, port, addr, len);
}

int addr_parse(const char *text, const char *dflt_host, uint16_t dflt_port,
	       struct sockaddr_storage *addr, socklen_t *len)
{
	char host[ADDR_TEXT];
	uint16_t port = dflt_port;
	char *colon;

	if (dflt_host && !port_parse(text, 0, &port))
		text = dflt_host;
	if (strlen(text) >= sizeof(host))
		return -1;
	strcpy(host, text);
	if (host[0] == '[')
		return parse_bracketed(host, port, addr, len);
	colon = strchr(host, ':');
	if (colon && strchr(colon + 1, ':'))
		return parse_v6(host, port, addr, len);
	if (colon) {
		*colon = '\0';
		if (port_parse(colon + 1, 0, &port))
			return -1;
	}
	return parse_v4(host, port, addr, len);
}

/* --- to text, and compared --- */

/* IPv4, or IPv6 that only wraps it: its address in @v4 and its port. */
static bool as_v4(const struct sockaddr_storage *addr, struct in_addr *v4,
		  uint16_t *port)
{
	const struct sockaddr_in *in = (const void *)addr;
	const struct sockaddr_in6 *in6 = (const void *)addr;

	if (addr->ss_family == AF_INET) {
		*v4 = in->sin_addr;
		*port = ntohs(in->sin_port);
		return true;
	}
	if (addr->ss_family != AF_INET6 ||
	    !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
		return false;
	memcpy(v4, &in6->sin6_addr.s6_addr[12], 4);
	*port = ntohs(in6->sin6_port);
	return true;
}

const char *addr_host(const struct sockaddr_storage *addr, char text[ADDR_TEXT])
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	struct in_addr v4;
	uint16_t port;
	size_t used;

	if (as_v4(addr, &v4, &port)) {
		inet_ntop(AF_INET, &v4, text, ADDR_TEXT);
	} else if (addr->ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &in6->sin6_addr, text, ADDR_TEXT);
		used = strlen(text);
		if (in6->sin6_scope_id)
			snprintf(text + used, ADDR_TEXT - used, "%%%u",
				 in6->sin6_scope_id);
	} else {
		strcpy(text, "unknown");
	}
	return text;
}

const char *addr_text(const struct sockaddr_storage *addr, char text[ADDR_TEXT])
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	char host[ADDR_TEXT];
	struct in_addr v4;
	uint16_t port;

	addr_host(addr, host);
	if (as_v4(addr, &v4, &port))
		snprintf(text, ADDR_TEXT, "%.45s:%u", host, port);
	else if (addr->ss_family == AF_INET6)
		snprintf(text, ADDR_TEXT, "[%.55s]:%u", host,
			 ntohs(in6->sin6_port));
	else
		strcpy(text, host);
	return text;
}

bool addr_v4(const struct sockaddr_storage *addr, uint8_t v4[4])
{
	struct in_addr in;
	uint16_t port;

	if (!as_v4(addr, &in, &port))
		return false;
	memcpy(v4, &in, 4);
	return true;
}

void addr_unmap(struct sockaddr_storage *addr)
{
	struct sockaddr_in *in = (void *)addr;
	struct in_addr v4;
	uint16_t port;

	if (!as_v4(addr, &v4, &port))
		return;
	memset(addr, 0, sizeof(*addr));
	in->sin_family = AF_INET;
	in->sin_addr = v4;
	in->sin_port = htons(port);
}

uint16_t addr_port(const struct sockaddr_storage *addr)
{
	/* sin6_port lies where sin_port does. */
	return ntohs(((const struct sockaddr_in *)(const void *)addr)->sin_port);
}

void addr_set_port(struct sockaddr_storage *addr, uint16_t port)
{
	((struct sockaddr_in *)(void *)addr)->sin_port = htons(port);
}

socklen_t addr_size(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
	       sizeof(struct sockaddr_in);
}

bool addr_is_loopback(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	struct in_addr v4;
	uint16_t port;

	if (as_v4(addr, &v4, &port))
		return (ntohl(v4.s_addr) >> 24) == 127;
	return addr->ss_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

bool addr_is_any(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	struct in_addr v4;
	uint16_t port;

	if (as_v4(addr, &v4, &port))
		return v4.s_addr == htonl(INADDR_ANY);
	return addr->ss_family == AF_INET6 &&
	       IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr);
}

bool addr_same_host(const struct sockaddr_storage *a,
		    const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const void *)a;
	const struct sockaddr_in6 *b6 = (const void *)b;
	struct in_addr a4, b4;
	uint16_t port;
	bool a_is_v4 = as_v4(a, &a4, &port);

	if (a_is_v4 != as_v4(b, &b4, &port))
		return false;
	if (a_is_v4)
		return a4.s_addr == b4.s_addr;
	return a->ss_family == AF_INET6 && b->ss_family == AF_INET6 &&
	       IN6_ARE_ADDR_EQUAL(&a6->sin6_addr, &b6->sin6_addr) &&
	       a6->sin6_scope_id == b6->sin6_scope_id;
}

bool addr_same(const struct sockaddr_storage *a,
	       const struct sockaddr_storage *b)
{
	return addr_port(a) == addr_port(b) && addr_same_host(a, b);
}

uint32_t addr_hash(const struct sockaddr_storage *addr)
{
	const uint8_t *bytes = (const uint8_t *)addr;
	uint32_t hash = 2166136261u;
	size_t i;

	for (i = 0; i < addr_size(addr); i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return hash ^ hash >> 16;
}
