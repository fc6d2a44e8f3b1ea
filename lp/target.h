/* SPDX-License-Identifier: MIT */
/*
 * Where an application wants to go, from what the kernel or a name server said.
 */
#ifndef TM3_TARGET_H
#define TM3_TARGET_H

#include <stdint.h>
#include <sys/socket.h>

#include "../mux/wire/destination.h"

struct answer;

/* IPv6 that only wraps IPv4 is IPv4, which any rp can be asked for. */
struct destination target_ipv6(const uint8_t addr[16], uint16_t port);
/*
 * One of the addresses of a name, and @port: of IPv4 if there is one, since it is
 * rp that has to get there, and what it has is not known here.
 */
struct destination target_among(const struct answer *answer, uint16_t port);

#endif
