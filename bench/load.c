// SPDX-License-Identifier: MIT
/*
 * The load generator: a server, and clients that measure. Each measurement
 * prints one line of JSON when its figure is there, then keeps its connections
 * until standard input ends, so that the caller can read the proxies'
 * accounts while they still serve.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

enum {
	THREADS = 16,		/* that open connections at the same time */
};

enum socks_command {
	SOCKS_CONNECT = 1,
	SOCKS_UDP_ASSOCIATE = 3,
};

static struct sockaddr_in target;	/* the server, or the proxy's entry */
static struct sockaddr_in proxy;	/* SOCKS5, when its port is set */

static void fail(const char *format, ...)
	__attribute__((noreturn, format(printf, 1, 2)));

static void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("bench-load: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void write_all(int fd, const void *data, size_t len)
{
	const uint8_t *at = data;
	ssize_t n;

	while (len) {
		n = send(fd, at, len, MSG_NOSIGNAL);
		if (n <= 0)
			fail("send: %s", strerror(errno));
		at += n;
		len -= (size_t)n;
	}
}

static void read_all(int fd, void *data, size_t len)
{
	uint8_t *at = data;
	ssize_t n;

	while (len) {
		n = recv(fd, at, len, 0);
		if (n <= 0)
			fail("recv: %s, %zu bytes short",
			     n ? strerror(errno) : "end", len);
		at += n;
		len -= (size_t)n;
	}
}

static void read_discarding(int fd, uint64_t len)
{
	ssize_t n;

	while (len) {
		n = recv(fd, NULL, len < 1 << 20 ? len : 1 << 20, MSG_TRUNC);
		if (n <= 0)
			fail("recv: %s, %llu bytes short",
			     n ? strerror(errno) : "end",
			     (unsigned long long)len);
		len -= (uint64_t)n;
	}
}

/* RFC 1928: @command for @to; the address that the proxy @bound for it. */
static void ask_socks(int fd, enum socks_command command,
		      const struct sockaddr_in *to, struct sockaddr_in *bound)
{
	uint8_t hello[3] = { 5, 1, 0 };
	uint8_t asked[10] = { 5, (uint8_t)command, 0, 1 };
	uint8_t answer[10];

	write_all(fd, hello, sizeof(hello));
	read_all(fd, answer, 2);
	memcpy(asked + 4, &to->sin_addr, 4);
	memcpy(asked + 8, &to->sin_port, 2);
	write_all(fd, asked, sizeof(asked));
	read_all(fd, answer, sizeof(answer));
	if (answer[1] != 0)
		fail("SOCKS5 reply %d", answer[1]);
	bound->sin_family = AF_INET;
	memcpy(&bound->sin_addr, answer + 4, 4);
	memcpy(&bound->sin_port, answer + 8, 2);
}

static int connected(const struct sockaddr_in *to)
{
	int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		fail("socket: %s", strerror(errno));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0)
		fail("connect to port %d: %s", ntohs(to->sin_port),
		     strerror(errno));
	return fd;
}

static int open_connection(void)
{
	int fd = connected(proxy.sin_port ? &proxy : &target);
	struct sockaddr_in bound;

	if (proxy.sin_port)
		ask_socks(fd, SOCKS_CONNECT, &target, &bound);
	return fd;
}

static void request(int fd, enum load_op op, uint64_t bytes)
{
	struct load_request r = { LOAD_MAGIC, op, bytes };

	write_all(fd, &r, sizeof(r));
}

/* Connects, asks for one byte and gets it: the whole way is there. */
static int open_answered(void)
{
	int fd = open_connection();
	char byte;

	request(fd, LOAD_REPLY, 1);
	read_all(fd, &byte, 1);
	return fd;
}

