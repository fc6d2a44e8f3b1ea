/* SPDX-License-Identifier: MIT */
#include "socks_udp.h"

#include <string.h>

#include "socks.h"
#include "target.h"

/* Two reserved bytes, the fragment's number, the type of the address. */
enum { FIXED = 4, PORT = 2 };

static uint16_t port_at(const uint8_t *buf)
{
	return (uint16_t)(buf[0] << 8 | buf[1]);
}

/* Where the address begins, and how long it is; 0: it has no such type. */
static size_t address_size(const uint8_t *buf, size_t len, size_t *at)
{
	*at = FIXED;
	switch (buf[FIXED - 1]) {
	case SOCKS_TYPE_IPV4:
		return 4;
	case SOCKS_TYPE_IPV6:
		return 16;
	case SOCKS_TYPE_NAME:
		*at = FIXED + 1;
		return len > FIXED ? buf[FIXED] : 0;
	default:
		return 0;
	}
}

enum socks_udp_verdict socks_udp_get(const uint8_t *buf, size_t len,
				     struct destination *to, size_t *head)
{
	size_t at, size;
	uint16_t port;

	if (len < FIXED || buf[0] || buf[1])
		return SOCKS_UDP_GARBAGE;
	if (buf[2])
		return SOCKS_UDP_FRAGMENT;
	size = address_size(buf, len, &at);
	if (!size || len < at + size + PORT)
		return SOCKS_UDP_GARBAGE;
	port = port_at(buf + at + size);
	if (buf[FIXED - 1] == SOCKS_TYPE_IPV4)
		*to = destination_ipv4(buf + at, port);
	else if (buf[FIXED - 1] == SOCKS_TYPE_IPV6)
		*to = target_ipv6(buf + at, port);
	else
		*to = destination_name((const char *)buf + at, size, port);
	*head = at + size + PORT;
	return port && to->kind != DESTINATION_NONE ? SOCKS_UDP_SOUND :
						      SOCKS_UDP_GARBAGE;
}

size_t socks_udp_put(uint8_t head[SOCKS_UDP_HEAD_MAX],
		     const struct destination *from)
{
	size_t len = FIXED;

	memset(head, 0, FIXED);
	switch (from->kind) {
	case DESTINATION_IPV4:
		head[FIXED - 1] = SOCKS_TYPE_IPV4;
		break;
	case DESTINATION_IPV6:
		head[FIXED - 1] = SOCKS_TYPE_IPV6;
		break;
	default:
		return 0;
	}
	memcpy(head + len, from->bytes, from->len);
	len += from->len;
	head[len++] = (uint8_t)(from->port >> 8);
	head[len++] = (uint8_t)from->port;
	return len;
}
