/* SPDX-License-Identifier: MIT */
/*
 * A configuration file of arbitrary bytes, all of whose lines rp takes, its own and the
 * engine's: at its start, and when it is read again. Asserted: it is taken, and what came of it
 * is sound, or one line says what is wrong; read again it changes nothing; and where rp was
 * started with other words, both are of one mind about it, and what is wrong leaves all as it was.
 */
#include <getopt.h>
#include <stdint.h>
#include <string.h>

#include "mux/options/options.h"
#include "mux/settings/changes.h"
#include "mux/wire/wire.h"
#include "rp/options.h"
#include "rp/workers.h"
#include "check.h"
#include "input.h"
#include "start.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WHY = 2048 };

static char *none[] = { NULL }, *four[] = { "4", NULL };

/* As a program does that starts: getopt_long() begins anew. */
static bool started(struct options *o, struct given g)
{
	int status;
	bool is;

	optind = 0;
	is = options_parse(o, false, g.argc, g.argv, &status);
	check(status == (is ? 0 : 2));
	return is;
}

static void check_addresses(const struct options_listen *l, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		check_address(&l[i].addr, l[i].len);
}

static void check_sound(const struct options *o)
{
	char why[WHY];

	check(!settings_check(&o->settings, why, sizeof(why)));
	check(o->pipes && o->pipes <= PIPES_MAX);
	check(o->workers && o->workers <= WORKERS_MAX);
	check(o->max_sessions && o->max_sessions_each);
	check(o->max_connects && o->max_connects <= WIRE_ID_MAX);
	check(o->max_opens && o->connect_timeout > 0);
	check(o->listens && !o->keys.n);
	check_addresses(o->listen, o->listens);
	check_addresses(o->extended, o->extendeds);
}

/* With the words that it was started with: nothing is different. */
static void read_again(struct options *o, struct given g)
{
	struct changes changes;
	char why[WHY] = "";

	check(!options_again(o, g.argc, g.argv, &changes, why, sizeof(why)));
	check(!*why && !*changes.taken && !*changes.kept);
	check_sound(o);
}

/* One that was started without the file. */
static void read_by_another(struct given g, const char *wrong)
{
	struct given own = given_words("rp", NULL, four);
	struct options o, before;
	struct changes first, second;
	char why[WHY] = "";
	int err;

	check(started(&o, own));
	memcpy(&before, &o, sizeof(o));
	err = options_again(&o, g.argc, g.argv, &first, why, sizeof(why));
	check(!strcmp(why, wrong) && !err == !*wrong);
	if (err) {
		check(!memcmp(&before, &o, sizeof(o)));
	} else {
		check(!options_again(&o, g.argc, g.argv, &second, why,
				     sizeof(why)));
		check(!*second.taken && !strcmp(first.kept, second.kept));
		check_sound(&o);
	}
	options_fini(&o);
}

static void take(struct given g)
{
	struct said said;
	struct options o;
	bool taken;

	said_begin(&said);
	taken = started(&o, g);
	said_end(&said);
	if (taken) {
		check_sound(&o);
		read_again(&o, g);
	}
	read_by_another(g, said_why(&said, "rp", !taken));
	options_fini(&o);
	said_free(&said);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input_file file;

	input_file_open(&file, data, size);
	take(given_words("rp", file.path, none));
	take(given_words("rp", file.path, four));
	input_file_close(&file);
	return 0;
}
