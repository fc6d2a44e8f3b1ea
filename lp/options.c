/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../mux/base/addr.h"
#include "../mux/base/plural.h"
#include "../mux/base/reject.h"
#include "../mux/options/command_line.h"
#include "../mux/session/reverse.h"
#include "../mux/session/session.h"
#include "../mux/settings/changes.h"
#include "../mux/wire/wire.h"
#include "options_paths.h"
#include "path_option.h"
#include "rp_address.h"

enum { REASON_MAX = 256 };

static const struct option_spec own_options[] = {
	{ "redirect", "[ADDR:]PORT|off",
	  "take connections that the kernel redirects here; may be given "
	  "again, as with [::1]:6003 for IPv6 (default 127.0.0.1:6003)" },
	{ "tproxy", "[ADDR:]PORT|off",
	  "take UDP datagrams that nftables' tproxy brings here, in the "
	  "extension; needs CAP_NET_RAW, and for answers from ports below 1024 "
	  "CAP_NET_BIND_SERVICE; may be given again, as with [::1]:6003 for IPv6 "
	  "(default off)" },
	{ "socks", "[ADDR:]PORT|off",
	  "take SOCKS5 CONNECT and, in the extension, UDP ASSOCIATE, names "
	  "included (default 127.0.0.1:1080)" },
	{ "forward", "[udp:][ADDR:]PORT:HOST:PORT",
	  "relay what connects to ADDR (default 127.0.0.1) and PORT to HOST "
	  "and its PORT; with udp: what is sent there in datagrams, in the "
	  "extension; may be given again" },
	{ "remote-forward", "[ADDR:]PORT:HOST:PORT",
	  "have rp listen on ADDR (default 127.0.0.1, of its host) and PORT, "
	  "and relay what connects there to HOST and its PORT, as lp reaches "
	  "them; in the extension, where rp permits it (--permit-listen); may "
	  "be given again, up to 64 times" },
	{ "path", "NAME,src=ADDR|dev=IFACE[,pipes=N][,cost=N][,backup]",
	  "have pipes leave this host from ADDR, or by the device IFACE: N of "
	  "them (default PIPES); may be given again, up to 7 times, in the "
	  "extension: all paths are used then, of two that would do the one with "
	  "the lower cost (0 to 65535, default 0), and a backup while no other "
	  "one works" },
	{ "rule", "RULE",
	  "such as 'port 443 name *.example.net paths wifi,lte': connections "
	  "that meet all criteria go over these paths alone, both ways; the "
	  "criteria are port N or N-M, network NET/BITS, name NAME or *.NAME "
	  "(that was asked for, or that TLS or HTTP begin with), and of clients "
	  "on this host user USER and program FILE; may be given again: the "
	  "first that is met counts, and who meets none may use all paths" },
	{ "control", "PATH",
	  "serve a UNIX socket there, for lp's user alone, that takes commands "
	  "while lp runs, a line each: list, path NAME use|backup|off, and hint "
	  "ADDR:PORT|ID [size=BYTES] [urgency=0-255] [paths=NAME,...|any] [copies=on|off], which "
	  "tells rp of what a connection is to receive" },
	{ "extend", "auto|always|never",
	  "whether to speak the extension: auto asks rp at each session, and "
	  "takes the baseline where rp does not speak it; always and never "
	  "take one of the two alone (default auto)" },
	{ "names", "rp|lp",
	  "who looks up the names that --socks and --forward are given; in "
	  "the baseline it is lp always (default rp)" },
	{ "socks-reply", "early|late",
	  "when SOCKS5 is answered: at once, or when rp has reached the "
	  "destination or knows why not; in the baseline it is early always "
	  "(default early)" },
	{ "make-key", NULL,
	  "lp --make-key [NAME]: print a line for --key-file, with a new key, "
	  "and exit" },
	{ NULL, NULL, NULL },
};

static const char *const lp_changing[] = { "names", "socks-reply", "rule", NULL };

enum { WORDS = 3 };

/* Listens on 127.0.0.1 unless the command line says otherwise. */
static void set_default(struct way_in *way, uint16_t port)
{
	way->on = true;
	addr_parse("127.0.0.1", NULL, port, &way->addr, &way->len);
}

