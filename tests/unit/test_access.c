/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>

#include "rp/access.h"
#include "addr.h"
#include "random.h"

static bool admits(const struct access *a, const char *peer)
{
	struct sockaddr_storage addr = address(peer, 1);

	return access_admits(a, &addr);
}

/* NULL: it may connect; else why not. */
static const char *refusal(const struct access *a, const char *dst, bool local)
{
	static char why[ACCESS_WHY];
	struct sockaddr_storage addr = address(dst, 1);

	return access_reaches(a, &addr, false, local, why) ? NULL : why;
}

static bool reaches(const struct access *a, const char *dst)
{
	return !refusal(a, dst, false);
}

static void without_allow_everybody_may(void **state)
{
	struct access a;

	(void)state;
	access_init(&a);
	assert_true(access_is_open(&a));
	assert_true(admits(&a, "192.0.2.1"));
	assert_true(admits(&a, "2001:db8::1"));
	access_fini(&a);
}

static void allow_narrows(void **state)
{
	struct access a;

	(void)state;
	access_init(&a);
	assert_int_equal(access_allow(&a, "10.1.0.0/16"), 0);
	assert_int_equal(access_allow(&a, "192.0.2.7"), 0);
	assert_int_equal(access_allow(&a, "2001:db8:8000::/33"), 0);
	assert_false(access_is_open(&a));
	assert_true(admits(&a, "10.1.0.0"));
	assert_true(admits(&a, "10.1.255.255"));
	assert_false(admits(&a, "10.0.255.255"));
	assert_false(admits(&a, "10.2.0.0"));
	assert_true(admits(&a, "192.0.2.7"));
	assert_false(admits(&a, "192.0.2.6"));
	assert_true(admits(&a, "2001:db8:8000::1"));
	assert_true(admits(&a, "2001:db8:ffff::1"));
	assert_false(admits(&a, "2001:db8:7fff::1"));
	access_fini(&a);
}

static void wrapped_ipv4_counts_as_ipv4(void **state)
{
	struct access a;

	(void)state;
	access_init(&a);
	assert_int_equal(access_allow(&a, "10.0.0.0/8"), 0);
	assert_true(admits(&a, "::ffff:10.1.2.3"));
	assert_false(admits(&a, "::ffff:11.1.2.3"));
	assert_false(admits(&a, "::10.1.2.3"));
	access_fini(&a);
}

/* The families do not open each other, not even with a prefix of 0. */
static void all_of_one_family(void **state)
{
	struct access a;

	(void)state;
	access_init(&a);
	assert_int_equal(access_allow(&a, "0.0.0.0/0"), 0);
	assert_true(admits(&a, "203.0.113.9"));
	assert_false(admits(&a, "::1"));
	access_fini(&a);
	assert_int_equal(access_allow(&a, "::/0"), 0);
	assert_true(admits(&a, "::1"));
	assert_false(admits(&a, "203.0.113.9"));
	access_fini(&a);
}

static void what_is_no_network_is_refused(void **state)
{
	static const char *const wrong[] = {
		"", "/", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1",
		"10.0.0.0/+8", "10.0.0.0/8x", "10.0.0.0/8/8", "10.0.0/8",
		"10.0.0.256", "010.0.0.1", "host", "::1/129", "::g", ":::/8",
		"10.0.0.0 /8", "10.0.0.0/0008", "[::1]",
		"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000/8",
	};
	struct access a;

	(void)state;
	access_init(&a);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(access_allow(&a, wrong[i]), -EINVAL);
		assert_int_equal(access_deny(&a, wrong[i]), -EINVAL);
		assert_int_equal(access_permit(&a, wrong[i]), -EINVAL);
	}
	assert_true(access_is_open(&a));
	access_fini(&a);
}

