/* SPDX-License-Identifier: MIT */
/*
 * What --forward is told: "[udp:][ADDR:]PORT:HOST:PORT". Only text and addresses; the
 * sockets are forward's.
 */
#ifndef TM3_RULE_H
#define TM3_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "../mux/wire/destination.h"
#include "endpoint.h"

struct rule {
	bool udp;			/* datagrams, not connections */
	struct sockaddr_storage addr;	/* where LP listens */
	socklen_t addr_len;
	struct endpoint to;
	/* The same, if it is an address; else of kind DESTINATION_NAME. */
	struct destination dst;
};

/*
 * ADDR is numeric (IPv6 in brackets) and 127.0.0.1 if it is missing; HOST is a
 * name or an address (IPv6 in brackets). Returns 0, or -1 with what is wrong in @why.
 */
int rule_parse(struct rule *r, const char *text, char *why, size_t why_len);

#endif