static int set_way_in(struct way_in *way, const char *name, const char *value,
		      uint16_t default_port, char *why, size_t why_len)
{
	const struct sockaddr_in *in = (const void *)&way->addr;

	way->on = strcmp(value, "off") != 0;
	if (!way->on)
		return 0;
	/* sin_port lies where sin6_port does. */
	if (!addr_parse(value, "127.0.0.1", default_port, &way->addr,
			&way->len) && in->sin_port)
		return 0;
	return reject(why, why_len,
		      "--%s: '%s' is neither [ADDR:]PORT (such as %u or "
		      "127.0.0.1:%u) nor off", name, value, default_port,
		      default_port);
}

static struct way_in *new_way_in(struct way_in **all, unsigned int *n)
{
	struct way_in *more = realloc(*all, (*n + 1) * sizeof(*more));

	if (!more)
		return NULL;
	*all = more;
	memset(&more[*n], 0, sizeof(*more));
	return &more[(*n)++];
}

static struct way_in *new_redirect(struct options *o)
{
	return new_way_in(&o->redirects, &o->nredirects);
}

/* The first that is given takes the place of the default. */
static int set_redirect(struct options *o, const char *value, char *why,
			size_t why_len)
{
	struct way_in *way;

	if (!o->redirects_given)
		o->nredirects = 0;
	o->redirects_given = true;
	way = new_redirect(o);
	if (!way)
		return reject(why, why_len, "--redirect: no memory is left");
	if (set_way_in(way, "redirect", value, REDIRECT_PORT, why, why_len))
		return -1;
	if (!way->on)
		o->nredirects = 0;
	return 0;
}

static int add_tproxy(struct options *o, const char *value, char *why,
		      size_t why_len)
{
	struct way_in *way = new_way_in(&o->tproxies, &o->ntproxies);

	if (!way)
		return reject(why, why_len, "--tproxy: no memory is left");
	if (set_way_in(way, "tproxy", value, REDIRECT_PORT, why, why_len))
		return -1;
	if (!way->on)
		o->ntproxies = 0;
	return 0;
}

static int set_default_redirect(struct options *o, char *why, size_t why_len)
{
	struct way_in *way;

	if (o->redirects_given)
		return 0;
	way = new_redirect(o);
	if (!way)
		return reject(why, why_len, "--redirect: no memory is left");
	set_default(way, REDIRECT_PORT);
	return 0;
}

/* Of @n. NULL with a line in @why. */
static struct rule *next_rule(struct rule **rules, unsigned int n,
			      const char *name, char *why, size_t why_len)
{
	struct rule *more = realloc(*rules, (n + 1) * sizeof(struct rule));

	if (!more) {
		reject(why, why_len, "--%s: no memory is left", name);
		return NULL;
	}
	*rules = more;
	return &more[n];
}

/* rp would listen for the first of two, and lp would ask for the other one again and again. */
static int take_remote(struct options *o, const struct rule *rule, char *why,
		       size_t why_len)
{
	char text[ADDR_TEXT];
	unsigned int i;

	for (i = 0; i < o->nremotes; i++) {
		if (addr_same(&o->remotes[i].addr, &rule->addr))
			return reject(why, why_len,
				      "--remote-forward: %s is given twice",
				      addr_text(&rule->addr, text));
	}
	o->nremotes++;
	return 0;
}

static int add_remote(struct options *o, const char *value, char *why,
		      size_t why_len)
{
	struct rule *rule = next_rule(&o->remotes, o->nremotes,
				      "remote-forward", why, why_len);
	char reason[REASON_MAX];

	if (!rule)
		return -1;
	if (o->nremotes == LISTENERS_MAX)
		return reject(why, why_len,
			      "--remote-forward: there are more than %d",
			      LISTENERS_MAX);
	if (!rule_parse(rule, value, reason, sizeof(reason)) && !rule->udp)
		return take_remote(o, rule, why, why_len);
	return reject(why, why_len,
		      "--remote-forward: '%s' is not [ADDR:]PORT:HOST:PORT (such "
		      "as 8080:localhost:80): %s", value,
		      rule->udp ? "datagrams are not listened for" : reason);
}

static int add_rule(struct options *o, const char *value, char *why,
		    size_t why_len)
{
	struct rule *rule = next_rule(&o->rules, o->nrules, "forward", why,
				      why_len);
	char reason[REASON_MAX];

	if (!rule)
		return -1;
	if (!rule_parse(rule, value, reason, sizeof(reason))) {
		o->nrules++;
		return 0;
	}
	return reject(why, why_len,
		      "--forward: '%s' is not [udp:][ADDR:]PORT:HOST:PORT (such as "
		      "8080:example.org:80): %s", value, reason);
}

