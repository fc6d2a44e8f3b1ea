/* SPDX-License-Identifier: MIT */
/*
 * A configuration file of arbitrary bytes, all of whose lines lp takes, its own and the
 * engine's: at its start, and when it is read again. Asserted: it is taken, and what came of it
 * is sound, or one line says what is wrong; read again it changes nothing; and where lp was
 * started with other words, what is wrong leaves all as it was.
 */
#include <getopt.h>
#include <stdint.h>
#include <string.h>

#include "lp/options.h"
#include "mux/base/addr.h"
#include "mux/options/options.h"
#include "mux/session/reverse.h"
#include "mux/settings/changes.h"
#include "mux/wire/wire.h"
#include "check.h"
#include "input.h"
#include "start.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WHY = 2048 };

static char *none[] = { NULL }, *two[] = { "192.0.2.1", "4", NULL };

/* As a program does that starts: getopt_long() begins anew. */
static bool started(struct options *o, struct given g)
{
	int status;
	bool is;

	optind = 0;
	is = options_parse(o, 0, g.argc, g.argv, &status);
	check(status == (is ? 0 : 2));
	return is;
}

static void check_way(const struct way_in *way)
{
	check_address(&way->addr, way->len);
	check(addr_port(&way->addr));
}

static void check_ways(const struct way_in *way, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		check(way[i].on);
		check_way(&way[i]);
	}
}

static void check_sound(const struct options *o)
{
	const struct path_rules *rules = &o->path_rules;
	char why[WHY];
	unsigned int i;

	check(!settings_check(&o->settings, why, sizeof(why)));
	check(o->dial.each && o->dial.pipes && o->dial.pipes <= PIPES_MAX);
	check(o->dial.rp.port && o->dial.extended_port && !o->keys.n);
	check(o->settings.max_conns && o->settings.max_conns <= WIRE_ID_LP_MAX);
	check(o->nredirects || o->ntproxies || o->socks.on || o->nrules ||
	      o->nremotes);
	check(o->nremotes <= LISTENERS_MAX);
	check_ways(o->redirects, o->nredirects);
	check_ways(o->tproxies, o->ntproxies);
	check_ways(&o->socks, o->socks.on);
	for (i = 0; i < rules->n; i++)
		check(rules->rule[i].paths &&
		      rules->rule[i].paths < 1 << o->settings.paths.n);
}

static int read_again(struct options *o, struct given g, struct changes *changes)
{
	struct keys before = { 0 };
	char why[WHY] = "";
	int err = options_again(o, g.argc, g.argv, changes, &before, why,
				sizeof(why));

	check(!err == !*why && !strchr(why, '\n') && !before.n);
	if (!err)
		check_sound(o);
	return err;
}

/* One that was started without the file. */
static void read_by_another(struct given g)
{
	struct given own = given_words("lp", NULL, two);
	struct changes first, second;
	struct options o, before;

	check(started(&o, own));
	memcpy(&before, &o, sizeof(o));
	if (read_again(&o, g, &first)) {
		check(!memcmp(&before, &o, sizeof(o)));
	} else {
		check(!read_again(&o, g, &second));
		check(!*second.taken && !strcmp(first.kept, second.kept));
	}
	options_fini(&o);
}

static void take(struct given g)
{
	struct changes changes;
	struct options o;
	struct said said;
	bool taken;

	said_begin(&said);
	taken = started(&o, g);
	said_end(&said);
	said_why(&said, "lp", !taken);
	said_free(&said);
	if (taken) {
		check_sound(&o);
		check(!read_again(&o, g, &changes));
		check(!*changes.taken && !*changes.kept);
	}
	options_fini(&o);
	read_by_another(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input_file file;

	input_file_open(&file, data, size);
	take(given_words("lp", file.path, none));
	take(given_words("lp", file.path, two));
	input_file_close(&file);
	return 0;
}
