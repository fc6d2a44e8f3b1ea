/* SPDX-License-Identifier: MIT */
/*
 * What a batch of events brings, of all pipes of a session: small runs are gathered in their
 * pipes while the pump goes on, and those of a pipe are written together (pipe_send()).
 */
#ifndef TM3_GATHERING_H
#define TM3_GATHERING_H

#include <stdbool.h>

#include "../base/list.h"

struct gathering {
	bool on;		/* more may follow */
	struct list pipes;	/* those that have gathered something */
};

void gathering_begin(struct gathering *g);
/* What is gathered is written. */
void gathering_flush(struct gathering *g);
/* The same, and nothing is gathered any more. */
void gathering_end(struct gathering *g);

#endif