static void longest_prefix_decides(void **state)
{
	struct access a;

	(void)state;
	access_init(&a);
	access_permit(&a, "10.1.2.0/24");
	access_deny(&a, "10.0.0.0/8");
	access_deny(&a, "10.1.2.128/25");
	access_permit(&a, "10.1.2.200");
	assert_false(reaches(&a, "10.0.0.1"));
	assert_true(reaches(&a, "10.1.2.1"));
	assert_true(reaches(&a, "10.1.2.127"));
	assert_false(reaches(&a, "10.1.2.128"));
	assert_true(reaches(&a, "10.1.2.200"));
	assert_false(reaches(&a, "10.1.2.201"));
	assert_true(reaches(&a, "11.0.0.1"));
	access_fini(&a);
}

static void longest_prefix_decides_for_ipv6(void **state)
{
	struct access a;

	(void)state;
	access_init(&a);
	assert_int_equal(access_permit(&a, "2001:db8:1::/48"), 0);
	assert_int_equal(access_deny(&a, "2001:db8::/32"), 0);
	assert_int_equal(access_deny(&a, "2001:db8:1:8000::/49"), 0);
	assert_int_equal(access_permit(&a, "2001:db8:1:8000::7"), 0);
	assert_false(reaches(&a, "2001:db8::1"));
	assert_true(reaches(&a, "2001:db8:1::1"));
	assert_true(reaches(&a, "2001:db8:1:7fff::1"));
	assert_false(reaches(&a, "2001:db8:1:8000::1"));
	assert_true(reaches(&a, "2001:db8:1:8000::7"));
	assert_true(reaches(&a, "2001:db9::1"));
	assert_string_equal(refusal(&a, "2001:db8::1", true),
			    "--deny 2001:db8::/32");
	access_fini(&a);
}

/* A rule speaks of its own family, whatever the bytes. */
static void rules_of_one_family_leave_the_other_alone(void **state)
{
	struct access a;

	(void)state;
	access_init(&a);
	access_deny(&a, "0.0.0.0/0");
	access_permit(&a, "a00::/8");
	assert_true(reaches(&a, "2001:db8::1"));
	assert_false(reaches(&a, "10.0.0.1"));
	access_fini(&a);
	access_deny(&a, "::/0");
	assert_false(reaches(&a, "2001:db8::1"));
	assert_true(reaches(&a, "10.0.0.1"));
	access_fini(&a);
}

/* Mapped addresses are those of IPv4: where they go, and in rules. */
static void mapped_is_ipv4(void **state)
{
	struct access a;

	(void)state;
	access_init(&a);
	access_deny(&a, "10.0.0.0/8");
	access_deny(&a, "::ffff:11.0.0.0/104");
	assert_false(reaches(&a, "::ffff:10.1.2.3"));
	assert_false(reaches(&a, "11.1.2.3"));
	assert_true(reaches(&a, "::ffff:12.1.2.3"));
	assert_non_null(refusal(&a, "::ffff:169.254.169.254", true));
	assert_non_null(refusal(&a, "::ffff:127.0.0.1", false));
	assert_null(refusal(&a, "::ffff:127.0.0.1", true));
	access_fini(&a);
	access_allow(&a, "::ffff:10.0.0.0/104");
	assert_true(admits(&a, "10.1.2.3"));
	assert_false(admits(&a, "11.1.2.3"));
	access_fini(&a);
}

/* Which IPv4 addresses it may lead to, or "". */
static const char *embedded(const char *text)
{
	static char all[8 * INET_ADDRSTRLEN];
	char one[INET_ADDRSTRLEN];
	struct sockaddr_storage addr = address(text, 1), v4;
	const struct sockaddr_in *in = (const void *)&v4;
	unsigned int from = 0;

	((struct sockaddr_in6 *)(void *)&addr)->sin6_port = htons(80);
	for (*all = '\0'; access_embedded(&addr, &from, &v4);) {
		assert_int_equal(v4.ss_family, AF_INET);
		assert_int_equal(ntohs(in->sin_port), 80);
		strcat(all, *all ? " " : "");
		strcat(all, inet_ntop(AF_INET, &in->sin_addr, one, sizeof(one)));
	}
	return all;
}

