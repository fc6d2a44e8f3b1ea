/* SPDX-License-Identifier: MIT */
/* --rule: what it means, what is wrong with it, and which connections meet it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <pwd.h>
#include <unistd.h>

#include "lp/path_option.h"
#include "lp/path_rule.h"

enum { WIFI = 1, LTE = 2, WIRE = 4 };
enum { NOBODY = 4242 };	/* a user without a name */

static struct path_set set;
static struct path_rules rules;
static char why[512];

static int set_up(void **state)
{
	(void)state;
	memset(&set, 0, sizeof(set));
	why[0] = '\0';
	if (path_option_add(&set, "wifi,dev=a", why, sizeof(why)) ||
	    path_option_add(&set, "lte,dev=b", why, sizeof(why)) ||
	    path_option_add(&set, "wire,dev=c,backup", why, sizeof(why)))
		return -1;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	path_rules_fini(&rules);
	return 0;
}

static void add(const char *text)
{
	if (path_rules_add(&rules, text, why, sizeof(why)) ||
	    path_rules_fit(&rules, &set, why, sizeof(why)))
		fail_msg("%s", why);
}

static void refused(const char *text, const char *line)
{
	unsigned int n = rules.n;

	assert_int_equal(path_rules_add(&rules, text, why, sizeof(why)), -1);
	assert_string_equal(why, line);
	assert_int_equal(rules.n, n);
}

static void unfit(const char *text, const char *line)
{
	assert_int_equal(path_rules_add(&rules, text, why, sizeof(why)), 0);
	assert_int_equal(path_rules_fit(&rules, &set, why, sizeof(why)), -1);
	assert_string_equal(why, line);
	path_rules_fini(&rules);
}

/* --- connections --- */

struct asked {
	uid_t user;
	const char *program;
	unsigned int users, programs;
};

static bool is_of_user(void *client, uid_t user)
{
	struct asked *asked = client;

	asked->users++;
	return user == asked->user;
}

static bool is_of_program(void *client, const char *program)
{
	struct asked *asked = client;

	asked->programs++;
	return asked->program && !strcmp(program, asked->program);
}

static struct asked asked;

static uint8_t paths(const struct destination *to, const char *name)
{
	const struct path_facts facts = {
		.to = to, .name = name, .client = &asked,
		.is_of_user = is_of_user, .is_of_program = is_of_program,
	};

	return path_rules_paths(&rules, &facts);
}

static struct destination at(const char *addr, uint16_t port)
{
	uint8_t bytes[16];

	if (inet_pton(AF_INET, addr, bytes) == 1)
		return destination_ipv4(bytes, port);
	assert_int_equal(inet_pton(AF_INET6, addr, bytes), 1);
	return destination_ipv6(bytes, port);
}

static uint8_t to(const char *addr, uint16_t port)
{
	struct destination d = at(addr, port);

	return paths(&d, NULL);
}

static uint8_t named(const char *name)
{
	struct destination d = at("192.0.2.1", 443);

	return paths(&d, name);
}

static void the_first_that_is_met_counts(void **state)
{
	(void)state;
	assert_int_equal(to("192.0.2.1", 443), 0);
	add("port 443 paths lte");
	add("  port\t443   paths wifi  ");
	add("port 8000-8100 paths lte,wifi");
	assert_int_equal(to("192.0.2.1", 443), LTE);
	assert_int_equal(to("192.0.2.1", 442), 0);
	assert_int_equal(to("192.0.2.1", 7999), 0);
	assert_int_equal(to("192.0.2.1", 8000), WIFI | LTE);
	assert_int_equal(to("2001:db8::1", 8100), WIFI | LTE);
	assert_int_equal(to("192.0.2.1", 8101), 0);
	add("paths wifi,wire");
	assert_int_equal(to("192.0.2.1", 8101), WIFI | WIRE);
	assert_int_equal(to("192.0.2.1", 443), LTE);
	assert_false(path_rules_ask_names(&rules));
	assert_false(path_rules_ask_users(&rules));
}

