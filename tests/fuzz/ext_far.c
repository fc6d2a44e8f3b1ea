/* SPDX-License-Identifier: MIT */
#include "ext_peer.h"

#include <sys/socket.h>
#include <unistd.h>

static bool never_counts(uint8_t type)
{
	return type == WIRE_HELLO || type == WIRE_WELCOME ||
	       type == WIRE_PING || type == WIRE_PONG || type == WIRE_ACK ||
	       type == WIRE_DATAGRAM || type == WIRE_TOO_BIG;
}

static void count_byte(struct far_end *far, uint8_t byte)
{
	const struct framing *f = &far->framing;

	far->said += framing_ends(&far->framing, byte) &&
		     !(f->has_type && never_counts(f->type));
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
	far->hearing.len = 0;
	far->framing = (struct framing){ 0 };
	far->heard = far->said = 0;
	far->joining = false;
}

void far_close(struct far_end *far)
{
	if (far->fd >= 0)
		close(far->fd);
	far->fd = -1;
	far->joining = false;
}

