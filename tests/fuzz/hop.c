/* SPDX-License-Identifier: MIT */
#include "hop.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "mux/base/sock.h"

void hop_drop(struct hop *hop, int side)
{
	if (hop->fd[side] >= 0)
		sock_reset(hop->fd[side]);
	hop->fd[side] = -1;
}

void hop_pass_on(struct hop *hop, int side)
{
	if (hop->fd[!side] < 0 && !hop->len[!side])
		hop_drop(hop, side);
}

static void take_in(struct hop *hop, int side, size_t most)
{
	size_t room = HOP_TRANSIT - hop->len[side];
	ssize_t n;

	if (hop->fd[side] < 0 || !room)
		return;
	n = recv(hop->fd[side], hop->bytes[side] + hop->len[side],
		 most < room ? most : room, MSG_DONTWAIT);
	if (n > 0)
		hop->len[side] += (size_t)n;
	else if (!n || errno != EAGAIN)
		hop_drop(hop, side);
}

void hop_carry(struct hop *hop, int side, size_t most)
{
	ssize_t n;

	take_in(hop, side, most);
	if (!hop->len[side] || hop->fd[!side] < 0)
		return;
	n = send(hop->fd[!side], hop->bytes[side],
		 most < hop->len[side] ? most : hop->len[side],
		 MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n <= 0)
		return;
	hop->len[side] -= (size_t)n;
	memmove(hop->bytes[side], hop->bytes[side] + n, hop->len[side]);
}