static void a_program_is_asked_for_with_its_user(void **state)
{
	(void)state;
	add("port 443 user root paths lte");
	assert_true(path_rules_ask_users(&rules));
	assert_false(path_rules_ask_programs(&rules));
	path_rules_fini(&rules);
	add("paths wifi");
	add("program ssh paths lte");
	assert_true(path_rules_ask_programs(&rules));
	assert_true(path_rules_ask_users(&rules));
}

static void networks_are_covered_to_the_bit(void **state)
{
	struct destination name = destination_name("example.net", 11, 80);

	(void)state;
	add("network 192.0.2.128/25 paths lte");
	add("network 10.1.2.3 paths wifi");
	add("network 2001:db8:8000::/33 paths lte,wifi");
	assert_int_equal(to("192.0.2.128", 1), LTE);
	assert_int_equal(to("192.0.2.255", 1), LTE);
	assert_int_equal(to("192.0.2.127", 1), 0);
	assert_int_equal(to("10.1.2.3", 1), WIFI);
	assert_int_equal(to("10.1.2.2", 1), 0);
	assert_int_equal(to("2001:db8:ffff::1", 1), WIFI | LTE);
	assert_int_equal(to("2001:db8:7fff::1", 1), 0);
	assert_int_equal(paths(&name, "example.net"), 0);
	add("network ::ffff:172.16.0.0/108 paths lte");
	add("network ::ffff:192.168.1.1 paths wifi");
	assert_int_equal(to("172.31.255.255", 1), LTE);
	assert_int_equal(to("172.32.0.1", 1), 0);
	assert_int_equal(to("192.168.1.1", 1), WIFI);
	assert_int_equal(to("192.168.1.2", 1), 0);
	add("network 0.0.0.0/0 paths wifi");
	assert_int_equal(to("203.0.113.1", 1), WIFI);
	assert_int_equal(to("2001:db9::1", 1), 0);
	assert_int_equal(paths(&name, NULL), 0);
	add("network ::/0 paths lte");
	assert_int_equal(to("2001:db9::1", 1), LTE);
}

static void names_are_met_whatever_their_case(void **state)
{
	(void)state;
	add("name Example.NET paths lte");
	add("name *.example.net paths wifi");
	assert_true(path_rules_ask_names(&rules));
	assert_int_equal(named(NULL), 0);
	assert_int_equal(named(""), 0);
	assert_int_equal(named("example.net"), LTE);
	assert_int_equal(named("eXAMPLE.net."), LTE);
	assert_int_equal(named("www.example.net"), WIFI);
	assert_int_equal(named("a.b.EXAMPLE.net."), WIFI);
	assert_int_equal(named(".example.net"), 0);
	assert_int_equal(named("badexample.net"), 0);
	assert_int_equal(named("example.net.org"), 0);
	assert_int_equal(named("net"), 0);
}

static void all_criteria_of_a_rule_are_to_be_met(void **state)
{
	struct destination d = at("192.0.2.1", 443);

	(void)state;
	add("port 443 network 192.0.2.0/24 name *.example.net user 4242 program curl paths lte");
	asked = (struct asked){ .user = NOBODY, .program = "curl" };
	assert_int_equal(paths(&d, "www.example.net"), LTE);
	asked.program = "wget";
	assert_int_equal(paths(&d, "www.example.net"), 0);
	asked = (struct asked){ .user = NOBODY + 1, .program = "curl" };
	assert_int_equal(paths(&d, "www.example.net"), 0);
	assert_int_equal(asked.users, 1);
	assert_int_equal(asked.programs, 0);
	/* Nobody is asked whose it is where the rest is not met. */
	assert_int_equal(paths(&d, "example.org"), 0);
	d.port = 80;
	assert_int_equal(paths(&d, "www.example.net"), 0);
	assert_int_equal(asked.users, 1);
}

