// SPDX-License-Identifier: MIT
/*
 * Queries by one Poisson process over many clients, each chosen evenly for each query.
 *
 *	bench-ramp ask udp|tcp|tls PORT PORTS CLIENTS SEED [AUTHORITY]
 *	bench-ramp serve udp|tcp PORT RATE
 *
 * ask opens all clients, has each ask once, and prints one line of JSON. Then each line "RATE
 * SETTLE SECONDS" on standard input is a step: queries at RATE for SETTLE and SECONDS, of which the
 * latter count; what that gave is another line. A query's time runs from when it was due, so that
 * one which this program sent late is late. It ends with its standard input.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "ramp.h"

enum {
	BURST = 64,		/* queries at most before answers are looked at */
	FIRST = 64,		/* clients that ask for the first time at a time */
	SPARE = 16,		/* descriptors that are no client's */
	LINE = 256,
};

#define QUIET_NS 500000000LL		/* then nothing more comes */
#define FIRST_NS 10000000000LL		/* for the first answers */

struct step {
	double rate;
	int64_t begin, open, end;	/* it counts from @open on */
	uint64_t due, sent, answered;	/* while it counts */
	uint64_t all;			/* answered from its begin on */
	int64_t *took, *lag;
	size_t took_n, room;
};

struct generator {
	struct clients clients;
	struct book *book;
	struct dice dice;
	uint32_t number;
	int64_t heard_at;
	struct step step;
};

static void fail(int status, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

static void fail(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("bench-ramp: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(status);
}

/* True if it went; a client that takes nothing at present is not asked again. */
static bool ask(struct generator *g, uint32_t which, int64_t due)
{
	struct asked it = { due, g->number++ % WIRE_NUMBERS, which };
	uint8_t query[WIRE_QUERY];
	size_t len = wire_query(it.number, query);
	int err = clients_ask(&g->clients, which, query, len);

	if (err == -EAGAIN)
		return false;
	if (err)
		fail(1, "client %u cannot send: %s", which, strerror(-err));
	book_add(g->book, &it);
	return true;
}

static void heard(void *arg, uint32_t which, const uint8_t *msg, size_t len)
{
	struct generator *g = arg;
	struct step *s = &g->step;
	const char *why;
	int32_t number = wire_answered(msg, len, &why);
	struct asked it;

	if (number < 0)
		fail(1, "a wrong answer to client %u: %s", which, why);
	g->heard_at = clock_ns();
	if (!book_take(g->book, (uint32_t)number, which, &it))
		return;		/* late: given up before */
	s->all++;
	s->answered += g->heard_at >= s->open && g->heard_at < s->end;
	if (it.due >= s->open && s->took_n < s->room)
		s->took[s->took_n++] = g->heard_at - it.due;
}

static void hear(struct generator *g, int64_t until)
{
	int err = clients_hear(&g->clients, until, heard, g);

	if (err)
		fail(1, "a client cannot receive: %s", strerror(-err));
}

/* Until all is answered or nothing more comes. What is left then is given up. */
static void drain(struct generator *g)
{
	g->heard_at = clock_ns();
	while (book_left(g->book) && clock_ns() < g->heard_at + QUIET_NS)
		hear(g, g->heard_at + QUIET_NS);
	book_forget(g->book);
}

/* Each client once: the whole way is there, and whatever the first query takes is taken. */
static void ask_all_once(struct generator *g)
{
	int64_t until = clock_ns() + FIRST_NS;
	uint32_t i = 0;

	while (i < g->clients.count || book_left(g->book)) {
		if (clock_ns() > until)
			fail(1, "%u of %u first queries have no answer",
			     book_left(g->book), g->clients.count);
		if (i < g->clients.count && book_left(g->book) < FIRST &&
		    ask(g, i, clock_ns())) {
			until = clock_ns() + FIRST_NS;
			i++;
		} else {
			hear(g, until);
		}
	}
}

static void begin_step(struct step *s, double rate, double settle,
		       double seconds)
{
	*s = (struct step){ .rate = rate };
	s->room = (size_t)(rate * seconds * 2) + 1000;
	s->took = malloc(s->room * sizeof(*s->took));
	s->lag = malloc(s->room * sizeof(*s->lag));
	if (!s->took || !s->lag)
		fail(1, "no memory for the times of %zu queries", s->room);
	s->begin = clock_ns();
	s->open = s->begin + (int64_t)(settle * 1e9);
	s->end = s->open + (int64_t)(seconds * 1e9);
}

/* One query of the process, due at @due. */
static void ask_somebody(struct generator *g, int64_t due)
{
	struct step *s = &g->step;
	bool went = ask(g, dice_below(&g->dice, g->clients.count), due);

	if (due < s->open || s->due == s->room)
		return;
	s->due++;
	if (went)
		s->lag[s->sent++] = clock_ns() - due;
}

static void run_step(struct generator *g)
{
	struct step *s = &g->step;
	double next = (double)s->begin + dice_gap_ns(&g->dice, s->rate);
	int64_t now, end = s->end;
	int i;

	while ((now = clock_ns()) < end) {
		for (i = 0; i < BURST && next <= (double)now; i++) {
			ask_somebody(g, (int64_t)next);
			next += dice_gap_ns(&g->dice, s->rate);
		}
		hear(g, next < (double)end ? (int64_t)next : end);
	}
	/* What was due and not sent. */
	for (; next < (double)end; next += dice_gap_ns(&g->dice, s->rate))
		s->due += next >= (double)s->open;
	drain(g);
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Of @count that should be there; what is not there is longer than all. */
static void print_percentile(const char *name, const int64_t *sorted,
			     size_t there, uint64_t count, unsigned int percent)
{
	uint64_t at = count ? (count - 1) * percent / 100 : 0;

	if (at < there)
		printf(", \"%s\": %.3f", name, (double)sorted[at] / 1e3);
	else
		printf(", \"%s\": null", name);
}

static void print_step(struct step *s)
{
	qsort(s->took, s->took_n, sizeof(*s->took), by_value);
	qsort(s->lag, s->sent, sizeof(*s->lag), by_value);
	printf("{\"rate\": %.3f, \"seconds\": %.6f, \"due\": %llu, "
	       "\"sent\": %llu, \"answered\": %llu, \"all\": %llu",
	       s->rate, (double)(s->end - s->open) / 1e9,
	       (unsigned long long)s->due, (unsigned long long)s->sent,
	       (unsigned long long)s->answered, (unsigned long long)s->all);
	print_percentile("p50_us", s->took, s->took_n, s->due, 50);
	print_percentile("p95_us", s->took, s->took_n, s->due, 95);
	print_percentile("p99_us", s->took, s->took_n, s->due, 99);
	print_percentile("lag_us", s->lag, s->sent, s->due, 95);
	puts("}");
	fflush(stdout);
}

static void obey(struct generator *g)
{
	char line[LINE], more;
	double rate, settle, seconds;

	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "%lf %lf %lf %c", &rate, &settle, &seconds,
			   &more) != 3 ||
		    !(rate > 0 && rate <= 1e7 && settle >= 0 && settle <= 60 &&
		      seconds > 0 && seconds <= 600))
			fail(2, "not a step of RATE SETTLE SECONDS: %.*s",
			     (int)strcspn(line, "\n"), line);
		begin_step(&g->step, rate, settle, seconds);
		run_step(g);
		print_step(&g->step);
		free(g->step.took);
		free(g->step.lag);
	}
}

