/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "options.h"

#include <getopt.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../mux/base/sock.h"
#include "../mux/options/options.h"
#include "../mux/options/values.h"
#include "../mux/wire/wire.h"

enum { WHY_LEN = 512, EXIT_USAGE = 2 };

#define USAGE "lp [OPTION]... RP_ADDRESS[:PORT] PIPES"

static const struct option_spec own_options[] = {
	{ "redirect", "[ADDR:]PORT|off",
	  "take connections that the kernel redirects here "
	  "(default 127.0.0.1:6003)" },
	{ "socks", "[ADDR:]PORT|off",
	  "take SOCKS5 CONNECT, names included (default 127.0.0.1:1080)" },
	{ "forward", "[ADDR:]PORT:HOST:PORT",
	  "relay what connects to ADDR (default 127.0.0.1) and PORT to HOST "
	  "and its PORT; may be given again" },
	{ "help", NULL, "show this and exit" },
	{ "version", NULL, "show the version and exit" },
	{ NULL, NULL, NULL },
};

__attribute__((format(printf, 1, 2)))
static int wrong(const char *fmt, ...)
{
	char line[WHY_LEN + 128];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	fprintf(stderr, "lp: %s\n", line);
	return -1;
}

static void print_help(void)
{
	printf("Usage: " USAGE "\n\n"
"The local proxy: takes applications' connections and carries them over PIPES\n"
"(1 to %d) long-lived connections to the remote proxy at RP_ADDRESS, a name, an\n"
"IPv4 address or an [IPv6] address; its PORT is %d unless given. rp must have\n"
"been started for as many pipes.\n\n"
"Ways in for applications:\n", PIPES_MAX, WIRE_PORT);
	options_print(stdout, own_options);
	printf("\nThe pipes:\n");
	options_print(stdout, engine_options);
	printf("\nSIGUSR1 prints a table of pipes and connections; SIGTERM and "
	       "SIGINT end in order.\n"
	       "Exit status: 0 after a signal, 1 when something failed, 2 for "
	       "wrong arguments.\n");
}

/* --- lp's own --- */

static int set_way_in(struct way_in *way, const char *name, const char *value,
		      uint16_t dflt_port)
{
	const struct sockaddr_in *in = (const void *)&way->addr;

	way->on = strcmp(value, "off") != 0;
	if (!way->on)
		return 0;
	/* sin_port lies where sin6_port does. */
	if (!addr_parse(value, "127.0.0.1", dflt_port, &way->addr,
			&way->len) && in->sin_port)
		return 0;
	return wrong("--%s: '%s' is neither [ADDR:]PORT (such as %u or "
		     "127.0.0.1:%u) nor off", name, value, dflt_port,
		     dflt_port);
}

static int set_redirect(struct options *o, const char *value)
{
	if (set_way_in(&o->redirect, "redirect", value, REDIRECT_PORT))
		return -1;
	if (!o->redirect.on || o->redirect.addr.ss_family == AF_INET)
		return 0;
	return wrong("--redirect: '%s' is IPv6; only IPv4 connections can be "
		     "carried", value);
}

static int add_rule(struct options *o, const char *value)
{
	char why[WHY_LEN];
	struct rule *rules = realloc(o->rules,
				     (o->nrules + 1) * sizeof(struct rule));

	if (!rules)
		return wrong("--forward: no memory left");
	o->rules = rules;
	if (!rule_parse(&rules[o->nrules], value, why, sizeof(why))) {
		o->nrules++;
		return 0;
	}
	return wrong("--forward: '%s' is not [ADDR:]PORT:HOST:PORT (such as "
		     "8080:example.org:80): %s", value, why);
}

static int set_shared(struct options *o, const char *name, const char *value)
{
	char why[WHY_LEN];

	if (settings_set(&o->settings, name, value, why, sizeof(why)))
		return wrong("%s", why);
	if (!strcmp(name, "max-conns") &&
	    o->settings.max_conns > WIRE_ID_LP_MAX)
		return wrong("--max-conns: '%s' is not a whole number from 1 "
			     "to %d", value, WIRE_ID_LP_MAX);
	return 0;
}

static int set_option(struct options *o, const char *name, const char *value)
{
	if (!strcmp(name, "redirect"))
		return set_redirect(o, value);
	if (!strcmp(name, "socks"))
		return set_way_in(&o->socks, "socks", value, SOCKS_PORT);
	if (!strcmp(name, "forward"))
		return add_rule(o, value);
	return set_shared(o, name, value);
}

