/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "options.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

enum { LOCAL_PORT = 6003 };

static const char usage[] =
"Usage: tm3ctl --bpf [OPTION]... [PORT]... -- COMMAND [ARG]...\n"
"       tm3ctl --bpf [OPTION]... --cgroup DIR [PORT]...\n"
"\n"
"Redirects TCP connections to lp on 127.0.0.1:6003 and [::1]:6003: those of\n"
"COMMAND and of all that it starts, or those of a cgroup. No other program is\n"
"concerned, and the kernel translates no packets. PORT is 80, 8000-8010 or all\n"
"(default: all).\n"
"\n"
"COMMAND's are redirected until the last of what it has started ends; a cgroup's\n"
"until this program ends, in whatever way. Open connections then go on.\n"
"\n"
"  --cgroup DIR         a folder of cgroup2: /sys/fs/cgroup/user.slice\n"
"  --except ADDR[/BITS] leave connections to that network alone; may be repeated.\n"
"                       Loopback, link-local and this machine's addresses always are\n"
"  --local-port PORT    where lp listens (default: 6003)\n"
"  --status             what is redirected so, and by which process\n"
"\n"
"Exit status: COMMAND's; 0 done, 1 it cannot be done, 2 wrong arguments, 127 no\n"
"such COMMAND.\n";

/* Digits alone, without zeros in front. 0: it is none. */
static unsigned int port_of(const char *text, const char *end)
{
	unsigned int port = 0;
	const char *p;

	if (text == end || *text == '0' || end - text > 5)
		return 0;
	for (p = text; p < end; p++) {
		if (!isdigit((unsigned char)*p))
			return 0;
		port = 10 * port + (unsigned int)(*p - '0');
	}
	return port < PORTS ? port : 0;
}

static void ports_add(struct options *o, const char *text)
{
	const char *end = text + strlen(text), *dash = strchr(text, '-');
	unsigned int first = port_of(text, dash ? dash : end);
	unsigned int last = dash ? port_of(dash + 1, end) : first;
	size_t len = strlen(o->ports);

	if (!strcmp(text, "all")) {
		first = 1;
		last = PORTS - 1;
	}
	if (!first || last < first)
		wrong("'%s' is not a port from 1 to 65535, a range of them, or all",
		      text);
	for (; first <= last; first++)
		o->settings.ports[first / 64] |= 1ULL << (first % 64);
	/* Only for people to read: a long list is cut. */
	snprintf(o->ports + len, sizeof(o->ports) - len, "%s%s", len ? "," : "",
		 text);
}

static void except_add(struct options *o, const char *text)
{
	char addr[INET6_ADDRSTRLEN];
	const char *slash = strchrnul(text, '/');
	struct prefix *p = &o->except[o->nexcept];
	bool v4 = !memchr(text, ':', (size_t)(slash - text));
	unsigned int most = v4 ? 32 : 128, bits = most;
	char *end = NULL;

	if (o->nexcept == EXCEPT_MAX)
		wrong("--except can be given %d times at most", EXCEPT_MAX);
	snprintf(addr, sizeof(addr), "%.*s", (int)(slash - text), text);
	if (*slash && isdigit((unsigned char)slash[1])) {
		bits = (unsigned int)strtoul(slash + 1, &end, 10);
		if (*end || end - slash > 4)
			bits = most + 1;
	} else if (*slash) {
		bits = most + 1;
	}
	memset(p, 0, sizeof(*p));
	if (v4)
		memset(p->addr + 10, 0xff, 2);
	if ((size_t)(slash - text) >= sizeof(addr) || bits > most ||
	    inet_pton(v4 ? AF_INET : AF_INET6, addr,
		      v4 ? p->addr + 12 : p->addr) != 1)
		wrong("'%s' is not an address or ADDR/BITS", text);
	p->bits = 128 - most + bits;
	o->nexcept++;
}

static void local_port_set(struct options *o, const char *text)
{
	unsigned int port = port_of(text, text + strlen(text));

	if (!port)
		wrong("'%s' is not a port from 1 to 65535", text);
	o->settings.local_port = htons((uint16_t)port);
}

/* getopt() stays at a word such as -port for as long as it has letters left. */
static const char *unknown(char **argv)
{
	const char *at = argv[optind];

	if (optopt && at && at[0] == '-' && at[1] == optopt && at[2])
		return at;
	return argv[optind - 1];
}

static void option(struct options *o, int which, char **argv)
{
	switch (which) {
	case 'h':
		fputs(usage, stdout);
		exit(0);
	case 'c':
		if (o->cgroup)
			wrong("--cgroup can be given once");
		o->cgroup = optarg;
		break;
	case 'e':
		except_add(o, optarg);
		break;
	case 'l':
		local_port_set(o, optarg);
		break;
	case 's':
		o->status = true;
		break;
	case ':':
		wrong("%s needs a value", argv[optind - 1]);
	default:
		wrong("unknown option '%s'", unknown(argv));
	}
}

/* Where "--" stands, or argc. getopt() does not tell. */
static int end_of_words(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--"); i++)
		;
	return i;
}

void options_parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "cgroup", required_argument, NULL, 'c' },
		{ "except", required_argument, NULL, 'e' },
		{ "help", no_argument, NULL, 'h' },
		{ "local-port", required_argument, NULL, 'l' },
		{ "status", no_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 },
	};
	int words = end_of_words(argc, argv), which;

	memset(o, 0, sizeof(*o));
	o->settings.local_port = htons(LOCAL_PORT);
	opterr = 0;
	while ((which = getopt_long(words, argv, ":", longs, NULL)) != -1)
		option(o, which, argv);
	if (o->status) {
		if (argc != 2)
			wrong("--status takes nothing else");
		return;
	}
	while (optind < words)
		ports_add(o, argv[optind++]);
	if (!*o->ports)
		ports_add(o, "all");
	if (words < argc)
		o->command = argv + words + 1;
	if (o->command && !*o->command)
		wrong("which command? None stands behind --");
	if (!o->command == !o->cgroup)
		wrong("either -- COMMAND or --cgroup DIR is needed");
}
