// SPDX-License-Identifier: MIT
/*
 * Exercises tm3.ko in the guest for arm64, as root and alone there:
 *
 *    exercise /tm3.ko
 *
 * An interface "wire" has 10.77.0.1/24; nobody is at its other end. This program
 * is lp's listener and the program that is redirected. It says what it has seen
 * and ends with 0, or says what it has not and ends with 1.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define SO_ORIGINAL_DST 80	/* linux/netfilter_ipv4.h */
#define RP "10.77.0.9"
#define SERVER "10.77.0.2"
#define WORDS "remoteProxyIP=" RP " fwdInterface=wire portList=80-90,6000 localPort=6003"
#define PATH "/proc/net/tm3"
#define ROUNDS 50
#define SECONDS 60		/* an emulated machine takes its time */

static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("arm64: ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
	exit(1);
}

static void expect(bool condition, const char *what)
{
	if (!condition)
		die("not so: %s (errno %d, %s)", what, errno, strerror(errno));
}

static void load(const char *file, const char *words)
{
	int fd = open(file, O_RDONLY);

	expect(fd >= 0, "the module's file is there");
	expect(syscall(SYS_finit_module, fd, words, 0) == 0, "the module is loaded");
	close(fd);
}

static void unload(void)
{
	expect(syscall(SYS_delete_module, "tm3", 0) == 0, "the module is removed");
}

static struct sockaddr_in address(const char *host, int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, host, &to.sin_addr);
	return to;
}

static bool is_address(const struct sockaddr_in *it, const char *host, int port)
{
	struct sockaddr_in wanted = address(host, port);

	return it->sin_family == AF_INET && it->sin_port == wanted.sin_port &&
	       it->sin_addr.s_addr == wanted.sin_addr.s_addr;
}

static int new_socket(void)
{
	const struct timeval limit = { .tv_sec = SECONDS };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	expect(fd >= 0, "a socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	return fd;
}

static int listening(int port)
{
	struct sockaddr_in at = address("127.0.0.1", port);
	int fd = new_socket(), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	expect(bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0, "lp's port");
	expect(listen(fd, 64) == 0, "lp listens");
	return fd;
}

/* A connection, or where nobody answers an attempt at one. */
static int connecting(const char *host, int port, bool wait, const char *device)
{
	struct sockaddr_in to = address(host, port);
	int fd = new_socket();

	if (device)
		expect(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, strlen(device)) == 0,
		       "bound to a device");
	if (!wait)
		fcntl(fd, F_SETFL, O_NONBLOCK);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
		expect(!wait && errno == EINPROGRESS, "connected");
	return fd;
}

static long counter(const char *name)
{
	char line[256];
	long value = -1;
	FILE *file = fopen(PATH, "r");

	expect(file, PATH);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ' ')
			value = atol(line + strlen(name));
	fclose(file);
	return value;
}

static int configure(const char *text)
{
	int fd = open(PATH, O_WRONLY), err = 0;

	expect(fd >= 0, PATH " opens");
	if (write(fd, text, strlen(text)) < 0)
		err = errno;
	close(fd);
	return err;
}

static bool is_configured(const char *line)
{
	char now[256] = "";
	FILE *file = fopen(PATH, "r");

	expect(file && fgets(now, sizeof(now), file), PATH);
	fclose(file);
	now[strcspn(now, "\n")] = 0;
	return !strcmp(now, line);
}

static void carries(int from, int to)
{
	char bytes[6] = "";

	expect(send(from, "bytes", 5, 0) == 5, "bytes are sent");
	expect(recv(to, bytes, 5, MSG_WAITALL) == 5 && !strcmp(bytes, "bytes"),
	       "bytes arrive");
}

/* lp's end of a connection to that server, which the program believes it has. */
static int accepted(int lp, int program, const char *host, int port)
{
	struct sockaddr_in it;
	socklen_t size = sizeof(it);
	int fd = accept(lp, NULL, NULL);

	expect(fd >= 0, "lp is handed the connection");
	expect(getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, &it, &size) == 0 &&
	       is_address(&it, host, port), "lp learns the destination");
	size = sizeof(it);
	expect(getpeername(program, (struct sockaddr *)&it, &size) == 0 &&
	       is_address(&it, host, port), "the program sees its server");
	carries(program, fd);
	carries(fd, program);
	return fd;
}

static void redirects(int lp)
{
	int port, program, end;

	for (port = 80; port <= 90; port++) {
		program = connecting(SERVER, port, true, NULL);
		end = accepted(lp, program, SERVER, port);
		close(program);
		close(end);
	}
	expect(counter("redirected") == 11, "eleven were redirected");
	printf("arm64: redirected, and lp knows where to\n");
}

static void leaves_alone(void)
{
	int others[] = {
		connecting(RP, 6000, false, NULL),
		connecting(SERVER, 80, false, "wire"),
		connecting(SERVER, 91, false, NULL),
	};
	size_t i;

	expect(counter("pipes") == 1, "the pipe goes its way");
	expect(counter("bound") == 1, "what is bound to a device goes its way");
	expect(counter("redirected") == 11, "another port goes its way");
	for (i = 0; i < sizeof(others) / sizeof(*others); i++)
		close(others[i]);
	printf("arm64: pipes, bound sockets and other ports are left alone\n");
}

static void refuses(int lp)
{
	struct sockaddr_in to = address(SERVER, 80);
	int fd = new_socket();

	close(lp);
	expect(connect(fd, (struct sockaddr *)&to, sizeof(to)) && errno == ECONNREFUSED,
	       "refused without lp");
	expect(counter("refused") == 1, "which is counted");
	close(fd);
	printf("arm64: refused at once where lp is not\n");
}

static void is_configured_anew(void)
{
	expect(is_configured(WORDS), "it shows what it was given");
	expect(configure("off") == 0 && is_configured("off"), "off");
	expect(configure(WORDS " colour=red") == EINVAL, "nonsense is refused");
	expect(configure("remoteProxyIP=" RP " fwdInterface=none portList=80") == ENODEV,
	       "an interface that is not there is refused");
	expect(is_configured("off"), "and changes nothing");
	expect(configure(WORDS) == 0 && is_configured(WORDS), "on again");
	printf("arm64: configured through " PATH "\n");
}

/* With one connection open, one that lp has not taken and one that was closed. */
static void goes_under_connections(const char *file)
{
	int round, lp, program, end, waits;
	char byte;

	for (round = 0; round < ROUNDS; round++) {
		load(file, WORDS);
		lp = listening(6003);
		program = connecting(SERVER, 80, true, NULL);
		end = accepted(lp, program, SERVER, 80);
		close(connecting(SERVER, 81, true, NULL));
		waits = connecting(SERVER, 82, true, NULL);
		unload();
		expect(recv(program, &byte, 1, 0) < 0 && errno == ECONNABORTED,
		       "the program is told");
		expect(recv(waits, &byte, 1, 0) < 0 && errno == ECONNABORTED,
		       "the other one as well");
		expect(recv(end, &byte, 1, 0) < 0 && errno == ECONNRESET, "lp is told");
		close(program);
		close(waits);
		close(end);
		close(lp);
	}
	printf("arm64: removed %d times under connections\n", ROUNDS);
}

int main(int argc, char **argv)
{
	int lp;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2)
		die("exercise FILE: the module");
	load(argv[1], WORDS);
	lp = listening(6003);
	redirects(lp);
	leaves_alone();
	refuses(lp);
	is_configured_anew();
	unload();
	goes_under_connections(argv[1]);
	return 0;
}
