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
#include "words.h"

enum { EXIT_WRONG_ARGUMENTS = 2 };

struct changes;

struct command_line {
	const char *program;			/* "rp" */
	const char *const *arguments;		/* "PIPES", ..., NULL: all needed */
	const char *about;			/* --help begins with it */
	const char *heading;			/* of the program's own options: */
	const struct option_spec *options;
	const char *const *changing;	/* those that SIGHUP may change; NULL ends */
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
 * help was given, or what is wrong was said. No string of @argv is kept; @words,
 * empty before, are what was given.
 */
bool command_line_parse(const struct command_line *cl,
			struct settings *settings, void *options,
			struct words *words, int argc, char **argv,
			int *status);

/*
 * The same for a program that runs already, whose files may say something else
 * now. Returns 0, or -1 with a line in @why: "FILE:3: what is wrong".
 */
int command_line_again(const struct command_line *cl,
		       struct settings *settings, void *options,
		       struct words *words, int argc, char **argv, char *why,
		       size_t why_len);

/* How @now differs from @words. Those that can change are in @words then, too. */
void command_line_take(const struct command_line *cl, struct words *words,
		       const struct words *now, struct changes *changes);

/*
 * For finish(): reads PIPES, and checks the settings together with it; @loose as
 * for settings_fit(). Returns 0, or -1 with a reason in @why.
 */
int command_line_pipes(struct settings *settings, const char *text, bool loose,
		       unsigned int *pipes, char *why, size_t why_len);

#endif
