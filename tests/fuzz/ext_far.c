/* SPDX-License-Identifier: MIT */
#include "ext_peer.h"

#include <sys/socket.h>
#include <unistd.h>

static bool never_counts(uint8_t type)
{
	return type == WIRE_HELLO || type == WIRE_WELCOME ||
	       type == WIRE_PING || type == WIRE_PONG || type == WIRE_ACK ||
	       type == WIRE_DATAGRAM;
}

/* The framing, once more and as plainly as it can be read. */
static void count_byte(struct far_end *far, uint8_t byte)
{
	unsigned int length;

	if (far->broken)
		return;
	if (far->of_body) {
		if (!far->has_type && !far->head[0] && !far->head[1])
			far->uncounted = never_counts(byte);
		far->has_type = true;
		far->said += --far->of_body == 0 && !far->uncounted;
		return;
	}
	far->head[far->of_head++] = byte;
	if (far->of_head < WIRE_HEADER)
		return;
	far->of_head = 0;
	far->has_type = far->uncounted = false;
	length = far->head[6] | (unsigned int)far->head[7] << 8;
	if (length == 0xFFFF)
		far->of_body = 6;
	else if (length == 0xFFFE)
		far->of_body = 1;
	else if (length > 8 && length <= 4104)
		far->of_body = length - 8;
	else
		far->broken = true;
	/* What is no data message has no type. */
	far->has_type = length > 4104;
}

void far_send(struct far_end *far, const uint8_t *buf, size_t n)
{
	ssize_t sent;

	if (far->fd < 0 || far->joining)
		return;
	sent = send(far->fd, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	for (ssize_t i = 0; i < sent; i++)
		count_byte(far, buf[i]);
}

void far_begin(struct far_end *far, int fd, uint32_t incarnation)
{
	far->fd = fd;
	far->incarnation = incarnation;
	far->len = far->of_head = far->of_body = 0;
	far->heard = far->said = 0;
	far->joining = far->broken = false;
}

void far_close(struct far_end *far)
{
	if (far->fd >= 0)
		close(far->fd);
	far->fd = -1;
	far->joining = false;
}

