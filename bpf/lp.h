/* SPDX-License-Identifier: MIT */
/*
 * LP, as the kernel sees it from outside.
 */
#ifndef TM3_BPF_LP_H
#define TM3_BPF_LP_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

/* Is loopback up? */
bool lp_can_be_reached(void);
/*
 * Does somebody listen on that port of the family's loopback address? Then
 * *@cgroup is the id of the cgroup that its socket was made in, or 0.
 */
bool lp_listens(int family, __be16 port, uint64_t *cgroup);

#endif
