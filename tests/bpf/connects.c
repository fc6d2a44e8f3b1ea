/* SPDX-License-Identifier: MIT */
/*
 * What a redirected connection costs: one program that connects, and in the place
 * of lp another one that takes the connections and asks where they wanted.
 *
 *   connects LP_PORT ADDR PORT CONNECTS ROUNDS
 *
 * Listens on 127.0.0.1:LP_PORT and connects to ADDR:PORT, one connection after
 * the other, each with so many bytes there and back. Prints one line of JSON:
 * seconds, processor seconds of both, and how often the destination was known.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter_ipv4.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lp/origin.h"

static void must(int result, const char *what)
{
	if (result >= 0)
		return;
	perror(what);
	exit(1);
}

static struct sockaddr_in address(const char *host, const char *port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };

	addr.sin_port = htons((uint16_t)atoi(port));
	must(inet_pton(AF_INET, host, &addr.sin_addr) - 1, "address");
	return addr;
}

static int listening(const char *port)
{
	struct sockaddr_in addr = address("127.0.0.1", port);
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must(bind(fd, (void *)&addr, sizeof(addr)), "bind");
	must(listen(fd, 64), "listen");
	origin_keep_syns(fd);
	return fd;
}

/* As lp does. */
static int is_from(int fd, const struct sockaddr_in *wanted)
{
	struct sockaddr_storage to;
	struct sockaddr_in *in = (void *)&to;
	socklen_t len = sizeof(*in);

	if (origin_of(fd, &to) &&
	    getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, &to, &len))
		return 0;
	return in->sin_port == wanted->sin_port &&
	       in->sin_addr.s_addr == wanted->sin_addr.s_addr;
}

static void serve(int listener, const struct sockaddr_in *wanted, int *known)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		*known += is_from(fd, wanted);
		while (read(fd, &byte, 1) == 1 && write(fd, &byte, 1) == 1)
			;
		close(fd);
	}
}

/* Ends by a reset, so that no port has to rest. */
static void talk(const struct sockaddr_in *to, int rounds)
{
	struct linger reset = { .l_onoff = 1 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char byte = 0;

	must(connect(fd, (const void *)to, sizeof(*to)), "connect");
	while (rounds--) {
		must((int)write(fd, &byte, 1), "write");
		must((int)read(fd, &byte, 1) - 1, "read");
	}
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
}

static double seconds_of(const struct rusage *used)
{
	return (double)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) +
	       (double)(used->ru_utime.tv_usec + used->ru_stime.tv_usec) / 1e6;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	int *known = mmap(NULL, sizeof(*known), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct sockaddr_in to;
	struct rusage own, server;
	int listener, connects, i;
	double began;
	pid_t child;

	if (argc != 6) {
		fprintf(stderr, "usage: connects LP_PORT ADDR PORT CONNECTS ROUNDS\n");
		return 2;
	}
	to = address(argv[2], argv[3]);
	connects = atoi(argv[4]);
	listener = listening(argv[1]);
	child = fork();
	must(child, "fork");
	if (!child)
		serve(listener, &to, known);
	close(listener);
	began = now();
	for (i = 0; i < connects; i++)
		talk(&to, atoi(argv[5]));
	began = now() - began;
	getrusage(RUSAGE_SELF, &own);
	kill(child, SIGKILL);
	must(wait4(child, NULL, 0, &server), "wait");
	printf("{\"seconds\": %.6f, \"cpu\": %.6f, \"known\": %d}\n", began,
	       seconds_of(&own) + seconds_of(&server), *known);
	return 0;
}
