/* SPDX-License-Identifier: MIT */
/*
 * Sockets for fuzz targets: made fast, on loopback only, and counted.
 */
#ifndef TM3_FUZZ_SOCKETS_H
#define TM3_FUZZ_SOCKETS_H

#include <stdbool.h>

struct sockaddr_in;

/* A connected pair of non-blocking streams, by TCP or within the kernel. */
void stream_pair(bool tcp, int fd[2]);

/* The same: an application's end, and one with the options of a connection's socket. */
void app_pair(bool tcp, int fd[2]);

/*
 * The two halves of a TCP pair one by one: a connect() that was only begun, to
 * a listener that lives as long as the process, and who arrived there.
 */
int begin_connect(void);
int take_connect(void);
/* Where it listens. */
void loopback_listener(struct sockaddr_in *addr);

/*
 * descriptors_begin() before a run; descriptors_end() after it fails the run if
 * it left one open, or closed one that was not its own.
 */
void descriptors_begin(void);
void descriptors_end(void);

#endif
