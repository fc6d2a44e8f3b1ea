/* SPDX-License-Identifier: MIT */
#include "target.h"

#include <string.h>

#include "../mux/base/addr.h"
#include "../mux/base/resolver.h"
#include "../mux/conn/address.h"

struct destination target_ipv6(const uint8_t addr[16], uint16_t port)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

	if (!memcmp(addr, mapped, sizeof(mapped)))
		return destination_ipv4(addr + 12, port);
	return destination_ipv6(addr, port);
}

struct destination target_among(const struct answer *answer, uint16_t port)
{
	struct sockaddr_storage addr;
	unsigned int i = 0;

	while (i < answer->count && answer->addr[i].ss_family != AF_INET)
		i++;
	addr = answer->addr[i < answer->count ? i : 0];
	addr_set_port(&addr, port);
	return address_destination(&addr);
}
