/* SPDX-License-Identifier: MIT */
/*
 * Addresses as a getaddrinfo() of a test hands them out. It brings the freeaddrinfo() that goes
 * with them, so it is linked into the tests alone that have such a getaddrinfo().
 */
#ifndef TM3_TEST_ADDRINFO_H
#define TM3_TEST_ADDRINFO_H

#include <netdb.h>

/* "192.0.2.1", in front of @next. */
struct addrinfo *an_address(const char *text, struct addrinfo *next);

#endif
