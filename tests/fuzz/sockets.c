/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "mux/conn/conn.h"

static struct sockaddr_in loopback(void)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

static int listener(struct sockaddr_in *addr)
{
	static struct sockaddr_in bound;
	static int fd = -1;
	socklen_t len = sizeof(bound);

	if (fd < 0) {
		bound = loopback();
		fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		check(fd >= 0);
		check(!bind(fd, (struct sockaddr *)&bound, len));
		check(!listen(fd, 64));
		check(!getsockname(fd, (struct sockaddr *)&bound, &len));
	}
	*addr = bound;
	return fd;
}

void loopback_listener(struct sockaddr_in *addr)
{
	listener(addr);
}

int begin_connect(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct sockaddr_in addr;

	check(fd >= 0);
	listener(&addr);
	check(!connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	      errno == EINPROGRESS);
	return fd;
}

int take_connect(void)
{
	struct sockaddr_in addr;
	struct pollfd ready = { .fd = listener(&addr), .events = POLLIN };
	int fd;

	/* Mostly it is there at once; a busy kernel hands it over later. */
	check(poll(&ready, 1, 10000) == 1);
	fd = accept4(ready.fd, NULL, NULL, SOCK_NONBLOCK);
	check(fd >= 0);
	return fd;
}

void stream_pair(bool tcp, int fd[2])
{
	if (tcp) {
		fd[0] = begin_connect();
		fd[1] = take_connect();
	} else {
		check(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
				  fd));
	}
}

void app_pair(bool tcp, int fd[2])
{
	stream_pair(tcp, fd);
	conn_prepare(fd[1]);
}

enum { WATCHED = 128 };		/* descriptors, and given out lowest first */

static bool was_open[WATCHED];

/* One call for all: poll() marks those that are not open. */
static void look_at_all(bool open[WATCHED])
{
	struct pollfd all[WATCHED];

	for (int fd = 0; fd < WATCHED; fd++)
		all[fd] = (struct pollfd){ .fd = fd };
	check(poll(all, WATCHED, 0) >= 0);
	for (int fd = 0; fd < WATCHED; fd++)
		open[fd] = !(all[fd].revents & POLLNVAL);
}

void descriptors_begin(void)
{
	struct sockaddr_in addr;

	listener(&addr);
	look_at_all(was_open);
}

void descriptors_end(void)
{
	bool open[WATCHED];

	look_at_all(open);
	for (int fd = 0; fd < WATCHED; fd++)
		check(open[fd] == was_open[fd]);
}
