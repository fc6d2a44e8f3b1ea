/* SPDX-License-Identifier: MIT */
/* Bytes that one application sends to another through the proxies; each is checked. */
#ifndef TM3_TEST_FLOW_H
#define TM3_TEST_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FLOOD = 40 << 20, FLOW_CHUNK = 1 << 16 };

struct flow {
	int from, to;
	size_t sent, got, all;
};

/* Sends as much as is taken, FLOW_CHUNK at most. */
void flow_push(struct flow *f);
/* Sends and reads some. True: all has come. @arg: a struct flow. */
bool flows(void *arg);

#endif
