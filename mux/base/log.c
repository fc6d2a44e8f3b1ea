/* SPDX-License-Identifier: MIT */
#include "log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Warnings: a burst of 100, then 20 a second. */
#define BURST 100.0
#define PER_SECOND 20.0

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

void log_init(struct log *log, const char *name, enum log_level level)
{
	log->name = name;
	log->level = level;
	log->tokens = BURST;
	log->tokens_at = now_ns();
	log->left_out = 0;
}

static bool may_speak(struct log *log)
{
	int64_t now = now_ns();

	log->tokens += (double)(now - log->tokens_at) / 1e9 * PER_SECOND;
	log->tokens_at = now;
	if (log->tokens > BURST)
		log->tokens = BURST;
	if (log->tokens < 1.0) {
		log->left_out++;
		return false;
	}
	log->tokens -= 1.0;
	return true;
}

/* A line leaves in one write, so that two programs' lines do not mix. */
static void emit(const struct log *log, const char *fmt, va_list args)
{
	char line[1024];
	int n = snprintf(line, sizeof(line), "%s: ", log->name);
	int m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, args);
	ssize_t wrote;

	n += m < (int)sizeof(line) - n - 1 ? m : (int)sizeof(line) - n - 2;
	line[n++] = '\n';
	wrote = write(STDERR_FILENO, line, (size_t)n);
	(void)wrote;	/* nobody is left to be told */
}

__attribute__((format(printf, 2, 3)))
static void emit_line(const struct log *log, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	emit(log, fmt, args);
	va_end(args);
}

void log_line(struct log *log, enum log_level level, const char *fmt, ...)
{
	va_list args;

	if (level > log->level)
		return;
	if (level == LOG_WARN && !may_speak(log))
		return;
	if (log->left_out) {
		unsigned long n = log->left_out;

		log->left_out = 0;
		emit_line(log, "(%lu more warnings were left out)", n);
	}
	va_start(args, fmt);
	emit(log, fmt, args);
	va_end(args);
}
