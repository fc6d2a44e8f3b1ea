/* SPDX-License-Identifier: MIT */
/*
 * A rate as Mahimahi writes it: one line for each opportunity to deliver one
 * MTU-sized packet, holding the milliseconds since the start. The lines never
 * go back; the last is the length of the period, after which it all repeats.
 * An opportunity that finds nothing to send is wasted.
 */
#ifndef LINKEM_TRACE_H
#define LINKEM_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace {
	uint32_t *at_ms;	/* owned */
	size_t n;
	size_t next;		/* the opportunity that comes next */
	int64_t base;		/* when the present period began */
	bool started;
	uint64_t passed;	/* opportunities behind us */
};

/* 0, or -errno with one line in @why. */
int trace_load(struct trace *t, const char *path, char *why, size_t why_len);
int trace_copy(struct trace *to, const struct trace *from);
void trace_fini(struct trace *t);

/* The period begins at @now. */
void trace_start(struct trace *t, int64_t now);

int64_t trace_peek(const struct trace *t);
void trace_use(struct trace *t);

/* Lets everything before @now pass unused, however long that was. */
void trace_skip(struct trace *t, int64_t now);

/* Opportunities of @bytes each as a mean rate in bit/s. */
uint64_t trace_rate(const struct trace *t, uint32_t bytes);

#endif
