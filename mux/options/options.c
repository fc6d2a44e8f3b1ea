/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "options.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "../base/addr.h"
#include "../base/log.h"
#include "../base/memory.h"
#include "../base/reject.h"
#include "../base/sock.h"
#include "../path/aggregate.h"
#include "../path/losses.h"
#include "../pipe/transport.h"
#include "../sched/sched.h"
#include "../wire/wire.h"
#include "choices.h"
#include "privileges.h"
#include "values.h"

enum {
	BUFFER_MAX = 1 << 30,
	SNDBUF_MIN = 1024,
	MEMORY_MIN = 1 << 20,
	MEMORY_MAX_MIB = 1 << 20,
	WORDS_LEN = 256,	/* of a line of words, or of a reason */
};

#define LAMBDA_DEFAULT 2.0	/* the paper's */
#define SCTP_LOSS_MIN 0.01
#define SCTP_LOSS_MAX 50.0
#define INTERVAL_MIN 0.01
#define INTERVAL_MAX 86400.0

const struct option_spec engine_options[] = {
	{ "binding", "late|early",
	  "choose connection and pipe when a pipe can send (late, the default) "
	  "or as soon as bytes arrive (early)" },
	{ "app-buffer", "BYTES",
	  "early: bytes that may wait for each pipe besides its socket "
	  "(default 0; K and M are understood)" },
	{ "pipe-sndbuf", "BYTES",
	  "early: send buffer of each pipe's socket (default: the kernel's)" },
	{ "pipe-policy", "NAME", "which of the pipes that could send does:" },
	{ "conn-policy", "NAME", "which connection's bytes go next:" },
	{ "path-policy", "NAME",
	  "extension, where lp has several paths: which of them carries the next "
	  "bytes of what this proxy sends:" },
	{ "sizes", "off|http",
	  "where policies go by sizes: read how large an answer is in the head of "
	  "cleartext HTTP/1 answers that this proxy sends (http), or not (off, the "
	  "default)" },
	{ "aggregate", "delay|dswa|off",
	  "late: bound what the pipes hold together: to what the path needs, "
	  "seen from its delay (delay, the default); to lambda x RTTmin/RTT of "
	  "their windows (dswa); not at all (off)" },
	{ "lambda", "NUMBER", "of dswa, 0.1 to 100 (default 2)" },
	{ "thin", "copy|same-pipe|off",
	  "of a connection that sends less than a segment a round trip: stay on "
	  "the pipe with its last message until that is acknowledged (same-pipe); "
	  "and in the extension send again, on another pipe, the last messages of "
	  "any pipe once their acknowledgement is overdue (copy, the default); "
	  "neither (off)" },
	{ "reinject", "off|timely|mpflex",
	  "extension: send again on another pipe what its own may still deliver. "
	  "timely: what is not acknowledged, on a pipe of which nothing was for a round "
	  "trip and four times its variation, as soon as the other pipe would be idle. "
	  "mpflex: what a pipe holds that timed out, and the oldest message for each ACK "
	  "that says that 75 % of what may be out of order is. "
	  "off: nothing before a pipe looks dead (default)" },
	{ "pipe", "LIST",
	  "what pipes are made of: tcp (the default), mptcp, sctp, or several "
	  "with the number of each, such as tcp:4,sctp:4 (rp: what it takes)" },
	{ "sctp-loss", "PERCENT",
	  "of a mixed set the SCTP pipes are used when more than so much of "
	  "what is sent is lost, the others again at half of it (default 0.5)" },
	{ "cc", "NAME",
	  "congestion control of TCP and MPTCP pipes (default: the system's)" },
	{ "seed", "N",
	  "of the random pipe policy (default 1); lp's connection ids then begin "
	  "with 1 + N modulo 32767 (default: anywhere)" },
	{ "max-conns", "N",
	  "connections of a session at a time, of which flows of UDP datagrams have "
	  "half at rp, and lp opens a quarter (default: all there are ids for)" },
	{ "memory", "MIB",
	  "what all sessions may hold together: what waits, is out of order or "
	  "not acknowledged, connections by their number, encryption of pipes "
	  "(default: a quarter of what the machine or its cgroup has)" },
	{ "window-memory", "BYTES",
	  "extension: what may wait for the applications of a session (default "
	  "256M, or half of --memory), and 4K for each connection" },
	{ "keep", "BYTES",
	  "extension: what a session keeps of what it sent until the other "
	  "proxy has it (default 32M); all together keep half of --memory" },
	{ "stats", "FILE", "write statistics to FILE as JSON lines" },
	{ "stats-interval", "SECONDS",
	  "between two samples of the pipes (default 1)" },
	{ "metrics", "[ADDR:]PORT|PATH",
	  "serve figures to Prometheus on a loopback address (default "
	  "127.0.0.1), or on a UNIX socket, whose PATH has a slash" },
	{ "user", "NAME",
	  "become this user, for good, as soon as the ports are taken and the "
	  "statistics opened (default: stay who started it)" },
	{ "seccomp", "on|off",
	  "ask the kernel to refuse what a proxy never needs from then on, such as "
	  "to run programs or to mount (default on)" },
	{ "key-file", "FILE",
	  "keys, one a line: a name, and the key in base64. Pipes of the "
	  "extension are encrypted, and who has not got the key is sent away" },
	{ "keylog", "FILE",
	  "with --key-file: write what Wireshark needs to read the pipes; "
	  "whoever can read FILE can read them" },
	{ "verbose", NULL, "say more" },
	{ "quiet", NULL, "say only what is wrong" },
	{ NULL, NULL, NULL },
};

