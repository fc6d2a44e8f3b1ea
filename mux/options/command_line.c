/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "command_line.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/reject.h"
#include "../settings/changes.h"
#include "config_file.h"
#include "values.h"

enum {
	REASON_MAX = 512,
	SECTIONS = 3,
	ARGUMENTS = 2,
	ARGUMENT_MAX = 512,
	/* Above all characters, which getopt_long() puts into optopt. */
	VAL_BASE = 256,
};

static const struct option_spec about_options[] = {
	{ "config", "FILE",
	  "options from FILE, one a line and without dashes, as if they stood "
	  "here; arguments, too, such as \"pipes 4\", if they are not given "
	  "here" },
	{ "check", NULL,
	  "say whether command line and files are right, and exit" },
	{ "help", NULL, "show this and exit" },
	{ "version", NULL, "show the version and exit" },
	{ NULL, NULL, NULL },
};

struct parser {
	const struct command_line *cl;
	struct settings *settings;
	void *options;
	const struct option_spec *section[SECTIONS];
	struct option *table;	/* for getopt_long() */
	bool answered;		/* --help or --version did */
	bool check;
	struct words *words;
	char *why;		/* NULL: what is wrong goes to stderr */
	size_t why_len;
	const char *file;	/* while lines of it are read */
	unsigned int line;
	char argument[ARGUMENTS][ARGUMENT_MAX];	/* of files, "" if none */
};

/* --- the table: an option's val is its place in all sections together --- */

static unsigned int length(const struct option_spec *options)
{
	unsigned int n = 0;

	while (options[n].name)
		n++;
	return n;
}

static const struct option_spec *option_at(const struct parser *p,
					   unsigned int i, unsigned int *section)
{
	for (*section = 0; i >= length(p->section[*section]); (*section)++)
		i -= length(p->section[*section]);
	return &p->section[*section][i];
}

static int build_table(struct parser *p)
{
	unsigned int n = 0, i, section;

	p->section[0] = p->cl->options;
	p->section[1] = engine_options;
	p->section[2] = about_options;
	for (i = 0; i < SECTIONS; i++)
		n += length(p->section[i]);
	p->table = calloc(n + 1, sizeof(*p->table));
	if (!p->table)
		return -1;
	for (i = 0; i < n; i++) {
		const struct option_spec *o = option_at(p, i, &section);

		p->table[i] = (struct option){
			.name = o->name,
			.has_arg = o->arg ? required_argument : no_argument,
			.val = VAL_BASE + (int)i,
		};
	}
	return 0;
}

/* --- what is said --- */

