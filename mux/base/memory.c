/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	LEAST = 1 << 20,
	KEPT_MAX = 4 << 20,	/* what runs of a bulk take and give back by turns */
	KEPT_SHARE = 16,	/* of what is allowed, at most */
	/*
	 * What is larger has pages of its own: a run is of the heap, a table of ids is
	 * not, as it takes only those of its pages that are used.
	 */
	MAPPED_FROM = 384 << 10,
};

/* "max", and what is no number, is no limit. */
static uint64_t limit_in(const char *path)
{
	FILE *f = fopen(path, "re");
	uint64_t bytes;

	if (!f)
		return UINT64_MAX;
	if (fscanf(f, "%" SCNu64, &bytes) != 1)
		bytes = UINT64_MAX;
	fclose(f);
	return bytes;
}

/* The limits in the files @name of the group @group below @root, and of those above it. */
static uint64_t least_on_the_way(const char *root, char *group,
				 const char *name)
{
	uint64_t least = UINT64_MAX, limit;
	char path[PATH_MAX];
	char *end;

	for (;;) {
		if (snprintf(path, sizeof(path), "%s%s/%s", root, group,
			     name) < (int)sizeof(path)) {
			limit = limit_in(path);
			least = limit < least ? limit : least;
		}
		end = strrchr(group, '/');
		if (!end)
			return least;
		*end = '\0';
	}
}

/* Is "memory" one of the names in "cpu,memory"? */
static bool is_of_memory(const char *controllers)
{
	const char *at = strstr(controllers, "memory");

	return at && (at == controllers || at[-1] == ',') &&
	       (!at[6] || at[6] == ',');
}

/* A line is "NUMBER:CONTROLLERS:GROUP"; of version 2 it is "0::GROUP". */
static uint64_t limit_of_line(char *line, const char *root)
{
	char *controllers = strchr(line, ':');
	char *group = controllers ? strchr(controllers + 1, ':') : NULL;
	char v1[PATH_MAX];

	if (!group)
		return UINT64_MAX;
	*controllers++ = '\0';
	*group++ = '\0';
	group[strcspn(group, "\n")] = '\0';
	if (!*controllers)
		return least_on_the_way(root, group, "memory.max");
	if (!is_of_memory(controllers) ||
	    snprintf(v1, sizeof(v1), "%s/memory", root) >= (int)sizeof(v1))
		return UINT64_MAX;
	return least_on_the_way(v1, group, "memory.limit_in_bytes");
}

uint64_t memory_allowed(uint64_t bytes, const char *groups, const char *root)
{
	FILE *f = fopen(groups, "re");
	char line[PATH_MAX];

	while (f && fgets(line, sizeof(line), f)) {
		uint64_t limit = limit_of_line(line, root);

		if (limit < bytes)
			bytes = limit;
	}
	if (f)
		fclose(f);
	return bytes < LEAST ? LEAST : bytes;
}

uint64_t memory_there_is(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	uint64_t bytes = UINT64_MAX;

	if (pages > 0 && size > 0)
		bytes = (uint64_t)pages * (uint64_t)size;
	return memory_allowed(bytes, "/proc/self/cgroup", "/sys/fs/cgroup");
}

void memory_keep(uint64_t allowed)
{
#ifdef __GLIBC__
	uint64_t kept = allowed / KEPT_SHARE;

	mallopt(M_TRIM_THRESHOLD, kept < KEPT_MAX ? (int)kept : KEPT_MAX);
	mallopt(M_MMAP_THRESHOLD, MAPPED_FROM);
#else
	(void)allowed;
#endif
}

void memory_give_back(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

void memory_forget(void *block, size_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)block + page - 1) / page * page;
	uintptr_t to = ((uintptr_t)block + size) / page * page;

	if (from < to)
		madvise((void *)from, to - from, MADV_DONTNEED);
}
