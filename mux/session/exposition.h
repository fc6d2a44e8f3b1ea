/* SPDX-License-Identifier: MIT */
/*
 * All sessions of a process in Prometheus' text format, version 0.0.4.
 *
 * What has no labels is of the process, all of its sessions that ever were
 * included. How many lines there are is bounded: the oldest EXPOSED_SESSIONS have
 * lines of their own, and their pipes up to EXPOSED_PIPES together.
 */
#ifndef TM3_EXPOSITION_H
#define TM3_EXPOSITION_H

#include <stdio.h>

enum { EXPOSED_SESSIONS = 64, EXPOSED_PIPES = 256 };

struct engine;

/* @engine: the first of the process. @program: "rp". The kernel is asked about each pipe. */
void exposition_write(struct engine *engine, const char *program, FILE *out);

#endif
