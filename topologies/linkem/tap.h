/* SPDX-License-Identifier: MIT */
/*
 * One end of the link: a TAP device in a namespace. The process owns it, so it
 * goes with the process however that ends. It hands over what the kernel would
 * put on a wire: no virtio header, no checksum or segmentation left to do, and
 * TCP builds no super-packets for it (gso_max_segs 1), so that loss, queue and
 * rate act on packets also when a qdisc sits on the device.
 */
#ifndef LINKEM_TAP_H
#define LINKEM_TAP_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct tap_spec {
	const char *netns;		/* as netns_open() takes it */
	const char *dev;
	uint8_t mac[6];
	bool has_mac;			/* else the kernel's choice */
	uint32_t mtu;
	bool ipv6;			/* leave IPv6 on */
};

struct tap {
	int fd;
	int rtnl;
	int ifindex;
	char dev[IFNAMSIZ];
	const char *netns;
	uint8_t mac[6];
	uint32_t mtu;
	bool ipv6;
	bool tso, gso, gro;		/* as read back */
	uint32_t gso_max_segs;
};

/*
 * Makes the device in the namespace @netns and sets it up; the thread ends
 * where it was, in @home. 0, or -errno with what failed in @why.
 */
int tap_open(struct tap *tap, const struct tap_spec *spec, int netns, int home,
	     char *why, size_t why_len);
void tap_close(struct tap *tap);

/* One frame; -EAGAIN if there is none. */
ssize_t tap_read(const struct tap *tap, void *frame, size_t room);
bool tap_write(const struct tap *tap, const void *frame, size_t len);

/* A JSON object about the device, with the packets the kernel dropped. */
void tap_print(const struct tap *tap, FILE *out);

#endif
