/* SPDX-License-Identifier: MIT */
/*
 * What other threads tell the thread that runs a loop: errands, run there one
 * after the other, in the order in which they were posted. An errand is embedded in what it
 * is about; it may be posted again, or freed, from the moment it is run.
 */
#ifndef TM3_INBOX_H
#define TM3_INBOX_H

#include <pthread.h>

#include "list.h"
#include "loop.h"

struct errand {
	struct list node;
	void (*run)(struct errand *e);
};

struct inbox {
	struct loop *loop;
	struct watch watch;	/* of an eventfd */
	pthread_mutex_t lock;
	struct list errands;	/* under the lock */
};

/* 0 or -errno. */
int inbox_open(struct inbox *in, struct loop *loop);
/* Nobody posts any more. Errands that are in it are not run. */
void inbox_close(struct inbox *in);

/* From any thread. */
void inbox_post(struct inbox *in, struct errand *e);
/* Runs what is there now, as the loop does when it comes to that. */
void inbox_read(struct inbox *in);

#endif
