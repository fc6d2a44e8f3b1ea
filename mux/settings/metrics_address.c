/* SPDX-License-Identifier: MIT */
#include "../base/addr.h"
#include "settings.h"

int metrics_address(const char *text, struct sockaddr_storage *addr)
{
	socklen_t len;

	if (addr_parse(text, "127.0.0.1", 0, addr, &len))
		return -1;
	return addr_port(addr) ? 0 : -1;
}
