/* SPDX-License-Identifier: MIT */
/* Numbers as people write them, and nothing behind them. */
#ifndef LINKEM_NUMBER_H
#define LINKEM_NUMBER_H

#include <stdint.h>

/* A finite decimal that is the whole text; -EINVAL for anything else. */
int number_parse(const char *text, double *value);

/* Digits at the start of @text; @end is behind them. */
int number_whole(const char *text, char **end, uint64_t *value);

/* Digits, maybe with a point, and @unit at *@text, which is behind both then. */
int number_unit(const char **text, const char *unit, double *value);

#endif
