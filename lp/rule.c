/* SPDX-License-Identifier: MIT */
#include "rule.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "../mux/base/addr.h"
#include "target.h"

/* The last ':' of @text before @end, brackets and all, or NULL. */
static const char *colon_before(const char *text, const char *end)
{
	while (end > text)
		if (*--end == ':')
			return end;
	return NULL;
}

/* "[ADDR:]PORT", the first @len characters of @text. */
static int listen_set(struct rule *r, const char *text, size_t len, char *why,
		      size_t why_len)
{
	char copy[ADDR_TEXT];
	const char *port;
	uint16_t number;

	if (len < sizeof(copy)) {
		memcpy(copy, text, len);
		copy[len] = '\0';
		port = strrchr(copy, ':');
		port = port ? port + 1 : copy;
		if (port_parse(port, 1, &number)) {
			snprintf(why, why_len,
				 "'%s' is not a port from 1 to 65535", port);
			return -1;
		}
		/* Of IPv6 without brackets what looks like a port is part of the address. */
		if (!addr_parse(copy, "127.0.0.1", 0, &r->addr, &r->addr_len) &&
		    addr_port(&r->addr) == number)
			return 0;
	}
	snprintf(why, why_len,
		 "'%.*s' is not a numeric address and a port to listen on",
		 (int)len, text);
	return -1;
}

static int destination_set(struct rule *r, const char *text, char *why,
			   size_t why_len)
{
	const char *host = r->to.host;
	uint8_t addr[16];

	if (endpoint_parse(&r->to, text, 0, why, why_len))
		return -1;
	if (inet_pton(AF_INET, host, addr) == 1) {
		r->dst = destination_ipv4(addr, r->to.port);
	} else if (inet_pton(AF_INET6, host, addr) == 1) {
		r->dst = target_ipv6(addr, r->to.port);
	} else if (strchr(host, ':')) {
		snprintf(why, why_len, "'%s' is not an IPv6 address", host);
		return -1;
	} else {
		r->dst = destination_name(host, strlen(host), r->to.port);
	}
	return 0;
}

int rule_parse(struct rule *r, const char *text, char *why, size_t why_len)
{
	bool udp = !strncmp(text, "udp:", 4);
	const char *port, *host = NULL;

	memset(r, 0, sizeof(*r));
	r->udp = udp;
	text += udp ? 4 : 0;
	port = colon_before(text, text + strlen(text));
	if (port && port > text && port[-1] == ']') {
		host = port - 1;
		while (host > text && *host != '[')
			host--;
		host = host > text && host[-1] == ':' ? host - 1 : NULL;
	} else if (port) {
		host = colon_before(text, port);
	}
	if (!host) {
		snprintf(why, why_len, "there is too little of it");
		return -1;
	}
	if (destination_set(r, host + 1, why, why_len))
		return -1;
	return listen_set(r, text, (size_t)(host - text), why, why_len);
}
