/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "version.h"

enum { MTU_MIN = 68, MTU_MAX = 65521, SNAPLEN_MAX = 262144 };

enum option_id {
	A = 1000, B, A_DEV, B_DEV, A_MAC, B_MAC, MTU, IPV6, AB, BA, BOTH, SEED,
	CONTROL, TRUTH, SAMPLES, SAMPLES_MS, DROPS, PCAP_A, PCAP_B, SNAPLEN,
	FIFO, CPU, SPIN, WITH_PARENT, MEMORY_MB,
	COALESCE_US, HELP, VERSION,
};

static const struct option options[] = {
	{ "a", required_argument, NULL, A },
	{ "b", required_argument, NULL, B },
	{ "a-dev", required_argument, NULL, A_DEV },
	{ "b-dev", required_argument, NULL, B_DEV },
	{ "a-mac", required_argument, NULL, A_MAC },
	{ "b-mac", required_argument, NULL, B_MAC },
	{ "mtu", required_argument, NULL, MTU },
	{ "ipv6", no_argument, NULL, IPV6 },
	{ "ab", required_argument, NULL, AB },
	{ "ba", required_argument, NULL, BA },
	{ "both", required_argument, NULL, BOTH },
	{ "seed", required_argument, NULL, SEED },
	{ "control", required_argument, NULL, CONTROL },
	{ "truth", required_argument, NULL, TRUTH },
	{ "samples", required_argument, NULL, SAMPLES },
	{ "samples-ms", required_argument, NULL, SAMPLES_MS },
	{ "drops", required_argument, NULL, DROPS },
	{ "pcap-a", required_argument, NULL, PCAP_A },
	{ "pcap-b", required_argument, NULL, PCAP_B },
	{ "snaplen", required_argument, NULL, SNAPLEN },
	{ "fifo", required_argument, NULL, FIFO },
	{ "cpu", required_argument, NULL, CPU },
	{ "spin", no_argument, NULL, SPIN },
	{ "with-parent", no_argument, NULL, WITH_PARENT },
	{ "memory-mb", required_argument, NULL, MEMORY_MB },
	{ "coalesce-us", required_argument, NULL, COALESCE_US },
	{ "help", no_argument, NULL, HELP },
	{ "version", no_argument, NULL, VERSION },
	{ NULL, 0, NULL, 0 },
};

static void help(void)
{
	fputs("usage: linkem --a NETNS --b NETNS [OPTION]...\n"
	      "Emulates a link between two network namespaces: a TAP device in\n"
	      "each, and what is between them as told. Needs root.\n"
	      "\n"
	      "NETNS: a name as of `ip netns`, a process id, a path, or self\n"
	      "  --a, --b NETNS         where the two ends are\n"
	      "  --a-dev, --b-dev NAME  the devices (linkem-a, linkem-b)\n"
	      "  --a-mac, --b-mac MAC   their addresses (the kernel's choice)\n"
	      "  --mtu N                of both devices (1500)\n"
	      "  --ipv6                 leave IPv6 on; else it is off on both\n"
	      "  --ab, --ba, --both \"KEY=VALUE...\"\n"
	      "                         parameters by direction, see below;\n"
	      "                         may be repeated\n"
	      "  --seed N               of everything left to chance (1)\n"
	      "  --control PATH         Unix socket for get, set, truth, stop;\n"
	      "                         @NAME is an abstract one\n"
	      "  --truth FILE           counters as JSON, written at the end\n"
	      "                         and on SIGUSR1\n"
	      "  --samples FILE         queue lengths as JSON lines\n"
	      "  --samples-ms MS        their interval (10)\n"
	      "  --drops FILE           a JSON line for each packet dropped\n"
	      "  --pcap-a, --pcap-b FILE\n"
	      "                         a capture of that side, in nanoseconds\n"
	      "  --snaplen N            bytes kept of each frame (262144)\n"
	      "  --fifo auto|off|1..99  SCHED_FIFO priority; auto is 1 if\n"
	      "                         allowed and not spinning (auto)\n"
	      "  --cpu N                stay on this core\n"
	      "  --spin                 never sleep: for a core of its own\n"
	      "  --coalesce-us N        under load, wake up no more often (50)\n"
	      "  --with-parent          end when the parent process ends\n"
	      "  --memory-mb N          for packets under way (256)\n"
	      "  --help, --version\n"
	      "\n"
	      "KEY=VALUE, for each direction (no units; OPTIONAL ones take none):\n",
	      stdout);
	params_help(stdout);
	fputs("\nEnds on SIGTERM and SIGINT with 0; 2: wrong arguments; 1: could not go on.\n",
	      stdout);
}

