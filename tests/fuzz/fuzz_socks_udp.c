/* SPDX-License-Identifier: MIT */
/*
 * The header of SOCKS5's datagrams, of arbitrary bytes. Asserted: what is sound
 * lies within what was given, has a destination that OPEN and DATAGRAM can tell, and a
 * port; a shorter piece of its header is none; and an address is put as it came,
 * unless it was IPv4 wrapped into IPv6.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lp/socks_udp.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sound(const uint8_t *data, size_t size,
			const struct destination *to, size_t head)
{
	uint8_t again[SOCKS_UDP_HEAD_MAX];
	struct destination other;
	size_t len, behind;

	check(head <= size && !data[2]);
	check(to->port && to->kind != DESTINATION_NONE);
	check(destination_is_sound(to));
	for (len = 0; len < head; len++)
		check(socks_udp_get(data, len, &other, &behind) ==
		      SOCKS_UDP_GARBAGE);
	len = socks_udp_put(again, to);
	check(!len == (to->kind == DESTINATION_NAME));
	if (len == head)
		check(!memcmp(again, data, head));
	else
		check(!len || (len == 10 && head == 22));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* In a block of its size, so that a byte too far is seen. */
	uint8_t *exact = malloc(size ? size : 1);
	struct destination to;
	size_t head = 0;

	check(exact != NULL);
	if (size)
		memcpy(exact, data, size);
	if (socks_udp_get(exact, size, &to, &head) == SOCKS_UDP_SOUND)
		check_sound(exact, size, &to, head);
	free(exact);
	return 0;
}
