/* SPDX-License-Identifier: MIT */
/*
 * One event, one line, on stderr, behind the program's name.
 *
 * The log never delays the program. Lines that nobody reads in time are lost;
 * lines that come too fast, which strangers could cause, are left out. The
 * limit is one for each level, so that a flood of one kind leaves room for what
 * is worse. How many are missing is said as soon as that is possible.
 *
 * Any thread may write lines; they have the limits in common. Many lines at once are
 * for one thread alone, as are the beginning and the end.
 */
#ifndef TM3_LOG_H
#define TM3_LOG_H

#include <pthread.h>
#include <stdbool.h>
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
	enum log_level level;	/* looked at without the lock */
	pthread_mutex_t lock;	/* what follows is under it */
	struct writer out;
	struct log_bucket bucket[LOG_LEVELS];
	char *text;		/* many lines that are being written, or NULL, */
	size_t text_len, text_at;
	unsigned long left_out;	/* lines, too many at once */
	unsigned long lost;	/* lines, nobody read them in time */
};

void log_init(struct log *log, const char *name, enum log_level level);
void log_fini(struct log *log);
/* Lines above @level are left out from now on. */
void log_set_level(struct log *log, enum log_level level);

__attribute__((format(printf, 3, 4)))
void log_line(struct log *log, enum log_level level, const char *fmt, ...);

#define log_error(log, ...) log_line(log, LOG_ERROR, __VA_ARGS__)
#define log_warn(log, ...) log_line(log, LOG_WARN, __VA_ARGS__)
#define log_info(log, ...) log_line(log, LOG_INFO, __VA_ARGS__)
#define log_debug(log, ...) log_line(log, LOG_DEBUG, __VA_ARGS__)

/*
 * Many lines that a person asked for. @text is the log's from here on, to be freed.
 * It writes what there is room for, and more each time that log_go_on() is called, which
 * says whether any is left. Other lines that come meanwhile are lost.
 */
void log_text(struct log *log, char *text, size_t len);
bool log_go_on(struct log *log);
/* What is left is lost. */
void log_give_up(struct log *log);

#endif
