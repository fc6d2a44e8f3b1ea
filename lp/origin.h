/* SPDX-License-Identifier: MIT */
/*
 * Where a connection wanted to go that `tm3ctl --bpf` turned to LP: its SYN says
 * so, in a TCP option of kind 253 with an address and a port behind it, 8 bytes
 * for IPv4 and 20 for IPv6 in all. The kernel keeps SYNs for who asks for it.
 *
 * Only programs of root can write such an option on this machine, so it is
 * believed if it came to a loopback address, which no other machine's does.
 */
#ifndef TM3_ORIGIN_H
#define TM3_ORIGIN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* From now on the SYNs of connections to @fd, which listens, are kept. */
void origin_keep_syns(int fd);
/* Of an accepted one; can be asked once. 0, or -ENOENT: its SYN says nothing. */
int origin_of(int fd, struct sockaddr_storage *to);

/* The same of a SYN, from its IP header on. */
int origin_in_syn(const uint8_t *syn, size_t len, struct sockaddr_storage *to);

#endif
