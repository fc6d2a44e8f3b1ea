/* SPDX-License-Identifier: MIT */
/*
 * Tells whoever started this process how it is: systemd's protocol of datagrams
 * to the UNIX socket in $NOTIFY_SOCKET, as sd_notify(3) has it. Where there is
 * no such variable all of this does nothing.
 *
 * The socket is connected to at once, so what it takes to reach it may be given
 * up later. Nothing waits for the other end. Once a second at most a line of status
 * goes out, if it is another one, and WATCHDOG=1 in half of the time that
 * $WATCHDOG_USEC allows: from the loop, so a loop that hangs is heard of. Where there are
 * other loops, alive() tells of them.
 */
#ifndef TM3_NOTIFY_H
#define TM3_NOTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop.h"

enum { NOTIFY_STATUS = 160 };

struct notify {
	struct loop *loop;
	int fd;			/* -1: nobody wants to know */
	int64_t watchdog;	/* between two signs of life; 0: none are wanted */
	int64_t alive_at;	/* the last of them */
	bool ready_due;		/* READY=1 found no room, or is to come */
	char status[NOTIFY_STATUS];	/* the last that was told */
	struct timer timer;
	/* The status as it is now, one line. */
	void (*describe)(struct notify *n, char *text, size_t len);
	/* Did all other loops go on since it was asked last, a second ago at most? */
	bool (*alive)(struct notify *n);
};

/* 0, or -errno where there is a variable but no such socket: nothing is told then. */
int notify_open(struct notify *n, struct loop *loop,
		void (*describe)(struct notify *n, char *text, size_t len),
		bool (*alive)(struct notify *n));
void notify_close(struct notify *n);

/* It is not ready yet, and shall be given @ms more. */
void notify_later(struct notify *n, const char *status, unsigned int ms);
/* It serves; also after notify_reloading(). */
void notify_ready(struct notify *n);
void notify_reloading(struct notify *n);
void notify_stopping(struct notify *n);

#endif
