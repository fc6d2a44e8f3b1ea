/* SPDX-License-Identifier: MIT */
/*
 * The programs in the kernel: loaded, attached, held.
 *
 * They are attached by links that nothing but this process has: when it ends, in
 * whatever way, the kernel takes them off the cgroup.
 */
#ifndef TM3_BPF_PROGRAMS_H
#define TM3_BPF_PROGRAMS_H

#include "redirect.h"

enum { PROGRAMS = 5 };

struct options;

/* The namespace in which this process, and so LP, is. 0 or -errno. */
int programs_netns(__u64 *cookie);

struct programs {
	struct bpf_object *object;
	struct bpf_link *links[PROGRAMS];
};

/* Or it says why not, and returns -1: nothing is attached then. */
int programs_attach(struct programs *p, const struct options *o, int cgroup,
		    const char *whose);
void programs_detach(struct programs *p);
/* Another process is to hold them from now on. Call this before anything is counted. */
void programs_held_by(struct programs *p, int pid);

#endif
