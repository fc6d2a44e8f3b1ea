/* SPDX-License-Identifier: MIT */
/*
 * The addresses of this host, and which of its devices carry packets. They are read at the
 * start, and again whenever the kernel reports a change.
 *
 * A route may bring this host packets to addresses that no device has: one of type local
 * ("ip route add local 198.51.100.0/24 dev lo"), a subnet's anycast address, broadcast. The
 * kernel is asked about each address that is on none of the devices; an answer is good for
 * HOST_ASKED_MS, since who judges datagrams asks for each of them.
 *
 * Who wants to hear of changes is told of those of routes and links too: at once, and of
 * those that follow after HOST_SOON_MS, twice that, and at last every HOST_GATHER_MS. For
 * an address that goes is mostly followed by one that comes, and that is what matters.
 */
#ifndef TM3_HOST_H
#define TM3_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "loop.h"

struct log;

enum {
	HOST_SOON_MS = 5,
	HOST_GATHER_MS = 100,
	HOST_ASKED = 64,	/* answers that are kept, each in the place of its hash */
	HOST_ASKED_MS = 1000,
};

struct host_asked {
	struct in6_addr addr;
	int64_t until;		/* 0: nobody asked */
	bool own;
};

struct host {
	struct loop *loop;
	struct log *log;
	void (*changed)(struct host *h);	/* or NULL */
	struct timer gather;	/* until it may be called again, */
	int64_t pause;		/* for so long, in ms; */
	int64_t told_at;	/* it was called */
	bool more;		/* there was another change meanwhile */
	struct watch watch;	/* of the kernel's reports */
	struct in6_addr *addr;	/* IPv4 as ::ffff:a.b.c.d; sorted */
	size_t n;
	struct host_asked *asked;	/* NULL: for want of memory none are kept */
	unsigned int *running;	/* the index of each device that is up and has a link */
	size_t nrunning;
};

/*
 * Failures are said; without reports the addresses stay as they were read.
 * @changed may be NULL.
 */
void host_open(struct host *h, struct loop *loop, struct log *log,
	       void (*changed)(struct host *h));
void host_close(struct host *h);

/*
 * Is it one of this host's? Loopback (127.0.0.0/8 and ::1) is, too, and what a route brings
 * here. Whoever comes from such an address came from this host. One that the kernel cannot be
 * asked about (no descriptor is left) counts as this host's: that opens nothing. While none
 * could be read, the one that a socket can be bound to is this host's.
 */
bool host_has(const struct host *h, const struct sockaddr_storage *addr);
/* The same for who follows no changes: the kernel is asked, at the cost of a socket. */
bool host_owns(const struct sockaddr_storage *addr);

/* Is the device with this index there, and up, with a link? Also if that is not known. */
bool host_runs(const struct host *h, unsigned int device);

#endif
