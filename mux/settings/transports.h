/* SPDX-License-Identifier: MIT */
/*
 * What pipes may be made of: TCP, MPTCP or SCTP; and sets of them, as --pipe
 * names them. Names and numbers alone: sockets are made in pipe/transport.
 */
#ifndef TM3_TRANSPORTS_H
#define TM3_TRANSPORTS_H

#include <stdbool.h>
#include <stddef.h>

enum transport { TRANSPORT_TCP, TRANSPORT_MPTCP, TRANSPORT_SCTP };

enum { TRANSPORTS = 3, TRANSPORT_SET_TEXT = 48 };

/* "tcp:4,sctp:4": in the order in which they were named. */
struct transport_set {
	unsigned int n;
	enum transport kind[TRANSPORTS];
	unsigned int count[TRANSPORTS];	/* 0: none was given */
};

const char *transport_name(enum transport t);	/* "tcp" */

/* Returns 0, or -1 with a phrase in @why. */
int transport_set_parse(struct transport_set *set, const char *text, char *why,
			size_t why_len);
/*
 * Do the counts add up to @pipes? One name alone without a count gets all;
 * with @loose (who only listens) counts may be missing. 0, or -1 with a line in @why.
 */
int transport_set_fit(struct transport_set *set, unsigned int pipes, bool loose,
		      char *why, size_t why_len);

bool transport_set_has(const struct transport_set *set, enum transport t);
/* Nothing but @t. */
bool transport_set_is(const struct transport_set *set, enum transport t);
/* Of what pipe @i is made. */
enum transport transport_set_of(const struct transport_set *set,
				unsigned int i);
/* "tcp:4,sctp:4"; one alone just "tcp". */
const char *transport_set_text(const struct transport_set *set,
			       char text[TRANSPORT_SET_TEXT]);

#endif