const char *const engine_changing[] = {
	"memory", "window-memory", "keep", "stats-interval", "verbose", "quiet", NULL
};

void settings_take(struct settings *s, const struct settings *from)
{
	s->max_memory = from->max_memory;
	s->window_memory = from->window_memory;
	s->keep = from->keep;
	s->stats_interval = from->stats_interval;
	s->verbosity = from->verbosity;
}

void settings_init(struct settings *s)
{
	*s = (struct settings){
		.late = true,
		.conn_policy = conn_policies[0],
		.pipe_policy = pipe_policies[0],
		.path_policy = path_policies[0],
		.aggregate = AGGREGATE_DELAY,
		.lambda = LAMBDA_DEFAULT,
		.thin = THIN_COPY,
		.transports = { 1, { TRANSPORT_TCP }, { 0 } },
		.sctp_loss = LOSSES_DEFAULT,
		.seed = 1,
		.max_conns = WIRE_ID_MAX,
		.window_memory = WINDOW_MEMORY,
		.keep = KEEP_MAX,
		.resume_s = RESUME_SECONDS,
		.udp = true,
		.seccomp = true,
		.max_memory = MEMORY_DEFAULT,
		.stats_interval = 1.0,
		.verbosity = LOG_INFO,
	};
}

/* --- one setter for each option --- */

struct setting {
	const char *name;
	int (*set)(struct settings *s, const char *value, char *why,
		   size_t why_len);
};

static int set_binding(struct settings *s, const char *value, char *why,
		       size_t why_len)
{
	s->late = !strcmp(value, "late");
	if (s->late || !strcmp(value, "early"))
		return 0;
	return reject(why, why_len, "--binding: '%s' is neither late nor early",
		      value);
}

static int set_app_buffer(struct settings *s, const char *value, char *why,
			  size_t why_len)
{
	size_t size;

	if (value_bytes(value, &size) || size > BUFFER_MAX)
		return reject(why, why_len,
			      "--app-buffer: '%s' is not a size from 0 to "
			      "1024M (such as 4096, 64K, 2M)", value);
	s->app_buffer = size;
	return 0;
}

static int set_pipe_sndbuf(struct settings *s, const char *value, char *why,
			   size_t why_len)
{
	size_t size;

	if (value_bytes(value, &size) || size < SNDBUF_MIN ||
	    size > BUFFER_MAX)
		return reject(why, why_len,
			      "--pipe-sndbuf: '%s' is not a size from 1K to "
			      "1024M (such as 65536, 64K, 2M)", value);
	s->pipe_sndbuf = (int)size;
	return 0;
}

