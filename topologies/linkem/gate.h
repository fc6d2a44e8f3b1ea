/* SPDX-License-Identifier: MIT */
/*
 * What lets packets pass from the host's queue into the firmware, so that
 * they wait where they can still be put in order:
 *
 *   none         all, until the firmware is full
 *   bytes:N      while fewer than N bytes wait in the firmware (QCUT-B)
 *   delay:MS     while these wait for no longer than MS there, at the rate
 *                predicted (QCUT-D)
 *
 * It knows the firmware by estimate. Where telemetry takes no time, which no
 * radio has, it sees the bytes themselves: what the best estimate would do.
 *
 * A gate does not wait for ever. When packets wait at it and no telemetry has
 * come for GATE_PATIENCE, it falls open until some does.
 */
#ifndef LINKEM_GATE_H
#define LINKEM_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "clock.h"
#include "estimate.h"

#define GATE_PATIENCE NS_PER_S

enum gate_kind { GATE_NONE, GATE_BYTES, GATE_DELAY };

struct gate_spec {
	enum gate_kind kind;
	double limit;		/* bytes, or ms */
};

struct gate {
	struct gate_spec spec;
	bool sees;		/* the bytes themselves */
	bool holds;		/* a packet waits at it */
	int64_t quiet;		/* since when telemetry is owed */
	bool fell;
	uint64_t falls;
};

int gate_parse(struct gate_spec *spec, const char *text, char *why,
	       size_t why_len);
void gate_print(const struct gate_spec *spec, FILE *out);

/* From when on a packet may pass; @bytes wait in truth. */
int64_t gate_opens(const struct gate *g, const struct estimate *e,
		   uint64_t bytes);

/* From @now on telemetry is owed, or has just come. */
void gate_owed(struct gate *g, int64_t now);
void gate_heard(struct gate *g, int64_t now);

/* When it falls open, unless something happens; NEVER. */
int64_t gate_falls(const struct gate *g);
void gate_fall(struct gate *g);

#endif
