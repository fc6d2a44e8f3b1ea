/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../mux/base/addr.h"
#include "../mux/base/loop.h"
#include "../mux/base/reject.h"
#include "../mux/options/command_line.h"
#include "../mux/options/values.h"
#include "../mux/sched/path_policy.h"
#include "../mux/settings/changes.h"
#include "../mux/wire/wire.h"
#include "workers.h"

enum {
	MAX_SESSIONS = 64,	/* unless told */
	MAX_SESSIONS_MAX = 65536,
	MAX_CONNECTS = 1024,
	MAX_OPENS = 5000,	/* in a second */
	MAX_OPENS_MAX = 1000000,
	CONNECT_TIMEOUT_S = 10,
	CONNECT_TIMEOUT_MAX_S = 3600,
	RESUME_MAX_S = 65535,	/* WELCOME tells it in 16 bits */
};

static const struct option_spec own_options[] = {
	{ "listen", "ADDR[:PORT]",
	  "where pipes come in, [ADDR]:PORT for IPv6; may be given again "
	  "(default 0.0.0.0:6000; with --key-file nowhere)" },
	{ "extended", "ADDR[:PORT]|off",
	  "where pipes of the extension come in; may be given again (default: "
	  "port 6010 of each --listen address whose port is 6000, but beyond "
	  "loopback only with --allow or --key-file)" },
	{ "allow", "CIDR",
	  "who may open pipes; may be given again (default: everybody; with "
	  "--key-file everybody who has a key)" },
	{ "deny", "CIDR",
	  "where connections may not go; may be given again" },
	{ "permit", "CIDR",
	  "where they may; of all --deny and --permit that cover an address "
	  "the longest prefix decides, --permit in a tie" },
	{ "permit-listen", "[ADDR:]PORT[-PORT]",
	  "extension: where rp listens if a local proxy asks for it "
	  "(--remote-forward), on loopback unless ADDR is given; 0.0.0.0 and "
	  "[::] are all addresses; may be given again (default: nowhere)" },
	{ "connect-timeout", "SECONDS",
	  "how long a server may take to answer (default 10)" },
	{ "max-connects", "N",
	  "connects to servers that a session may have under way, more of "
	  "them wait (default 1024)" },
	{ "max-opens", "N",
	  "connects to servers that a session may begin in a second, more of "
	  "them wait; flows of UDP count, too, and are refused (default 5000)" },
	{ "workers", "N",
	  "threads that sessions are spread over, 1 to 16; each has a part of --memory "
	  "and of the descriptors (default 1)" },
	{ "max-sessions", "N", "local proxies at a time (default 64)" },
	{ "max-sessions-each", "N",
	  "local proxies at a time with one key, or without keys from one "
	  "address, or network of 64 bits of IPv6 (default: an eighth of --max-sessions)" },
	{ "resume", "SECONDS",
	  "extension: how long a session without pipes is kept, four of an "
	  "address at most; 0: not at all (default 120)" },
	{ "udp", "on|off",
	  "extension: whether datagrams of UDP are carried, too (default on)" },
	{ "max-memory", "MIB",
	  "an older name of --memory; one address may hold half of it" },
	{ NULL, NULL, NULL },
};

static const char *const rp_changing[] = {
	"allow", "deny", "permit", "permit-listen", "connect-timeout", "max-connects", "max-opens",
	"max-sessions", "max-sessions-each", "resume", "max-memory", NULL
};

static struct options_listen *new_listen(struct options_listen **list,
					 unsigned int *n)
{
	struct options_listen *more = realloc(*list, (*n + 1) * sizeof(*more));

	if (!more)
		return NULL;
	*list = more;
	return &more[(*n)++];
}

static int add_listen(struct options *o, const char *value, char *why,
		      size_t why_len)
{
	struct options_listen *l = new_listen(&o->listen, &o->listens);

	if (!l)
		return reject(why, why_len, "--listen: %s", strerror(ENOMEM));
	if (!addr_parse(value, "0.0.0.0", WIRE_PORT, &l->addr, &l->len))
		return 0;
	return reject(why, why_len,
		      "--listen: '%s' is not an address with or "
		      "without a port (such as 127.0.0.1, "
		      "0.0.0.0:6000, [::]:6000)", value);
}

