// SPDX-License-Identifier: MIT
/*
 * Messages on many connections, each of which has its turn: a message goes
 * there and back before its thread goes on to its next connection.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

enum { THREADS = 16 };		/* messages under way at the same time */

struct share {
	pthread_t thread;
	const int *fds;
	int count;
	size_t size;
	int64_t until;
	uint64_t messages;
	int err;
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static int there_and_back(int fd, uint8_t *buf, size_t size)
{
	errno = 0;
	if (send(fd, buf, size, MSG_NOSIGNAL) != (ssize_t)size ||
	    recv(fd, buf, size, MSG_WAITALL) != (ssize_t)size)
		return errno ? -errno : -EPIPE;
	return 0;
}

static void *take_turns(void *arg)
{
	struct share *s = arg;
	uint8_t buf[ASK_MOST] = { 0 };
	int at = 0;

	while (!s->err && now_ns() < s->until) {
		s->err = there_and_back(s->fds[at], buf, s->size);
		s->messages += !s->err;
		at = at + 1 < s->count ? at + 1 : 0;
	}
	return NULL;
}

static int open_one(const struct sockaddr_in *to)
{
	struct load_request r = { LOAD_MAGIC, LOAD_ECHO, 0 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1, err;
	uint8_t byte = 0;

	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) ||
	    send(fd, &r, sizeof(r), MSG_NOSIGNAL) != sizeof(r))
		err = -errno;
	else
		err = there_and_back(fd, &byte, 1);
	if (err)
		close(fd);
	return err ? err : fd;
}

int turns_open(const struct sockaddr_in *first, int ports, int count, int *fds)
{
	struct sockaddr_in to = *first;
	int i;

	for (i = 0; i < count; i++) {
		to.sin_port = htons((uint16_t)(ntohs(first->sin_port) + i % ports));
		fds[i] = open_one(&to);
		if (fds[i] < 0)
			return fds[i];
	}
	return 0;
}

int turns_take(const int *fds, int count, size_t size, double seconds,
	       uint64_t *messages)
{
	struct share all[THREADS] = { 0 };
	int threads = count < THREADS ? count : THREADS;
	int64_t until = now_ns() + (int64_t)(seconds * 1e9);
	int i, begun, err = 0;

	*messages = 0;
	for (begun = 0; begun < threads && !err; begun += !err) {
		int from = (int)((int64_t)count * begun / threads);
		int to = (int)((int64_t)count * (begun + 1) / threads);
		struct share *s = &all[begun];

		*s = (struct share){ .fds = fds + from, .count = to - from,
				     .size = size, .until = until };
		err = -pthread_create(&s->thread, NULL, take_turns, s);
	}
	for (i = 0; i < begun; i++) {
		pthread_join(all[i].thread, NULL);
		*messages += all[i].messages;
		if (all[i].err)
			err = all[i].err;
	}
	return err;
}
