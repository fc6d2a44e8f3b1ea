/* SPDX-License-Identifier: MIT */
/*
 * Reads from a UDP socket what came since the last look, in one system call.
 *
 * One call of recvfrom() for each datagram, and one more that finds nothing, are most of
 * what a flow of small datagrams costs its reader.
 */
#ifndef TM3_UDP_IN_H
#define TM3_UDP_IN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
	UDP_IN_MOST = 32,	/* at once; then others have their turn */
	UDP_IN_SLOT = 4608,	/* bytes of a datagram that are kept; what is beyond is cut off */
};

/*
 * @len is the datagram's own length: past UDP_IN_SLOT there are fewer bytes at @buf. @buf
 * and @from are gone afterwards. The socket must stay open meanwhile.
 */
typedef void udp_in_came(void *arg, struct sockaddr_storage *from,
			 const uint8_t *buf, size_t len);

/* In the order in which they came. 0, or -errno where there were none. */
int udp_in_read(int fd, udp_in_came *came, void *arg);

/*
 * The same with where each was sent to, which is another place than @fd is bound to where
 * the kernel brought it here (TPROXY). @to is of family AF_UNSPEC if @fd was not asked to tell:
 * udp_in_tell_to().
 */
typedef void udp_in_came_to(void *arg, struct sockaddr_storage *from,
			    const struct sockaddr_storage *to,
			    const uint8_t *buf, size_t len);
int udp_in_read_to(int fd, udp_in_came_to *came, void *arg);
/* @family is the socket's. 0 or -errno. */
int udp_in_tell_to(int fd, int family);

#endif
