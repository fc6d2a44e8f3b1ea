/* SPDX-License-Identifier: MIT */
/*
 * One event, one line, on stderr, behind the program's name.
 *
 * The log never holds the program up. Lines that nobody reads in time are lost;
 * lines that come too fast, which strangers could cause, are left out. The
 * limit is one for each level, so that a flood of one kind leaves room for what
 * is worse. How many are missing is said as soon as that is possible.
 */
#ifndef TM3_LOG_H
#define TM3_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "writer.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

enum { LOG_LEVELS = 4 };

struct log_bucket {		/* of lines that may still be written */
	double tokens;
	int64_t filled_at;
};

struct log {
	const char *name;
	enum log_level level;
	struct writer out;
	struct log_bucket bucket[LOG_LEVELS];
	unsigned long left_out;	/* lines, too many at once */
	unsigned long lost;	/* lines, nobody read them in time */
};

void log_init(struct log *log, const char *name, enum log_level level);
void log_fini(struct log *log);

__attribute__((format(printf, 3, 4)))
void log_line(struct log *log, enum log_level level, const char *fmt, ...);

#define log_error(log, ...) log_line(log, LOG_ERROR, __VA_ARGS__)
#define log_warn(log, ...) log_line(log, LOG_WARN, __VA_ARGS__)
#define log_info(log, ...) log_line(log, LOG_INFO, __VA_ARGS__)
#define log_debug(log, ...) log_line(log, LOG_DEBUG, __VA_ARGS__)

/*
 * Many lines that a person asked for. A reader gets LOG_TEXT_MS in all to make
 * room for them; what is left then is lost.
 */
void log_text(struct log *log, const char *text, size_t len);

enum { LOG_TEXT_MS = 200 };

#endif
