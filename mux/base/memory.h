/* SPDX-License-Identifier: MIT */
/*
 * How much memory this process may have at most: what the machine has, or what its
 * control group and those above it allow, of version 2 or 1, where that is less.
 */
#ifndef TM3_MEMORY_H
#define TM3_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Bytes; never 0. */
uint64_t memory_there_is(void);

/*
 * The same of a machine that has @bytes, whose /proc/self/cgroup is the file
 * @groups, and whose groups lie below the directory @root. What cannot be read
 * does not limit.
 */
uint64_t memory_allowed(uint64_t bytes, const char *groups, const char *root);

/*
 * Of a process that may have @allowed bytes: how much of what it freed it has at hand
 * for use again. A heap that gives all of it back at once asks for it again for the next
 * megabyte, page by page. musl's heap has its own way.
 */
void memory_keep(uint64_t allowed);
/* What it has at hand goes back to the system now: it takes time, and so does the next megabyte. */
void memory_give_back(void);
/* So does what lies in the whole pages of @block, which stays there to be written. */
void memory_forget(void *block, size_t size);

#endif