static int set_memory(size_t *bytes, const char *option, const char *value,
		      char *why, size_t why_len)
{
	size_t size;

	if (value_bytes(value, &size) || size < MEMORY_MIN ||
	    size > BUFFER_MAX)
		return reject(why, why_len,
			      "--%s: '%s' is not a size from 1M to 1024M (such "
			      "as 64M)", option, value);
	*bytes = size;
	return 0;
}

int settings_set_memory(struct settings *s, const char *option,
			const char *value, char *why, size_t why_len)
{
	uint64_t mib;

	if (value_whole(value, 1, MEMORY_MAX_MIB, &mib))
		return reject(why, why_len,
			      "--%s: '%s' is not a whole number of MiB from 1 to "
			      "%d", option, value, MEMORY_MAX_MIB);
	s->max_memory = (size_t)mib << 20;
	s->memory_given = true;
	return 0;
}

static int set_all_memory(struct settings *s, const char *value, char *why,
			  size_t why_len)
{
	return settings_set_memory(s, "memory", value, why, why_len);
}

static int set_window_memory(struct settings *s, const char *value, char *why,
			     size_t why_len)
{
	return set_memory(&s->window_memory, "window-memory", value, why,
			  why_len);
}

static int set_keep(struct settings *s, const char *value, char *why,
		    size_t why_len)
{
	return set_memory(&s->keep, "keep", value, why, why_len);
}

static int set_lambda(struct settings *s, const char *value, char *why,
		      size_t why_len)
{
	s->lambda_given = true;
	if (!value_number(value, LAMBDA_MIN, LAMBDA_MAX, &s->lambda))
		return 0;
	return reject(why, why_len,
		      "--lambda: '%s' is not a number from %g to %g", value,
		      LAMBDA_MIN, LAMBDA_MAX);
}

static int set_pipe(struct settings *s, const char *value, char *why,
		    size_t why_len)
{
	char reason[WORDS_LEN];

	if (!transport_set_parse(&s->transports, value, reason,
				 sizeof(reason)))
		return 0;
	return reject(why, why_len, "--pipe: '%s': %s", value, reason);
}

static int set_sctp_loss(struct settings *s, const char *value, char *why,
			 size_t why_len)
{
	s->sctp_loss_given = true;
	if (!value_number(value, SCTP_LOSS_MIN, SCTP_LOSS_MAX,
			   &s->sctp_loss))
		return 0;
	return reject(why, why_len,
		      "--sctp-loss: '%s' is not a percentage from %g to %g",
		      value, SCTP_LOSS_MIN, SCTP_LOSS_MAX);
}

/* One line from the kernel, such as "reno bbr cubic"; "" if it does not say. */
static void read_words(const char *path, char words[WORDS_LEN])
{
	FILE *in = fopen(path, "re");

	words[0] = '\0';
	if (!in)
		return;
	if (!fgets(words, WORDS_LEN, in))
		words[0] = '\0';
	words[strcspn(words, "\n")] = '\0';
	fclose(in);
}

static int set_cc(struct settings *s, const char *value, char *why,
		  size_t why_len)
{
	char words[WORDS_LEN];
	int err = *value && strlen(value) < CC_NAME_MAX ? sock_try_cc(value) :
		  -ENOENT;

	if (!err) {
		strcpy(s->cc, value);
		return 0;
	}
	if (err == -EPERM) {
		read_words("/proc/sys/net/ipv4/tcp_allowed_congestion_control",
			   words);
		return reject(why, why_len,
			      "--cc: '%s' is for root alone on this system; "
			      "everybody may use: %s", value, words);
	}
	if (err != -ENOENT)
		return reject(why, why_len, "--cc: '%s' cannot be tried: %s",
			      value, strerror(-err));
	read_words("/proc/sys/net/ipv4/tcp_available_congestion_control",
		   words);
	return reject(why, why_len,
		      "--cc: '%s' is not available on this system, which has: %s",
		      value, words);
}