static int add_extended(struct options *o, const char *value, char *why,
			size_t why_len)
{
	struct options_listen *l = new_listen(&o->extended, &o->extendeds);

	if (!l)
		return reject(why, why_len, "--extended: %s", strerror(ENOMEM));
	if (!addr_parse(value, "0.0.0.0", WIRE_PORT_EXTENDED, &l->addr,
			&l->len))
		return 0;
	return reject(why, why_len,
		      "--extended: '%s' is neither an address with or without "
		      "a port (such as 127.0.0.1, 0.0.0.0:6010, [::]:6010) nor "
		      "off", value);
}

static int set_extended(struct options *o, const char *value, char *why,
			size_t why_len)
{
	o->extended_given = o->extended_meant = true;
	if (strcmp(value, "off"))
		return add_extended(o, value, why, why_len);
	o->extendeds = 0;
	return 0;
}

/*
 * A bare "rp N" is the course's: whoever speaks the extension has to be let in
 * by name. An address that was given another port is one of several rp maybe,
 * which cannot share 6010. With keys it is where pipes are meant to come in.
 */
static int set_default_extended(struct options *o, char *why, size_t why_len)
{
	struct options_listen *l;
	unsigned int i;

	for (i = 0; !o->extended_given && i < o->listens; i++) {
		if (addr_port(&o->listen[i].addr) != WIRE_PORT ||
		    (access_is_open(&o->access) && !o->keys.n &&
		     !addr_is_loopback(&o->listen[i].addr)))
			continue;
		l = new_listen(&o->extended, &o->extendeds);
		if (!l)
			return reject(why, why_len, "--extended: %s",
				      strerror(ENOMEM));
		*l = o->listen[i];
		addr_set_port(&l->addr, WIRE_PORT_EXTENDED);
	}
	if (!o->keys.n)
		return 0;
	if (o->extended_given && !o->extendeds)
		return reject(why, why_len, "--extended: it cannot be off with --key-file, which is for the extension");
	o->extended_meant = true;
	return o->extendeds ? 0 : add_extended(o, "0.0.0.0", why, why_len);
}

static int add_rule(struct options *o, const char *name, const char *value,
		    char *why, size_t why_len)
{
	int err;

	if (!strcmp(name, "allow"))
		err = access_allow(&o->access, value);
	else if (!strcmp(name, "deny"))
		err = access_deny(&o->access, value);
	else
		err = access_permit(&o->access, value);
	if (err == -EINVAL)
		return reject(why, why_len,
			      "--%s: '%s' is not an address or a network (such "
			      "as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32)",
			      name, value);
	if (err)
		return reject(why, why_len, "--%s: %s", name, strerror(-err));
	return 0;
}

static int add_permit_listen(struct options *o, const char *value, char *why,
			     size_t why_len)
{
	int err = permits_add(&o->permits, value);

	if (err == -EINVAL)
		return reject(why, why_len,
			      "--permit-listen: '%s' is not [ADDR:]PORT[-PORT] (such "
			      "as 8080, 0.0.0.0:8000-8099 or [::1]:8080)", value);
	return err ? reject(why, why_len, "--permit-listen: %s",
			    strerror(-err)) : 0;
}

static int set_connect_timeout(struct options *o, const char *value, char *why,
			       size_t why_len)
{
	double seconds;

	if (value_number(value, 0.001, CONNECT_TIMEOUT_MAX_S, &seconds))
		return reject(why, why_len,
			      "--connect-timeout: '%s' is not a number of "
			      "seconds from 0.001 to %d", value,
			      CONNECT_TIMEOUT_MAX_S);
	o->connect_timeout = (int64_t)(seconds * (double)NS_PER_SEC);
	return 0;
}

static int set_limit(unsigned int *limit, unsigned int max, const char *name,
		     const char *value, char *why, size_t why_len)
{
	uint64_t n;

	if (value_whole(value, 1, max, &n))
		return reject(why, why_len,
			      "--%s: '%s' is not a whole number from 1 to %u",
			      name, value, max);
	*limit = (unsigned int)n;
	return 0;
}

static int set_resume(struct options *o, const char *value, char *why,
		      size_t why_len)
{
	uint64_t seconds;

	if (value_whole(value, 0, RESUME_MAX_S, &seconds))
		return reject(why, why_len,
			      "--resume: '%s' is not a whole number of seconds "
			      "from 0 to %d", value, RESUME_MAX_S);
	o->settings.resume_s = (unsigned int)seconds;
	return 0;
}

static int set_udp(struct options *o, const char *value, char *why,
		   size_t why_len)
{
	o->settings.udp = !strcmp(value, "on");
	if (o->settings.udp || !strcmp(value, "off"))
		return 0;
	return reject(why, why_len, "--udp: '%s' is neither on nor off", value);
}

