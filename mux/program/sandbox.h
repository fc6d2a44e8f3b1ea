/* SPDX-License-Identifier: MIT */
/*
 * What this process may never ask of the kernel again: to run programs, to look
 * into other processes, to mount, to load modules, and so on. It parses what
 * strangers send; who makes it run code of theirs finds less to do. The list, and
 * why it is one of what is forbidden, is in docs/decisions/0020.
 */
#ifndef TM3_SANDBOX_H
#define TM3_SANDBOX_H

/*
 * For this thread, and for those that it starts from now on; so call it before
 * there are others. There is no way back. What is forbidden fails with EPERM. Returns
 * 0; -ENOSYS where no filter was written for this machine; or -errno of a kernel, or
 * a container, that takes none.
 */
int sandbox_enter(void);

#endif