static int set_seed(struct settings *s, const char *value, char *why,
		    size_t why_len)
{
	const char *end;

	s->seed_given = true;
	if (!value_digits(value, &s->seed, &end) && !*end)
		return 0;
	return reject(why, why_len,
		      "--seed: '%s' is not a whole number from 0 to %llu",
		      value, ULLONG_MAX);
}

static int set_max_conns(struct settings *s, const char *value, char *why,
			 size_t why_len)
{
	const char *end;
	uint64_t n;

	if (value_digits(value, &n, &end) || *end || !n || n > WIRE_ID_MAX)
		return reject(why, why_len,
			      "--max-conns: '%s' is not a whole number from 1 "
			      "to %d", value, WIRE_ID_MAX);
	s->max_conns = (unsigned int)n;
	return 0;
}

static int set_path(char path[PATH_MAX], const char *name, const char *value,
		    char *why, size_t why_len)
{
	if (!*value)
		return reject(why, why_len, "--%s: the file has no name", name);
	if (strlen(value) >= PATH_MAX)
		return reject(why, why_len, "--%s: %s", name,
			      strerror(ENAMETOOLONG));
	strcpy(path, value);
	return 0;
}

static int set_stats(struct settings *s, const char *value, char *why,
		     size_t why_len)
{
	return set_path(s->stats_path, "stats", value, why, why_len);
}

static int set_key_file(struct settings *s, const char *value, char *why,
			size_t why_len)
{
	return set_path(s->key_file, "key-file", value, why, why_len);
}

static int set_keylog(struct settings *s, const char *value, char *why,
		      size_t why_len)
{
	return set_path(s->keylog, "keylog", value, why, why_len);
}

static int set_stats_interval(struct settings *s, const char *value,
			      char *why, size_t why_len)
{
	if (!value_number(value, INTERVAL_MIN, INTERVAL_MAX,
			   &s->stats_interval))
		return 0;
	return reject(why, why_len,
		      "--stats-interval: '%s' is not a number of seconds from "
		      "%g to %g", value, INTERVAL_MIN, INTERVAL_MAX);
}

static int set_metrics(struct settings *s, const char *value, char *why,
		       size_t why_len)
{
	struct sockaddr_storage addr;

	if (strlen(value) < METRICS_MAX && strchr(value, '/')) {
		strcpy(s->metrics, value);
		return 0;
	}
	if (strlen(value) >= METRICS_MAX)
		return reject(why, why_len, "--metrics: %s",
			      strerror(ENAMETOOLONG));
	if (metrics_address(value, &addr))
		return reject(why, why_len,
			      "--metrics: '%s' is neither [ADDR:]PORT (such as "
			      "9600 or [::1]:9600) nor a path with a slash",
			      value);
	if (!addr_is_loopback(&addr))
		return reject(why, why_len,
			      "--metrics: '%s' is not a loopback address, and "
			      "everybody who reaches it could read them", value);
	strcpy(s->metrics, value);
	return 0;
}

static int set_verbose(struct settings *s, const char *value, char *why,
		       size_t why_len)
{
	(void)value, (void)why, (void)why_len;
	s->verbosity = LOG_DEBUG;
	return 0;
}

static int set_quiet(struct settings *s, const char *value, char *why,
		     size_t why_len)
{
	(void)value, (void)why, (void)why_len;
	s->verbosity = LOG_WARN;
	return 0;
}

static const struct setting setters[] = {
	{ "binding", set_binding },
	{ "app-buffer", set_app_buffer },
	{ "pipe-sndbuf", set_pipe_sndbuf },
	{ "pipe-policy", choices_set_pipe_policy },
	{ "conn-policy", choices_set_conn_policy },
	{ "path-policy", choices_set_path_policy },
	{ "sizes", choices_set_sizes },
	{ "aggregate", choices_set_aggregate },
	{ "lambda", set_lambda },
	{ "thin", choices_set_thin },
	{ "reinject", choices_set_reinject },
	{ "pipe", set_pipe },
	{ "sctp-loss", set_sctp_loss },
	{ "cc", set_cc },
	{ "seed", set_seed },
	{ "max-conns", set_max_conns },
	{ "memory", set_all_memory },
	{ "window-memory", set_window_memory },
	{ "keep", set_keep },
	{ "stats", set_stats },
	{ "stats-interval", set_stats_interval },
	{ "metrics", set_metrics },
	{ "user", privileges_set_user },
	{ "seccomp", privileges_set_seccomp },
	{ "key-file", set_key_file },
	{ "keylog", set_keylog },
	{ "verbose", set_verbose },
	{ "quiet", set_quiet },
};

