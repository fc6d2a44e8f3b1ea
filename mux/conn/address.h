/* SPDX-License-Identifier: MIT */
/*
 * A destination as sockets have it, and back. IPv6 that only wraps IPv4 is IPv4 in
 * either way: so it goes out, and so any rp can be asked for it.
 */
#ifndef TM3_ADDRESS_H
#define TM3_ADDRESS_H

#include <sys/socket.h>

#include "../wire/destination.h"

/* @to is no name. */
struct sockaddr_storage destination_address(const struct destination *to);
/* @addr and its port. */
struct destination address_destination(const struct sockaddr_storage *addr);

#endif
