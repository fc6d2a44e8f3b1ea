/* SPDX-License-Identifier: MIT */
/*
 * What a frame is to the link. IPv4 and IPv6 packets are numbered: rate, queue
 * and chance apply to them. ARP, IPv6's neighbour discovery and multicast
 * listener reports, and everything that is not IP, come and go as the kernels
 * please; they only take the propagation delay and have no number, so that
 * they cannot shift the fate of the packets that an experiment sends.
 */
#ifndef LINKEM_FRAME_H
#define LINKEM_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRAME_HEADER = 14 };	/* Ethernet: two addresses and a type */

bool frame_is_numbered(const uint8_t *frame, size_t len);

#endif