const struct option_spec *option_named(const struct option_spec *options,
				       const char *name)
{
	while (options->name && strcmp(options->name, name))
		options++;
	return options->name ? options : NULL;
}

int option_fits(const struct option_spec *option, const char *value, char *why,
		size_t why_len)
{
	if (option->arg && !value)
		return reject(why, why_len, "--%s: its value (%s) is missing",
			      option->name, option->arg);
	if (!option->arg && value)
		return reject(why, why_len, "--%s takes no value",
			      option->name);
	return 0;
}

int settings_set(struct settings *s, const char *name, const char *value,
	       char *why, size_t why_len)
{
	const struct option_spec *option = option_named(engine_options, name);
	size_t i;

	if (!option)
		return reject(why, why_len, "--%s: there is no such option",
			      name);
	if (option_fits(option, value, why, why_len))
		return -1;
	for (i = 0; strcmp(setters[i].name, name); i++)
		;
	return setters[i].set(s, value, why, why_len);
}

/* SCTP pipes and others. */
static bool is_mixed(const struct transport_set *set)
{
	return transport_set_has(set, TRANSPORT_SCTP) &&
	       !transport_set_is(set, TRANSPORT_SCTP);
}

int settings_check(const struct settings *s, char *why, size_t why_len)
{
	if (s->late && s->app_buffer)
		return reject(why, why_len,
			      "--app-buffer goes with --binding early only");
	if (s->late && s->pipe_sndbuf)
		return reject(why, why_len,
			      "--pipe-sndbuf goes with --binding early only");
	if (s->lambda_given && (!s->late || s->aggregate != AGGREGATE_DSWA))
		return reject(why, why_len,
			      "--lambda goes with --binding late and --aggregate dswa only");
	if (s->sctp_loss_given && !is_mixed(&s->transports))
		return reject(why, why_len,
			      "--sctp-loss goes with a set of SCTP and other pipes only, such as --pipe tcp:4,sctp:4");
	/* It would go on using pipes that the rule of the set leaves unused. */
	if (s->pipe_policy == &sched_fixed && is_mixed(&s->transports))
		return reject(why, why_len,
			      "--pipe-policy fixed does not go with a set of SCTP and other pipes");
	if (s->http_sizes && !s->conn_policy->by_size && !s->path_policy->by_size)
		return reject(why, why_len,
			      "--sizes http goes with a policy that goes by sizes only: --conn-policy srpt, or --path-policy ecf, txdelay or split:P");
	/* A connection would wait for a pipe on a path that carries none of it. */
	if (s->pipe_policy == &sched_fixed && s->path_policy != &path_soonest)
		return reject(why, why_len,
			      "--pipe-policy fixed does not go with --path-policy %s",
			      s->path_policy->name);
	return 0;
}

/* No session is granted what all together may not have. */
static void fit_memory(struct settings *s)
{
	size_t half;

	if (!s->memory_given)
		s->max_memory = memory_there_is() / MEMORY_SHARE;
	half = s->max_memory / 2 > MEMORY_MIN ? s->max_memory / 2 : MEMORY_MIN;
	if (s->window_memory > half)
		s->window_memory = half;
}

int settings_fit(struct settings *s, unsigned int pipes, bool loose,
	       char *why, size_t why_len)
{
	fit_memory(s);
	if (transport_set_fit(&s->transports, pipes, loose, why, why_len))
		return -1;
	return transport_set_try(&s->transports, why, why_len);
}
