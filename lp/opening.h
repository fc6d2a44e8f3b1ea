/* SPDX-License-Identifier: MIT */
/*
 * One try to open a session of the extension at one address: one pipe is
 * connected, says HELLO, and awaits WELCOME. The other pipes are joiner.h's.
 */
#ifndef TM3_OPENING_H
#define TM3_OPENING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "../mux/session/greeting.h"
#include "../mux/settings/path_set.h"
#include "attempt.h"

struct opening;

enum opening_end {
	OPENING_UNHEARD,	/* nobody listens there */
	OPENING_DECLINED,	/* who does speaks it, but not with us */
	OPENING_WRONG,		/* who does speaks something else */
	OPENING_STRANGER,	/* who does has not our key */
	OPENING_SILENT,		/* no answer in time */
	OPENING_BUSY,		/* it is spoken, but there is no room, */
	OPENING_ONE_PATH,	/* or pipes from several addresses are not taken */
	OPENING_FAILED,		/* all else: that may pass */
};

struct opening_ops {
	/* @conduit is the first pipe of the session that @hello names. */
	void (*welcomed)(struct opening *o, const struct wire_hello *hello,
			 const struct wire_welcome *welcome,
			 struct conduit conduit);
	/* Another try may begin at once. */
	void (*declined)(struct opening *o, enum opening_end end,
			 const char *why);
};

struct opening {
	const struct opening_ops *ops;
	struct loop *loop;
	struct layers *layers;	/* that pipes have, or NULL */
	const struct path_set *paths;
	unsigned int path;	/* number of the one that the first pipe is on */
	unsigned int pipes;	/* that the session is to have */
	bool listens;		/* in it RP is to be asked to listen */
	struct attempt attempt;	/* of one pipe, */
	struct timer deadline;	/* for its connect(); */
	int64_t until;		/* and for WELCOME */
	struct greeting *greeting;
	struct wire_hello hello;
};

void opening_init(struct opening *o, const struct opening_ops *ops,
		  struct loop *loop, const struct transport_set *transports,
		  const struct path_set *paths, unsigned int pipes);
/* The next try goes by path @number. */
void opening_go_by(struct opening *o, unsigned int number);
/* For @patience ns in all. May call ops at once. */
void opening_start(struct opening *o, const struct sockaddr_storage *addr,
		   int64_t patience);
/* Is the pipe connected, and WELCOME awaited? */
bool opening_is_heard(const struct opening *o);
/* Drops what is under way. Neither of ops is called. */
void opening_stop(struct opening *o);

#endif
