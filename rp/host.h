/* SPDX-License-Identifier: MIT */
/*
 * The addresses of this host, which count as loopback: services that listen
 * on them may trust whoever reaches them from within.
 *
 * They are read at the start, and again whenever the kernel reports a change.
 */
#ifndef TM3_RP_HOST_H
#define TM3_RP_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "../mux/base/loop.h"

struct log;

struct host {
	struct loop *loop;
	struct log *log;
	struct watch watch;	/* of the kernel's reports */
	struct in6_addr *addr;	/* IPv4 as ::ffff:a.b.c.d; sorted */
	size_t n;
};

/* Failures are said; without reports the addresses stay as they were read. */
void host_open(struct host *h, struct loop *loop, struct log *log);
void host_close(struct host *h);

/*
 * Is it one of this host's? Loopback (127.0.0.0/8 and ::1) is, too. Whoever comes
 * from such an address came from this host.
 */
bool host_has(const struct host *h, const struct sockaddr_storage *addr);

#endif
