/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "sock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <linux/sock_diag.h>
#include <linux/sockios.h>

#include "addr.h"

/* Probes after 10 s of silence, lost when four in a row go unanswered. */
enum { KEEP_IDLE_S = 10, KEEP_INTERVAL_S = 5, KEEP_COUNT = 4 };
/* Linux cuts it to net.core.somaxconn. SOMAXCONN is 128 in some C libraries. */
enum { BACKLOG = 4096 };
enum {
	ASK_AFTER_S = 300,
	MOST_PROBES = 127,	/* that the kernel takes for TCP_KEEPCNT */
};

static void set_int(int fd, int level, int name, int value)
{
	setsockopt(fd, level, name, &value, sizeof(value));
}

static int get_int(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value = 0;

	return getsockopt(fd, level, name, &value, &len) ? 0 : value;
}

int sock_error(int fd)
{
	return get_int(fd, SOL_SOCKET, SO_ERROR);
}

static void set_linger(int fd, int on)
{
	struct linger linger = { .l_onoff = on, .l_linger = 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

void sock_arm_reset(int fd)
{
	set_linger(fd, 1);
}

void sock_orderly(int fd)
{
	set_linger(fd, 0);
}

void sock_reset(int fd)
{
	sock_arm_reset(fd);
	close(fd);
}

void sock_nodelay(int fd)
{
	set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

void sock_urgent_inline(int fd)
{
	set_int(fd, SOL_SOCKET, SO_OOBINLINE, 1);
}

void sock_keepalive(int fd)
{
	set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

/* More probes than usual, so that the last one goes out when it always did. */
void sock_ask_early(int fd)
{
	int idle = get_int(fd, IPPROTO_TCP, TCP_KEEPIDLE);
	int interval = get_int(fd, IPPROTO_TCP, TCP_KEEPINTVL);
	int left = idle + interval * get_int(fd, IPPROTO_TCP, TCP_KEEPCNT) -
		   ASK_AFTER_S;

	if (idle <= ASK_AFTER_S || interval <= 0)
		return;
	if (left / interval > MOST_PROBES)
		interval = left / MOST_PROBES + 1;
	set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, ASK_AFTER_S);
	set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval);
	set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, left / interval);
}

/*
 * TCP_USER_TIMEOUT is left alone: it would also end a connection whose peer is
 * there and answers, but does not read for so long.
 */
void sock_ask_soon(int fd)
{
	set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S);
	set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_INTERVAL_S);
	set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT);
}

void sock_watchful(int fd)
{
	sock_ask_soon(fd);
	sock_keepalive(fd);
}

static size_t queue_size(int fd, unsigned long request)
{
	int bytes = 0;

	if (ioctl(fd, request, &bytes) < 0 || bytes < 0)
		return 0;
	return (size_t)bytes;
}

size_t sock_unsent(int fd)
{
	return queue_size(fd, SIOCOUTQNSD);
}

size_t sock_outstanding(int fd)
{
	return queue_size(fd, SIOCOUTQ);
}

size_t sock_space(int fd)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(memory);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &len) < 0 ||
	    memory[SK_MEMINFO_WMEM_QUEUED] >= memory[SK_MEMINFO_SNDBUF])
		return 0;
	return memory[SK_MEMINFO_SNDBUF] - memory[SK_MEMINFO_WMEM_QUEUED];
}

size_t sock_unread(int fd)
{
	return queue_size(fd, SIOCINQ);
}

/* Half of it is for bookkeeping, unless the system says otherwise (tcp_adv_win_scale). */
size_t sock_window(int fd)
{
	int bytes = 0;
	socklen_t len = sizeof(bytes);

	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len) || bytes < 0)
		return 0;
	return (size_t)bytes / 2;
}

bool sock_tcp_info(int fd, void *info, socklen_t len)
{
	memset(info, 0, len);
	return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len);
}

int64_t sock_trip(int fd)
{
	struct tcp_info ti;

	sock_tcp_info(fd, &ti, sizeof(ti));
	return (int64_t)ti.tcpi_rtt * 1000;
}

/* --- made, bound, listening --- */

int sock_address(int fd, struct sockaddr_storage *addr)
{
	socklen_t len = sizeof(*addr);

	memset(addr, 0, sizeof(*addr));
	return getsockname(fd, (struct sockaddr *)addr, &len) ? -errno : 0;
}

int sock_tcp(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/*
 * What comes while the loop is busy with others. The kernel's own 208 KiB overflowed on a
 * busy machine at 100 Mbit/s in packets of 1,200 bytes.
 */
enum { UDP_BUFFER = 1 << 20 };

int sock_udp(int family)
{
	int fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (family == AF_INET6)
		set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	set_int(fd, SOL_SOCKET, SO_RCVBUF, UDP_BUFFER);
	return fd;
}

static int bound_udp(int fd, const struct sockaddr_storage *addr)
{
	int err;

	if (addr->ss_family == AF_INET6)
		set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (!bind(fd, (const struct sockaddr *)addr, addr_size(addr)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int sock_bound_udp(const struct sockaddr_storage *addr)
{
	int fd = sock_udp(addr->ss_family);

	return fd < 0 ? fd : bound_udp(fd, addr);
}

/* Of Linux; libraries are late with it. */
#ifndef IPV6_TRANSPARENT
#define IPV6_TRANSPARENT 75
#endif

int sock_transparent_udp(const struct sockaddr_storage *addr, bool shared)
{
	bool six = addr->ss_family == AF_INET6;
	int fd = sock_udp(addr->ss_family), on = 1, err;

	if (fd < 0)
		return fd;
	if (!setsockopt(fd, six ? IPPROTO_IPV6 : IPPROTO_IP,
			six ? IPV6_TRANSPARENT : IP_TRANSPARENT, &on,
			sizeof(on))) {
		set_int(fd, SOL_SOCKET, SO_REUSEADDR, shared);
		return bound_udp(fd, addr);
	}
	err = -errno;
	close(fd);
	return err;
}

int sock_connect(int fd, const struct sockaddr_storage *to)
{
	int err;

	if (fd < 0 || !connect(fd, (const struct sockaddr *)to, addr_size(to)) ||
	    errno == EINPROGRESS)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* An IPv6 socket takes IPv6 alone: what was asked for, and nothing beside. */
int sock_listen(int fd, const struct sockaddr_storage *addr, socklen_t len)
{
	int err;

	set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (addr->ss_family == AF_INET6)
		set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (bind(fd, (const struct sockaddr *)addr, len) < 0 ||
	    listen(fd, BACKLOG) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

bool sock_takes_both(int fd)
{
	int only = 1;
	socklen_t len = sizeof(only);

	return !getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &len) && !only;
}

bool sock_is_passing(int err)
{
	switch (err) {
	case ECONNABORTED:
	case EINTR:
	case EPROTO:
	case ENETDOWN:
	case ENOPROTOOPT:
	case EHOSTDOWN:
	case ENONET:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EOPNOTSUPP:
	case EPERM:
		return true;
	default:
		return false;
	}
}

bool sock_is_shortage(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOBUFS ||
	       err == ENOMEM;
}

int sock_try_cc(const char *name)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name,
		       (socklen_t)strlen(name)) < 0)
		err = -errno;
	close(fd);
	return err;
}

unsigned long sock_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? 0 : limit.rlim_cur;
}

unsigned long sock_raise_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) &&
	    limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	return sock_limit();
}
