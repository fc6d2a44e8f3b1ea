/* SPDX-License-Identifier: MIT */
#include "udp_port.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "../mux/base/addr.h"
#include "../mux/base/list.h"
#include "../mux/base/sock.h"
#include "../mux/base/udp_in.h"
#include "../mux/wire/wire.h"

/* SOCKS5's head in front of it; a name in there has 255 bytes and one for its length. */
enum { HEAD_MOST = 4 + 1 + 255 + 2 };

_Static_assert(UDP_IN_SLOT >= HEAD_MOST + WIRE_PAYLOAD_MAX,
	       "a datagram that fits into a message is read whole");

static void came(void *arg, struct sockaddr_storage *from, const uint8_t *buf,
		 size_t len)
{
	struct udp_port *port = arg;

	port->came(port, from, NULL, buf, len);
}

static void came_to(void *arg, struct sockaddr_storage *from,
		    const struct sockaddr_storage *to, const uint8_t *buf,
		    size_t len)
{
	struct udp_port *port = arg;

	port->came(port, from, to->ss_family ? to : NULL, buf, len);
}

static void readable(struct watch *w, uint32_t events)
{
	struct udp_port *port = container_of(w, struct udp_port, watch);

	(void)events;
	if (port->any)
		udp_in_read_to(w->fd, came_to, port);
	else
		udp_in_read(w->fd, came, port);
}

int udp_port_open(struct udp_port *port, struct loop *loop,
		  const struct sockaddr_storage *addr)
{
	int err, fd = sock_bound_udp(addr);

	port->watch.ready = readable;
	if (fd < 0)
		return fd;
	err = sock_address(fd, &port->addr);
	port->any = addr_is_any(addr);
	if (!err && port->any)
		err = udp_in_tell_to(fd, addr->ss_family);
	if (!err)
		err = loop_watch(loop, &port->watch, fd, EPOLLIN);
	if (err)
		close(fd);
	return err;
}
