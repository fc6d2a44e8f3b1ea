/* SPDX-License-Identifier: MIT */
#ifndef LINKEM_JSON_H
#define LINKEM_JSON_H

#include <stdio.h>

/* @text as a JSON string; null for NULL. */
void json_string(FILE *out, const char *text);

#endif
