/* SPDX-License-Identifier: MIT */
/*
 * What is set on sockets, asked of them, and how they are made.
 */
#ifndef TM3_SOCK_H
#define TM3_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* close() as a reset (linger 0) unless sock_orderly() came first. */
void sock_arm_reset(int fd);
void sock_orderly(int fd);
void sock_reset(int fd);	/* arm, and close now */

void sock_nodelay(int fd);
/* Urgent data is part of the stream: messages know no other kind. */
void sock_urgent_inline(int fd);
/* Notice in the end (the system says when) that the other end is gone. */
void sock_keepalive(int fd);
/*
 * Before sock_keepalive(): a host that no longer knows the connection is asked,
 * and says so, after five minutes of silence at the latest. One that does not
 * answer is waited for as long as the system says, as before.
 */
void sock_ask_early(int fd);
/*
 * Notice within half a minute that the other end of a connection with nothing
 * under way is no longer there; sock_ask_soon() for one that has sock_keepalive().
 */
void sock_watchful(int fd);
void sock_ask_soon(int fd);

size_t sock_unsent(int fd);	/* written, not yet sent once */
size_t sock_outstanding(int fd);	/* written, not yet acknowledged */
size_t sock_space(int fd);	/* that may be written, about: bookkeeping counts as well */
size_t sock_unread(int fd);		/* came, and waits to be read */
/* Bytes that may wait so, about: then the other end has to stop. It grows with use. */
size_t sock_window(int fd);
/* A struct tcp_info of @len bytes, in which 0 is what the kernel does not know. */
bool sock_tcp_info(int fd, void *info, socklen_t len);
int64_t sock_trip(int fd);		/* round trip of TCP, ns; 0: nobody knows */

/*
 * Begins a connect() on @fd, which does not block; -errno instead of one is handed on. What comes
 * of it sock_error() tells once @fd can be written. @fd, or -errno: then it is closed.
 */
int sock_connect(int fd, const struct sockaddr_storage *to);
/* Why what was under way on @fd ended, connect() say: 0 or an errno. Tells it once. */
int sock_error(int fd);

/* The address that @fd has on this host. 0 or -errno. */
int sock_address(int fd, struct sockaddr_storage *addr);

/* A TCP socket, non-blocking and close-on-exec; or -errno. */
int sock_tcp(int family);
/* The same for UDP; one of AF_INET6 takes IPv4 wrapped into IPv6, too. */
int sock_udp(int family);
/* One bound to @addr, and for its family alone; or -errno. */
int sock_bound_udp(const struct sockaddr_storage *addr);
/*
 * The same where @addr may be another host's, as TPROXY wants it. -EPERM: that takes
 * CAP_NET_RAW or CAP_NET_ADMIN. @shared: others may have one bound there, too.
 */
int sock_transparent_udp(const struct sockaddr_storage *addr, bool shared);
/* Binds @fd and listens. Returns @fd, or -errno after it closed @fd. */
int sock_listen(int fd, const struct sockaddr_storage *addr, socklen_t len);

/* Is @fd a listening socket of IPv6 that takes IPv4, too? */
bool sock_takes_both(int fd);

/*
 * Is errno @err a shortage of descriptors or memory? Whoever comes next meets
 * it too, until it passes.
 */
bool sock_is_shortage(int err);
/* accept() failed for the one connection that waited, and may go on. */
bool sock_is_passing(int err);

/*
 * Whether this process may use a congestion control only setting it on a socket
 * can tell. Returns 0; -ENOENT if there is none of that name, -EPERM if it is for
 * root alone.
 */
int sock_try_cc(const char *name);

/* The limit of descriptors; the other one raises it as far as allowed. */
unsigned long sock_limit(void);
unsigned long sock_raise_limit(void);

#endif
