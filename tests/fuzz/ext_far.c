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

static void put(struct far_end *far, const uint8_t *buf, size_t n)
{
	ssize_t sent;

	sent = send(far->fd, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	for (ssize_t i = 0; i < sent; i++)
		count_byte(far, buf[i]);
}

void far_send(struct far_end *far, const uint8_t *buf, size_t n)
{
	static const uint8_t zeros[WIRE_LARGE_PAYLOAD];

	if (far->fd < 0 || far->joining)
		return;
	put(far, zeros, far->owed);
	far->owed = 0;
	put(far, buf, n);
}

void far_send_cut(struct far_end *far, const uint8_t *buf, size_t n, size_t owed)
{
	far_send(far, buf, n - owed);
	if (far->fd >= 0 && !far->joining)
		far->owed = owed;
}

void far_begin(struct far_end *far, int fd, uint32_t incarnation)
{
	far->fd = fd;
	far->incarnation = incarnation;
	far->hearing.len = 0;
	far->framing = (struct framing){ .large = far->framing.large };
	far->heard = far->said = 0;
	far->owed = 0;
	far->joining = false;
}

void far_close(struct far_end *far)
{
	if (far->fd >= 0)
		close(far->fd);
	far->fd = -1;
	far->joining = false;
}

