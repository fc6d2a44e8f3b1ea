/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct closed {
	uint8_t addr[4];
	uint8_t prefix;
	const char *name;
};

/* What no --permit opens. */
static const struct closed closed[] = {
	{ { 0, 0, 0, 0 }, 8, "unspecified" },
	{ { 169, 254, 0, 0 }, 16, "link-local" },
	{ { 224, 0, 0, 0 }, 4, "multicast" },
	{ { 240, 0, 0, 0 }, 4, "reserved or broadcast" },
	{ { 100, 100, 100, 200 }, 32, "cloud metadata" },	/* Alibaba */
	{ { 168, 63, 129, 16 }, 32, "cloud metadata" },		/* Azure */
	{ { 192, 0, 0, 192 }, 32, "cloud metadata" },		/* Oracle */
};

void access_init(struct access *a)
{
	memset(a, 0, sizeof(*a));
}

void access_fini(struct access *a)
{
	free(a->peers.rule);
	free(a->destinations.rule);
	access_init(a);
}

/* --- rules --- */

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

static int parse_rule(struct access_rule *rule, const char *text)
{
	char host[INET6_ADDRSTRLEN];
	size_t len = strcspn(text, "/");

	memset(rule, 0, sizeof(*rule));
	rule->text = text;
	if (len >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	if (inet_pton(AF_INET, host, rule->addr) == 1)
		rule->addr_len = 4;
	else if (inet_pton(AF_INET6, host, rule->addr) == 1)
		rule->addr_len = 16;
	else
		return -EINVAL;
	rule->prefix = (uint8_t)(rule->addr_len * 8);
	if (!text[len])
		return 0;
	return parse_prefix(text + len + 1, rule->addr_len * 8u, &rule->prefix);
}

static int add_rule(struct access_rules *rules, const struct access_rule *rule)
{
	struct access_rule *more;

	more = realloc(rules->rule, (rules->n + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	rules->rule = more;
	more[rules->n++] = *rule;
	return 0;
}

int access_allow(struct access *a, const char *text)
{
	struct access_rule rule;
	int err = parse_rule(&rule, text);

	return err ? err : add_rule(&a->peers, &rule);
}

/* A SYN can only name IPv4. */
static int add_destination(struct access *a, const char *text, bool permit)
{
	struct access_rule rule;
	int err = parse_rule(&rule, text);

	if (err)
		return err;
	if (rule.addr_len != 4)
		return -EAFNOSUPPORT;
	rule.permit = permit;
	return add_rule(&a->destinations, &rule);
}

int access_deny(struct access *a, const char *text)
{
	return add_destination(a, text, false);
}

int access_permit(struct access *a, const char *text)
{
	return add_destination(a, text, true);
}

/* --- verdicts --- */

static bool same_prefix(const uint8_t *a, const uint8_t *b, unsigned int prefix)
{
	unsigned int whole = prefix / 8;
	uint8_t mask = (uint8_t)(0xff00u >> prefix % 8);

	if (memcmp(a, b, whole))
		return false;
	return !(prefix % 8) || !((a[whole] ^ b[whole]) & mask);
}

static bool covers(const struct access_rule *rule, const uint8_t *addr,
		   unsigned int addr_len)
{
	return rule->addr_len == addr_len &&
	       same_prefix(rule->addr, addr, rule->prefix);
}

bool access_is_open(const struct access *a)
{
	return !a->peers.n;
}

/* IPv6 that only wraps IPv4 counts as IPv4. Returns the length, 0 unknown. */
static unsigned int address_of(const struct sockaddr_storage *peer,
			       const uint8_t **addr)
{
	const struct sockaddr_in *in = (const void *)peer;
	const struct sockaddr_in6 *in6 = (const void *)peer;

	if (peer->ss_family == AF_INET) {
		*addr = (const uint8_t *)&in->sin_addr;
		return 4;
	}
	if (peer->ss_family != AF_INET6)
		return 0;
	*addr = in6->sin6_addr.s6_addr;
	if (!IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
		return 16;
	*addr += 12;
	return 4;
}

bool access_admits(const struct access *a, const struct sockaddr_storage *peer)
{
	const uint8_t *addr = NULL;
	unsigned int addr_len = address_of(peer, &addr);
	unsigned int i;

	if (access_is_open(a))
		return true;
	for (i = 0; addr_len && i < a->peers.n; i++) {
		if (covers(&a->peers.rule[i], addr, addr_len))
			return true;
	}
	return false;
}

static const struct access_rule *deciding_rule(const struct access *a,
					       const uint8_t dst[4])
{
	const struct access_rule *best = NULL;
	unsigned int i;

	for (i = 0; i < a->destinations.n; i++) {
		const struct access_rule *rule = &a->destinations.rule[i];

		if (!covers(rule, dst, 4))
			continue;
		if (!best || rule->prefix > best->prefix ||
		    (rule->prefix == best->prefix && rule->permit))
			best = rule;
	}
	return best;
}

bool access_reaches(const struct access *a, const uint8_t dst[4], bool own,
		    bool local, char why[ACCESS_WHY])
{
	const struct access_rule *rule;
	size_t i;

	for (i = 0; i < sizeof(closed) / sizeof(*closed); i++) {
		if (same_prefix(closed[i].addr, dst, closed[i].prefix)) {
			snprintf(why, ACCESS_WHY, "%s addresses are never open",
				 closed[i].name);
			return false;
		}
	}
	rule = deciding_rule(a, dst);
	if (rule && !rule->permit) {
		snprintf(why, ACCESS_WHY, "--deny %s", rule->text);
		return false;
	}
	if (!rule && !local && (own || dst[0] == 127)) {
		snprintf(why, ACCESS_WHY, "%s closed to peers from elsewhere "
			 "unless a --permit covers it", dst[0] == 127 ?
			 "loopback is" : "addresses of this host are");
		return false;
	}
	return true;
}
