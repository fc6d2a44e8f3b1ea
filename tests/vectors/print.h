/* SPDX-License-Identifier: MIT */
/* The fields of messages as JSON, on stdout. */
#ifndef TM3_VECTORS_PRINT_H
#define TM3_VECTORS_PRINT_H

#include <stddef.h>
#include <stdint.h>

#include "mux/wire/wire.h"
#include "mux/wire/wire_ext.h"

/* , "name": "bytes in hex" */
void print_hex(const char *name, const uint8_t *bytes, size_t n);

/* "fields": { ... }} of a message that mux/ found sound */
void print_baseline(const struct wire_msg *msg);
void print_ext(const struct wire_ext *ext);

#endif