static int set_own(void *options, const char *name, const char *value,
		   char *why, size_t why_len)
{
	struct options *o = options;

	if (!strcmp(name, "listen"))
		return add_listen(o, value, why, why_len);
	if (!strcmp(name, "extended"))
		return set_extended(o, value, why, why_len);
	if (!strcmp(name, "permit-listen"))
		return add_permit_listen(o, value, why, why_len);
	if (!strcmp(name, "connect-timeout"))
		return set_connect_timeout(o, value, why, why_len);
	if (!strcmp(name, "workers"))
		return set_limit(&o->workers, WORKERS_MAX, name, value, why,
				 why_len);
	if (!strcmp(name, "max-sessions"))
		return set_limit(&o->max_sessions, MAX_SESSIONS_MAX, name,
				 value, why, why_len);
	if (!strcmp(name, "max-sessions-each"))
		return set_limit(&o->max_sessions_each, MAX_SESSIONS_MAX, name,
				 value, why, why_len);
	if (!strcmp(name, "max-memory"))
		return settings_set_memory(&o->settings, name, value, why,
					   why_len);
	if (!strcmp(name, "udp"))
		return set_udp(o, value, why, why_len);
	if (!strcmp(name, "resume"))
		return set_resume(o, value, why, why_len);
	if (!strcmp(name, "max-connects"))
		return set_limit(&o->max_connects, WIRE_ID_MAX, name, value,
				 why, why_len);
	if (!strcmp(name, "max-opens"))
		return set_limit(&o->max_opens, MAX_OPENS_MAX, name, value,
				 why, why_len);
	return add_rule(o, name, value, why, why_len);
}

/* rp does not know the names of lp's paths. */
static int take_path_policy(struct options *o, char *why, size_t why_len)
{
	struct settings *s = &o->settings;
	uint64_t number;

	if (s->path_policy != path_policies[0] && !o->extendeds)
		return reject(why, why_len, "--path-policy: several paths need the extension, and it is not spoken here (--extended)");
	if (!*s->path_name)
		return 0;
	if (value_whole(s->path_name, 0, PATHS_MAX - 1, &number))
		return reject(why, why_len, "--path-policy: one:%s: rp knows paths by their numbers, from 0 to %d, as lp was told of them",
			      s->path_name, PATHS_MAX - 1);
	s->path_number = (unsigned int)number;
	return 0;
}

static int finish(void *options, char *const *arguments, char *why,
		  size_t why_len)
{
	struct options *o = options;

	if (command_line_pipes(&o->settings, arguments[0], true, &o->pipes, why,
			       why_len))
		return -1;
	if (!o->max_sessions_each)
		o->max_sessions_each = (o->max_sessions + 7) / 8;
	o->listen_given = o->listens;
	if (keys_of_settings(&o->keys, &o->settings, o->encrypts, why, why_len))
		return -1;
	if (!o->listens && !o->keys.n &&
	    add_listen(o, "0.0.0.0", why, why_len))
		return -1;
	if (set_default_extended(o, why, why_len))
		return -1;
	if (o->settings.thin_given && o->settings.thin == THIN_COPY &&
	    !o->extendeds)
		return reject(why, why_len, "--thin: copy needs the extension, and it is not spoken here (--extended)");
	if (o->settings.reinject != REINJECT_OFF && !o->extendeds)
		return reject(why, why_len, "--reinject: %s needs the extension, and it is not spoken here (--extended)",
			      reinject_mode_name(o->settings.reinject));
	return take_path_policy(o, why, why_len);
}

static const char *const arguments[] = { "PIPES", NULL };

static const struct command_line command_line = {
	.program = "rp",
	.arguments = arguments,
	.about =
"The remote proxy of TM3: takes PIPES (1 to 64) connections from each local\n"
"proxy and connects to servers on its behalf.\n",
	.heading = "Who and where",
	.options = own_options,
	.changing = rp_changing,
	.notes =
"Link-local, multicast, reserved and cloud metadata addresses are never open as\n"
"destinations, nor are the ports that rp takes pipes on. Addresses of this host,\n"
"loopback among them, are open to local proxies on this host, to others where a\n"
"--permit covers them.\n"
"\n"
"In the baseline local proxies are told apart by their address alone: whoever\n"
"shares the address of one (behind one NAT, on one host) can get bytes of its\n"
"connections. In the extension each says which one it is, and how many pipes it\n"
"has. With --key-file the extension alone is spoken, unless --listen is given;\n"
"SIGHUP has the file read again, and ends sessions whose key is gone.\n",
	.set = set_own,
	.finish = finish,
};

