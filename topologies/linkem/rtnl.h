/* SPDX-License-Identifier: MIT */
/* What only rtnetlink can tell or set of a device. */
#ifndef LINKEM_RTNL_H
#define LINKEM_RTNL_H

#include <stdint.h>

struct rtnl_link {
	uint32_t gso_max_segs;
	uint64_t tx_dropped, rx_dropped;
};

/* A socket in the present namespace, or -errno. */
int rtnl_open(void);

/* 0 or -errno. */
int rtnl_set_gso_max_segs(int fd, int ifindex, uint32_t segs);
int rtnl_get(int fd, int ifindex, struct rtnl_link *link);

#endif
