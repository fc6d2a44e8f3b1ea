/* SPDX-License-Identifier: MIT */
/*
 * Real sockets for tests, on 127.0.0.1 only, and waiting without sleeping.
 */
#ifndef TM3_TEST_LOOPBACK_H
#define TM3_TEST_LOOPBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mux/base/loop.h"

/* A connected pair, both ends non-blocking; fails the test if it cannot. */
void tcp_pair(int fd[2]);

/* The same: an application's end, and one with the options of a connection's socket. */
void app_pair(int fd[2]);

/* A listening socket of @backlog; its port. */
int tcp_listen(int backlog, uint16_t *port);

/* A non-blocking socket whose connect() to 127.0.0.1:@port was begun. */
int tcp_connect(uint16_t port);

/* Takes a connection from @listener, non-blocking; waits up to 5 s for it. */
int tcp_accept(int listener);

/* Reads what is there: the bytes, 0 at the end, -errno. */
long read_some(int fd, void *buf, size_t size);

/* What goes from one end to the other waits in 16 KiB of buffers, or as few as there are. */
void small_buffers(int to, int from);

/* The end at @from can send no more: the other one takes nothing. */
void fill_socket(int from);

/*
 * Runs the loop until @done says so. False when 5 s went by without; the
 * name of what was waited for is then printed.
 */
bool run_until(struct loop *loop, const char *what, bool (*done)(void *arg),
	       void *arg);

/* What is pending now, and no waiting. */
void run_round(struct loop *loop);

/* run_until() for a clock that stands (halted.h): round after round, and no time goes by. */
bool run_rounds(struct loop *loop, const char *what, bool (*done)(void *arg),
		void *arg);

/* Runs the loop for @ms. Returns how much of a processor it took, in percent. */
double loop_load(struct loop *loop, int ms);

#endif
