/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <linux/sock_diag.h>
#include <linux/sockios.h>

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

/* --- addresses from text --- */

int port_parse(const char *text, uint16_t least, uint16_t *port)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long value;

	if (!digits || digits > 5 || text[digits])
		return -1;
	value = strtoul(text, NULL, 10);
	if (value < least || value > UINT16_MAX)
		return -1;
	*port = (uint16_t)value;
	return 0;
}

static int parse_v4(const char *host, uint16_t port,
		    struct sockaddr_storage *addr, socklen_t *len)
{
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)addr;

	memset(addr, 0, sizeof(*addr));
	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	*len = sizeof(*in);
	return inet_pton(AF_INET, host, &in->sin_addr) == 1 ? 0 : -1;
}

/* @host is cut at its scope, if it names one. */
static int parse_v6(char *host, uint16_t port, struct sockaddr_storage *addr,
		    socklen_t *len)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)addr;
	char *scope = strchr(host, '%');

	memset(addr, 0, sizeof(*addr));
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	*len = sizeof(*in6);
	if (scope) {
		*scope++ = '\0';
		in6->sin6_scope_id = if_nametoindex(scope);
		if (!in6->sin6_scope_id)
			return -1;
	}
	return inet_pton(AF_INET6, host, &in6->sin6_addr) == 1 ? 0 : -1;
}

/* "[V6]" or "[V6]:PORT"; @host is a copy to cut up. */
static int parse_bracketed(char *host, uint16_t port,
			   struct sockaddr_storage *addr, socklen_t *len)
{
	char *end = strchr(host, ']');

	if (!end)
		return -1;
	*end++ = '\0';
	if (*end && (*end != ':' || port_parse(end + 1, 0, &port)))
		return -1;
	return parse_v6(host + 1, port, addr, len);
}

int addr_parse(const char *text, const char *dflt_host, uint16_t dflt_port,
	       struct sockaddr_storage *addr, socklen_t *len)
{
	char host[ADDR_TEXT];
	uint16_t port = dflt_port;
	char *colon;

	if (dflt_host && !port_parse(text, 0, &port))
		text = dflt_host;
	if (strlen(text) >= sizeof(host))
		return -1;
	strcpy(host, text);
	if (host[0] == '[')
		return parse_bracketed(host, port, addr, len);
	colon = strchr(host, ':');
	if (colon && strchr(colon + 1, ':'))
		return parse_v6(host, port, addr, len);
	if (colon) {
		*colon = '\0';
		if (port_parse(colon + 1, 0, &port))
			return -1;
	}
	return parse_v4(host, port, addr, len);
}

/* --- addresses to text, and compared --- */

/* IPv4, or IPv6 that only wraps it: its address in @v4 and its port. */
static bool as_v4(const struct sockaddr_storage *addr, struct in_addr *v4,
		  uint16_t *port)
{
	const struct sockaddr_in *in = (const void *)addr;
	const struct sockaddr_in6 *in6 = (const void *)addr;

	if (addr->ss_family == AF_INET) {
		*v4 = in->sin_addr;
		*port = ntohs(in->sin_port);
		return true;
	}
	if (addr->ss_family != AF_INET6 ||
	    !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
		return false;
	memcpy(v4, &in6->sin6_addr.s6_addr[12], 4);
	*port = ntohs(in6->sin6_port);
	return true;
}

const char *addr_host(const struct sockaddr_storage *addr, char text[ADDR_TEXT])
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	struct in_addr v4;
	uint16_t port;
	size_t used;

	if (as_v4(addr, &v4, &port)) {
		inet_ntop(AF_INET, &v4, text, ADDR_TEXT);
	} else if (addr->ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &in6->sin6_addr, text, ADDR_TEXT);
		used = strlen(text);
		if (in6->sin6_scope_id)
			snprintf(text + used, ADDR_TEXT - used, "%%%u",
				 in6->sin6_scope_id);
	} else {
		strcpy(text, "unknown");
	}
	return text;
}

const char *addr_text(const struct sockaddr_storage *addr, char text[ADDR_TEXT])
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	char host[ADDR_TEXT];
	struct in_addr v4;
	uint16_t port;

	addr_host(addr, host);
	if (as_v4(addr, &v4, &port))
		snprintf(text, ADDR_TEXT, "%.45s:%u", host, port);
	else if (addr->ss_family == AF_INET6)
		snprintf(text, ADDR_TEXT, "[%.55s]:%u", host,
			 ntohs(in6->sin6_port));
	else
		strcpy(text, host);
	return text;
}

bool addr_v4(const struct sockaddr_storage *addr, uint8_t v4[4])
{
	struct in_addr in;
	uint16_t port;

	if (!as_v4(addr, &in, &port))
		return false;
	memcpy(v4, &in, 4);
	return true;
}

void addr_unmap(struct sockaddr_storage *addr)
{
	struct sockaddr_in *in = (void *)addr;
	struct in_addr v4;
	uint16_t port;

	if (!as_v4(addr, &v4, &port))
		return;
	memset(addr, 0, sizeof(*addr));
	in->sin_family = AF_INET;
	in->sin_addr = v4;
	in->sin_port = htons(port);
}

uint16_t addr_port(const struct sockaddr_storage *addr)
{
	/* sin6_port lies where sin_port does. */
	return ntohs(((const struct sockaddr_in *)(const void *)addr)->sin_port);
}

void addr_set_port(struct sockaddr_storage *addr, uint16_t port)
{
	((struct sockaddr_in *)(void *)addr)->sin_port = htons(port);
}

socklen_t addr_size(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
	       sizeof(struct sockaddr_in);
}

bool addr_is_loopback(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	struct in_addr v4;
	uint16_t port;

	if (as_v4(addr, &v4, &port))
		return (ntohl(v4.s_addr) >> 24) == 127;
	return addr->ss_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

bool addr_is_any(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	struct in_addr v4;
	uint16_t port;

	if (as_v4(addr, &v4, &port))
		return v4.s_addr == htonl(INADDR_ANY);
	return addr->ss_family == AF_INET6 &&
	       IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr);
}

bool addr_same_host(const struct sockaddr_storage *a,
		    const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const void *)a;
	const struct sockaddr_in6 *b6 = (const void *)b;
	struct in_addr a4, b4;
	uint16_t port;
	bool a_is_v4 = as_v4(a, &a4, &port);

	if (a_is_v4 != as_v4(b, &b4, &port))
		return false;
	if (a_is_v4)
		return a4.s_addr == b4.s_addr;
	return a->ss_family == AF_INET6 && b->ss_family == AF_INET6 &&
	       IN6_ARE_ADDR_EQUAL(&a6->sin6_addr, &b6->sin6_addr) &&
	       a6->sin6_scope_id == b6->sin6_scope_id;
}

bool addr_same(const struct sockaddr_storage *a,
	       const struct sockaddr_storage *b)
{
	return addr_port(a) == addr_port(b) && addr_same_host(a, b);
}

uint32_t addr_hash(const struct sockaddr_storage *addr)
{
	const uint8_t *bytes = (const uint8_t *)addr;
	uint32_t hash = 2166136261u;
	size_t i;

	for (i = 0; i < addr_size(addr); i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return hash ^ hash >> 16;
}

/* --- listening, and the room for it --- */

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

/* Then a socket can be bound to it. */
bool addr_is_ours(const struct sockaddr_storage *addr)
{
	struct sockaddr_storage any_port = *addr;
	int fd = sock_udp(addr->ss_family);

	addr_set_port(&any_port, 0);
	if (fd >= 0)
		fd = bound_udp(fd, &any_port);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
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
