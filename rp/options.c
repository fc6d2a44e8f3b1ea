/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../mux/base/loop.h"
#include "../mux/base/sock.h"
#include "../mux/options/options.h"
#include "../mux/options/values.h"
#include "../mux/wire/wire.h"

enum {
	MAX_SESSIONS = 64,	/* unless told */
	MAX_SESSIONS_MAX = 65536,
	CONNECT_TIMEOUT_S = 10,
	CONNECT_TIMEOUT_MAX_S = 3600,
	OPTION_BASE = 256,	/* values of long options: not characters */
	OPTIONS_MAX = 40,
	WHY_LEN = 512,
};

static const struct option_spec own_options[] = {
	{ "listen", "ADDR[:PORT]",
	  "where pipes come in, [ADDR]:PORT for IPv6; may be given again "
	  "(default 0.0.0.0:6000)" },
	{ "allow", "CIDR",
	  "who may open pipes; may be given again (default: everybody)" },
	{ "deny", "CIDR",
	  "where connections may not go; may be given again" },
	{ "permit", "CIDR",
	  "where they may; of all --deny and --permit that cover an address "
	  "the longest prefix decides, --permit in a tie" },
	{ "connect-timeout", "SECONDS",
	  "how long a server may take to answer (default 10)" },
	{ "max-sessions", "N", "local proxies at a time (default 64)" },
	{ NULL, NULL, NULL },
};

static const struct option_spec info_options[] = {
	{ "help", NULL, "show this" },
	{ "version", NULL, "show the version" },
	{ NULL, NULL, NULL },
};

static void print_help(void)
{
	printf("Usage: rp [OPTION]... PIPES\n"
	       "\n"
	       "The remote proxy of TM3: takes PIPES (1 to %d) connections "
	       "from each local\n"
	       "proxy and connects to servers on its behalf.\n"
	       "\n"
	       "Who and where:\n", PIPES_MAX);
	options_print(stdout, own_options);
	printf("\nThe engine:\n");
	options_print(stdout, engine_options);
	printf("\nAbout rp:\n");
	options_print(stdout, info_options);
	printf("\n"
	       "Link-local, multicast, reserved and cloud metadata addresses "
	       "are never open as\n"
	       "destinations; loopback is open to local proxies on loopback, "
	       "to others where a\n"
	       "--permit covers it.\n"
	       "\n"
	       "SIGUSR1 prints sessions, pipes and connections; SIGTERM and "
	       "SIGINT end in order,\n"
	       "a second one at once. Exit status: 0 ended by signal, 1 "
	       "failed, 2 wrong arguments.\n");
}

__attribute__((format(printf, 1, 2)))
static int wrong(const char *fmt, ...)
{
	va_list args;

	fputs("rp: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputs("\n", stderr);
	return -1;
}

/* --- rp's own, one function an option or kind of option --- */

static int add_listen(struct options *o, const char *value)
{
	struct options_listen *more;

	more = realloc(o->listen, (o->listens + 1) * sizeof(*more));
	if (!more)
		return wrong("--listen: %s", strerror(ENOMEM));
	o->listen = more;
	more += o->listens;
	if (addr_parse(value, "0.0.0.0", WIRE_PORT, &more->addr, &more->len))
		return wrong("--listen: '%s' is not an address with or without "
			     "a port (such as 127.0.0.1, 0.0.0.0:6000, "
			     "[::]:6000)", value);
	o->listens++;
	return 0;
}

static int add_rule(struct options *o, const char *name, const char *value)
{
	int err;

	if (!strcmp(name, "allow"))
		err = access_allow(&o->access, value);
	else if (!strcmp(name, "deny"))
		err = access_deny(&o->access, value);
	else
		err = access_permit(&o->access, value);
	if (err == -EINVAL)
		return wrong("--%s: '%s' is not an address or a network (such "
			     "as 192.0.2.7 or 10.0.0.0/8)", name, value);
	if (err == -EAFNOSUPPORT)
		return wrong("--%s: '%s' is IPv6, and connections go to IPv4 "
			     "only (such as 10.0.0.0/8)", name, value);
	return err ? wrong("--%s: %s", name, strerror(-err)) : 0;
}

static int set_connect_timeout(struct options *o, const char *value)
{
	double seconds;

	if (value_number(value, 0.001, CONNECT_TIMEOUT_MAX_S, &seconds))
		return wrong("--connect-timeout: '%s' is not a number of "
			     "seconds from 0.001 to %d", value,
			     CONNECT_TIMEOUT_MAX_S);
	o->connect_timeout = (int64_t)(seconds * (double)NS_PER_SEC);
	return 0;
}

/* Digits alone, within limits. */
static int whole_number(const char *text, unsigned long min, unsigned long max,
			unsigned int *value)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long number;

	if (!digits || digits > 9 || text[digits])
		return -1;
	number = strtoul(text, NULL, 10);
	if (number < min || number > max)
		return -1;
	*value = (unsigned int)number;
	return 0;
}

