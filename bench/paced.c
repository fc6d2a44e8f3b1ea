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
	SOCKS_HEAD = 10,	/* of a datagram */
};

static void wait_until(int64_t at)
{
	struct timespec ts = { at / 1000000000, at % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

/*
 * One burst after the other; @say sends the packets from number @at on, and is told @of. 0 or
 * -errno.
 */
static int pace(int fd, uint64_t packets, const struct sockaddr_in *of,
		int (*say)(int fd, uint64_t at, uint64_t n,
			   const struct sockaddr_in *of))
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
	uint64_t most, came;
};

static void *run_sink(void *arg)
{
	struct sink *s = arg;
	struct pollfd p = { .fd = s->fd, .events = POLLIN };
	uint8_t buf[PACED_SIZE + 1];

	while (s->came < s->most && poll(&p, 1, QUIET_MS) > 0)
		s->came += recv(s->fd, buf, sizeof(buf), 0) == PACED_SIZE;
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

int paced_datagrams(const struct sockaddr_in *to, const struct sockaddr_in *sink,
		    int by_socks, uint64_t packets, uint64_t *came)
{
	struct sink s = { .fd = udp_socket(), .most = packets };
	int fd = udp_socket(), err = 0;
	pthread_t thread;

	if (s.fd < 0 || fd < 0)
		err = s.fd < 0 ? s.fd : fd;
	else if (bind(s.fd, (const struct sockaddr *)sink, sizeof(*sink)) ||
		 connect(fd, (const struct sockaddr *)to, sizeof(*to)))
		err = -errno;
	else
		err = -pthread_create(&thread, NULL, run_sink, &s);
	if (!err) {
		err = pace(fd, packets, sink,
			   by_socks ? say_by_socks : say_datagrams);
		pthread_join(thread, NULL);
	}
	close(fd);
	close(s.fd);
	*came = s.came;
	return err;
}
