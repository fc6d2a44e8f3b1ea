/* SPDX-License-Identifier: MIT */
/*
 * One event, one line, on stderr, behind the program's name. What strangers can
 * provoke (warnings) is limited in rate, and what was left out is counted.
 */
#ifndef TM3_LOG_H
#define TM3_LOG_H

#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

struct log {
	const char *name;
	enum log_level level;
	int64_t tokens_at;
	double tokens;
	unsigned long left_out;
};

void log_init(struct log *log, const char *name, enum log_level level);

__attribute__((format(printf, 3, 4)))
void log_line(struct log *log, enum log_level level, const char *fmt, ...);

#define log_error(log, ...) log_line(log, LOG_ERROR, __VA_ARGS__)
#define log_warn(log, ...) log_line(log, LOG_WARN, __VA_ARGS__)
#define log_info(log, ...) log_line(log, LOG_INFO, __VA_ARGS__)
#define log_debug(log, ...) log_line(log, LOG_DEBUG, __VA_ARGS__)

#endif
