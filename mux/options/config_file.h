/* SPDX-License-Identifier: MIT */
/*
 * A configuration file: an option a line, by its name without dashes, and its
 * value behind blanks. What the names mean the command line knows.
 *
 *	# of the house
 *	listen 192.0.2.1
 *	stats /var/log/tm3/rp.jsonl
 *	verbose
 */
#ifndef TM3_CONFIG_FILE_H
#define TM3_CONFIG_FILE_H

#include <stddef.h>

struct config_line {
	unsigned int number;	/* from 1 */
	const char *name;
	const char *value;	/* NULL if there is none */
};

struct config_file {
	char *text;
	size_t len;		/* that was read, whatever lines were cut out of it */
	char *at;
	unsigned int lines;	/* so far */
};

/* Returns 0, or -1 with a reason in @why that names the file. */
int config_file_open(struct config_file *f, const char *path, char *why,
		     size_t why_len);
void config_file_close(struct config_file *f);

/*
 * Can it be read once more, as it was, without waiting for anybody? A pipe has given
 * what it had: it would block, or be an empty file. Returns 0, or -1 with a reason in
 * @why.
 */
int config_file_stays(const char *path, char *why, size_t why_len);

/*
 * The next line that says something. Returns 1; 0 at the end. @line's texts last
 * until the file is closed.
 */
int config_file_next(struct config_file *f, struct config_line *line);

#endif