__attribute__((format(printf, 1, 2)))
static int wrong(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("linkem: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return -EINVAL;
}

/* --- values --- */

static int whole(const char *name, const char *text, uint64_t low,
		 uint64_t high, uint64_t *value)
{
	char *end = NULL;

	if (number_whole(text, &end, value) < 0 || *end || *value < low ||
	    *value > high)
		return wrong("--%s: '%s' is not a whole number from %llu to %llu",
			     name, text, (unsigned long long)low,
			     (unsigned long long)high);
	return 0;
}

static int mac(const char *name, const char *text, struct tap_spec *end)
{
	unsigned int m[6];
	char rest;

	if (strlen(text) != 17 ||
	    strspn(text, "0123456789abcdefABCDEF:") != 17 ||
	    sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%c", &m[0], &m[1], &m[2],
		   &m[3], &m[4], &m[5], &rest) != 6)
		return wrong("--%s: '%s' is not an address like 02:00:00:00:00:01",
			     name, text);
	if (m[0] & 1)
		return wrong("--%s: %s is a group's address", name, text);
	for (int i = 0; i < 6; i++)
		end->mac[i] = (uint8_t)m[i];
	end->has_mac = true;
	return 0;
}

static int device(const char *name, const char *text, const char **dev)
{
	if (!*text || strlen(text) >= IFNAMSIZ || strpbrk(text, "/%: \t\n") ||
	    !strcmp(text, ".") || !strcmp(text, ".."))
		return wrong("--%s: '%s' is not a device's name (1 to %d characters)",
			     name, text, IFNAMSIZ - 1);
	*dev = text;
	return 0;
}

static int params(struct options *o, const char *name, int first, int last,
		  const char *words)
{
	char why[512];

	for (int i = first; i <= last; i++)
		if (params_set(&o->params[i], words, why, sizeof(why)))
			return wrong("--%s: %s", name, why);
	return 0;
}

static int fifo(struct options *o, const char *text)
{
	uint64_t n;

	if (!strcmp(text, "auto") || !strcmp(text, "off")) {
		o->fifo = *text == 'a' ? FIFO_AUTO : FIFO_OFF;
		return 0;
	}
	if (strspn(text, "0123456789") != strlen(text) || !*text)
		return wrong("--fifo: '%s' is neither auto, off nor a priority from 1 to 99",
			     text);
	if (whole("fifo", text, 1, 99, &n))
		return -EINVAL;
	o->fifo = (int)n;
	return 0;
}

static int samples_ms(struct options *o, const char *text)
{
	if (number_parse(text, &o->samples_ms) < 0 || o->samples_ms < 0.1 ||
	    o->samples_ms > 1e6)
		return wrong("--samples-ms: '%s' is not a number from 0.1 to 1000000",
			     text);
	return 0;
}

static int set_end(struct options *o, int id, const char *name,
		   const char *value)
{
	switch (id) {
	case A:
	case B:
		if (!*value)
			return wrong("--%s: no namespace", name);
		o->end[id - A].netns = value;
		return 0;
	case A_DEV:
	case B_DEV:
		return device(name, value, &o->end[id - A_DEV].dev);
	case A_MAC:
	case B_MAC:
		return mac(name, value, &o->end[id - A_MAC]);
	case PCAP_A:
	case PCAP_B:
		o->pcap[id - PCAP_A] = value;
		return 0;
	}
	return 1;
}

