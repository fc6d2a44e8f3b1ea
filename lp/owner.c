/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the user --- */

/* The kernel's overflowuid: so it names all users that a namespace has not. */
enum { UNMAPPED_USER = (uint16_t)-2 };

/* Without such a file the kernel has no user namespaces. */
bool owner_knows_users(void)
{
	FILE *map = fopen("/proc/self/uid_map", "re");
	unsigned long long count, all = 0;

	if (!map)
		return errno == ENOENT;
	while (fscanf(map, "%*u %*u %llu", &count) == 1)
		all += count;
	fclose(map);
	return all >= UINT32_MAX;	/* -1 is no user */
}

int owner_open(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
			NETLINK_SOCK_DIAG);

	return fd < 0 ? -errno : fd;
}

struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 body;
};

static void put(const struct sockaddr_storage *addr, __be16 *port,
		__be32 bytes[4])
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	const struct sockaddr_in *in = (const void *)addr;

	/* sin_port lies where sin6_port does. */
	*port = in->sin_port;
	if (addr->ss_family == AF_INET6)
		memcpy(bytes, &in6->sin6_addr, sizeof(in6->sin6_addr));
	else
		memcpy(bytes, &in->sin_addr, sizeof(in->sin_addr));
}

static int ask(int diag, const struct sockaddr_storage *from,
	       const struct sockaddr_storage *to)
{
	struct question q = {
		.head = { .nlmsg_len = sizeof(q), .nlmsg_flags = NLM_F_REQUEST,
			  .nlmsg_type = SOCK_DIAG_BY_FAMILY },
		.body = { .sdiag_family = (uint8_t)from->ss_family,
			  .sdiag_protocol = IPPROTO_TCP,
			  .idiag_states = UINT32_MAX,
			  .id.idiag_cookie = { INET_DIAG_NOCOOKIE,
					       INET_DIAG_NOCOOKIE } },
	};

	put(from, &q.body.id.idiag_sport, q.body.id.idiag_src);
	put(to, &q.body.id.idiag_dport, q.body.id.idiag_dst);
	return send(diag, &q, sizeof(q), 0) < 0 ? -errno : 0;
}

static int read_error(const struct nlmsghdr *head)
{
	const struct nlmsgerr *said = NLMSG_DATA(head);

	if (head->nlmsg_len < NLMSG_LENGTH(sizeof(*said)) || said->error >= 0)
		return -EPROTO;
	return said->error;
}

/* The kernel has answered when send() returns. */
static int hear(int diag, struct owner *owner)
{
	union {
		struct nlmsghdr head;
		char bytes[1024];
	} in;
	ssize_t len = recv(diag, &in, sizeof(in), 0);
	const struct inet_diag_msg *said = NLMSG_DATA(&in.head);

	if (len < 0)
		return -errno;
	if (!NLMSG_OK(&in.head, len))
		return -EPROTO;
	if (in.head.nlmsg_type == NLMSG_ERROR)
		return read_error(&in.head);
	if (in.head.nlmsg_len < NLMSG_LENGTH(sizeof(*said)))
		return -EPROTO;
	/* One that was closed is nobody's. */
	if (!said->idiag_inode)
		return -ENOENT;
	if (said->idiag_uid == UNMAPPED_USER && !owner_knows_users())
		return -EOVERFLOW;
	*owner = (struct owner){ said->idiag_uid, said->idiag_inode };
	return 0;
}

int owner_find(int diag, const struct sockaddr_storage *from,
	       const struct sockaddr_storage *to, struct owner *owner)
{
	int err;

	if (diag < 0)
		return diag;
	if (from->ss_family != to->ss_family)
		return -ENOENT;
	err = ask(diag, from, to);
	return err ? err : hear(diag, owner);
}

/* --- the program --- */

/* The first one is root's, whatever else runs. */
bool owner_sees_processes(void)
{
	return !access("/proc/1", F_OK);
}

/* Where @link leads, from the directory @at. 0 or -errno. */
static int follow(int at, const char *link, char to[PATH_MAX])
{
	ssize_t len = readlinkat(at, link, to, PATH_MAX - 1);

	if (len < 0)
		return -errno;
	to[len] = '\0';
	return 0;
}

static bool is_program(const char *path, const char *program)
{
	const char *slash = strrchr(path, '/');

	return !strcmp(strchr(program, '/') || !slash ? path : slash + 1,
		       program);
}

static DIR *open_dir(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int err = errno;

	if (!dir && fd >= 0)
		close(fd);
	errno = err;
	return dir;
}

/* In /proc/PID/fd: 1 or 0, or -errno. */
static int has_socket(int process, unsigned int inode)
{
	DIR *dir = open_dir(process, "fd");
	char wanted[32], is[PATH_MAX];
	struct dirent *entry;
	int has = 0;

	if (!dir)
		return -errno;
	snprintf(wanted, sizeof(wanted), "socket:[%u]", inode);
	while (!has && (entry = readdir(dir)))
		has = !follow(dirfd(dir), entry->d_name, is) &&
		      !strcmp(is, wanted);
	closedir(dir);
	return has;
}

static bool is_of(int process, uid_t user)
{
	struct stat of;

	return !fstat(process, &of) && of.st_uid == user;
}

/* Is it this @process, a directory of /proc? As owner_runs(). */
static int is_it(int process, const struct owner *owner, const char *program)
{
	char path[PATH_MAX];
	int err = follow(process, "exe", path);

	if (!err)
		return is_program(path, program) ?
			has_socket(process, owner->inode) : 0;
	/* It has just ended, or it is a thread of the kernel. */
	return err == -ENOENT || err == -ESRCH ? 0 : err;
}

int owner_runs(const struct owner *owner, const char *program)
{
	DIR *all = opendir("/proc");
	struct dirent *entry;
	int is = 0, err = 0;
	bool seen = false;

	if (!all)
		return -errno;
	while (is != 1 && (entry = readdir(all))) {
		int process;

		if (*entry->d_name < '1' || *entry->d_name > '9')
			continue;
		process = openat(dirfd(all), entry->d_name,
				 O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (process < 0)
			continue;
		is = 0;
		if (is_of(process, owner->user)) {
			is = is_it(process, owner, program);
			seen = true;
		}
		close(process);
		if (is < 0)
			err = is;
	}
	closedir(all);
	if (!seen)
		return -ESRCH;
	return is == 1 ? 1 : err;
}
