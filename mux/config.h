/* SPDX-License-Identifier: MIT */
/*
 * What both proxies can be told about their engine, by name and value, and the
 * limits that bound its memory. Programs add options of their own.
 */
#ifndef TM3_CONFIG_H
#define TM3_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TM3_VERSION "0.1.0"

#include "aggregate.h"
#include "transport.h"

struct conn_policy;
struct pipe_policy;

enum {
	PIPES_MAX = 64,		/* of a session */

	/* In order for one connection, unwritten: past it the pipes pause, */
	QUEUE_MAX = 16 << 20,
	/* and so they do past this much in all; */
	QUEUE_MAX_SESSION = 256 << 20,
	/* without progress for this long the connection is reset. */
	PAUSE_MS = 2000,

	/* Out of order, bookkeeping included: the largest holder is reset. */
	REORDER_MAX_SESSION = 64 << 20,
	/* Before its SYN, for one connection: the SYN will be refused. */
	EARLY_MAX = 4 << 20,

	/* A closed id remembers its old owner for so long, and LP rests it. */
	REST_SECONDS = 30,

	/* A peer that acknowledges nothing for so long is gone. */
	UNHEARD_SECONDS = 20,

	/* What had ended in order goes on without its session, so much of it */
	ORPHANS_MAX = 64 << 20,
	/* and so long. */
	ORPHAN_SECONDS = 60,

	/* How long an orderly end waits for the last acknowledgement. */
	LINGER_MS = 1000,
};

struct config {
	bool late;		/* binding */
	size_t app_buffer;	/* early: bytes queued per pipe */
	int pipe_sndbuf;	/* early: SO_SNDBUF, 0 the kernel's own */
	const struct conn_policy *conn_policy;
	const struct pipe_policy *pipe_policy;
	enum aggregate_mode aggregate;	/* late: what pipes hold together */
	double lambda;		/* of AGGREGATE_DSWA */
	struct transport_set transports;	/* what pipes are made of */
	double sctp_loss;	/* percent: a mixed set goes to SCTP above it */
	const char *cc;		/* congestion control of pipes, or NULL */
	uint64_t seed;		/* of the random policy */
	unsigned int max_conns;	/* in a session */
	const char *stats_path;	/* or NULL */
	double stats_interval;	/* s */
	int verbosity;		/* enum log_level */
};

/* One option as --help shows it; @arg is NULL where it takes no value. */
struct config_option {
	const char *name, *arg, *help;
};

/* Ends with a name of NULL. */
extern const struct config_option config_options[];

void config_init(struct config *config);

/*
 * Set option @name (without dashes) to @value (NULL where it takes none).
 * Returns 0, or -1 with a reason in @why that names the option.
 */
int config_set(struct config *config, const char *name, const char *value,
	       char *why, size_t why_len);

/* After all options: what does not go together. */
int config_check(const struct config *config, char *why, size_t why_len);

/*
 * Once the number of pipes is known: do the transports' counts fit (@loose:
 * they need not all be there), and has this kernel got them?
 */
int config_fit(struct config *config, unsigned int pipes, bool loose,
	       char *why, size_t why_len);

/* The options' part of --help, aligned; the policies with what they do. */
void config_print(FILE *out, const struct config_option *options);

/* Helpers that program options share. 0 or -1. */
int config_number(const char *text, double min, double max, double *value);
int config_bytes(const char *text, size_t *value);	/* 4096, 64K, 2M */

#endif