static int set_own(struct options *o, const char *name, const char *value)
{
	if (!strcmp(name, "listen"))
		return add_listen(o, value);
	if (!strcmp(name, "connect-timeout"))
		return set_connect_timeout(o, value);
	if (strcmp(name, "max-sessions"))
		return add_rule(o, name, value);
	if (whole_number(value, 1, MAX_SESSIONS_MAX, &o->max_sessions))
		return wrong("--max-sessions: '%s' is not a whole number from "
			     "1 to %d", value, MAX_SESSIONS_MAX);
	return 0;
}

/* --- the whole line --- */

/* One table for getopt_long(); an option's value is its place in it. */
struct table {
	struct option option[OPTIONS_MAX];
	int n;
	int first_engine, first_info;
};

static void table_add(struct table *t, const struct option_spec *options)
{
	for (; options->name; options++, t->n++)
		t->option[t->n] = (struct option){
			.name = options->name,
			.has_arg = options->arg ? required_argument
						: no_argument,
			.val = OPTION_BASE + t->n,
		};
}

static void table_build(struct table *t)
{
	memset(t, 0, sizeof(*t));
	table_add(t, own_options);
	t->first_engine = t->n;
	table_add(t, engine_options);
	t->first_info = t->n;
	table_add(t, info_options);
}

/* What getopt_long() did not like: @found is its answer, @word the argument. */
static int wrong_option(int found, const char *word)
{
	if (found == ':')
		return wrong("%s: its value is missing; rp --help tells which",
			     word);
	if (optopt >= OPTION_BASE)
		return wrong("%.*s takes no value", (int)strcspn(word, "="),
			     word);
	if (optopt)
		return wrong("-%c: there is no such option; rp --help lists "
			     "them", optopt);
	return wrong("%.*s: there is no such option, or more than one; "
		     "rp --help lists them", (int)strcspn(word, "="), word);
}

static int set_option(struct options *o, const struct table *t, int i)
{
	const char *name = t->option[i].name;
	char why[WHY_LEN];

	if (i < t->first_engine)
		return set_own(o, name, optarg);
	if (settings_set(&o->settings, name, optarg, why, sizeof(why)))
		return wrong("%s", why);
	return 0;
}

static int parse_pipes(struct options *o, int argc, char **argv)
{
	if (optind == argc)
		return wrong("the number of pipes is missing: rp [OPTION]... "
			     "PIPES, such as: rp 4");
	if (optind + 1 < argc)
		return wrong("'%s': only the number of pipes is expected, and "
			     "'%s' is it already", argv[optind + 1],
			     argv[optind]);
	if (whole_number(argv[optind], 1, PIPES_MAX, &o->pipes))
		return wrong("'%s' is not a number of pipes from 1 to %d",
			     argv[optind], PIPES_MAX);
	return 0;
}

/* After the last option: defaults, and what does not go together. */
static int finish(struct options *o, int argc, char **argv)
{
	char why[WHY_LEN];

	if (parse_pipes(o, argc, argv))
		return -1;
	if (settings_check(&o->settings, why, sizeof(why)) ||
	    settings_fit(&o->settings, o->pipes, true, why, sizeof(why)))
		return wrong("%s", why);
	return o->listens ? 0 : add_listen(o, "0.0.0.0");
}

static void init(struct options *o)
{
	memset(o, 0, sizeof(*o));
	settings_init(&o->settings);
	access_init(&o->access);
	o->max_sessions = MAX_SESSIONS;
	o->connect_timeout = CONNECT_TIMEOUT_S * NS_PER_SEC;
}

enum options_verdict options_parse(struct options *o, int argc, char **argv)
{
	struct table t;
	int found;

	init(o);
	table_build(&t);
	opterr = 0;
	while ((found = getopt_long(argc, argv, ":", t.option, NULL)) >= 0) {
		int i = found - OPTION_BASE;

		if (i < 0) {
			wrong_option(found, argv[optind - 1]);
			return OPTIONS_WRONG;
		}
		if (i >= t.first_info) {
			if (i == t.first_info)
				print_help();
			else
				printf("rp (TM3) %s\n", TM3_VERSION);
			return OPTIONS_ANSWERED;
		}
		if (set_option(o, &t, i))
			return OPTIONS_WRONG;
	}
	return finish(o, argc, argv) ? OPTIONS_WRONG : OPTIONS_RUN;
}

void options_fini(struct options *o)
{
	access_fini(&o->access);
	free(o->listen);
}
