/* SPDX-License-Identifier: MIT */
/*
 * The engine's settings by name and value, as both proxies' command lines name
 * them. Programs add options of their own.
 */
#ifndef TM3_OPTIONS_H
#define TM3_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "../settings/settings.h"

/* One option as --help shows it; @arg is NULL where it takes no value. */
struct option_spec {
	const char *name, *arg, *help;
};

/* Ends with a name of NULL. */
extern const struct option_spec engine_options[];

/*
 * Those of them that SIGHUP may change; ends with NULL. settings_take() is what
 * changes them.
 */
extern const char *const engine_changing[];

/* Of such a list, or NULL. */
const struct option_spec *option_named(const struct option_spec *options,
				       const char *name);

/*
 * Is there a @value (else NULL) if and only if @option takes one? Returns 0, or -1
 * with a reason in @why that names the option.
 */
int option_fits(const struct option_spec *option, const char *value, char *why,
		size_t why_len);

/*
 * --memory by any of its names: @value in MiB, for @option. Returns 0, or -1 with a reason
 * in @why.
 */
int settings_set_memory(struct settings *settings, const char *option,
			const char *value, char *why, size_t why_len);

/* As if no option had been given. */
void settings_init(struct settings *settings);

/*
 * Set option @name (without dashes) to @value (NULL where it takes none).
 * Returns 0, or -1 with a reason in @why that names the option.
 */
int settings_set(struct settings *settings, const char *name, const char *value,
	       char *why, size_t why_len);

/* What can change while sessions go on is as in @from from now on. */
void settings_take(struct settings *settings, const struct settings *from);

/* After all options: what does not go together. */
int settings_check(const struct settings *settings, char *why, size_t why_len);

/*
 * Once the number of pipes is known: do the transports' counts fit (@loose:
 * they need not all be there), and has this kernel got them?
 */
int settings_fit(struct settings *settings, unsigned int pipes, bool loose,
	       char *why, size_t why_len);

/* The options' part of --help, aligned; the policies with what they do. */
void options_print(FILE *out, const struct option_spec *options);

#endif
