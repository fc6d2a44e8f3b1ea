/* SPDX-License-Identifier: MIT */
/*
 * What both proxies can be told about their engine, as it is used: plain data.
 * Which words on a command line set it is known in options/ alone.
 */
#ifndef TM3_SETTINGS_H
#define TM3_SETTINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "limits.h"
#include "path_set.h"
#include "transports.h"

#define TM3_VERSION "0.1.0"

struct conn_policy;
struct path_policy;
struct pipe_policy;

/* How the sum of what the pipes hold is bounded: see path/. */
enum aggregate_mode { AGGREGATE_DELAY, AGGREGATE_DSWA, AGGREGATE_OFF };

/*
 * What is done for connections that send little, beyond the pipe policy: see
 * sched/thin.h and extension/tail.h.
 */
enum thin_mode {
	THIN_COPY,	/* they stay on a pipe, and what is overdue goes again on another */
	THIN_SAME_PIPE,	/* they stay on a pipe */
	THIN_OFF,
};

/* What goes again on another pipe before its own is given up: see extension/reinject.h. */
enum reinject_mode { REINJECT_OFF, REINJECT_TIMELY, REINJECT_MPFLEX };

enum {
	CC_NAME_MAX = 16,	/* the kernel's TCP_CA_NAME_MAX */
	USER_NAME_MAX = 64,
	METRICS_MAX = 108,	/* of a path of a UNIX socket */
};

struct settings {
	bool late;		/* binding */
	size_t app_buffer;	/* early: bytes queued per pipe */
	int pipe_sndbuf;	/* early: SO_SNDBUF, 0 the kernel's own */
	const struct conn_policy *conn_policy;
	const struct pipe_policy *pipe_policy;
	const struct path_policy *path_policy;	/* where there are several paths, */
	char path_name[PATH_NAME_MAX + 1];	/* that goes over this one; "": none was given */
	unsigned int path_number;	/* the same path */
	double path_share;	/* of the first one, 0 to 1 */
	bool http_sizes;	/* of answers that are sent: their heads are read */
	enum aggregate_mode aggregate;	/* late: what pipes hold together */
	double lambda;		/* of AGGREGATE_DSWA */
	bool lambda_given;	/* on the command line */
	enum thin_mode thin;
	bool thin_given;	/* on the command line */
	enum reinject_mode reinject;
	struct transport_set transports;	/* what pipes are made of */
	struct path_set paths;	/* LP: over which pipes go; RP: none */
	double sctp_loss;	/* percent: a mixed set goes to SCTP above it */
	bool sctp_loss_given;	/* on the command line */
	char cc[CC_NAME_MAX];	/* congestion control of pipes, "" the system's */
	uint64_t seed;		/* of the random policy, and of LP's first id */
	bool seed_given;	/* on the command line */
	unsigned int max_conns;	/* in a session */
	size_t max_memory;	/* bytes, by all sessions together, */
	bool memory_given;	/* on the command line */
	/* Of sessions of the extension: */
	size_t window_memory;	/* for what applications did not take */
	size_t keep;		/* bytes sent and not acknowledged */
	unsigned int resume_s;	/* that one without pipes is kept */
	bool udp;		/* flows of datagrams are carried, too */
	char stats_path[PATH_MAX];	/* "" if there are none */
	double stats_interval;	/* s */
	char metrics[METRICS_MAX];	/* where they are served, "" nowhere */
	int verbosity;		/* enum log_level */
	char user[USER_NAME_MAX];	/* to become, "" as it was started */
	bool seccomp;		/* calls that are never needed are given up */
	char key_file[PATH_MAX];	/* "": pipes are not encrypted */
	char keylog[PATH_MAX];	/* "" for none */
};

const char *reinject_mode_name(enum reinject_mode mode);	/* NULL: none */

/* Of settings.metrics, where it is no path. 0 or -1. */
int metrics_address(const char *text, struct sockaddr_storage *addr);

#endif