static void ipv6_that_leads_to_ipv4(void **state)
{
	static const char *const pure[] = {
		"::", "::1", "2001:db8::7f00:1", "::fffe:127.0.0.1",
		"64:ff9a::127.0.0.1", "64:ff9b::1:127.0.0.1",
		"64:ff9b:2::127.0.0.1", "::1:0:127.0.0.1", "127.0.0.1",
		"2003:a9fe:a9fe::1",
	};

	(void)state;
	assert_string_equal(embedded("::ffff:127.0.0.1"), "127.0.0.1");
	assert_string_equal(embedded("::127.0.0.1"), "127.0.0.1");
	assert_string_equal(embedded("::2"), "0.0.0.2");
	assert_string_equal(embedded("64:ff9b::10.1.2.3"), "10.1.2.3");
	assert_string_equal(embedded("64:ff9b:1::10.1.2.3"), "10.1.2.3");
	assert_string_equal(embedded("::ffff:0:10.1.2.3"), "10.1.2.3");
	assert_string_equal(embedded("2002:a9fe:a9fe::1"), "169.254.169.254");
	for (size_t i = 0; i < sizeof(pure) / sizeof(*pure); i++)
		assert_string_equal(embedded(pure[i]), "");
}

/* Whose prefix has 48, 56 or 64 bits reads another address than the last four bytes. */
static void a_networks_own_prefix_for_nat64(void **state)
{
	(void)state;
	assert_string_equal(embedded("64:ff9b:1:a9fe:a9:fe00::"),
			    "169.254.169.254 254.169.254.0 169.254.0.0");
	assert_string_equal(embedded("64:ff9b:1:a9fe:a9:fe00:808:808"),
			    "8.8.8.8 169.254.169.254 254.169.254.0 169.254.0.8");
	assert_string_equal(embedded("64:ff9b:1:ab:cd::10.1.2.3"),
			    "10.1.2.3 171.205.0.0 205.0.0.10");
	assert_string_equal(embedded("64:ff9b:1::"), "0.0.0.0");
	assert_string_equal(embedded("64:ff9b:1::2"), "0.0.0.2");
	assert_string_equal(embedded("64:ff9b:1:7f:0:1::"), "127.0.0.1");
	assert_string_equal(embedded("64:ff9b:1:0:7f:0:100::"), "1.0.0.0 127.0.0.1");
}

static void permit_wins_a_tie_in_any_order(void **state)
{
	struct access a;

	(void)state;
	access_init(&a);
	access_permit(&a, "10.0.0.0/8");
	access_deny(&a, "10.0.0.0/8");
	access_deny(&a, "11.0.0.0/8");
	access_permit(&a, "11.0.0.0/8");
	assert_true(reaches(&a, "10.0.0.1"));
	assert_true(reaches(&a, "11.0.0.1"));
	access_fini(&a);
}

static void deny_all_but(void **state)
{
	struct access a;

	(void)state;
	access_init(&a);
	access_deny(&a, "0.0.0.0/0");
	access_permit(&a, "192.0.2.0/24");
	assert_true(reaches(&a, "192.0.2.1"));
	assert_false(reaches(&a, "192.0.3.1"));
	assert_string_equal(refusal(&a, "192.0.3.1", true), "--deny 0.0.0.0/0");
	assert_non_null(refusal(&a, "127.0.0.1", true));
	access_fini(&a);
}

