/* SPDX-License-Identifier: MIT */
#include "udp_port.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "../mux/base/list.h"
#include "../mux/base/sock.h"

/* Datagrams that are read at once; then others have their turn. */
enum { READS = 64, DATAGRAM_MAX = 65536 };

static void readable(struct watch *w, uint32_t events)
{
	struct udp_port *port = container_of(w, struct udp_port, watch);
	uint8_t buf[DATAGRAM_MAX];
	int i;

	(void)events;
	for (i = 0; i < READS; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(w->fd, buf, sizeof(buf), 0,
				     (struct sockaddr *)&from, &len);

		if (n < 0)
			return;
		port->came(port, &from, buf, (size_t)n);
	}
}

int udp_port_open(struct udp_port *port, struct loop *loop,
		  const struct sockaddr_storage *addr)
{
	int err, fd = sock_bound_udp(addr);

	port->watch.ready = readable;
	if (fd < 0)
		return fd;
	err = sock_address(fd, &port->addr);
	if (!err)
		err = loop_watch(loop, &port->watch, fd, EPOLLIN);
	if (err)
		close(fd);
	return err;
}