static void wait_for_caller(void)
{
	char byte;

	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

static void download(int fd, uint64_t bytes)
{
	request(fd, LOAD_DOWN, bytes);
	read_discarding(fd, bytes);
}

static void upload(int fd, uint64_t bytes, enum load_op op)
{
	uint64_t done = 0, right, left;

	request(fd, op, bytes);
	while (done < bytes) {
		left = bytes - done;
		if (left > PATTERN_CHUNK)
			left = PATTERN_CHUNK;
		write_all(fd, pattern_at(done), left);
		done += left;
	}
	read_all(fd, &right, sizeof(right));
	if (right != bytes)
		fail("only %llu of %llu bytes arrived right",
		     (unsigned long long)right, (unsigned long long)bytes);
}

struct bulk {
	pthread_t thread;
	int down;
	int fd;
	uint64_t bytes;
};

static void *run_bulk(void *arg)
{
	struct bulk *b = arg;

	if (b->down)
		download(b->fd, b->bytes);
	else
		upload(b->fd, b->bytes, LOAD_UP);
	return NULL;
}

/* Joins: a thread that could not be started is a failure of the run. */
static void run_threads(int count, pthread_t *threads, void *(*run)(void *),
			void *args, size_t arg_size)
{
	int i;

	for (i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, run,
				   (char *)args + (size_t)i * arg_size))
			fail("cannot start thread %d", i);
	for (i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

/* bulk down|up|both BYTES CONNECTIONS: shared among them; both: every other one is down. */
static void measure_bulk(const char *way, uint64_t bytes, int count)
{
	struct bulk *all = calloc((size_t)count, sizeof(*all));
	pthread_t *threads = calloc((size_t)count, sizeof(*threads));
	int64_t begin;
	int i;

	if (!all || !threads)
		fail("no memory");
	for (i = 0; i < count; i++) {
		all[i].down = strcmp(way, "both") == 0 ? i % 2 :
							 strcmp(way, "down") == 0;
		all[i].bytes = bytes / (uint64_t)count;
		all[i].fd = open_connection();
	}
	begin = now_ns();
	run_threads(count, threads, run_bulk, all, sizeof(*all));
	printf("{\"bytes\": %llu, \"seconds\": %.9f}\n",
	       (unsigned long long)(bytes / (uint64_t)count * (uint64_t)count),
	       (double)(now_ns() - begin) / 1e9);
	wait_for_caller();
	free(threads);
	free(all);
}

/* check BYTES: both ways, every byte compared; not a measurement. */
static void check(uint64_t bytes)
{
	static uint8_t buf[PATTERN_CHUNK];
	uint64_t done = 0;
	ssize_t n;
	int fd = open_connection();

	request(fd, LOAD_DOWN, bytes);
	while (done < bytes) {
		n = recv(fd, buf, sizeof(buf), 0);
		if (n <= 0)
			fail("download ends after %llu bytes",
			     (unsigned long long)done);
		if (pattern_match(buf, (size_t)n, done) != (size_t)n)
			fail("download is wrong after byte %llu",
			     (unsigned long long)done);
		done += (uint64_t)n;
	}
	close(fd);
	fd = open_connection();
	upload(fd, bytes, LOAD_UP_CHECK);
	close(fd);
	printf("{\"bytes\": %llu}\n", (unsigned long long)bytes);
}

struct opener {
	atomic_int left;
	atomic_int next;
	int *keep;		/* where to leave open ones, or NULL: close */
};

static void *run_opener(void *arg)
{
	struct opener *o = *(struct opener **)arg;
	int fd;

	while (atomic_fetch_sub(&o->left, 1) > 0) {
		fd = open_answered();
		if (o->keep)
			o->keep[atomic_fetch_add(&o->next, 1)] = fd;
		else
			close(fd);
	}
	return NULL;
}

/*
 * connects COUNT: open, one byte there and back, close; THREADS at a time.
 * idle COUNT: the same, but they stay open until the caller has looked.
 */
static void measure_opens(int count, int keep)
{
	struct opener o = { .left = count };
	struct opener *args[THREADS];
	pthread_t threads[THREADS];
	int64_t begin;
	int i;

	o.keep = keep ? calloc((size_t)count, sizeof(int)) : NULL;
	if (keep && !o.keep)
		fail("no memory");
	for (i = 0; i < THREADS; i++)
		args[i] = &o;
	begin = now_ns();
	run_threads(THREADS, threads, run_opener, args, sizeof(args[0]));
	printf("{\"connections\": %d, \"seconds\": %.9f}\n", count,
	       (double)(now_ns() - begin) / 1e9);
	wait_for_caller();
	free(o.keep);
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static double percentile_us(const int64_t *sorted, int count, int percent)
{
	return (double)sorted[(int64_t)(count - 1) * percent / 100] / 1e3;
}

/* A download that goes on until this process ends. */
static void *download_on(void *arg)
{
	download(open_connection(), UINT64_MAX);
	return arg;
}

/*
 * ask SIZE AT-ONCE COUNT alone|beside: so many requests in all, echoed, over
 * AT-ONCE connections; beside: while another one downloads.
 * echo COUNT: one byte at a time there and back, on one connection.
 */
static void measure_ask(uint64_t size, int at_once, int count, int beside)
{
	int each = count / at_once, total = each * at_once;
	int64_t *took = calloc((size_t)total + 1, sizeof(*took));
	int *fds = calloc((size_t)at_once, sizeof(*fds));
	int64_t begin;
	pthread_t thread;
	int i, err;

	if (!took || !fds || !total)
		fail("no memory, or fewer requests than connections");
	if (size > ASK_MOST)
		fail("more than %d bytes a request", ASK_MOST);
	for (i = 0; i < at_once; i++) {
		fds[i] = open_connection();
		request(fds[i], LOAD_ECHO, 0);
	}
	if (beside && pthread_create(&thread, NULL, download_on, NULL))
		fail("cannot start a thread");
	begin = now_ns();
	err = ask(fds, at_once, size, each, took);
	if (err)
		fail("ask: %s", strerror(-err));
	begin = now_ns() - begin;
	qsort(took, (size_t)total, sizeof(*took), by_value);
	printf("{\"round_trips\": %d, \"requests\": %d, \"seconds\": %.9f, "
	       "\"p50_us\": %.3f, \"p99_us\": %.3f, \"min_us\": %.3f, "
	       "\"max_us\": %.3f}\n",
	       total, total + ASK_WARM * at_once, (double)begin / 1e9,
	       percentile_us(took, total, 50), percentile_us(took, total, 99),
	       percentile_us(took, total, 0), percentile_us(took, total, 100));
	wait_for_caller();
	free(took);
	free(fds);
	exit(0);	/* whatever is still being downloaded */
}

/* churn RATE SECONDS: see churn.c. What failed has no time, and sorts first. */
static void measure_churn(uint64_t rate, uint64_t seconds)
{
	struct churn c;
	int err = churn(&target, rate, seconds, &c);
	int64_t *took = c.took + c.failed;
	int count = (int)(c.tried - c.failed);

	if (err)
		fail("churn: %s", strerror(-err));
	if (!count)
		fail("churn: none of %llu connections had an answer",
		     (unsigned long long)c.tried);
	qsort(c.took, c.tried, sizeof(*c.took), by_value);
	printf("{\"connections\": %d, \"unanswered\": %llu, \"seconds\": %.9f, "
	       "\"pause_s\": %.6f, \"p50_us\": %.3f, \"p99_us\": %.3f}\n",
	       count, (unsigned long long)c.failed, (double)c.took_ns / 1e9,
	       (double)c.pause / 1e9, percentile_us(took, count, 50),
	       percentile_us(took, count, 99));
	wait_for_caller();
	free(c.took);
}

/*
 * turns CONNECTIONS PORTS SIZE: says when they are open, and how many messages
 * there were in as many seconds as each line that it reads tells.
 */
static void measure_turns(int count, int ports, uint64_t size)
{
	int *fds = calloc((size_t)count, sizeof(*fds));
	uint64_t messages;
	double seconds;
	int err;

	if (!fds)
		fail("no memory");
	if (size > ASK_MOST)
		fail("more than %d bytes a message", ASK_MOST);
	err = turns_open(&target, ports, count, fds);
	if (err)
		fail("turns: %s", strerror(-err));
	printf("{\"connections\": %d}\n", count);
	fflush(stdout);
	while (scanf("%lf", &seconds) == 1) {
		err = turns_take(fds, count, size, seconds, &messages);
		if (err)
			fail("turns: %s", strerror(-err));
		printf("{\"messages\": %llu}\n", (unsigned long long)messages);
		fflush(stdout);
	}
	free(fds);
}

static void paced_done(int err, uint64_t packets, uint64_t came)
{
	if (err)
		fail("paced: %s", strerror(-err));
	printf("{\"packets\": %llu, \"came\": %llu}\n",
	       (unsigned long long)packets, (unsigned long long)came);
	wait_for_caller();
}

/* paced-tcp up|down PACKETS: their bytes at PACED_RATE, until the other side has them. */
static void measure_paced_tcp(int down, uint64_t packets)
{
	int fd = open_connection();
	uint64_t right;
	int err = 0;

	request(fd, down ? LOAD_PACED : LOAD_UP, packets * PACED_SIZE);
	if (down) {
		read_discarding(fd, packets * PACED_SIZE);
	} else {
		err = paced_bytes(fd, packets);
		if (!err)
			read_all(fd, &right, sizeof(right));
	}
	paced_done(err, packets, packets);
	close(fd);
}

/*
 * paced-udp up|down PACKETS SINK_PORT: as datagrams, which come back to this process; with
 * SOCKS_PORT by an UDP ASSOCIATE, which lasts as long as its connection.
 */
static void measure_paced_udp(int down, uint64_t packets,
			      const struct sockaddr_in *sink)
{
	const struct sockaddr_in any = { .sin_family = AF_INET };
	struct paced what = {
		.to = target,
		.sink = *sink,
		.by_socks = proxy.sin_port != 0,
		.down = down,
		.packets = packets,
	};
	uint64_t came = 0;
	int fd = -1, err;

	if (what.by_socks) {
		fd = connected(&proxy);
		ask_socks(fd, SOCKS_UDP_ASSOCIATE, &any, &what.to);
	}
	err = paced_datagrams(&what, &came);
	paced_done(err, packets, came);
	close(fd);
}

static uint64_t number(const char *text)
{
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || end == text || *end || n == 0)
		fail("not a positive number: %s", text);
	return n;
}

static void loopback(struct sockaddr_in *addr, const char *port)
{
	uint64_t n = number(port);

	if (n > 65535)
		fail("not a port: %s", port);
	addr->sin_family = AF_INET;
	addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	addr->sin_port = htons((uint16_t)n);
}

static int is_down(const char *way)
{
	if (strcmp(way, "up") != 0 && strcmp(way, "down") != 0)
		fail("neither up nor down: %s", way);
	return strcmp(way, "down") == 0;
}

static const char usage[] =
	"usage: bench-load serve PORT\n"
	"       bench-load PORT SOCKS_PORT|- bulk down|up|both BYTES CONNECTIONS\n"
	"       bench-load PORT SOCKS_PORT|- check BYTES\n"
	"       bench-load PORT SOCKS_PORT|- connects|idle|echo COUNT\n"
	"       bench-load PORT SOCKS_PORT|- ask SIZE AT-ONCE COUNT alone|beside\n"
	"       bench-load PORT - churn RATE SECONDS\n"
	"       bench-load PORT - turns CONNECTIONS PORTS SIZE\n"
	"       bench-load PORT SOCKS_PORT|- paced-tcp up|down PACKETS\n"
	"       bench-load PORT SOCKS_PORT|- paced-udp up|down PACKETS SINK_PORT\n";

static int measure(int argc, char **argv)
{
	const char *what = argv[3];
	struct sockaddr_in sink = { 0 };

	if (strcmp(what, "bulk") == 0 && argc == 7)
		measure_bulk(argv[4], number(argv[5]), (int)number(argv[6]));
	else if (strcmp(what, "check") == 0)
		check(number(argv[4]));
	else if (strcmp(what, "connects") == 0)
		measure_opens((int)number(argv[4]), 0);
	else if (strcmp(what, "idle") == 0)
		measure_opens((int)number(argv[4]), 1);
	else if (strcmp(what, "echo") == 0)
		measure_ask(1, 1, (int)number(argv[4]), 0);
	else if (strcmp(what, "ask") == 0 && argc == 8)
		measure_ask(number(argv[4]), (int)number(argv[5]),
			    (int)number(argv[6]), strcmp(argv[7], "beside") == 0);
	else if (strcmp(what, "churn") == 0 && argc == 6)
		measure_churn(number(argv[4]), number(argv[5]));
	else if (strcmp(what, "turns") == 0 && argc == 7)
		measure_turns((int)number(argv[4]), (int)number(argv[5]),
			      number(argv[6]));
	else if (strcmp(what, "paced-tcp") == 0 && argc == 6)
		measure_paced_tcp(is_down(argv[4]), number(argv[5]));
	else if (strcmp(what, "paced-udp") == 0 && argc == 7) {
		loopback(&sink, argv[6]);
		measure_paced_udp(is_down(argv[4]), number(argv[5]), &sink);
	} else
		return -EINVAL;
	return 0;
}

int main(int argc, char **argv)
{
	pattern_init();
	if (argc == 3 && strcmp(argv[1], "serve") == 0) {
		loopback(&target, argv[2]);
		fail("serve: %s", strerror(-serve(ntohs(target.sin_port))));
	}
	if (argc >= 5) {
		loopback(&target, argv[1]);
		if (strcmp(argv[2], "-") != 0)
			loopback(&proxy, argv[2]);
		if (measure(argc, argv) == 0)
			return 0;
	}
	fputs(usage, stderr);
	return 2;
}