static void some_addresses_no_rule_opens(void **state)
{
	static const char *const never[] = {
		"0.0.0.0", "0.255.255.255", "169.254.0.0", "169.254.169.254",
		"169.254.255.255", "224.0.0.1", "239.255.255.255", "240.0.0.0",
		"255.255.255.254", "255.255.255.255", "100.100.100.200",
		"168.63.129.16", "192.0.0.192", "::", "fe80::", "fe80::1",
		"febf:ffff::1", "ff00::", "ff02::1", "ffff::1",
		"fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe",
	};
	static const char *const beside[] = {
		"1.0.0.0", "169.253.255.255", "169.255.0.0", "223.255.255.255",
		"100.100.100.199", "100.100.100.201", "168.63.129.15",
		"168.63.129.17", "192.0.0.191", "192.0.0.193", "::1",
		"fe7f:ffff::1", "fec0::1", "feff::1", "fd00:ec2::253",
		"fd00:ec2::255", "fd20:ce::253", "fd00:c1::a9fe:a9fd",
	};
	struct access a;

	(void)state;
	access_init(&a);
	access_permit(&a, "0.0.0.0/0");
	access_permit(&a, "::/0");
	for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++) {
		access_permit(&a, never[i]);
		assert_non_null(refusal(&a, never[i], false));
		assert_non_null(refusal(&a, never[i], true));
	}
	for (size_t i = 0; i < sizeof(beside) / sizeof(*beside); i++)
		assert_true(reaches(&a, beside[i]));
	access_fini(&a);
}

static void loopback_is_for_those_on_it(void **state)
{
	struct access a;

	(void)state;
	access_init(&a);
	assert_null(refusal(&a, "127.0.0.1", true));
	assert_non_null(refusal(&a, "127.0.0.1", false));
	assert_non_null(refusal(&a, "127.255.255.255", false));
	assert_null(refusal(&a, "126.255.255.255", false));
	assert_null(refusal(&a, "128.0.0.0", false));
	assert_null(refusal(&a, "::1", true));
	assert_non_null(refusal(&a, "::1", false));
	access_permit(&a, "127.0.0.1");
	assert_null(refusal(&a, "127.0.0.1", false));
	assert_non_null(refusal(&a, "127.0.0.2", false));
	assert_non_null(refusal(&a, "::1", false));
	access_permit(&a, "::1");
	assert_null(refusal(&a, "::1", false));
	access_fini(&a);
	access_permit(&a, "0.0.0.0/0");
	assert_null(refusal(&a, "127.0.0.2", false));
	access_deny(&a, "127.0.0.0/16");
	assert_non_null(refusal(&a, "127.0.0.2", true));
	access_fini(&a);
}

enum { CROWD = 30 };

/* A rule of IPv4, or of the last four bytes of IPv6 ones in 2001:db8::/96. */
struct model_rule {
	uint32_t addr;
	unsigned int prefix;
	bool permit;
};

static bool model_covers(const struct model_rule *r, uint32_t addr)
{
	for (unsigned int bit = 0; bit < r->prefix; bit++) {
		if ((r->addr ^ addr) & (UINT32_C(0x80000000) >> bit))
			return false;
	}
	return true;
}

/* Prefix by prefix, longest first: another way to the same answer. */
static bool model_reaches(const struct model_rule *rules, int n, uint32_t addr)
{
	for (int prefix = 32; prefix >= 0; prefix--) {
		bool denied = false;

		for (int i = 0; i < n; i++) {
			if (rules[i].prefix != (unsigned int)prefix ||
			    !model_covers(&rules[i], addr))
				continue;
			if (rules[i].permit)
				return true;
			denied = true;
		}
		if (denied)
			return false;
	}
	return true;
}

/* Rules and addresses crowd in 10.0.0.0/8, so that they meet. */
static uint32_t crowded(struct random *r)
{
	return UINT32_C(0x0a000000) | random_below(r, 4) << 22 |
	       random_below(r, 4) << 12 | random_below(r, 8);
}

struct crowd {
	struct access access;
	struct model_rule rule[CROWD];
	char text[CROWD][INET6_ADDRSTRLEN + 4];
	int n;
	bool v6;
};

/* What stands before those four bytes, and adds to the prefix. */
static const char *before(const struct crowd *c)
{
	return c->v6 ? "2001:db8::" : "";
}