static long number(const char *what, const char *text, long least, long most)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < least || n > most)
		fail(2, "%s: %s is not from %ld to %ld", what, text, least,
		     most);
	return n;
}

static enum kind kind_of(const char *text)
{
	if (strcmp(text, "udp") == 0)
		return KIND_UDP;
	if (strcmp(text, "tcp") == 0)
		return KIND_TCP;
	if (strcmp(text, "tls") == 0)
		return KIND_TLS;
	fail(2, "KIND: %s is none of udp, tcp, tls", text);
}

static void need_descriptors(uint32_t count)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		fail(1, "getrlimit: %s", strerror(errno));
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (count + SPARE > limit.rlim_cur)
		fail(2, "CLIENTS: %u are more than the %llu descriptors that a "
		     "process may have", count,
		     (unsigned long long)limit.rlim_cur);
}

/* The words behind "ask". */
static void generate(int argc, char **argv)
{
	static struct generator g;
	enum kind kind = kind_of(argv[0]);
	long port = number("PORT", argv[1], 1, 65535);
	long ports = number("PORTS", argv[2], 1, 65536 - port);
	uint32_t which;
	int64_t begin;
	int err;

	if ((kind == KIND_TLS) != (argc == 6))
		fail(2, "AUTHORITY: a certificate goes with tls, and tls with a "
		     "certificate");
	g.clients.kind = kind;
	g.clients.count = (uint32_t)number("CLIENTS", argv[3], 1, 1000000);
	g.dice.state = (uint64_t)number("SEED", argv[4], 0, INT32_MAX);
	need_descriptors(g.clients.count);
	g.book = book_new();
	if (!g.book)
		fail(1, "no memory");
	prctl(PR_SET_TIMERSLACK, 1);
	begin = clock_ns();
	err = clients_open(&g.clients, (uint16_t)port, (uint16_t)ports,
			   argc == 6 ? argv[5] : NULL, &which);
	if (err)
		fail(1, "client %u of %u cannot be opened: %s", which,
		     g.clients.count, strerror(-err));
	ask_all_once(&g);
	printf("{\"clients\": %u, \"seconds\": %.6f}\n", g.clients.count,
	       (double)(clock_ns() - begin) / 1e9);
	fflush(stdout);
	obey(&g);
	clients_close(&g.clients);
	book_free(g.book);
}

int main(int argc, char **argv)
{
	enum kind kind;
	long port;

	wire_init();
	if ((argc == 7 || argc == 8) && strcmp(argv[1], "ask") == 0) {
		generate(argc - 2, argv + 2);
		return 0;
	}
	if (argc != 5 || strcmp(argv[1], "serve") != 0)
		fail(2, "usage: ask udp|tcp|tls PORT PORTS CLIENTS SEED "
		     "[AUTHORITY], or serve udp|tcp PORT RATE");
	kind = kind_of(argv[2]);
	if (kind == KIND_TLS)
		fail(2, "KIND: serve speaks udp and tcp");
	port = number("PORT", argv[3], 1, 65535);
	fail(1, "serve: %s", strerror(-limited_serve(kind, (uint16_t)port,
			(double)number("RATE", argv[4], 0, 10000000))));
}
