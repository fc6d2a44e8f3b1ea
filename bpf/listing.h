/* SPDX-License-Identifier: MIT */
/*
 * Who redirects in this network namespace: found among all links of the kernel,
 * by the programs' names.
 */
#ifndef TM3_BPF_LISTING_H
#define TM3_BPF_LISTING_H

/* To standard output. 0, or -1: it cannot be told, and why was said. */
int listing_print(void);

#endif
