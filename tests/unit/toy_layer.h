/* SPDX-License-Identifier: MIT */
/*
 * A layer for tests: records of up to TOY_RECORD bytes behind their length, each
 * byte changed; a word each way as handshake; an empty record at the end. No
 * other library, so that what the engine does with layers is seen alone.
 */
#ifndef TM3_TEST_TOY_LAYER_H
#define TM3_TEST_TOY_LAYER_H

#include "mux/pipe/conduit.h"

enum { TOY_RECORD = 1000, TOY_OVERHEAD = 2 };

/* Those of @name. LP and RP agree when both have the same. */
struct toy_layers {
	struct layers layers;
	const char *name;
	unsigned int there;	/* layers that were not freed */
	bool is_short;		/* of memory for handshakes */
};

void toy_layers_init(struct toy_layers *toys, const char *name);

#endif
