// SPDX-License-Identifier: MIT
/*
 * The same bytes at the same pace, as datagrams and on a connection: every
 * PACED_BURST packets a burst, all of it in one write where it is a connection.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

enum {
	SINK_BUFFER = 4 << 20,
	QUIET_MS = 500,		/* then nothing more comes */
	ASK_MS = 100,		/* for the first one of those that are asked for */
	ASKS = 10,
	SOCKS_HEAD = 10,	/* of a datagram */
};

static void wait_until(int64_t at)
{
	struct timespec ts = { at / 1000000000, at % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

/* Sends @n packets from number @at on, and is told @of. 0 or -errno. */
typedef int say_fn(int fd, uint64_t at, uint64_t n,
		   const struct sockaddr_in *of);

/* One burst after the other. 0 or -errno. */
static int pace(int fd, uint64_t packets, const struct sockaddr_in *of,
		say_fn *say)
{
	struct timespec ts;
	int64_t begin;
	uint64_t at, n;
	int err = 0;

	prctl(PR_SET_TIMERSLACK, 1);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	begin = ts.tv_sec * 1000000000LL + ts.tv_nsec;
	for (at = 0; at < packets && !err; at += n) {
		n = packets - at < PACED_BURST ? packets - at : PACED_BURST;
		wait_until(begin + (int64_t)(at * PACED_SIZE * 8 * 1000000000 /
					     PACED_RATE));
		err = say(fd, at, n, of);
	}
	return err;
}

static int say_bytes(int fd, uint64_t at, uint64_t n,
		     const struct sockaddr_in *of)
{
	size_t left = n * PACED_SIZE;
	ssize_t done;

	(void)of;
	for (at *= PACED_SIZE; left; at += (uint64_t)done, left -= (size_t)done) {
		done = send(fd, pattern_at(at), left, MSG_NOSIGNAL);
		if (done < 0 && errno == EAGAIN) {
			poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1,
			     -1);
			done = 0;
		}
		if (done < 0)
			return -errno;
	}
	return 0;
}

static int say_datagrams(int fd, uint64_t at, uint64_t n,
			 const struct sockaddr_in *of)
{
	(void)of;
	for (; n; n--, at++)
		if (send(fd, pattern_at(at * PACED_SIZE), PACED_SIZE, 0) < 0)
			return -errno;
	return 0;
}

/* RFC 1928, 7: two bytes that are 0, no fragment, an IPv4 address and its port. */
static int say_by_socks(int fd, uint64_t at, uint64_t n,
			const struct sockaddr_in *of)
{
	uint8_t packet[SOCKS_HEAD + PACED_SIZE] = { 0, 0, 0, 1 };

	memcpy(packet + 4, &of->sin_addr, 4);
	memcpy(packet + 8, &of->sin_port, 2);
	for (; n; n--, at++) {
		memcpy(packet + SOCKS_HEAD, pattern_at(at * PACED_SIZE),
		       PACED_SIZE);
		if (send(fd, packet, sizeof(packet), 0) < 0)
			return -errno;
	}
	return 0;
}

int paced_bytes(int fd, uint64_t packets)
{
	return pace(fd, packets, NULL, say_bytes);
}

struct sink {
	int fd;
	ssize_t size;		/* of what counts */
	uint64_t most, came;
};

static void *run_sink(void *arg)
{
	struct sink *s = arg;
	struct pollfd p = { .fd = s->fd, .events = POLLIN };
	uint8_t buf[SOCKS_HEAD + PACED_SIZE + 1];

	while (s->came < s->most && poll(&p, 1, QUIET_MS) > 0)
		s->came += recv(s->fd, buf, sizeof(buf), 0) == s->size;
	return NULL;
}

static int udp_socket(void)
{
	int size = SINK_BUFFER;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	return fd < 0 ? -errno : fd;
}

/*
 * The server at @far is asked by @near for what it is to send, until it hears: it is connected to
 * whom the relay sends as then. 0 or -errno.
 */
static int ask_for(int near, int far, const struct sockaddr_in *sink,
		   say_fn *say)
{
	struct pollfd p = { .fd = far, .events = POLLIN };
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	uint8_t byte;
	int i, err;

	for (i = 0; i < ASKS; i++) {
		err = say(near, 0, 1, sink);
		if (err)
			return err;
		if (poll(&p, 1, ASK_MS) <= 0)
			continue;
		if (recvfrom(far, &byte, 1, 0, (struct sockaddr *)&from,
			     &len) < 0 ||
		    connect(far, (const struct sockaddr *)&from, len))
			return -errno;
		return 0;
	}
	return -ETIMEDOUT;
}

/* @near to @far, or the other way once that has been asked for. 0 or -errno. */
static int carry(int near, int far, const struct paced *what, uint64_t *came)
{
	say_fn *say = what->by_socks ? say_by_socks : say_datagrams;
	struct sink s = { .fd = far, .size = PACED_SIZE,
			  .most = what->packets };
	int from = near, err = 0;
	pthread_t thread;

	if (what->down) {
		err = ask_for(near, far, &what->sink, say);
		s.fd = near;
		s.size += what->by_socks ? SOCKS_HEAD : 0;
		from = far;
		say = say_datagrams;
	}
	if (!err)
		err = -pthread_create(&thread, NULL, run_sink, &s);
	if (err)
		return err;
	err = pace(from, what->packets, &what->sink, say);
	pthread_join(thread, NULL);
	*came = s.came;
	return err;
}

int paced_datagrams(const struct paced *what, uint64_t *came)
{
	int near = udp_socket(), far = udp_socket(), err;

	if (near < 0 || far < 0)
		err = near < 0 ? near : far;
	else if (bind(far, (const struct sockaddr *)&what->sink,
		      sizeof(what->sink)) ||
		 connect(near, (const struct sockaddr *)&what->to,
			 sizeof(what->to)))
		err = -errno;
	else
		err = carry(near, far, what, came);
	close(near);
	close(far);
	return err;
}