/* Which of @words it is; -1 with a line in @why. */
static int word_of(const char *const words[WORDS], const char *name,
		   const char *value, char *why, size_t why_len)
{
	int i;

	for (i = 0; i < WORDS && words[i]; i++) {
		if (!strcmp(value, words[i]))
			return i;
	}
	return reject(why, why_len, "--%s: '%s' is not %s%s%s or %s", name,
		      value, words[0], i > 2 ? ", " : "",
		      i > 2 ? words[1] : "", words[i - 1]);
}

static int set_word(struct options *o, const char *name, const char *value,
		    char *why, size_t why_len)
{
	static const char *const extend[WORDS] = {
		[EXTEND_AUTO] = "auto", [EXTEND_ALWAYS] = "always",
		[EXTEND_NEVER] = "never",
	};
	static const char *const names[WORDS] = { "rp", "lp" };
	static const char *const reply[WORDS] = { "early", "late" };
	int word;

	if (!strcmp(name, "extend")) {
		word = word_of(extend, name, value, why, why_len);
		o->dial.extend = (enum extend)word;
		o->extend_given = true;
	} else if (!strcmp(name, "names")) {
		word = word_of(names, name, value, why, why_len);
		o->names_here = word == 1;
	} else {
		word = word_of(reply, name, value, why, why_len);
		o->late_reply = word == 1;
	}
	return word < 0 ? -1 : 0;
}

static int set_control(struct options *o, const char *value, char *why,
		       size_t why_len)
{
	if (!*value || strlen(value) >= sizeof(o->control))
		return reject(why, why_len, "--control: '%s' is no path of 1 to %zu characters",
			      value, sizeof(o->control) - 1);
	strcpy(o->control, value);
	return 0;
}

static int set_own(void *options, const char *name, const char *value,
		   char *why, size_t why_len)
{
	struct options *o = options;

	if (!strcmp(name, "redirect"))
		return set_redirect(o, value, why, why_len);
	if (!strcmp(name, "tproxy"))
		return add_tproxy(o, value, why, why_len);
	if (!strcmp(name, "socks"))
		return set_way_in(&o->socks, name, value, SOCKS_PORT, why,
				  why_len);
	if (!strcmp(name, "forward"))
		return add_rule(o, value, why, why_len);
	if (!strcmp(name, "remote-forward"))
		return add_remote(o, value, why, why_len);
	if (!strcmp(name, "path"))
		return path_option_add(&o->settings.paths, value, why, why_len);
	if (!strcmp(name, "rule"))
		return path_rules_add(&o->path_rules, value, why, why_len);
	if (!strcmp(name, "control"))
		return set_control(o, value, why, why_len);
	if (!strcmp(name, "make-key"))
		return reject(why, why_len, "--make-key: it stands alone: lp --make-key [NAME]");
	return set_word(o, name, value, why, why_len);
}

/* Names of datagrams are looked up by rp alone. */
static int check_udp(const struct options *o, char *why, size_t why_len)
{
	unsigned int i;

	if (o->ntproxies && o->dial.extend == EXTEND_NEVER)
		return reject(why, why_len, "--tproxy: it needs " UNSPOKEN_EXTENSION);
	if (o->ntproxies && *o->settings.user)
		return reject(why, why_len, "--tproxy: it does not go with --user, which gives up the rights that each answer takes");
	for (i = 0; i < o->nrules; i++) {
		const struct rule *r = &o->rules[i];

		if (r->udp && o->dial.extend == EXTEND_NEVER)
			return reject(why, why_len,
				      "--forward: udp: needs " UNSPOKEN_EXTENSION);
		if (r->udp && o->names_here &&
		    r->dst.kind == DESTINATION_NAME)
			return reject(why, why_len,
				      "--forward: udp: to the name %s does not "
				      "go with --names lp", r->to.host);
	}
	return 0;
}

/* What does not go together, once all is known. */
static int check(const struct options *o, char *why, size_t why_len)
{
	if (options_check_paths(o, why, why_len))
		return -1;
	if (check_udp(o, why, why_len))
		return -1;
	if (o->settings.thin_given && o->settings.thin == THIN_COPY &&
	    o->dial.extend == EXTEND_NEVER)
		return reject(why, why_len, "--thin: copy needs " UNSPOKEN_EXTENSION);
	if (o->settings.reinject != REINJECT_OFF && o->dial.extend == EXTEND_NEVER)
		return reject(why, why_len, "--reinject: %s needs " UNSPOKEN_EXTENSION,
			      reinject_mode_name(o->settings.reinject));
	if (o->nremotes && o->dial.extend == EXTEND_NEVER)
		return reject(why, why_len, "--remote-forward: it needs " UNSPOKEN_EXTENSION);
	if (o->settings.max_conns > WIRE_ID_LP_MAX)
		return reject(why, why_len,
			      "--max-conns: '%u' is not a whole number from 1 "
			      "to %d", o->settings.max_conns, WIRE_ID_LP_MAX);
	if (!o->nredirects && !o->socks.on && !o->nrules && !o->ntproxies &&
	    !o->nremotes)
		return reject(why, why_len,
			      "nothing to do: --redirect and --socks are off "
			      "and there is no --forward, --remote-forward "
			      "or --tproxy");
	return 0;
}

