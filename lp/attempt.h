/* SPDX-License-Identifier: MIT */
/*
 * One attempt to have all pipes, at one address: connects them all at once, and
 * ends when all are up or it is known that they will not be.
 *
 * Of a mixed set it waits for all to be decided, so that it can say what RP does
 * not take.
 */
#ifndef TM3_ATTEMPT_H
#define TM3_ATTEMPT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "../mux/base/loop.h"
#include "../mux/pipe/transport.h"
#include "../mux/settings/path_set.h"

struct attempt;

struct attempt_ops {
	/* All @fds are connected. They belong to the callee. */
	void (*up)(struct attempt *a, const int *fds, unsigned int n);
	/* It failed, and all is closed. Another attempt may begin at once. */
	void (*failed)(struct attempt *a, const char *why);
};

struct dial {			/* one pipe in the making */
	struct attempt *attempt;
	struct watch watch;
	int fd;			/* -1: none */
	enum transport kind;
	bool up;
	int err;		/* why it failed; 0 it did not */
};

struct attempt {
	const struct attempt_ops *ops;
	struct loop *loop;
	const struct transport_set *transports;
	const struct path_spec *path;	/* by which all leave, or NULL */
	unsigned int pipes, up, failed;
	unsigned int number;	/* of attempts begun */
	int err;		/* when it failed: of a pipe, an errno; or 0 */
	struct dial dial[PIPES_MAX];
};

void attempt_init(struct attempt *a, const struct attempt_ops *ops,
		  struct loop *loop, const struct transport_set *transports,
		  unsigned int pipes);

/* May call ops at once. */
void attempt_start(struct attempt *a, const struct sockaddr_storage *addr);

/* Closes what is under way. Neither of ops is called. */
void attempt_stop(struct attempt *a);

/* It took too long: it fails, for the reason @why. */
void attempt_give_up(struct attempt *a, const char *why);

#endif
