/* SPDX-License-Identifier: MIT */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1024 };

/* So many lines at once, and then so many a second. */
static const struct {
	double burst, per_second;
} limits[LOG_LEVELS] = {
	[LOG_ERROR] = { 100, 20 },
	[LOG_WARN] = { 100, 20 },
	[LOG_INFO] = { 100, 20 },
	[LOG_DEBUG] = { 1000, 200 },	/* who asks for it wants to see it */
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

void log_init(struct log *log, const char *name, enum log_level level)
{
	int i;

	*log = (struct log){ .name = name, .level = level };
	pthread_mutex_init(&log->lock, NULL);
	writer_init(&log->out, STDERR_FILENO);
	for (i = 0; i < LOG_LEVELS; i++) {
		log->bucket[i].tokens = limits[i].burst;
		log->bucket[i].filled_at = now_ns();
	}
}

void log_fini(struct log *log)
{
	log_give_up(log);
	writer_fini(&log->out);
	pthread_mutex_destroy(&log->lock);
}

void log_set_level(struct log *log, enum log_level level)
{
	__atomic_store_n(&log->level, level, __ATOMIC_RELAXED);
}

static bool may_speak(struct log *log, enum log_level level)
{
	struct log_bucket *b = &log->bucket[level];
	int64_t now = now_ns();

	b->tokens += (double)(now - b->filled_at) / 1e9 *
		     limits[level].per_second;
	b->filled_at = now;
	if (b->tokens > limits[level].burst)
		b->tokens = limits[level].burst;
	if (b->tokens < 1.0)
		return false;
	b->tokens -= 1.0;
	return true;
}

/* A line leaves in one write, so that two programs' lines do not mix. */
static bool emit(struct log *log, const char *fmt, va_list args)
{
	char line[LINE_MAX_BYTES];
	int n = snprintf(line, sizeof(line), "%s: ", log->name);
	int m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, args);

	n += m < (int)sizeof(line) - n - 1 ? m : (int)sizeof(line) - n - 2;
	line[n++] = '\n';
	return writer_write(&log->out, line, (size_t)n) > 0;
}

__attribute__((format(printf, 2, 3)))
static bool emit_line(struct log *log, const char *fmt, ...)
{
	va_list args;
	bool done;

	va_start(args, fmt);
	done = emit(log, fmt, args);
	va_end(args);
	return done;
}

static void say_what_is_missing(struct log *log)
{
	if (log->lost && emit_line(log, "(%lu line%s lost, because nobody "
				   "read %s)", log->lost,
				   log->lost == 1 ? " was" : "s were",
				   log->lost == 1 ? "it" : "them"))
		log->lost = 0;
	if (log->left_out && emit_line(log, "(%lu more line%s left out)",
				       log->left_out, log->left_out == 1 ?
				       " was" : "s were"))
		log->left_out = 0;
}

static void give_up(struct log *log)
{
	size_t i;

	for (i = log->text_at; i < log->text_len; i++)
		log->lost += log->text[i] == '\n';
	free(log->text);
	log->text = NULL;
	log->text_len = log->text_at = 0;
}

static bool go_on(struct log *log)
{
	while (log->text_at < log->text_len) {
		ssize_t wrote = writer_write(&log->out, log->text + log->text_at,
					     log->text_len - log->text_at);

		if (wrote == -EAGAIN)
			return true;
		if (wrote < 0)
			break;
		log->text_at += (size_t)wrote;
	}
	give_up(log);
	return false;
}

__attribute__((format(printf, 3, 0)))
static void say(struct log *log, enum log_level level, const char *fmt,
		va_list args)
{
	if (!may_speak(log, level)) {
		log->left_out++;
		return;
	}
	if (go_on(log)) {
		log->lost++;
		return;
	}
	say_what_is_missing(log);
	if (!emit(log, fmt, args))
		log->lost++;
}

/* --- from any thread --- */

void log_line(struct log *log, enum log_level level, const char *fmt, ...)
{
	va_list args;

	if (level > __atomic_load_n(&log->level, __ATOMIC_RELAXED))
		return;
	va_start(args, fmt);
	pthread_mutex_lock(&log->lock);
	say(log, level, fmt, args);
	pthread_mutex_unlock(&log->lock);
	va_end(args);
}

void log_text(struct log *log, char *text, size_t len)
{
	pthread_mutex_lock(&log->lock);
	give_up(log);
	log->text = text;
	log->text_len = len;
	go_on(log);
	pthread_mutex_unlock(&log->lock);
}

bool log_go_on(struct log *log)
{
	bool more;

	pthread_mutex_lock(&log->lock);
	more = go_on(log);
	pthread_mutex_unlock(&log->lock);
	return more;
}

void log_give_up(struct log *log)
{
	pthread_mutex_lock(&log->lock);
	give_up(log);
	pthread_mutex_unlock(&log->lock);
}
