/* SPDX-License-Identifier: MIT */
/*
 * Applications on one side of a session: the far ends of its connections'
 * sockets. The input says what they do.
 */
#ifndef TM3_FUZZ_APPS_H
#define TM3_FUZZ_APPS_H

#include <stdint.h>

struct conn;
struct loop;
struct session;

enum { APPS = 16 };

struct apps {
	int fd[APPS];		/* -1 where free */
};

void apps_init(struct apps *apps);
void apps_fini(struct apps *apps);

/* A free place, or NULL. */
int *apps_place(struct apps *apps);

/* One of them writes, reads, ends, resets or vanishes, as @what says. */
void apps_play(struct apps *apps, uint8_t what);

/* @c came from the other end, and its port says how its destination does. */
void apps_serve(struct apps *apps, struct conn *c);

/* One opens a connection from here, if the session takes it. */
void apps_open(struct apps *apps, struct session *s, uint16_t port);

/* One round of @loop: what is ready, what is due, the tasks after it. */
void run_round(struct loop *loop);

#endif
