// SPDX-License-Identifier: MIT
/*
 * Connections that go on: opened at a given pace for a given time, and each is
 * closed when it had its byte. It is tried at its time whether those before are
 * answered or not, so who stands still gets what came due meanwhile at once. A
 * connection that fails is counted, and the next one tried.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

enum {
	THREADS = 64,		/* connections at the same time */
	PATIENCE_S = 60,	/* for an answer */
};

struct state {
	const struct sockaddr_in *to;
	struct churn *found;
	uint64_t rate, most;		/* a second, and in all */
	int64_t begin, end;
	pthread_mutex_t lock;		/* of what follows */
	uint64_t next;			/* to be tried */
	int64_t answered;		/* when the last one was */
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void wait_until(int64_t at)
{
	struct timespec ts = { at / 1000000000, at % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

/* A connection, one byte there and back, and its end. Whether all of it was. */
static int went_well(const struct sockaddr_in *to)
{
	struct load_request r = { LOAD_MAGIC, LOAD_REPLY, 1 };
	struct timeval patience = { .tv_sec = PATIENCE_S };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char byte;
	int well;

	if (fd < 0)
		return 0;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	well = connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0 &&
	       send(fd, &r, sizeof(r), MSG_NOSIGNAL) == sizeof(r) &&
	       recv(fd, &byte, 1, 0) == 1;
	close(fd);
	return well;
}

/* When the next connection is due, and which one it is; past the end there is none. */
static int64_t take_next(struct state *s, uint64_t *which)
{
	int64_t due;

	pthread_mutex_lock(&s->lock);
	*which = s->next;
	due = s->begin + (int64_t)(s->next * 1000000000 / s->rate);
	if (s->next < s->most && now_ns() < s->end)
		s->next++;
	else
		due = -1;
	pthread_mutex_unlock(&s->lock);
	return due;
}

static void account(struct state *s, uint64_t which, int64_t due, int well)
{
	int64_t now = now_ns();

	pthread_mutex_lock(&s->lock);
	if (well) {
		if (now - s->answered > s->found->pause)
			s->found->pause = now - s->answered;
		s->answered = now;
		s->found->took[which] = now - due;
	} else {
		s->found->took[which] = -1;
		s->found->failed++;
	}
	pthread_mutex_unlock(&s->lock);
}

static void *run(void *arg)
{
	struct state *s = arg;
	uint64_t which;
	int64_t due;

	prctl(PR_SET_TIMERSLACK, 1);
	while ((due = take_next(s, &which)) >= 0) {
		wait_until(due);
		account(s, which, due, went_well(s->to));
	}
	return NULL;
}

int churn(const struct sockaddr_in *to, uint64_t rate, uint64_t seconds,
	  struct churn *found)
{
	struct state s = { .to = to, .found = found, .rate = rate,
			   .most = rate * seconds };
	pthread_t thread[THREADS];
	int i, err = 0, threads = 0;

	memset(found, 0, sizeof(*found));
	found->took = calloc(s.most, sizeof(*found->took));
	if (!found->took)
		return -ENOMEM;
	pthread_mutex_init(&s.lock, NULL);
	s.begin = s.answered = now_ns();
	s.end = s.begin + (int64_t)seconds * 1000000000;
	for (; threads < THREADS && !err; threads += !err)
		err = -pthread_create(&thread[threads], NULL, run, &s);
	for (i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	/* A standstill that lasts to the end is one, too. */
	if (now_ns() - s.answered > found->pause)
		found->pause = now_ns() - s.answered;
	found->took_ns = now_ns() - s.begin;
	found->tried = s.next;
	pthread_mutex_destroy(&s.lock);
	return err;
}
