// SPDX-License-Identifier: MIT
/* Requests and answers that are as long, one after the other on each of some connections. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

struct asker {
	pthread_t thread;
	int fd;
	size_t size;
	int count;
	int64_t *took;
	int err;
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static int there_and_back(const struct asker *a, uint8_t *buf)
{
	errno = 0;
	if (send(a->fd, buf, a->size, MSG_NOSIGNAL) != (ssize_t)a->size ||
	    recv(a->fd, buf, a->size, MSG_WAITALL) != (ssize_t)a->size)
		return errno ? -errno : -EPIPE;
	return 0;
}

static void *run(void *arg)
{
	struct asker *a = arg;
	uint8_t buf[ASK_MOST] = { 0 };
	int64_t begin;
	int i;

	for (i = -ASK_WARM; i < a->count && !a->err; i++) {
		begin = now_ns();
		a->err = there_and_back(a, buf);
		if (i >= 0)
			a->took[i] = now_ns() - begin;
	}
	return NULL;
}

int ask(const int *fds, int connections, size_t size, int count, int64_t *took)
{
	struct asker *all = calloc((size_t)connections, sizeof(*all));
	int begun, i, err = all ? 0 : -ENOMEM;

	for (begun = 0; !err && begun < connections; begun += !err) {
		all[begun] = (struct asker){
			.fd = fds[begun], .size = size, .count = count,
			.took = took + (size_t)begun * (size_t)count,
		};
		err = -pthread_create(&all[begun].thread, NULL, run, &all[begun]);
	}
	for (i = 0; i < begun; i++) {
		pthread_join(all[i].thread, NULL);
		err = all[i].err ? all[i].err : err;
	}
	free(all);
	return err;
}
