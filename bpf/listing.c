/* SPDX-License-Identifier: MIT */
#include "listing.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "programs.h"
#include "redirect.h"
#include "say.h"

enum { MAPS_MAX = 8 };

/* One of them stands for all five. */
#define PROGRAM "tm3_connect4"

static int state_in(__u32 id, struct state *state)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);
	int fd = bpf_map_get_fd_by_id(id), zero = 0, err;

	if (fd < 0)
		return -errno;
	err = bpf_obj_get_info_by_fd(fd, &info, &len);
	if (!err && (strcmp(info.name, "tm3_state") || info.value_size != sizeof(*state)))
		err = -ENOENT;
	if (!err)
		err = bpf_map_lookup_elem(fd, &zero, state);
	close(fd);
	return err;
}

static int state_of(__u32 program, struct state *state)
{
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info), maps[MAPS_MAX], i;
	int fd = bpf_prog_get_fd_by_id(program), err;

	if (fd < 0)
		return -errno;
	info.nr_map_ids = MAPS_MAX;
	info.map_ids = (__u64)(unsigned long)maps;
	err = bpf_obj_get_info_by_fd(fd, &info, &len);
	close(fd);
	if (err || strcmp(info.name, PROGRAM))
		return -ENOENT;
	for (i = 0; i < info.nr_map_ids && i < MAPS_MAX; i++) {
		if (!state_in(maps[i], state))
			return 0;
	}
	return -ENOENT;
}

static void print(const struct state *s)
{
	printf("tm3ctl: on (bpf): process %u redirects port %.*s of %.*s\n", s->pid,
	       WORDS_MAX, s->ports, WORDS_MAX, s->whose);
	printf("redirected %llu\nbound %llu\ndropped %llu\n",
	       (unsigned long long)s->redirected, (unsigned long long)s->bound,
	       (unsigned long long)s->dropped);
}

int listing_print(void)
{
	struct bpf_link_info info;
	struct state state;
	__u32 id = 0, len;
	__u64 here;
	int fd;

	if (programs_netns(&here)) {
		say("this kernel cannot tell network namespaces apart: Linux 5.14 or later");
		return -1;
	}
	while (!bpf_link_get_next_id(id, &id)) {
		fd = bpf_link_get_fd_by_id(id);
		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0)
			break;
		memset(&info, 0, sizeof(info));
		len = sizeof(info);
		if (!bpf_obj_get_info_by_fd(fd, &info, &len) &&
		    info.type == BPF_LINK_TYPE_CGROUP &&
		    !state_of(info.prog_id, &state) && state.netns == here)
			print(&state);
		close(fd);
	}
	if (errno == ENOENT || errno == ENOSYS)
		return 0;
	say("what is redirected by BPF cannot be seen: %s", strerror(errno));
	return -1;
}
