/* SPDX-License-Identifier: MIT */
/*
 * What a process remembers shall not end in a file when it crashes: keys, and
 * what people send.
 */
#ifndef TM3_CORE_DUMPS_H
#define TM3_CORE_DUMPS_H

/*
 * From now on this process leaves no core dump, neither as a file nor by a
 * program such as systemd-coredump, and only root may look into its memory. There is no
 * way back. Call it before a key is read. 0 or -errno.
 */
int core_dumps_off(void);

#endif
