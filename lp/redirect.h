/* SPDX-License-Identifier: MIT */
/*
 * Connections that the kernel redirected to LP (iptables REDIRECT, nftables
 * redirect, or tm3.ko): it still knows where they wanted to go. Those that
 * `tm3ctl --bpf` redirected say it themselves (origin.h).
 *
 * One that was not redirected is reset with a warning, and so is one whose
 * destination is LP itself or RP's port for pipes: relaying these would go
 * round in circles.
 *
 * The kernel may forget that it redirected a connection (its table of
 * connections is flushed, the rules go): the program then talks to the server
 * itself, which resets it, and LP hears nothing more. So LP asks early.
 */
#ifndef TM3_REDIRECT_H
#define TM3_REDIRECT_H

#include <stdbool.h>
#include <sys/socket.h>

struct proxy;

/* False on failure, which was said. */
bool redirect_start(struct proxy *p, const struct sockaddr_storage *addr,
		    socklen_t len);

#endif
