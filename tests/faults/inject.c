/* SPDX-License-Identifier: MIT */
/*
 * Calls that fail once. Linked into rp and lp with `ld --wrap`, so that their
 * own calls of the functions below come here first; those of libraries do not.
 *
 * A place is where a call comes from: the kind of call, and the last DEPTH
 * return addresses within the program. It has the same name in each run.
 *
 *   FAULT_REPORT=FILE	a line for the first call from each place:
 *			KIND PLACE ADDRESS... (as addr2line takes them)
 *   FAULT="KIND PLACE ERRNO"
 *			the first call from there fails, and is reported as
 *			"failed KIND PLACE"
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define DEPTH 3
#define PLACES 4096 /* a power of two, some ten times what there are */

extern const char __executable_start, etext;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t seen[PLACES];

/*
 * libc's stdio would come back here for memory. The file stays open: who has
 * become another user may not be let in once more.
 */
static void report(const char *line, size_t len)
{
	static const char none[] = "none";
	static const char *path = none;
	static long fd = -1;

	pthread_mutex_lock(&lock);
	if (path == none) {
		path = getenv("FAULT_REPORT");
		if (path)
			fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY |
				     O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	}
	pthread_mutex_unlock(&lock);
	if (fd >= 0 && write((int)fd, line, len) != (ssize_t)len)
		abort();
}

/* Whether this is the first call from there. 0 stands for no place. */
static bool is_new(uint32_t place)
{
	uint32_t i = place % PLACES, tried;

	for (tried = 0; tried < PLACES; tried++, i = (i + 1) % PLACES) {
		if (seen[i] == place)
			return false;
		if (!seen[i]) {
			seen[i] = place;
			return true;
		}
	}
	abort();
}

static bool is_asked_for(const char *kind, uint32_t place, int *err)
{
	const char *fault = getenv("FAULT");
	char wanted[16];
	uint32_t where;

	return fault && sscanf(fault, "%15s %x %d", wanted, &where, err) == 3 &&
	       where == place && !strcmp(wanted, kind);
}

/* FNV-1a over kind and addresses. */
static uint32_t mix(uint32_t hash, const void *data, size_t len)
{
	const unsigned char *byte = data;

	while (len--)
		hash = (hash ^ *byte++) * 16777619u;
	return hash;
}

/*
 * The frames above ours, as long as they are the program's: all of it is built
 * with frame pointers, and what calls it from outside is not looked into.
 */
static unsigned int callers(void *const *frame, uintptr_t from[DEPTH])
{
	const char *start = &__executable_start, *end = &etext;
	unsigned int n = 0;

	while (n < DEPTH) {
		const char *caller = frame[1];

		if (caller < start || caller >= end)
			break;
		from[n++] = (uintptr_t)(caller - start);
		frame = frame[0];
	}
	return n;
}

/* Whether the call from above @frame is to fail; errno is set then. */
static bool fails(const char *kind, void *const *frame)
{
	uintptr_t from[DEPTH];
	unsigned int n = callers(frame, from), i;
	uint32_t place = mix(2166136261u, kind, strlen(kind));
	char line[128];
	bool first;
	int err, len;

	place = mix(place, from, n * sizeof(*from));
	if (!n || !place)
		return false;
	pthread_mutex_lock(&lock);
	first = is_new(place);
	pthread_mutex_unlock(&lock);
	if (!first)
		return false;
	len = snprintf(line, sizeof(line), "%s %08x", kind, place);
	for (i = 0; i < n; i++) /* the call itself, not what follows it */
		len += snprintf(line + len, sizeof(line) - (size_t)len,
				" 0x%jx", (uintmax_t)from[i] - 1);
	len += snprintf(line + len, sizeof(line) - (size_t)len, "\n");
	report(line, (size_t)len);
	if (!is_asked_for(kind, place, &err))
		return false;
	len = snprintf(line, sizeof(line), "failed %s %08x\n", kind, place);
	report(line, (size_t)len);
	errno = err;
	return true;
}

#define FAILS(kind) fails(kind, __builtin_frame_address(0))

/*
 * --wrap=NAME makes calls of NAME calls of __wrap_NAME, and NAME itself
 * __real_NAME.
 */
