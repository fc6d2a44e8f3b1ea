/* SPDX-License-Identifier: MIT */
/*
 * The options as --help shows them.
 */
#include <string.h>

#include "../sched/sched.h"
#include "options.h"

enum { HELP_COLUMN = 29, HELP_WIDTH = 79, CHOICE_LEN = 256, CHOICE_WIDTH = 8 };

/* Prints @text from @column on, in lines shorter than HELP_WIDTH. */
static void print_wrapped(FILE *out, int column, const char *text)
{
	int at = column;

	while (*text) {
		int word = (int)strcspn(text, " ");

		if (at > column && at + 1 + word > HELP_WIDTH) {
			fprintf(out, "\n%*s", column, "");
			at = column;
		} else if (at > column) {
			fputc(' ', out);
			at++;
		}
		fprintf(out, "%.*s", word, text);
		at += word;
		text += word;
		text += *text == ' ';
	}
	fputc('\n', out);
}

static void print_choice(FILE *out, const char *name, const char *summary,
			 bool dflt)
{
	char text[CHOICE_LEN];

	fprintf(out, "%*s  %-*s ", HELP_COLUMN, "", CHOICE_WIDTH, name);
	snprintf(text, sizeof(text), "%s%s", summary, dflt ? " (default)" : "");
	print_wrapped(out, HELP_COLUMN + 2 + CHOICE_WIDTH + 1, text);
}

/* With what stands behind its name, such as one:NAME. */
static void print_path_policy(FILE *out, const struct path_policy *policy,
			      bool dflt)
{
	char name[CHOICE_LEN];

	snprintf(name, sizeof(name), "%s%s%s", policy->name,
		 policy->argument ? ":" : "",
		 policy->argument ? policy->argument : "");
	print_choice(out, name, policy->summary, dflt);
}

static void print_policies(FILE *out, const char *option)
{
	int i;

	for (i = 0; !strcmp(option, "pipe-policy") && pipe_policies[i]; i++)
		print_choice(out, pipe_policies[i]->name,
			     pipe_policies[i]->summary, i == 0);
	for (i = 0; !strcmp(option, "conn-policy") && conn_policies[i]; i++)
		print_choice(out, conn_policies[i]->name,
			     conn_policies[i]->summary, i == 0);
	for (i = 0; !strcmp(option, "path-policy") && path_policies[i]; i++)
		print_path_policy(out, path_policies[i], i == 0);
}

void options_print(FILE *out, const struct option_spec *options)
{
	const struct option_spec *o;

	for (o = options; o->name; o++) {
		int used = fprintf(out, "  --%s%s%s", o->name,
				   o->arg ? " " : "", o->arg ? o->arg : "");

		if (used > HELP_COLUMN - 2) {
			fputc('\n', out);
			used = 0;
		}
		fprintf(out, "%*s", HELP_COLUMN - used, "");
		print_wrapped(out, HELP_COLUMN, o->help);
		print_policies(out, o->name);
	}
}