static int set_arguments(struct options *o, char **args, int n)
{
	char why[WHY_LEN];
	double pipes;

	if (n < 2)
		return wrong("%s missing; usage: " USAGE " (more: lp --help)",
			     n ? "PIPES, the number of pipes, is" :
			     "RP_ADDRESS and PIPES, the number of pipes, are");
	if (n > 2)
		return wrong("'%s' is one argument too many; usage: " USAGE
			     " (more: lp --help)", args[2]);
	if (endpoint_parse(&o->rp, args[0], WIRE_PORT, why, sizeof(why)))
		return wrong("RP_ADDRESS: '%s' is not a name or address, with "
			     "or without :PORT: %s", args[0], why);
	if (args[1][strspn(args[1], "0123456789")] ||
	    value_number(args[1], 1, PIPES_MAX, &pipes))
		return wrong("PIPES: '%s' is not a whole number from 1 to %d",
			     args[1], PIPES_MAX);
	o->pipes = (unsigned int)pipes;
	return 0;
}

static int check(struct options *o)
{
	char why[WHY_LEN];

	if (settings_check(&o->settings, why, sizeof(why)) ||
	    settings_fit(&o->settings, o->pipes, false, why, sizeof(why)))
		return wrong("%s", why);
	if (!o->redirect.on && !o->socks.on && !o->nrules)
		return wrong("nothing to do: --redirect and --socks are off "
			     "and there is no --forward");
	return 0;
}

/* --- getopt --- */

static unsigned int count(const struct option_spec *options)
{
	unsigned int n = 0;

	while (options[n].name)
		n++;
	return n;
}

/* Each option's val is its place among lp's own, then the shared ones. */
static const struct option_spec *option_at(unsigned int i)
{
	unsigned int own = count(own_options);

	return i < own ? &own_options[i] : &engine_options[i - own];
}

/* Above all characters, which getopt gives in optopt for short options. */
enum { VAL_BASE = 256 };

static struct option *long_options(void)
{
	unsigned int n = count(own_options) + count(engine_options);
	struct option *table = calloc(n + 1, sizeof(struct option));
	unsigned int i;

	for (i = 0; table && i < n; i++) {
		const struct option_spec *o = option_at(i);

		table[i].name = o->name;
		table[i].has_arg = o->arg ? required_argument : no_argument;
		table[i].val = (int)i + VAL_BASE;
	}
	return table;
}

static int complain(int what, const char *arg)
{
	const struct option_spec *o = NULL;

	if (optopt > 0 && optopt < VAL_BASE)
		return wrong("-%c: there is no such option; lp --help lists "
			     "them", optopt);
	if (optopt >= VAL_BASE)
		o = option_at((unsigned int)optopt - VAL_BASE);
	if (o && what == ':')
		return wrong("--%s: its value (%s) is missing", o->name,
			     o->arg);
	if (o)
		return wrong("--%s takes no value", o->name);
	return wrong("%s: there is no such option, or more than one that "
		     "begins like this; lp --help lists them", arg);
}

static int parse(struct options *o, const struct option *table, int argc,
		 char **argv, bool *answered)
{
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", table, NULL)) != -1) {
		const struct option_spec *option;

		if (c < VAL_BASE)
			return complain(c, argv[optind - 1]);
		option = option_at((unsigned int)c - VAL_BASE);
		*answered = true;
		if (!strcmp(option->name, "help"))
			print_help();
		else if (!strcmp(option->name, "version"))
			printf("lp (TM3) " TM3_VERSION "\n");
		else
			*answered = false;
		if (*answered)
			return 0;
		if (set_option(o, option->name, optarg))
			return -1;
	}
	if (set_arguments(o, argv + optind, argc - optind))
		return -1;
	return check(o);
}

bool options_parse(struct options *o, int argc, char **argv, int *status)
{
	struct option *table = long_options();
	bool answered = false;
	int err = -1;

	memset(o, 0, sizeof(*o));
	settings_init(&o->settings);
	if (o->settings.max_conns > WIRE_ID_LP_MAX)
		o->settings.max_conns = WIRE_ID_LP_MAX;
	if (table && !set_redirect(o, "6003") &&
	    !set_way_in(&o->socks, "socks", "1080", SOCKS_PORT))
		err = parse(o, table, argc, argv, &answered);
	free(table);
	*status = err ? EXIT_USAGE : EXIT_SUCCESS;
	return !err && !answered;
}

void options_fini(struct options *o)
{
	free(o->rules);
	o->rules = NULL;
	o->nrules = 0;
}
