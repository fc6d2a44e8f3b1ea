/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "access.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../mux/base/addr.h"

/* A network that has a meaning of its own. */
struct network {
	uint8_t prefix;
	uint8_t addr[16];
	const char *name;
};

/* What no --permit opens. */
static const struct network closed_v4[] = {
	{ 8, { 0, 0, 0, 0 }, "unspecified" },
	{ 16, { 169, 254, 0, 0 }, "link-local" },
	{ 4, { 224, 0, 0, 0 }, "multicast" },
	{ 4, { 240, 0, 0, 0 }, "reserved or broadcast" },
	{ 32, { 100, 100, 100, 200 }, "cloud metadata" },	/* Alibaba */
	{ 32, { 168, 63, 129, 16 }, "cloud metadata" },		/* Azure */
	{ 32, { 192, 0, 0, 192 }, "cloud metadata" },		/* Oracle */
	{ 0, { 0 }, NULL },
};

static const struct network closed_v6[] = {
	{ 128, { 0 }, "unspecified" },
	{ 10, { 0xfe, 0x80 }, "link-local" },
	{ 8, { 0xff }, "multicast" },
	{ 128, { 0xfd, 0, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54 },
	  "cloud metadata" },					/* Amazon */
	{ 128, { 0xfd, 0x20, 0, 0xce, [14] = 0x02, [15] = 0x54 },
	  "cloud metadata" },					/* Google */
	{ 128, { 0xfd, 0, 0, 0xc1, [12] = 0xa9, 0xfe, 0xa9, 0xfe },
	  "cloud metadata" },					/* Oracle */
	{ 0, { 0 }, NULL },
};

/*
 * Networks whose addresses have an IPv4 address in them, and in which bytes. A network's own
 * prefix for NAT64 may be as long as the four lines say (RFC 6052), and only its translator
 * knows which it is.
 */
static const struct embedding {
	struct network network;
	uint8_t at[4];
	bool guess;
} embeddings[] = {
	{ { 96, { [10] = 0xff, 0xff }, "mapped" }, { 12, 13, 14, 15 }, false },
	{ { 96, { 0 }, "compatible" }, { 12, 13, 14, 15 }, false },
	{ { 96, { 0, 0x64, 0xff, 0x9b }, "NAT64" }, { 12, 13, 14, 15 }, false },
	{ { 48, { 0, 0x64, 0xff, 0x9b, 0, 1 }, "NAT64" }, { 12, 13, 14, 15 }, true },
	{ { 48, { 0, 0x64, 0xff, 0x9b, 0, 1 }, "NAT64" }, { 6, 7, 9, 10 }, true },
	{ { 48, { 0, 0x64, 0xff, 0x9b, 0, 1 }, "NAT64" }, { 7, 9, 10, 11 }, true },
	{ { 48, { 0, 0x64, 0xff, 0x9b, 0, 1 }, "NAT64" }, { 9, 10, 11, 12 }, true },
	{ { 96, { [8] = 0xff, 0xff }, "translated" }, { 12, 13, 14, 15 }, false },
	{ { 16, { 0x20, 0x02 }, "6to4" }, { 2, 3, 4, 5 }, false },
};

enum { EMBEDDINGS = sizeof(embeddings) / sizeof(*embeddings) };

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

static int parse_rule(struct access_rule *rule, const char *text)
{
	memset(rule, 0, sizeof(*rule));
	if (strlen(text) >= sizeof(rule->text))
		return -EINVAL;
	strcpy(rule->text, text);
	return cidr_parse(&rule->range, text);
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

static int add_destination(struct access *a, const char *text, bool permit)
{
	struct access_rule rule;
	int err = parse_rule(&rule, text);

	if (err)
		return err;
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
		if (cidr_covers(&a->peers.rule[i].range, addr, addr_len))
			return true;
	}
	return false;
}

/* --- destinations --- */

static const struct network *network_of(const struct network *networks,
					const uint8_t *addr)
{
	const struct network *n;

	for (n = networks; n->name; n++) {
		if (cidr_same_prefix(n->addr, addr, n->prefix))
			return n;
	}
	return NULL;
}

static const struct access_rule *deciding_rule(const struct access *a,
					       const uint8_t *dst,
					       unsigned int dst_len)
{
	const struct access_rule *best = NULL;
	unsigned int i;

	for (i = 0; i < a->destinations.n; i++) {
		const struct access_rule *rule = &a->destinations.rule[i];

		if (!cidr_covers(&rule->range, dst, dst_len))
			continue;
		if (!best || rule->range.prefix > best->range.prefix ||
		    (rule->range.prefix == best->range.prefix && rule->permit))
			best = rule;
	}
	return best;
}

bool access_reaches(const struct access *a, const struct sockaddr_storage *dst,
		    bool own, bool local, char why[ACCESS_WHY])
{
	bool loopback = addr_is_loopback(dst);
	const struct access_rule *rule;
	const struct network *closed;
	const uint8_t *addr = NULL;
	unsigned int addr_len = address_of(dst, &addr);

	if (!addr_len) {
		snprintf(why, ACCESS_WHY, "it is neither IPv4 nor IPv6");
		return false;
	}
	closed = network_of(addr_len == 4 ? closed_v4 : closed_v6, addr);
	if (closed) {
		snprintf(why, ACCESS_WHY, "%s addresses are never open",
			 closed->name);
		return false;
	}
	rule = deciding_rule(a, addr, addr_len);
	if (rule && !rule->permit) {
		snprintf(why, ACCESS_WHY, "--deny %s", rule->text);
		return false;
	}
	if (!rule && !local && (own || loopback)) {
		snprintf(why, ACCESS_WHY, "%s closed to peers from elsewhere "
			 "unless a --permit covers it", loopback ?
			 "loopback is" : "addresses of this host are");
		return false;
	}
	return true;
}

/*
 * Of prefixes that are guessed most have zeros where the address would be, and no translator
 * sends anything to 0.0.0.0/8. They are passed over. Where all have, the last four bytes count.
 */
static bool is_skipped(const struct embedding *e, const uint8_t *bytes)
{
	bool one_counts = bytes[6] || bytes[7] || bytes[9] || bytes[12];

	return e->guess && !bytes[e->at[0]] && (one_counts || e->at[0] != 12);
}

static bool embeds(const struct embedding *e, const uint8_t *bytes)
{
	return cidr_same_prefix(e->network.addr, bytes, e->network.prefix) &&
	       !is_skipped(e, bytes);
}

bool access_embedded(const struct sockaddr_storage *addr, unsigned int *from,
		     struct sockaddr_storage *v4)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	struct sockaddr_in *in = (void *)v4;
	const uint8_t *bytes = in6->sin6_addr.s6_addr;
	uint8_t *to = (uint8_t *)&in->sin_addr;
	unsigned int i;

	if (addr->ss_family != AF_INET6 ||
	    IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr) ||
	    IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr))
		return false;
	while (*from < EMBEDDINGS && !embeds(&embeddings[*from], bytes))
		(*from)++;
	if (*from == EMBEDDINGS)
		return false;
	memset(v4, 0, sizeof(*v4));
	in->sin_family = AF_INET;
	in->sin_port = in6->sin6_port;
	for (i = 0; i < 4; i++)
		to[i] = bytes[embeddings[*from].at[i]];
	(*from)++;
	return true;
}
