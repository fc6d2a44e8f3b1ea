/* SPDX-License-Identifier: MIT */
/*
 * A radio link between the host's queue and the delay line:
 *
 *   host's queue -> gate -> firmware -> grants
 *                     ^                   |
 *                     +---- telemetry <---+
 *
 * It is a model. That grants follow reports of the firmware's bytes, and that
 * the host learns of both some 100 ms late, is published; how long a grant
 * takes is not: 8 ms is the laboratory's.
 *
 * Time is handed in, as to the link. What happens at one moment happens in
 * this order: a grant takes effect, the gate lets pass, the base station is
 * told and gives, telemetry comes, the gate lets pass. While the firmware is
 * empty and everybody knows it, nothing happens.
 */
#ifndef LINKEM_RADIO_H
#define LINKEM_RADIO_H

#include <stdbool.h>
#include <stdint.h>

#include "../../mux/base/hist.h"
#include "estimate.h"
#include "firmware.h"
#include "gate.h"
#include "grants.h"
#include "report.h"
#include "telemetry.h"

/* What the link does for it. */
struct radio_link {
	bool (*waits)(void *arg);
	struct packet *(*take)(void *arg, int64_t at);
	void (*sent)(void *arg, struct packet *p, int64_t at);
	/* Of @wanted bytes what it carries in an interval from @at on. */
	uint64_t (*carries)(void *arg, int64_t at, uint64_t wanted);
	void (*fell_open)(void *arg, int64_t at);
	void *arg;
};

struct radio_spec {
	struct grants_spec grants;
	struct gate_spec gate;
	struct report_spec report;
	double firmware_kb;
	double telemetry_ms;	/* below 0: nothing is told */
};

struct radio {
	bool is_on;
	int64_t clock;		/* until when it was run */
	struct report report;
	struct firmware firmware;
	struct grants grants;
	struct telemetry telemetry;
	struct estimate estimate;
	struct gate gate;
	int64_t tick;		/* the next report; NEVER: none is needed */
	int64_t told;		/* when the last one was */
	uint64_t granted, padded;	/* until then */
	bool is_known_empty;	/* the last one said so */
	bool said;		/* that the gate fell open */
	struct hist host_us, firmware_us;	/* waits of packets */
};

void radio_init(struct radio *r);
void radio_fini(struct radio *r);

/*
 * Takes over @spec from @now on. Without grants it is off: whoever turns it
 * off has taken what is in the firmware's queue.
 */
void radio_configure(struct radio *r, const struct radio_spec *spec,
		     int64_t now);

/* Its grid begins anew, its prediction too. */
void radio_restart(struct radio *r, int64_t now);

void radio_run(struct radio *r, const struct radio_link *link, int64_t now);

/* The next moment at which it does something; NEVER if none. */
int64_t radio_next(const struct radio *r, const struct radio_link *link);

#endif
