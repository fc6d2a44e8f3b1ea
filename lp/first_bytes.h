/* SPDX-License-Identifier: MIT */
/*
 * The name that a client means, by the first bytes that it sends: the SNI of a TLS ClientHello,
 * or the Host of a cleartext HTTP/1.1 request. They may be cut anywhere: what is not there yet
 * is not known.
 */
#ifndef TM3_FIRST_BYTES_H
#define TM3_FIRST_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "endpoint.h"

/* False: they tell no name. */
bool first_bytes_name(const uint8_t *bytes, size_t len,
		      char name[HOST_MAX + 1]);

#endif
