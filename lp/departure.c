/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "departure.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../mux/base/addr.h"
#include "../mux/base/sock.h"

static int bind_device(int fd, const char *device)
{
	return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device,
			  (socklen_t)strlen(device)) < 0 ? -errno : 0;
}

/* Which port is chosen by connect(), by where it goes: so there are enough of them. */
static int bind_address(int fd, const struct sockaddr_storage *src)
{
	int on = 1;

	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	return bind(fd, (const struct sockaddr *)src, addr_size(src)) < 0 ?
	       -errno : 0;
}

/* @fd, bound as @path says; or -errno, and it is closed. */
static int bind_to(int fd, const struct path_spec *path)
{
	bool bound = path->src.ss_family != AF_UNSPEC;
	int err = 0;

	if (*path->device)
		err = bind_device(fd, path->device);
	if (!err && bound)
		err = bind_address(fd, &path->src);
	if (!err)
		return fd;
	close(fd);
	return err;
}

int departure_socket(const struct path_spec *path, enum transport kind,
		     int family)
{
	int fd;

	if (path && path->src.ss_family != AF_UNSPEC &&
	    path->src.ss_family != family)
		return -EAFNOSUPPORT;
	fd = transport_socket(kind, family);
	return fd < 0 || !path ? fd : bind_to(fd, path);
}

/* For datagrams the kernel chooses as for pipes, and sends nothing. */
bool departure_is_from(const struct path_spec *path,
		       const struct sockaddr_storage *to,
		       const struct sockaddr_storage *from)
{
	struct sockaddr_storage now;
	bool same = true;
	int fd;

	if (!path || !*path->device)
		return true;
	fd = sock_udp(to->ss_family);
	if (fd >= 0)
		fd = bind_to(fd, path);
	if (fd < 0)
		return true;
	if (!connect(fd, (const struct sockaddr *)to, addr_size(to)) &&
	    !sock_address(fd, &now))
		same = addr_same_host(&now, from);
	close(fd);
	return same;
}
