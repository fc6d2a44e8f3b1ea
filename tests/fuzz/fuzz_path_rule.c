/* SPDX-License-Identifier: MIT */
/*
 * Rules of arbitrary text, one a line, and a connection that they are held against. Asserted: a
 * line is taken or its reason is one line that names it; what is taken names paths that there
 * are; and the paths of a connection are those of a rule, or any.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lp/path_rule.h"
#include "check.h"
#include "input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RULES_MAX = 16 };

static const struct path_set set = {
	.n = 3,
	.path = { { .name = "wifi" }, { .name = "lte" },
		  { .name = "wire", .backup = true } },
};

static bool is_of_user(void *client, uid_t user)
{
	(void)client;
	return user % 2;
}

static bool is_of_program(void *client, const char *program)
{
	(void)client;
	check(*program && strlen(program) <= PROGRAM_MAX);
	return *program == 'c';
}

static void add(struct path_rules *rules, const char *line)
{
	unsigned int n = rules->n;
	char why[1024] = "";
	int err = path_rules_add(rules, line, why, sizeof(why));

	check(!err == !*why && rules->n == n + !err);
	if (err) {
		check(!strchr(why, '\n') && !strncmp(why, "--rule: ", 8));
		return;
	}
	err = path_rules_fit(rules, &set, why, sizeof(why));
	check(!err == !*why);
	if (err)
		rules->n--;
	else
		check(rules->rule[n].paths && rules->rule[n].paths < 8 &&
		      rules->rule[n].paths != 4);
}

static void hold_against(const struct path_rules *rules,
			 const struct destination *to, const char *name)
{
	const struct path_facts facts = {
		.to = to, .name = name,
		.is_of_user = is_of_user, .is_of_program = is_of_program,
	};
	uint8_t paths = path_rules_paths(rules, &facts);
	unsigned int i = 0;

	while (i < rules->n && rules->rule[i].paths != paths)
		i++;
	check(!paths || i < rules->n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t addr[16] = { 192, 0, 2, 1 };
	struct destination name = destination_name("www.example.net", 15, 443);
	struct destination v4 = destination_ipv4(addr, 80);
	struct destination v6 = destination_ipv6(addr, 8000);
	struct path_rules rules = { NULL, 0 };
	char *text = input_text(data, size), *line, *rest;

	for (line = strtok_r(text, "\n", &rest); line && rules.n < RULES_MAX;
	     line = strtok_r(NULL, "\n", &rest))
		add(&rules, line);
	hold_against(&rules, &v4, NULL);
	hold_against(&rules, &v6, "a.example.org");
	hold_against(&rules, &name, (const char *)name.bytes);
	path_rules_fini(&rules);
	free(text);
	return 0;
}
