/* SPDX-License-Identifier: MIT */
#include "address.h"

#include <netinet/in.h>
#include <string.h>

#include "../base/addr.h"

struct sockaddr_storage destination_address(const struct destination *to)
{
	struct sockaddr_storage addr = { 0 };
	struct sockaddr_in6 *in6 = (void *)&addr;
	struct sockaddr_in *in = (void *)&addr;

	if (to->kind == DESTINATION_IPV6) {
		addr.ss_family = AF_INET6;
		memcpy(&in6->sin6_addr, to->bytes, 16);
		addr_unmap(&addr);
	} else {
		addr.ss_family = AF_INET;
		memcpy(&in->sin_addr, to->bytes, 4);
	}
	addr_set_port(&addr, to->port);
	return addr;
}

struct destination address_destination(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	uint8_t v4[4];

	if (addr_v4(addr, v4))
		return destination_ipv4(v4, addr_port(addr));
	return destination_ipv6(in6->sin6_addr.s6_addr, addr_port(addr));
}
