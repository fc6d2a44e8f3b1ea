/* SPDX-License-Identifier: MIT */
/*
 * What the dialer says of its pipes: once that RP is not there or went away, again when the
 * reason is another one, and when the pipes of the baseline are up.
 */
#ifndef TM3_LP_COMPLAINTS_H
#define TM3_LP_COMPLAINTS_H

#include <stdbool.h>

struct log;

enum { COMPLAINT_MAX = 160 };

struct complaints {
	struct log *log;
	const char *peer;	/* as RP was named */
	bool came_back;		/* tries reached LP itself: that is the reason then */
	bool fell_back;		/* from MPTCP to TCP, and that was said */
	char told[COMPLAINT_MAX];	/* the last reason, or "" */
};

/* @peer must stay where it is. */
void complaints_init(struct complaints *c, struct log *log, const char *peer);

/* No try at any address or path came to something. */
void complaints_none(struct complaints *c, const char *why);
/* Those that there were are gone; and tries begin again, */
void complaints_lost(struct complaints *c, const char *why);
/* or RP answers, and the next session is some round trips away. */
void complaints_anew(struct complaints *c, const char *why);
/* The same reason is to be said again, if it comes again. */
void complaints_forget(struct complaints *c);

/* @n pipes of the baseline are, for long enough to say it. */
void complaints_up(struct complaints *c, unsigned int n);
/* The pipes @fds work. Some may do so as plain TCP although MPTCP was asked for. */
void complaints_fallback(struct complaints *c, const int *fds, unsigned int n);

#endif