/* A key is for the extension, and nothing is said without it. */
static bool speaks_extension_alone(const struct options *o)
{
	return o->dial.extend == EXTEND_ALWAYS ||
	       (*o->settings.key_file && o->dial.extend != EXTEND_NEVER);
}

/* PORT is not taken for the extension's: who names 6000 means the rp at that port. */
static int reject_port(const struct options *o, const char *text, char *why,
		       size_t why_len)
{
	const char *port = strrchr(text, ':');

	return reject(why, why_len,
		      "RP_ADDRESS: '%s' has the port of the baseline, which is not spoken (%s); that of the extension stands behind a comma: %.*s,%s",
		      text, *o->settings.key_file ? "--key-file" : "--extend always",
		      (int)(port - text), text, port + 1);
}

static int set_rp(struct options *o, const char *text, char *why,
		  size_t why_len)
{
	char reason[REASON_MAX];
	struct rp_address rp;

	if (rp_address_parse(&rp, text, reason, sizeof(reason)))
		return reject(why, why_len,
			      "RP_ADDRESS: '%s' is not a name or address, with or without :PORT and ,EXTPORT: %s",
			      text, reason);
	o->dial.rp = rp.baseline;
	o->dial.extended_port = rp.extended;
	if (rp_address_has_extended(&rp))
		return 0;
	if (speaks_extension_alone(o))
		return reject_port(o, text, why, why_len);
	if (!o->extend_given)
		o->dial.extend = EXTEND_NEVER;
	return 0;
}

/* With less, what is kept and connections could leave too little for the pipes themselves. */
static int check_memory(const struct options *o, char *why, size_t why_len)
{
	size_t needed = session_memory_for(o->dial.pipes * o->layer_memory);
	size_t mib = (needed + (1 << 20) - 1) >> 20;

	if (o->settings.max_memory >= needed)
		return 0;
	return reject(why, why_len,
		      "--memory: %u pipe%s with a key need%s %zu MiB, and it is %zu%s",
		      o->dial.pipes, plural(o->dial.pipes),
		      o->dial.pipes == 1 ? "s" : "", mib,
		      o->settings.max_memory >> 20, o->settings.memory_given ?
		      "" : ", a quarter of what there is");
}

/* A key is for one rp, by one lp; and nothing goes over pipes that are not encrypted. */
static int take_key(struct options *o, char *why, size_t why_len)
{
	if (keys_of_settings(&o->keys, &o->settings, o->layer_memory > 0, why,
			     why_len))
		return -1;
	if (!o->keys.n)
		return 0;
	if (o->keys.n > 1)
		return reject(why, why_len, "--key-file: %s has %u keys, and lp shows one",
			      o->settings.key_file, o->keys.n);
	if (o->extend_given && o->dial.extend == EXTEND_NEVER)
		return reject(why, why_len, "--extend: it cannot be never with --key-file, which is for the extension");
	o->dial.extend = EXTEND_ALWAYS;
	return check_memory(o, why, why_len);
}

static int finish(void *options, char *const *arguments, char *why,
		  size_t why_len)
{
	struct options *o = options;

	if (set_rp(o, arguments[0], why, why_len))
		return -1;
	if (command_line_pipes(&o->settings, arguments[1], false, &o->dial.each,
			       why, why_len))
		return -1;
	if (path_set_fit(&o->settings.paths, o->dial.each, why, why_len))
		return -1;
	o->dial.pipes = path_set_pipes(&o->settings.paths, o->dial.each);
	if (options_take_paths(o, why, why_len))
		return -1;
	if (take_key(o, why, why_len))
		return -1;
	o->dial.listens = o->nremotes > 0;
	return set_default_redirect(o, why, why_len) ? -1 :
	       check(o, why, why_len);
}

static const char *const arguments[] = {
	"RP_ADDRESS[:PORT][,EXTPORT]", "PIPES", NULL
};