_Static_assert(PIPES_MAX == 64 && MEMORY_SHARE == 4 &&
	       WIRE_PORT == 6000 && WIRE_PORT_EXTENDED == 6010 &&
	       RESUME_SECONDS == 120 && ALONE_EACH == 4 && WORKERS_MAX == 16,
	       "--help names these numbers");

static void init(struct options *o)
{
	memset(o, 0, sizeof(*o));
	settings_init(&o->settings);
	access_init(&o->access);
	o->workers = 1;
	o->max_sessions = MAX_SESSIONS;
	o->max_connects = MAX_CONNECTS;
	o->max_opens = MAX_OPENS;
	o->connect_timeout = CONNECT_TIMEOUT_S * NS_PER_SEC;
}

bool options_parse(struct options *o, bool encrypts, int argc, char **argv,
		   int *status)
{
	init(o);
	o->encrypts = encrypts;
	return command_line_parse(&command_line, &o->settings, o, &o->words,
				  argc, argv, status);
}

void options_fini(struct options *o)
{
	access_fini(&o->access);
	permits_fini(&o->permits);
	words_fini(&o->words);
	keys_fini(&o->keys);
	keys_fini(&o->gone);
	free(o->listen);
	free(o->extended);
}

/* --- once more --- */

/* Which of the keys that there were @new lacks. 0 or -ENOMEM. */
static int find_gone(struct options *new, const struct keys *before)
{
	struct keys *gone = &new->gone;
	unsigned int i;

	gone->key = before->n ? calloc(before->n, sizeof(*gone->key)) : NULL;
	if (before->n && !gone->key)
		return -ENOMEM;
	for (i = 0; i < before->n; i++)
		if (!keys_have(&new->keys, &before->key[i]))
			memcpy(gone->key[gone->n++].name, before->key[i].name,
			       KEY_NAME_MAX);
	return 0;
}

/* Others of the same file; which file it is cannot change. */
static bool take_keys(struct options *o, struct options *from)
{
	struct keys before = o->keys, gone = o->gone;

	if (strcmp(o->settings.key_file, from->settings.key_file) != 0 ||
	    keys_same(&o->keys, &from->keys))
		return false;
	o->keys = from->keys;
	from->keys = before;
	o->gone = from->gone;
	from->gone = gone;
	o->keys_gone += o->gone.n > 0;
	return true;
}

static void take(struct options *o, struct options *from)
{
	struct access before = o->access;
	struct permits permits = o->permits;

	settings_take(&o->settings, &from->settings);
	o->settings.resume_s = from->settings.resume_s;
	o->access = from->access;
	from->access = before;
	o->permits = from->permits;
	from->permits = permits;
	o->max_sessions = from->max_sessions;
	o->max_sessions_each = from->max_sessions_each;
	o->max_connects = from->max_connects;
	o->max_opens = from->max_opens;
	o->connect_timeout = from->connect_timeout;
}

/* An empty file is a slip of the hand more often than an invitation. */
static bool opens_to_all(const struct options *o, const struct options *new)
{
	return access_is_open(&new->access) && !access_is_open(&o->access);
}

int options_again(struct options *o, int argc, char **argv,
		  struct changes *changes, char *why, size_t why_len)
{
	struct options new;
	int err;

	init(&new);
	new.encrypts = o->encrypts;
	err = command_line_again(&command_line, &new.settings, &new,
				 &new.words, argc, argv, why, why_len);
	if (!err && opens_to_all(o, &new))
		err = reject(why, why_len, "--allow: without the last one "
			     "anybody could open pipes; 0.0.0.0/0 and ::/0 say "
			     "that in words");
	if (!err && find_gone(&new, &o->keys))
		err = reject(why, why_len, "memory is short");
	if (!err) {
		command_line_take(&command_line, &o->words, &new.words,
				  changes);
		/* With the first --allow the extension is spoken by default. */
		if (!o->extended_given && !new.extended_given &&
		    o->extendeds != new.extendeds)
			changes_add(changes->kept, "",
				    "where the extension is spoken");
		if (take_keys(o, &new))
			changes_add(changes->taken, "", "keys");
		take(o, &new);
	}
	options_fini(&new);
	return err;
}
