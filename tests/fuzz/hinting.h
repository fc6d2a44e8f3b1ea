/* SPDX-License-Identifier: MIT */
/* What either end tells the other of connections' bytes, as the input has it. */
#ifndef TM3_FUZZ_HINTING_H
#define TM3_FUZZ_HINTING_H

#include "input.h"

struct session;

/* @s, if it is there, says something of one of the first connections; or is told it. */
void hinting_play(struct session *s, struct input *in);

#endif