static void crowd_init(struct crowd *c, struct random *r)
{
	access_init(&c->access);
	c->v6 = random_below(r, 2);
	c->n = (int)random_range(r, 1, CROWD);
	for (int i = 0; i < c->n; i++) {
		struct model_rule *rule = &c->rule[i];

		*rule = (struct model_rule){
			.addr = crowded(r),
			.prefix = random_range(r, 8, 32),
			.permit = random_below(r, 2),
		};
		snprintf(c->text[i], sizeof(c->text[i]), "%s%u.%u.%u.%u/%u",
			 before(c), rule->addr >> 24, rule->addr >> 16 & 255,
			 rule->addr >> 8 & 255, rule->addr & 255,
			 rule->prefix + (c->v6 ? 96 : 0));
		assert_int_equal(rule->permit ?
				 access_permit(&c->access, c->text[i]) :
				 access_deny(&c->access, c->text[i]), 0);
	}
}

static bool crowd_agrees(const struct crowd *c, uint32_t addr)
{
	char text[INET6_ADDRSTRLEN];
	bool may;

	snprintf(text, sizeof(text), "%s%u.%u.%u.%u", before(c), addr >> 24,
		 addr >> 16 & 255, addr >> 8 & 255, addr & 255);
	may = reaches(&c->access, text);
	assert_int_equal(may, model_reaches(c->rule, c->n, addr));
	return may;
}

/* As loopback is; what is closed to everybody stays closed. */
static void addresses_of_this_host_are_as_loopback(void **state)
{
	static const char *const ours[][3] = {
		{ "192.0.2.1", "192.0.2.0/24", "169.254.0.1" },
		{ "2001:db8::1", "2001:db8::/64", "fe80::1" },
	};
	char why[ACCESS_WHY];
	struct access a;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct sockaddr_storage own = address(ours[i][0], 1);
		struct sockaddr_storage linklocal = address(ours[i][2], 1);

		access_init(&a);
		assert_true(access_reaches(&a, &own, false, false, why));
		assert_false(access_reaches(&a, &own, true, false, why));
		assert_non_null(strstr(why, "this host"));
		assert_true(access_reaches(&a, &own, true, true, why));
		access_permit(&a, ours[i][1]);
		assert_true(access_reaches(&a, &own, true, false, why));
		assert_false(access_reaches(&a, &linklocal, true, true, why));
		access_fini(&a);
	}
}

static void agrees_with_a_slow_model(void **state)
{
	struct random r;
	int reached = 0;

	(void)state;
	random_begin(&r, __func__);
	for (int round = 0; round < 200; round++) {
		struct crowd c;

		crowd_init(&c, &r);
		for (int i = 0; i < 200; i++)
			reached += crowd_agrees(&c, crowded(&r));
		access_fini(&c.access);
	}
	/* Both answers were asked for, thousands of times. */
	assert_in_range(reached, 4000, 36000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_allow_everybody_may),
		cmocka_unit_test(allow_narrows),
		cmocka_unit_test(wrapped_ipv4_counts_as_ipv4),
		cmocka_unit_test(all_of_one_family),
		cmocka_unit_test(what_is_no_network_is_refused),
		cmocka_unit_test(longest_prefix_decides),
		cmocka_unit_test(longest_prefix_decides_for_ipv6),
		cmocka_unit_test(rules_of_one_family_leave_the_other_alone),
		cmocka_unit_test(mapped_is_ipv4),
		cmocka_unit_test(ipv6_that_leads_to_ipv4),
		cmocka_unit_test(a_networks_own_prefix_for_nat64),
		cmocka_unit_test(permit_wins_a_tie_in_any_order),
		cmocka_unit_test(deny_all_but),
		cmocka_unit_test(some_addresses_no_rule_opens),
		cmocka_unit_test(loopback_is_for_those_on_it),
		cmocka_unit_test(addresses_of_this_host_are_as_loopback),
		cmocka_unit_test(agrees_with_a_slow_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
