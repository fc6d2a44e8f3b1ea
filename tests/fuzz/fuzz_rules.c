/* SPDX-License-Identifier: MIT */
/*
 * Rules of both proxies, of arbitrary text: a line each, whose first character says what it is
 * for, and addresses that are held against them.
 *
 *	a d p l	--allow, --deny, --permit, --permit-listen
 *	f	--forward
 *	?	an address, with a port or without, to be judged
 *
 * Asserted: what is taken covers the address that it names; what is not changes nothing and,
 * where there is a place for it, has a reason; verdicts are those of a model that looks at
 * each bit, whatever order the rules come in; what no rule opens stays closed; a forward listens on a port and
 * leads to a sound destination, which its text leads to again.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lp/rule.h"
#include "mux/base/addr.h"
#include "rp/access.h"
#include "rp/permits.h"
#include "check.h"
#include "input.h"

enum { RULES_MAX = 64, WHY = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct scene {
	struct access access;
	struct permits permits;
	const char *rule[RULES_MAX];	/* of destinations, as they were taken, */
	bool permit[RULES_MAX];		/* and what they are */
	unsigned int n;
};

/* --- the model: bit by bit --- */

static bool bit_of(const uint8_t *addr, unsigned int i)
{
	return addr[i / 8] >> (7 - i % 8) & 1;
}

/* 4 or 16; what is IPv4 wrapped into IPv6 is IPv4. */
static unsigned int bytes_of(const struct sockaddr_storage *addr,
			     uint8_t bytes[16])
{
	struct sockaddr_storage plain = *addr;

	addr_unmap(&plain);
	if (plain.ss_family == AF_INET6) {
		memcpy(bytes, &((struct sockaddr_in6 *)(void *)&plain)->sin6_addr,
		       16);
		return 16;
	}
	memcpy(bytes, &((struct sockaddr_in *)(void *)&plain)->sin_addr, 4);
	return 4;
}

static bool covers(const struct access_rule *rule,
		   const struct sockaddr_storage *addr)
{
	uint8_t bytes[16];
	unsigned int i;

	if (rule->range.len != bytes_of(addr, bytes))
		return false;
	for (i = 0; i < rule->range.prefix; i++) {
		if (bit_of(rule->range.addr, i) != bit_of(bytes, i))
			return false;
	}
	return true;
}

static bool admits(const struct access_rules *peers,
		   const struct sockaddr_storage *addr)
{
	unsigned int i;

	for (i = 0; i < peers->n; i++) {
		if (covers(&peers->rule[i], addr))
			return true;
	}
	return !peers->n;
}

/* 1: some rule permits it, -1: some denies it, 0: there is none. */
static int decides(const struct access_rules *rules,
		   const struct sockaddr_storage *addr)
{
	int longest = -1, found = 0;
	unsigned int i;

	for (i = 0; i < rules->n; i++) {
		const struct access_rule *rule = &rules->rule[i];

		if (!covers(rule, addr) || (int)rule->range.prefix < longest)
			continue;
		if (found <= 0 || (int)rule->range.prefix > longest)
			found = rule->permit ? 1 : -1;
		longest = rule->range.prefix;
	}
	return found;
}

/* --- rules --- */

static void check_rules(const struct access_rules *rules, unsigned int before,
			int err)
{
	const struct access_rule *rule;

	check(rules->n == before + !err);
	if (err)
		return;
	rule = &rules->rule[before];
	check(rule->range.len == 4 || rule->range.len == 16);
	check(rule->range.prefix <= rule->range.len * 8);
}

static void destination_rule(struct scene *s, const char *text, bool permit)
{
	unsigned int before = s->access.destinations.n;
	int err = permit ? access_permit(&s->access, text) :
			   access_deny(&s->access, text);

	check_rules(&s->access.destinations, before, err);
	if (err)
		return;
	check(!strcmp(s->access.destinations.rule[before].text, text));
	s->rule[s->n] = text;
	s->permit[s->n++] = permit;
}