static const struct command_line command_line = {
	.program = "lp",
	.arguments = arguments,
	.about =
"The local proxy: takes applications' connections and carries them over PIPES\n"
"(1 to 64) long-lived connections to the remote proxy at RP_ADDRESS, a name, an\n"
"IPv4 address or an [IPv6] address. PORT, that of the baseline, is 6000 unless\n"
"given; there rp must have been started for as many pipes. EXTPORT, that of the\n"
"extension, is 6010 unless given. Where PORT is another one than 6000, the\n"
"extension is spoken only with EXTPORT or --extend auto. With a key, or --extend\n"
"always, EXTPORT alone is dialled: name it, if it is not 6010, as in\n"
"rp.example.net,7010.\n",
	.heading = "Ways in for applications",
	.options = own_options,
	.changing = lp_changing,
	.notes =
"An option that takes [ADDR:]PORT listens on 127.0.0.1 unless ADDR is given.\n"
"\n"
"With --key-file, which has one key then, the extension alone is spoken: nothing\n"
"goes over pipes that are not encrypted. SIGHUP has the file read again: sessions\n"
"to come show the key that it has then.\n"
"\n"
"In the baseline rp tells local proxies apart by their address alone: whoever\n"
"shares the address of this one (behind one NAT, on one host) can get bytes of\n"
"its connections.\n",
	.set = set_own,
	.finish = finish,
};

_Static_assert(PIPES_MAX == 64 && LISTENERS_MAX == 64 && WIRE_PORT == 6000 &&
	       WIRE_PORT_EXTENDED == 6010,
	       "--help names these numbers");

static void init(struct options *o)
{
	memset(o, 0, sizeof(*o));
	o->dial.transports = &o->settings.transports;
	o->dial.paths = &o->settings.paths;
	settings_init(&o->settings);
	if (o->settings.max_conns > WIRE_ID_LP_MAX)
		o->settings.max_conns = WIRE_ID_LP_MAX;
	set_default(&o->socks, SOCKS_PORT);
}

bool options_parse(struct options *o, size_t layer_memory, int argc,
		   char **argv, int *status)
{
	bool runs;

	init(o);
	o->layer_memory = layer_memory;
	runs = command_line_parse(&command_line, &o->settings, o, &o->words,
				  argc, argv, status);
	if (!*status && o->nabsent)
		fprintf(stderr, "lp: --path: %s; lp %s\n", o->absent,
			o->nabsent < o->settings.paths.n ?
			"begins with the paths that are there, and waits for the others" :
			"waits until one of its paths is there");
	return runs;
}

void options_fini(struct options *o)
{
	words_fini(&o->words);
	keys_fini(&o->keys);
	free(o->redirects);
	o->redirects = NULL;
	o->nredirects = 0;
	free(o->tproxies);
	o->tproxies = NULL;
	o->ntproxies = 0;
	path_rules_fini(&o->path_rules);
	free(o->rules);
	o->rules = NULL;
	o->nrules = 0;
	free(o->remotes);
	o->remotes = NULL;
	o->nremotes = 0;
}

/* --- once more --- */

static void take(struct options *o, struct options *from)
{
	struct path_rules rules = o->path_rules;

	o->path_rules = from->path_rules;
	from->path_rules = rules;
	settings_take(&o->settings, &from->settings);
	o->names_here = from->names_here;
	o->late_reply = from->late_reply;
}

/* Of the same file; which file it is cannot change. */
static void take_another_key(struct options *o, struct options *from,
			     struct keys *before)
{
	if (strcmp(o->settings.key_file, from->settings.key_file) != 0 ||
	    keys_same(&o->keys, &from->keys))
		return;
	*before = o->keys;
	o->keys = from->keys;
	from->keys = (struct keys){ 0 };
}

int options_again(struct options *o, int argc, char **argv,
		  struct changes *changes, struct keys *before, char *why,
		  size_t why_len)
{
	struct options new;
	int err;

	init(&new);
	new.layer_memory = o->layer_memory;
	new.running = true;
	err = command_line_again(&command_line, &new.settings, &new,
				 &new.words, argc, argv, why, why_len);
	/* Paths stay as they were. */
	if (!err)
		err = path_rules_fit(&new.path_rules, &o->settings.paths, why,
				     why_len);
	if (!err) {
		command_line_take(&command_line, &o->words, &new.words,
				  changes);
		take_another_key(o, &new, before);
		if (before->n)
			changes_add(changes->taken, "", "key");
		take(o, &new);
	}
	options_fini(&new);
	return err;
}
