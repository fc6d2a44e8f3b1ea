/* SPDX-License-Identifier: MIT */
/*
 * Addresses as a test writes them.
 */
#ifndef TM3_TEST_ADDR_H
#define TM3_TEST_ADDR_H

#include <stdint.h>
#include <sys/socket.h>

/* "192.0.2.1" or "2001:db8::1", and @port. */
struct sockaddr_storage address(const char *text, uint16_t port);

#endif