static void peer_rule(struct scene *s, const char *text)
{
	unsigned int before = s->access.peers.n;

	check_rules(&s->access.peers, before, access_allow(&s->access, text));
}

static void permit_listen(struct scene *s, const char *text)
{
	unsigned int before = s->permits.n;
	int err = permits_add(&s->permits, text);
	struct sockaddr_storage addr;
	struct permit *p;
	socklen_t len;

	check(s->permits.n == before + !err);
	if (err)
		return;
	p = &s->permits.permit[before];
	check(p->first && p->first <= p->last);
	addr = p->addr;
	if (addr.ss_family == AF_UNSPEC)
		check(!addr_parse("127.0.0.1:1", NULL, 0, &addr, &len));
	addr_set_port(&addr, p->last);
	check(permits_cover(&s->permits, &addr));
}

static void forward(const char *text)
{
	char again[ENDPOINT_TEXT], why[WHY] = "";
	struct endpoint other;
	struct rule r;

	if (rule_parse(&r, text, why, sizeof(why))) {
		check(*why);
		return;
	}
	check(addr_port(&r.addr) && r.addr_len == addr_size(&r.addr));
	check(destination_is_sound(&r.dst) && r.dst.port == r.to.port);
	check(r.dst.kind != DESTINATION_NONE && r.to.port);
	check(!endpoint_parse(&other, endpoint_text(&r.to, again), 0, why,
			      sizeof(why)));
	check(!strcmp(other.host, r.to.host) && other.port == r.to.port);
}

/* --- verdicts --- */

static bool reaches(const struct access *a, const struct sockaddr_storage *addr,
		    bool local)
{
	char why[ACCESS_WHY] = "";
	bool may = access_reaches(a, addr, false, local, why);

	check(may || *why);
	return may;
}

/* Of the same rules, the last one first. */
static bool reaches_turned_round(const struct scene *s,
				 const struct sockaddr_storage *addr, bool local)
{
	struct access turned;
	unsigned int i;
	bool may;

	access_init(&turned);
	for (i = s->n; i--;)
		check(!(s->permit[i] ? access_permit(&turned, s->rule[i]) :
				       access_deny(&turned, s->rule[i])));
	may = reaches(&turned, addr, local);
	access_fini(&turned);
	return may;
}

/* What an rp says of @addr that has no rules but one, which permits everything. */
static bool can_be_opened(const struct sockaddr_storage *addr)
{
	struct access all;
	bool may;

	access_init(&all);
	check(!access_permit(&all, "0.0.0.0/0") && !access_permit(&all, "::/0"));
	may = reaches(&all, addr, false);
	access_fini(&all);
	return may;
}

static void judge(const struct scene *s, const char *text)
{
	const struct access_rules *rules = &s->access.destinations;
	struct sockaddr_storage addr;
	socklen_t len;
	int rule;
	bool local, expected;

	if (addr_parse(text, NULL, 1, &addr, &len))
		return;
	check(access_admits(&s->access, &addr) ==
	      admits(&s->access.peers, &addr));
	rule = decides(rules, &addr);
	for (local = false;; local = true) {
		expected = can_be_opened(&addr) && rule >= 0 &&
			   (rule > 0 || local || !addr_is_loopback(&addr));
		check(reaches(&s->access, &addr, local) == expected);
		check(reaches_turned_round(s, &addr, local) == expected);
		if (local)
			break;
	}
}

static void take(struct scene *s, const char *line)
{
	switch (*line) {
	case 'a':
		peer_rule(s, line + 1);
		break;
	case 'd':
	case 'p':
		if (s->n < RULES_MAX)
			destination_rule(s, line + 1, *line == 'p');
		break;
	case 'l':
		permit_listen(s, line + 1);
		break;
	case 'f':
		forward(line + 1);
		break;
	case '?':
		judge(s, line + 1);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = input_text(data, size), *line, *rest = text;
	struct scene s = { .n = 0 };

	access_init(&s.access);
	while ((line = strsep(&rest, "\n")))
		take(&s, line);
	access_fini(&s.access);
	permits_fini(&s.permits);
	free(text);
	return 0;
}
