/* SPDX-License-Identifier: MIT */
/*
 * The sockets that pipes are made of, one kind for each transport. All are
 * stream sockets; over SCTP each message is one of the socket's own, see sctp.h.
 */
#ifndef TM3_TRANSPORT_H
#define TM3_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "../settings/transports.h"

/* A socket, non-blocking and close-on-exec, prepared to become a pipe; or -errno. */
int transport_socket(enum transport t, int family);
/* What an open socket is. */
enum transport transport_of(int fd);
/* A connected MPTCP socket whose other end only speaks TCP. */
bool transport_fell_back(int fd);
/* Has this kernel got all of a set? 0, or -1 with a line in @why. */
int transport_set_try(const struct transport_set *set, char *why,
		      size_t why_len);

#endif
