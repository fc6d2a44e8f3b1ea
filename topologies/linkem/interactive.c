/* SPDX-License-Identifier: MIT */
#include "interactive.h"

#include <errno.h>
#include <string.h>

#include "frame.h"
#include "number.h"

enum {
	IPV4_HEADER = 20,
	IPV6_HEADER = 40,
	NEXT_TCP = 6,
	NEXT_UDP = 17,
	PORT_MAX = 65535,
	FRAGMENT_OFFSET = 0x1fff,
};

/* --- as words --- */

static bool take_range(const char *text, uint64_t most, uint64_t *first,
		       uint64_t *last, const char **end)
{
	char *at;

	if (number_whole(text, &at, first) < 0)
		return false;
	*last = *first;
	if (*at == '-' && number_whole(at + 1, &at, last) < 0)
		return false;
	*end = at;
	return *first <= *last && *last <= most;
}

static bool take_part(struct interactive *i, const char **text)
{
	bool is_port = !strncmp(*text, "port:", 5);
	uint64_t first, last;

	if (!is_port && strncmp(*text, "dscp:", 5) != 0)
		return false;
	if (!take_range(*text + 5, is_port ? PORT_MAX : DSCP_MAX, &first, &last,
			text))
		return false;
	if (is_port) {
		if (i->ports == INTERACTIVE_PORTS_MAX)
			return false;
		i->port[i->ports].first = (uint16_t)first;
		i->port[i->ports++].last = (uint16_t)last;
	}
	for (; !is_port && first <= last; first++)
		i->dscp |= 1ULL << first;
	return true;
}

int interactive_parse(struct interactive *i, const char *text, char *why,
		      size_t why_len)
{
	struct interactive found = { 0 };
	const char *at = text;
	bool is_right = true;

	if (strcmp(text, "none") != 0)
		while ((is_right = take_part(&found, &at)) && *at == ',')
			at++;
	if (!is_right || (*at && at != text)) {
		snprintf(why, why_len,
			 "'%.80s' is neither none nor like dscp:32-63,port:53 (DSCP to %d, at most %d ranges of ports)",
			 text, DSCP_MAX, INTERACTIVE_PORTS_MAX);
		return -EINVAL;
	}
	*i = found;
	return 0;
}

static bool has_dscp(const struct interactive *i, int dscp)
{
	return dscp <= DSCP_MAX && i->dscp >> dscp & 1;
}

static void print_range(FILE *out, const char **between, const char *what,
			int first, int last)
{
	fprintf(out, "%s%s:%d", *between, what, first);
	if (last > first)
		fprintf(out, "-%d", last);
	*between = ",";
}

void interactive_print(const struct interactive *i, FILE *out)
{
	const char *between = "";

	for (int dscp = 0; dscp <= DSCP_MAX; dscp++) {
		int first = dscp;

		if (!has_dscp(i, dscp))
			continue;
		while (has_dscp(i, dscp + 1))
			dscp++;
		print_range(out, &between, "dscp", first, dscp);
	}
	for (int n = 0; n < i->ports; n++)
		print_range(out, &between, "port", i->port[n].first,
			    i->port[n].last);
	if (!*between)
		fputs("none", out);
}

/* --- of a packet --- */

static bool has_port(const struct interactive *i, int port)
{
	for (int n = 0; n < i->ports; n++)
		if (port >= i->port[n].first && port <= i->port[n].last)
			return true;
	return false;
}

/* Where TCP or UDP begins in an IP packet; 0 where neither does. */
static size_t transport_at(const uint8_t *ip, size_t len)
{
	size_t at = (ip[0] & 15) * 4u;
	uint8_t next = ip[9];

	if (ip[0] >> 4 == 6) {
		if (len < IPV6_HEADER)
			return 0;
		at = IPV6_HEADER;
		next = ip[6];
	} else if ((ip[6] << 8 | ip[7]) & FRAGMENT_OFFSET) {
		return 0;
	}
	return next == NEXT_TCP || next == NEXT_UDP ? at : 0;
}

bool interactive_has(const struct interactive *i, const uint8_t *frame,
		     size_t len)
{
	const uint8_t *ip = frame + FRAME_HEADER;
	int traffic_class;
	size_t at;

	if (len < FRAME_HEADER + IPV4_HEADER)
		return false;
	len -= FRAME_HEADER;
	traffic_class = ip[0] >> 4 == 6 ? (ip[0] & 15) << 4 | ip[1] >> 4 : ip[1];
	if (has_dscp(i, traffic_class >> 2))
		return true;
	at = transport_at(ip, len);
	if (!at || len < at + 4)
		return false;
	return has_port(i, ip[at] << 8 | ip[at + 1]) ||
	       has_port(i, ip[at + 2] << 8 | ip[at + 3]);
}
