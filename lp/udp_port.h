/* SPDX-License-Identifier: MIT */
/*
 * A port where applications' datagrams come in.
 */
#ifndef TM3_UDP_PORT_H
#define TM3_UDP_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "../mux/base/loop.h"

struct udp_port {
	struct watch watch;	/* its owner closes it: loop_close() */
	struct sockaddr_storage addr;
	bool any;		/* it is at all of this host's addresses */
	/*
	 * One came; of @len bytes UDP_IN_SLOT are there. @to: which address it was sent to,
	 * where that can be several, or NULL. The port must stay open meanwhile.
	 */
	void (*came)(struct udp_port *port, const struct sockaddr_storage *from,
		     const struct sockaddr_storage *to,
		     const uint8_t *payload, size_t len);
};

/* port->came is set. At @addr; if its port is 0 port->addr says which. 0 or -errno. */
int udp_port_open(struct udp_port *port, struct loop *loop,
		  const struct sockaddr_storage *addr);

#endif