static void users_are_known_by_name(void **state)
{
	const struct passwd *me = getpwuid(getuid());
	char text[128];

	(void)state;
	if (!me)
		skip();
	snprintf(text, sizeof(text), "user %s paths lte", me->pw_name);
	add(text);
	asked = (struct asked){ .user = getuid() };
	assert_int_equal(to("192.0.2.1", 1), LTE);
	asked.user = NOBODY;
	assert_int_equal(to("192.0.2.1", 1), 0);
}

#define IS(text, reason) refused(text, "--rule: '" text "': " reason)

static void what_is_wrong_is_named(void **state)
{
	(void)state;
	IS("", "it names no path: paths NAME[,NAME...]");
	IS("port 443", "it names no path: paths NAME[,NAME...]");
	IS("port 443 paths", "nothing follows paths");
	IS("port 80 port 81 paths wifi", "port is given twice");
	IS("paths wifi paths lte", "paths is given twice");
	IS("host a paths wifi",
	   "'host' is none of port, network, name, user, program and paths");
	IS("port 0 paths wifi",
	   "port '0' is neither a port from 1 to 65535 nor two of them, as 8000-8100");
	IS("port 90-80 paths wifi",
	   "port '90-80' is neither a port from 1 to 65535 nor two of them, as 8000-8100");
	IS("port 1- paths wifi",
	   "port '1-' is neither a port from 1 to 65535 nor two of them, as 8000-8100");
	IS("network 192.0.2.0/33 paths wifi",
	   "network '192.0.2.0/33' is not an address with or without a prefix, as 192.0.2.0/24 or 2001:db8::/32");
	IS("network example.net paths wifi",
	   "network 'example.net' is not an address with or without a prefix, as 192.0.2.0/24 or 2001:db8::/32");
	IS("network 192.0.2.1/24 paths wifi",
	   "network '192.0.2.1/24' has bits behind its prefix");
	IS("name a.*.net paths wifi",
	   "name 'a.*.net' is neither a name nor *. and the name that others end in");
	IS("name *. paths wifi",
	   "name '*.' is neither a name nor *. and the name that others end in");
	IS("user no-such-user paths wifi",
	   "user 'no-such-user' is not known on this host");
	IS("paths wifi,,lte",
	   "paths 'wifi,,lte' is not a list of names of paths, as wifi,lte");
	IS("paths ,wifi",
	   "paths ',wifi' is not a list of names of paths, as wifi,lte");
	unfit("paths wifi,umts",
	      "--rule: paths wifi,umts: there is no path umts (--path)");
	unfit("paths wifi,wifi", "--rule: paths wifi,wifi: wifi is given twice");
	unfit("paths wire", "--rule: paths wire: all of them are backups, which carry nothing while another path works");
}

static void a_word_may_be_only_so_long(void **state)
{
	char text[600] = "program ";

	(void)state;
	memset(text + 8, 'x', 256);
	strcpy(text + 8 + 256, " paths wifi");
	assert_int_equal(path_rules_add(&rules, text, why, sizeof(why)), -1);
	assert_non_null(strstr(why, "a word of it is too long"));
	strcpy(text + 8 + 255, " paths wifi");
	add(text);
	asked = (struct asked){ .program = rules.rule[0].program };
	assert_int_equal(strlen(asked.program), 255);
	assert_int_equal(to("192.0.2.1", 1), WIFI);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(the_first_that_is_met_counts),
		TEST(a_program_is_asked_for_with_its_user),
		TEST(networks_are_covered_to_the_bit),
		TEST(names_are_met_whatever_their_case),
		TEST(all_criteria_of_a_rule_are_to_be_met),
		TEST(users_are_known_by_name),
		TEST(what_is_wrong_is_named),
		TEST(a_word_may_be_only_so_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