static int set_number(struct options *o, int id, const char *name,
		      const char *value)
{
	uint64_t n = 0;
	int ret;

	switch (id) {
	case MTU:
		ret = whole(name, value, MTU_MIN, MTU_MAX, &n);
		o->end[0].mtu = o->end[1].mtu = (uint32_t)n;
		return ret;
	case SEED:
		return whole(name, value, 0, UINT64_MAX, &o->seed);
	case SNAPLEN:
		ret = whole(name, value, 14, SNAPLEN_MAX, &n);
		o->snaplen = (uint32_t)n;
		return ret;
	case CPU:
		ret = whole(name, value, 0, 1023, &n);
		o->cpu = (int)n;
		return ret;
	case MEMORY_MB:
		return whole(name, value, 1, 1 << 20, &o->memory_mb);
	case COALESCE_US:
		return whole(name, value, 0, 10000, &o->coalesce_us);
	case SAMPLES_MS:
		return samples_ms(o, value);
	case FIFO:
		return fifo(o, value);
	}
	return 1;
}

static int set_rest(struct options *o, int id, const char *name,
		    const char *value)
{
	switch (id) {
	case AB:
		return params(o, name, 0, 0, value);
	case BA:
		return params(o, name, 1, 1, value);
	case BOTH:
		return params(o, name, 0, 1, value);
	case CONTROL:
		o->control = value;
		break;
	case TRUTH:
		o->truth = value;
		break;
	case SAMPLES:
		o->samples = value;
		break;
	case DROPS:
		o->drops = value;
		break;
	case IPV6:
		o->end[0].ipv6 = o->end[1].ipv6 = true;
		break;
	case SPIN:
		o->spin = true;
		break;
	case WITH_PARENT:
		o->with_parent = true;
		break;
	}
	return 0;
}

static int set(struct options *o, int id, const char *name, const char *value)
{
	int ret = set_end(o, id, name, value);

	if (ret > 0)
		ret = set_number(o, id, name, value);
	if (ret > 0)
		ret = set_rest(o, id, name, value);
	return ret;
}

static int check(const struct options *o)
{
	char why[512];

	if (!o->end[0].netns)
		return wrong("--a: missing: the namespace of the one end");
	if (!o->end[1].netns)
		return wrong("--b: missing: the namespace of the other end");
	for (int i = 0; i < 2; i++)
		if (params_check(&o->params[i], why, sizeof(why)))
			return wrong("%s: %s", i ? "b to a" : "a to b", why);
	return 0;
}

static void init(struct options *o)
{
	memset(o, 0, sizeof(*o));
	for (int i = 0; i < 2; i++) {
		params_init(&o->params[i]);
		o->end[i].dev = i ? "linkem-b" : "linkem-a";
		o->end[i].mtu = 1500;
	}
	o->seed = 1;
	o->samples_ms = 10;
	o->snaplen = SNAPLEN_MAX;
	o->fifo = FIFO_AUTO;
	o->cpu = -1;
	o->memory_mb = 256;
	o->coalesce_us = 50;
}

enum options_result options_parse(struct options *o, int argc, char **argv)
{
	int id, at = 0;

	init(o);
	opterr = 0;
	while ((id = getopt_long(argc, argv, "+:", options, &at)) != -1) {
		if (id == '?' || id == ':') {
			wrong("%s: %s", argv[optind - 1],
			      id == ':' ? "needs a value" : "no such option");
			return OPTIONS_WRONG;
		}
		if (id == HELP) {
			help();
			return OPTIONS_DONE;
		}
		if (id == VERSION) {
			puts("linkem " LINKEM_VERSION);
			return OPTIONS_DONE;
		}
		if (set(o, id, options[at].name, optarg))
			return OPTIONS_WRONG;
	}
	if (optind < argc) {
		wrong("'%s': only options are taken", argv[optind]);
		return OPTIONS_WRONG;
	}
	return check(o) ? OPTIONS_WRONG : OPTIONS_RUN;
}

void options_fini(struct options *o)
{
	params_fini(&o->params[0]);
	params_fini(&o->params[1]);
}
