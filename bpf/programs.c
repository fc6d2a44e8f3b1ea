/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "programs.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "options.h"
#include "say.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

extern const char redirect_begin[], redirect_end[];

/* Never redirected, nor reached through pipes: rp has others by these names. */
static const struct prefix always[] = {
	{ 96 + 8, { [10] = 0xff, 0xff, 0 } },		/* 0.0.0.0/8: this host */
	{ 96 + 8, { [10] = 0xff, 0xff, 127 } },
	{ 96 + 16, { [10] = 0xff, 0xff, 169, 254 } },
	{ 96 + 3, { [10] = 0xff, 0xff, 224 } },
	{ 127, { 0 } },					/* :: and ::1 */
	{ 10, { 0xfe, 0x80 } },
	{ 8, { 0xff } },
};

static int leave_alone(struct programs *p, const struct prefix *prefix)
{
	int map = bpf_object__find_map_fd_by_name(p->object, "tm3_except");
	__u8 yes = 1;

	return bpf_map_update_elem(map, prefix, &yes, BPF_ANY);
}

static bool prefix_of(const struct sockaddr *addr, struct prefix *own)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	const struct sockaddr_in *in = (const void *)addr;

	memset(own, 0, sizeof(*own));
	own->bits = 128;
	if (addr && addr->sa_family == AF_INET) {
		memset(own->addr + 10, 0xff, 2);
		memcpy(own->addr + 12, &in->sin_addr, 4);
		return true;
	}
	if (!addr || addr->sa_family != AF_INET6)
		return false;
	memcpy(own->addr, &in6->sin6_addr, 16);
	return true;
}

/* What this host listens on is not reached through RP. */
static int leave_own_alone(struct programs *p)
{
	struct ifaddrs *all, *it;
	struct prefix own;
	int err = 0;

	if (getifaddrs(&all))
		return -errno;
	for (it = all; it && !err; it = it->ifa_next) {
		if (prefix_of(it->ifa_addr, &own))
			err = leave_alone(p, &own);
	}
	freeifaddrs(all);
	return err;
}

static int set_exceptions(struct programs *p, const struct options *o)
{
	int err = leave_own_alone(p);
	unsigned int i;

	for (i = 0; i < sizeof(always) / sizeof(*always) && !err; i++)
		err = leave_alone(p, &always[i]);
	for (i = 0; i < o->nexcept && !err; i++)
		err = leave_alone(p, &o->except[i]);
	return err;
}

int programs_netns(__u64 *cookie)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*cookie);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, cookie, &len))
		err = -errno;
	close(fd);
	return err;
}

static int set_state(struct programs *p, const struct options *o,
		     const char *whose)
{
	int map = bpf_object__find_map_fd_by_name(p->object, "tm3_state");
	struct state state = { .pid = (__u32)getpid() };
	int zero = 0, err = programs_netns(&state.netns);

	if (err)
		return err;
	snprintf(state.ports, sizeof(state.ports), "%s", o->ports);
	snprintf(state.whose, sizeof(state.whose), "%s", whose);
	return bpf_map_update_elem(map, &zero, &state, BPF_ANY);
}

void programs_held_by(struct programs *p, int pid)
{
	int map = bpf_object__find_map_fd_by_name(p->object, "tm3_state");
	struct state state;
	int zero = 0;

	if (bpf_map_lookup_elem(map, &zero, &state))
		return;
	state.pid = (__u32)pid;
	bpf_map_update_elem(map, &zero, &state, BPF_ANY);
}

static int set_settings(struct programs *p, const struct options *o)
{
	struct settings settings = o->settings;
	struct bpf_map *map;
	int err = programs_netns(&settings.netns);

	if (err)
		return err;
	bpf_object__for_each_map(map, p->object) {
		if (!strcmp(bpf_map__name(map), ".rodata.settings"))
			return bpf_map__set_initial_value(map, &settings,
							  sizeof(settings));
	}
	return -ENOENT;
}

static int load(struct programs *p, const struct options *o)
{
	LIBBPF_OPTS(bpf_object_open_opts, how, .object_name = "tm3");
	int err;

	p->object = bpf_object__open_mem(redirect_begin,
		(size_t)(redirect_end - redirect_begin), &how);
	if (!p->object)
		return -errno;
	err = set_settings(p, o);
	return err ? err : bpf_object__load(p->object);
}

static int attach(struct programs *p, int cgroup)
{
	struct bpf_program *program;
	int i = 0;

	bpf_object__for_each_program(program, p->object) {
		p->links[i] = bpf_program__attach_cgroup(program, cgroup);
		if (!p->links[i])
			return -errno;
		i++;
	}
	return 0;
}

static const char *reason(int err)
{
	switch (-err) {
	case EPERM:
	case EACCES:
		return "the kernel does not permit it; it takes root with all its "
		       "capabilities";
	case ENOSYS:
		return "this kernel has no BPF";
	case EINVAL:
	case ENOPROTOOPT:
	case EOPNOTSUPP:
		return "this kernel cannot do all that it takes: Linux 5.14 or "
		       "later with CONFIG_CGROUP_BPF";
	default:
		return strerror(-err);
	}
}

/* libbpf's own words are a page long: only for who asks for them. */
static int words(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	return getenv("TM3_BPF_VERBOSE") ? vfprintf(stderr, format, args) : 0;
}

int programs_attach(struct programs *p, const struct options *o, int cgroup,
		    const char *whose)
{
	int err;

	memset(p, 0, sizeof(*p));
	libbpf_set_print(words);
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	err = load(p, o);
	if (err) {
		say("the BPF programs cannot be loaded: %s", reason(err));
		goto detach;
	}
	err = set_exceptions(p, o);
	if (!err)
		err = set_state(p, o, whose);
	if (err) {
		say("the BPF programs cannot be set up: %s", strerror(-err));
		goto detach;
	}
	err = attach(p, cgroup);
	if (!err)
		return 0;
	say("the BPF programs cannot be attached to %s: %s", whose, err == -EPERM ?
	    "a cgroup above it, or others' programs there, do not allow it" :
	    reason(err));
detach:
	programs_detach(p);
	return -1;
}

void programs_detach(struct programs *p)
{
	int i;

	for (i = 0; i < PROGRAMS; i++)
		bpf_link__destroy(p->links[i]);
	bpf_object__close(p->object);
	memset(p, 0, sizeof(*p));
}