#define WRAPPED(type, name, ...) \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

/* --- memory --- */

WRAPPED(void *, malloc, size_t size)
{
	return FAILS("memory") ? NULL : __real_malloc(size);
}

WRAPPED(void *, calloc, size_t n, size_t size)
{
	return FAILS("memory") ? NULL : __real_calloc(n, size);
}

WRAPPED(void *, realloc, void *old, size_t size)
{
	return FAILS("memory") ? NULL : __real_realloc(old, size);
}

WRAPPED(char *, strdup, const char *text)
{
	return FAILS("memory") ? NULL : __real_strdup(text);
}

WRAPPED(FILE *, open_memstream, char **text, size_t *len)
{
	return FAILS("memory") ? NULL : __real_open_memstream(text, len);
}

/* --- descriptors --- */

WRAPPED(int, socket, int domain, int type, int protocol)
{
	return FAILS("socket") ? -1 : __real_socket(domain, type, protocol);
}

/* Who gave up is gone from the queue; for want of a descriptor one waits on. */
WRAPPED(int, accept4, int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	if (!FAILS("accept"))
		return __real_accept4(fd, addr, len, flags);
	if (errno == ECONNABORTED) {
		close(__real_accept4(fd, addr, len, flags));
		errno = ECONNABORTED;
	}
	return -1;
}

WRAPPED(int, eventfd, unsigned int value, int flags)
{
	return FAILS("file") ? -1 : __real_eventfd(value, flags);
}

WRAPPED(int, timerfd_create, int clock, int flags)
{
	return FAILS("file") ? -1 : __real_timerfd_create(clock, flags);
}

WRAPPED(int, signalfd, int fd, const sigset_t *mask, int flags)
{
	return FAILS("file") ? -1 : __real_signalfd(fd, mask, flags);
}

WRAPPED(FILE *, fopen, const char *path, const char *mode)
{
	return FAILS("file") ? NULL : __real_fopen(path, mode);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list rest;

	if (FAILS("file"))
		return -1;
	if (flags & O_CREAT) {
		va_start(rest, flags);
		mode = va_arg(rest, mode_t);
		va_end(rest);
	}
	return __real_open(path, flags, mode);
}

/* --- epoll --- */

WRAPPED(int, epoll_create1, int flags)
{
	return FAILS("file") ? -1 : __real_epoll_create1(flags);
}

/* Linux changes and removes what is watched without asking for memory. */
WRAPPED(int, epoll_ctl, int epfd, int op, int fd, struct epoll_event *event)
{
	if (op == EPOLL_CTL_ADD && FAILS("epoll"))
		return -1;
	return __real_epoll_ctl(epfd, op, fd, event);
}

WRAPPED(int, epoll_wait, int epfd, struct epoll_event *events, int most, int ms)
{
	return FAILS("wait") ? -1 : __real_epoll_wait(epfd, events, most, ms);
}

/* --- messages, and what SCTP is told and asked --- */

WRAPPED(int, setsockopt, int fd, int level, int name, const void *value,
	socklen_t len)
{
	if (level == IPPROTO_SCTP && FAILS("sctp-set"))
		return -1;
	return __real_setsockopt(fd, level, name, value, len);
}

WRAPPED(int, getsockopt, int fd, int level, int name, void *value,
	socklen_t *len)
{
	if (level == IPPROTO_SCTP && FAILS("sctp-get"))
		return -1;
	return __real_getsockopt(fd, level, name, value, len);
}

static bool is_sctp(int fd)
{
	int protocol = 0;
	socklen_t len = sizeof(protocol);

	return !__real_getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol,
				  &len) && protocol == IPPROTO_SCTP;
}

WRAPPED(int, sendmmsg, int fd, struct mmsghdr *messages, unsigned int n,
	int flags)
{
	if (FAILS(is_sctp(fd) ? "sctp-send" : "send"))
		return -1;
	return __real_sendmmsg(fd, messages, n, flags);
}

/* --- threads --- */

WRAPPED(int, pthread_create, pthread_t *thread, const pthread_attr_t *attr,
	void *(*run)(void *), void *arg)
{
	return FAILS("thread") ? errno :
	       __real_pthread_create(thread, attr, run, arg);
}
