/* SPDX-License-Identifier: MIT */
/*
 * The command line of a proxy: options of its own, the engine's settings,
 * files of them, --help and --version, and its arguments behind them. If something
 * is wrong with it, one line on stderr says what, in the same words for both proxies.
 */
#ifndef TM3_COMMAND_LINE_H
#define TM3_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "options.h"

enum { EXIT_WRONG_ARGUMENTS = 2 };

struct command_line {
	const char *program;			/* "rp" */
	const char *const *arguments;		/* "PIPES", ..., NULL: all needed */
	const char *about;			/* --help begins with it */
	const char *heading;			/* of the program's own options: */
	const struct option_spec *options;
	const char *notes;			/* --help ends with it */

	/*
	 * Sets one of the program's own options, in @options. Returns 0, or -1
	 * with a reason in @why that names the option.
	 */
	int (*set)(void *options, const char *name, const char *value,
		   char *why, size_t why_len);
	/* Takes the arguments, after all options, and checks the whole. */
	int (*finish)(void *options, char *const *arguments, char *why,
		      size_t why_len);
};

/*
 * Returns whether the program is to run. If not, it is to exit with @status:
 * help was given, or what is wrong was said. No string of @argv is kept.
 */
bool command_line_parse(const struct command_line *cl,
			struct settings *settings, void *options, int argc,
			char **argv, int *status);

/*
 * For finish(): reads PIPES, and checks the settings together with it; @loose as
 * for settings_fit(). Returns 0, or -1 with a reason in @why.
 */
int command_line_pipes(struct settings *settings, const char *text, bool loose,
		       unsigned int *pipes, char *why, size_t why_len);

#endif
