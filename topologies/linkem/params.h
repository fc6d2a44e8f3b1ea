/* SPDX-License-Identifier: MIT */
/*
 * What one direction of the link is, as `key=value` words: the same on the
 * command line, in the control socket's `set` and in the truth. The table in
 * params.c is the one list of them; --help prints it.
 */
#ifndef LINKEM_PARAMS_H
#define LINKEM_PARAMS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "delays.h"
#include "interactive.h"
#include "jitter.h"
#include "loss.h"
#include "radio.h"
#include "trace.h"

enum params_aqm { AQM_TAIL, AQM_CODEL };
enum params_loss_at { LOSS_AT_ENTRY, LOSS_AT_EXIT };

struct params {
	double rate_mbps;		/* 0 = none */
	char *trace_path;		/* NULL = none; owned */
	struct trace trace;
	double trace_bytes;		/* 0 = a whole packet */
	double overhead_bytes;
	double delay_ms;
	char *delays_path;		/* NULL = none; owned */
	struct delays delays;		/* in place of delay_ms */
	double jitter_ms;
	int jitter_dist;		/* enum jitter_dist */
	int jitter_reorder;		/* bool */
	double queue_ms;		/* each limit: 0 = none */
	double queue_bytes;
	double queue_packets;
	int aqm;			/* enum params_aqm; without a radio */
	double codel_target_ms;
	double codel_interval_ms;
	struct loss loss;
	int loss_at;			/* enum params_loss_at */
	double duplicate;
	double reorder;
	double reorder_ms;
	struct radio_spec radio;
	int host;			/* enum host_order, of a radio link */
	struct interactive interactive;
};

/* An unlimited link without delay or loss. */
void params_init(struct params *p);
void params_fini(struct params *p);
int params_copy(struct params *to, const struct params *from);

/*
 * Takes words `key=value` between blanks; a backslash makes the next character
 * an ordinary one. 0, or -errno with one line that names the key in @why; @p
 * may then hold some of the words: work on a copy.
 */
int params_set(struct params *p, const char *words, char *why, size_t why_len);

/* Whether what was set goes together; the same answers as params_set(). */
int params_check(const struct params *p, char *why, size_t why_len);

bool params_has_radio(const struct params *p);

/* A JSON object with everything in force. */
void params_print(const struct params *p, FILE *out);

/* The table, for --help. */
void params_help(FILE *out);

#endif