__attribute__((format(printf, 2, 3)))
static int wrong(const struct parser *p, const char *fmt, ...)
{
	char line[REASON_MAX + 256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	if (p->why && p->file)
		snprintf(p->why, p->why_len, "%s:%u: %s", p->file, p->line,
			 line);
	else if (p->why)
		snprintf(p->why, p->why_len, "%s", line);
	else if (p->file)
		fprintf(stderr, "%s: %s:%u: %s\n", p->cl->program, p->file,
			p->line, line);
	else
		fprintf(stderr, "%s: %s\n", p->cl->program, line);
	return -1;
}

/* What to type: it may be installed under another name than its own. */
static const char *command(void)
{
	return program_invocation_short_name;
}

static const char *usage(const struct parser *p, char text[REASON_MAX])
{
	const char *const *argument = p->cl->arguments;
	size_t used = (size_t)snprintf(text, REASON_MAX, "%s [OPTION]...",
				       command());

	for (; *argument && used < REASON_MAX; argument++)
		used += (size_t)snprintf(text + used, REASON_MAX - used, " %s",
					 *argument);
	return text;
}

static void print_help(const struct parser *p)
{
	const struct command_line *cl = p->cl;
	char text[REASON_MAX];

	printf("Usage: %s\n\n%s\n%s:\n", usage(p, text), cl->about,
	       cl->heading);
	options_print(stdout, cl->options);
	printf("\nThe engine:\n");
	options_print(stdout, engine_options);
	printf("\nAbout %s:\n", cl->program);
	options_print(stdout, about_options);
	printf("\n%s\n"
	       "SIGUSR1 prints a table of pipes and connections; SIGTERM and "
	       "SIGINT end in order,\n"
	       "a second one at once; SIGHUP reads command line and files again.\n"
	       "Exit status: 0 ended by a signal, 1 something failed, 2 wrong "
	       "arguments,\nor an address or file that cannot be had.\n", cl->notes);
}

/* @what and @word are getopt_long()'s answer and the argument it was about. */
static int wrong_option(const struct parser *p, int what, const char *word)
{
	char why[REASON_MAX];
	unsigned int section;

	if (optopt >= VAL_BASE) {
		option_fits(option_at(p, (unsigned int)optopt - VAL_BASE,
				      &section),
			    what == ':' ? NULL : "", why, sizeof(why));
		return wrong(p, "%s", why);
	}
	if (optopt)
		return wrong(p, "-%c: there is no such option; %s --help lists "
			     "them", optopt, command());
	return wrong(p, "%.*s: there is no such option, or more than one that "
		     "begins like this; %s --help lists them",
		     (int)strcspn(word, "="), word, command());
}

/* --- one option --- */

static int take_about(struct parser *p, const char *name)
{
	if (!strcmp(name, "check")) {
		p->check = true;
		return 0;
	}
	p->answered = true;
	if (!strcmp(name, "help"))
		print_help(p);
	else
		printf("%s (TM3) " TM3_VERSION "\n", p->cl->program);
	return 0;
}

static int take_option(struct parser *p, const struct option_spec *o,
		       const char *value)
{
	char why[REASON_MAX];
	int err;

	if (words_add(p->words, o->name, value))
		return wrong(p, "--%s: no memory is left", o->name);
	if (option_named(engine_options, o->name) == o)
		err = settings_set(p->settings, o->name, value, why,
				   sizeof(why));
	else
		err = p->cl->set(p->options, o->name, value, why,
				 sizeof(why));
	return err ? wrong(p, "%s", why) : 0;
}

/* --- a file --- */

/* "RP_ADDRESS[:PORT]" is "rp-address" there. */
static bool is_argument(const char *argument, const char *name)
{
	size_t i, n = strcspn(argument, "[");

	if (strlen(name) != n)
		return false;
	for (i = 0; i < n; i++) {
		int c = argument[i] == '_' ? '-' :
			tolower((unsigned char)argument[i]);

		if (c != name[i])
			return false;
	}
	return true;
}

static int take_argument_line(struct parser *p, unsigned int i,
			      const struct config_line *line)
{
	if (!line->value)
		return wrong(p, "%s: its value is missing", line->name);
	if (strlen(line->value) >= ARGUMENT_MAX)
		return wrong(p, "%s: it is too long", line->name);
	strcpy(p->argument[i], line->value);
	return 0;
}

static int take_line(struct parser *p, const struct config_line *line)
{
	const struct option_spec *o = option_named(p->cl->options, line->name);
	const char *const *names = p->cl->arguments;
	char why[REASON_MAX];
	unsigned int i;

	for (i = 0; names[i]; i++) {
		if (is_argument(names[i], line->name))
			return take_argument_line(p, i, line);
	}
	if (!o)
		o = option_named(engine_options, line->name);
	if (!o && option_named(about_options, line->name))
		return wrong(p, "%s: this goes on the command line only",
			     line->name);
	if (!o && *line->name == '-')
		return wrong(p, "%s: options stand here without dashes",
			     line->name);
	if (!o)
		return wrong(p, "%s: there is no such option; %s --help lists "
			     "them", line->name, command());
	if (option_fits(o, line->value, why, sizeof(why)))
		return wrong(p, "%s", why);
	return take_option(p, o, line->value);
}

static int take_file(struct parser *p, const char *path)
{
	struct config_file file;
	struct config_line line;
	char why[REASON_MAX];
	int err = 0;

	if (p->why && config_file_stays(path, why, sizeof(why)))
		return wrong(p, "--config: %s", why);
	if (config_file_open(&file, path, why, sizeof(why)))
		return wrong(p, "--config: %s", why);
	p->file = path;
	while (!err && config_file_next(&file, &line)) {
		p->line = line.number;
		err = take_line(p, &line);
	}
	p->file = NULL;
	config_file_close(&file);
	return err;
}

/* --- from left to right --- */

static int take_word(struct parser *p, unsigned int i, const char *value)
{
	unsigned int section;
	const struct option_spec *o = option_at(p, i, &section);

	if (p->section[section] != about_options)
		return take_option(p, o, value);
	if (!strcmp(o->name, "config"))
		return take_file(p, value);
	return take_about(p, o->name);
}

static int take_arguments(struct parser *p, char *const *given, int n)
{
	const char *const *names = p->cl->arguments;
	char *arguments[ARGUMENTS];
	char why[REASON_MAX];
	int i;

	for (i = 0; names[i]; i++) {
		arguments[i] = i < n ? given[i] : p->argument[i];
		if (i >= n && !*arguments[i])
			return wrong(p, "%s is missing; usage: %s "
				     "(more: %s --help)", names[i],
				     usage(p, why), command());
		if (words_add(p->words, names[i], arguments[i]))
			return wrong(p, "%s: no memory is left", names[i]);
	}
	if (n > i)
		return wrong(p, "'%s' is one argument too many; usage: %s "
			     "(more: %s --help)", given[i], usage(p, why),
			     command());
	if (p->cl->finish(p->options, arguments, why, sizeof(why)))
		return wrong(p, "%s", why);
	if (p->check)
		printf("%s: all is right\n", p->cl->program);
	return 0;
}

static int parse(struct parser *p, int argc, char **argv)
{
	int val;

	opterr = 0;
	while ((val = getopt_long(argc, argv, ":", p->table, NULL)) != -1) {
		if (val < VAL_BASE)
			return wrong_option(p, val, argv[optind - 1]);
		if (take_word(p, (unsigned int)val - VAL_BASE, optarg))
			return -1;
		if (p->answered)
			return 0;
	}
	return take_arguments(p, argv + optind, argc - optind);
}

static int run(struct parser *p, int argc, char **argv)
{
	int err = build_table(p);

	if (err)
		wrong(p, "there is no memory for the command line");
	else
		err = parse(p, argc, argv);
	free(p->table);
	return err;
}

bool command_line_parse(const struct command_line *cl,
			struct settings *settings, void *options,
			struct words *words, int argc, char **argv,
			int *status)
{
	struct parser p = {
		.cl = cl,
		.settings = settings,
		.options = options,
		.words = words,
	};
	int err = run(&p, argc, argv);

	*status = err ? EXIT_WRONG_ARGUMENTS : EXIT_SUCCESS;
	return !err && !p.answered && !p.check;
}

/* --- once more, while the program runs --- */

int command_line_again(const struct command_line *cl,
		       struct settings *settings, void *options,
		       struct words *words, int argc, char **argv, char *why,
		       size_t why_len)
{
	struct parser p = {
		.cl = cl,
		.settings = settings,
		.options = options,
		.words = words,
		.why = why,
		.why_len = why_len,
	};

	optind = 0;		/* getopt_long() begins anew */
	return run(&p, argc, argv);
}

static bool is_among(const char *const *names, const char *name)
{
	while (*names && strcmp(*names, name))
		names++;
	return *names;
}

static bool can_change(const struct command_line *cl, const char *name)
{
	return is_among(cl->changing, name) ||
	       is_among(engine_changing, name);
}

/* Without memory for the words a later change is told wrongly, and no more. */
static void take_options(const struct command_line *cl, struct words *words,
			 const struct words *now,
			 const struct option_spec *o, struct changes *changes)
{
	for (; o->name; o++) {
		if (words_same(words, now, o->name))
			continue;
		if (!can_change(cl, o->name)) {
			changes_add(changes->kept, "--", o->name);
			continue;
		}
		changes_add(changes->taken, "--", o->name);
		words_take(words, now, o->name);
	}
}

void command_line_take(const struct command_line *cl, struct words *words,
		       const struct words *now, struct changes *changes)
{
	const char *const *argument;

	memset(changes, 0, sizeof(*changes));
	take_options(cl, words, now, cl->options, changes);
	take_options(cl, words, now, engine_options, changes);
	for (argument = cl->arguments; *argument; argument++) {
		if (!words_same(words, now, *argument))
			changes_add(changes->kept, "", *argument);
	}
}

int command_line_pipes(struct settings *settings, const char *text, bool loose,
		       unsigned int *pipes, char *why, size_t why_len)
{
	uint64_t n;

	if (value_whole(text, 1, PIPES_MAX, &n))
		return reject(why, why_len,
			      "PIPES: '%s' is not a whole number from 1 to %d",
			      text, PIPES_MAX);
	*pipes = (unsigned int)n;
	if (settings_check(settings, why, why_len))
		return -1;
	return settings_fit(settings, *pipes, loose, why, why_len);
}
