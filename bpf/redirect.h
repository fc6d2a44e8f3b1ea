/* SPDX-License-Identifier: MIT */
/*
 * What the programs in the kernel and tm3bpf know of each other.
 */
#ifndef TM3_BPF_REDIRECT_H
#define TM3_BPF_REDIRECT_H

#include <linux/types.h>

enum { PORTS = 65536, WORDS_MAX = 128 };

/* An IPv4 address is wrapped into IPv6 (::ffff:a.b.c.d). */
struct wanted {
	__u8 addr[16];
	__be16 port;
};

/* A key of the trie of addresses that are left alone. */
struct prefix {
	__u32 bits;
	__u8 addr[16];
};

/* Set before the programs are loaded; constant from then on. */
struct settings {
	__u64 netns;		/* cookie of the network namespace with LP in it */
	__u64 ports[PORTS / 64];	/* a bit for each that is redirected */
	__be16 local_port;	/* of LP */
};

/* One for each tm3bpf that redirects. */
struct state {
	__u64 redirected;
	__u64 bound;		/* to a device: loopback is out of its reach */
	__u64 dropped;		/* no memory to remember where to */
	__u64 netns;		/* as in the settings */
	__u32 pid;		/* who holds the programs */
	char ports[WORDS_MAX];	/* as they were asked for */
	char whose[WORDS_MAX];	/* the cgroup */
};

#endif
