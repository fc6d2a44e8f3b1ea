/* SPDX-License-Identifier: MIT */
#include "path_control.h"

#include <string.h>

#include "../mux/session/session.h"
#include "../mux/wire/wire_ext.h"
#include "hint_control.h"

enum { WORDS_MAX = 6 };	/* one more than any command has */

static const char *const states[] = {
	[WIRE_PATH_USE] = "use",
	[WIRE_PATH_BACKUP] = "backup",
	[WIRE_PATH_OFF] = "off",
};

/* --- list --- */

static void print_figures(const struct path_figures *at, const char *now,
			  FILE *out)
{
	fprintf(out, " now=%s pipes=%u", now, at->pipes);
	if (at->rtt_ms > 0)
		fprintf(out, " rtt_ms=%.1f", at->rtt_ms);
	fprintf(out, " held=%zu written=%llu", at->held,
		(unsigned long long)at->written);
}

/* "lacks": it has no pipe. */
static const char *now_of(const struct path_figures *at)
{
	if (at->down)
		return "down";
	if (!at->pipes)
		return "lacks";
	return at->standby ? "rests" : "carries";
}

static void list(const struct path_control *pc, FILE *out)
{
	struct path_figures at;
	unsigned int i;

	for (i = 0; i < pc->paths->n; i++) {
		const struct path_spec *spec = &pc->paths->path[i];

		memset(&at, 0, sizeof(at));
		if (pc->session)
			session_look_at_path(pc->session, i, &at);
		fprintf(out, "%s state=%s cost=%u wanted=%u", spec->name,
			states[pc->state[i]], spec->cost, spec->pipes);
		print_figures(&at, now_of(&at), out);
		fputc('\n', out);
	}
	fputs("ok\n", out);
}

/* --- path --- */

/* Is @path the only one that is not off? */
static bool is_last(const struct path_control *pc, unsigned int path)
{
	unsigned int i;

	for (i = 0; i < pc->paths->n; i++) {
		if (i != path && pc->state[i] != WIRE_PATH_OFF)
			return false;
	}
	return true;
}

static void set_state(struct path_control *pc, unsigned int path, uint8_t state)
{
	pc->state[path] = state;
	if (pc->session)
		session_use_path(pc->session, path, state);
}

static void use(struct path_control *pc, const char *name, const char *how,
		FILE *out)
{
	unsigned int i = path_set_number(pc->paths, name, strlen(name));
	uint8_t state = 0;

	while (state <= WIRE_PATH_OFF && strcmp(states[state], how))
		state++;
	if (i == pc->paths->n) {
		fprintf(out, "error: there is no path %s\n", name);
	} else if (state > WIRE_PATH_OFF) {
		fprintf(out, "error: path %s: '%s' is none of use, backup and off\n",
			name, how);
	} else if (state == WIRE_PATH_OFF && is_last(pc, i)) {
		fprintf(out, "error: path %s: all others are off\n", name);
	} else {
		set_state(pc, i, state);
		fputs("ok\n", out);
	}
}

/* --- commands --- */

static unsigned int split(char *line, char *word[WORDS_MAX])
{
	unsigned int n = 0;
	char *state;
	char *next = strtok_r(line, " \t\r", &state);

	while (next && n < WORDS_MAX) {
		word[n++] = next;
		next = strtok_r(NULL, " \t\r", &state);
	}
	return n;
}

void path_control_do(struct path_control *pc, char *line, FILE *out)
{
	char *word[WORDS_MAX];
	unsigned int n = split(line, word);

	if (n == 1 && !strcmp(word[0], "list"))
		list(pc, out);
	else if (n == 3 && !strcmp(word[0], "path"))
		use(pc, word[1], word[2], out);
	else if (n && !strcmp(word[0], "hint"))
		hint_control_do(pc->session, pc->paths, pc->ways_in, word + 1,
				n - 1, out);
	else
		fputs("error: this is none of 'list', 'path NAME use|backup|off' and 'hint CONNECTION ...'\n", out);
}

void path_control_begin(struct path_control *pc, struct session *s)
{
	unsigned int i;

	pc->session = s;
	for (i = 0; s && i < pc->paths->n; i++)
		session_use_path(s, i, pc->state[i]);
}

void path_control_init(struct path_control *pc, const struct path_set *paths,
		       const struct ways_in *ways_in)
{
	unsigned int i;

	*pc = (struct path_control){ .paths = paths, .ways_in = ways_in };
	for (i = 0; i < paths->n; i++)
		pc->state[i] = paths->path[i].backup ? WIRE_PATH_BACKUP :
						       WIRE_PATH_USE;
}
