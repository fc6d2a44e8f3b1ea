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
	bool came_back;		/* tries reached LP itself: that is the reason then */
	bool fell_back;		/* from MPTCP to TCP, and that was said */
	char told[COMPLAINT_MAX];	/* the last reason, or "" */
};

void complaints_init(struct complaints *c, struct log *log);

/*
 * @peer: RP, as it was named, with the port that it is about.
 *
 * No try at any address or path came to something.
 */
void complaints_none(struct complaints *c, const char *peer, const char *why);
/* Those that there were are gone; and tries begin again, */
void complaints_lost(struct complaints *c, const char *peer, const char *why);
/* or RP answers, and the next session is some round trips away. */
void complaints_anew(struct complaints *c, const char *peer, const char *why);
/* The same reason is to be said again, if it comes again. */
void complaints_forget(struct complaints *c);

/*
 * @n pipes of the baseline are, for long enough to say it. @unextended: why they are not of the
 * extension, which was asked for; or "".
 */
void complaints_up(struct complaints *c, const char *peer, unsigned int n,
		   const char *unextended);
/* The pipes @fds work. Some may do so as plain TCP although MPTCP was asked for. */
void complaints_fallback(struct complaints *c, const char *peer, const int *fds,
			 unsigned int n);

#endif
