/* SPDX-License-Identifier: MIT */
#include "frame.h"

enum {
	TYPE_IPV4 = 0x0800,
	TYPE_IPV6 = 0x86dd,
	IPV6_HEADER = 40,
	NEXT_HOP_BY_HOP = 0,
	NEXT_ICMPV6 = 58,
	ICMPV6_MLD_FIRST = 130,		/* listener query, report, done */
	ICMPV6_ND_LAST = 137,		/* 133 to 137 are discovery */
	ICMPV6_MLD2_REPORT = 143,
};

static bool is_ipv6_housekeeping(const uint8_t *ip, size_t len)
{
	size_t at = IPV6_HEADER;
	uint8_t next;

	if (len < IPV6_HEADER + 1)
		return false;
	next = ip[6];
	/* Listener reports carry a router alert in front, 8 bytes long. */
	if (next == NEXT_HOP_BY_HOP) {
		if (len < IPV6_HEADER + 9)
			return false;
		next = ip[IPV6_HEADER];
		at += 8;
	}
	return next == NEXT_ICMPV6 && ((ip[at] >= ICMPV6_MLD_FIRST &&
					ip[at] <= ICMPV6_ND_LAST) ||
				       ip[at] == ICMPV6_MLD2_REPORT);
}

bool frame_is_numbered(const uint8_t *frame, size_t len)
{
	unsigned int type;

	if (len <= FRAME_HEADER)
		return false;
	type = (unsigned int)frame[12] << 8 | frame[13];
	if (type == TYPE_IPV4)
		return true;
	return type == TYPE_IPV6 &&
	       !is_ipv6_housekeeping(frame + FRAME_HEADER, len - FRAME_HEADER);
}
