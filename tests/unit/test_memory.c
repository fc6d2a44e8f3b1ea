/* SPDX-License-Identifier: MIT */
/*
 * How much memory there is, as control groups say, played by files; and how the engine
 * divides what it may have.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/memory.h"
#include "mux/options/options.h"
#include "ext_pair.h"

#define MIB (UINT64_C(1) << 20)

static char root[] = "/tmp/tm3-memory-XXXXXX";
static char path[256];

static const char *at(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

/* With the folders it lies in. */
static void put(const char *name, const char *text)
{
	char *slash;
	FILE *f;

	at(name);
	for (slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		assert_true(!mkdir(path, 0700) || errno == EEXIST);
		*slash = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static uint64_t allowed(uint64_t bytes)
{
	char groups[256];

	snprintf(groups, sizeof(groups), "%s/groups", root);
	return memory_allowed(bytes, groups, root);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(root + strlen(root) - 6, "XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[300];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static void without_groups_the_machine_says(void **state)
{
	(void)state;
	assert_int_equal(allowed(100 * MIB), 100 * MIB);
	put("groups", "");
	assert_int_equal(allowed(100 * MIB), 100 * MIB);
	put("groups", "nonsense\n12:\n::::\n");
	assert_int_equal(allowed(100 * MIB), 100 * MIB);
	assert_in_range(memory_there_is(), MIB, UINT64_MAX - 1);
}

/* The least on the way to the root counts. */
static void a_group_of_version_2(void **state)
{
	(void)state;
	put("groups", "0::/a/b\n");
	assert_int_equal(allowed(100 * MIB), 100 * MIB);
	put("a/b/memory.max", "max\n");
	assert_int_equal(allowed(100 * MIB), 100 * MIB);
	put("a/b/memory.max", "52428800\n");
	assert_int_equal(allowed(100 * MIB), 50 * MIB);
	put("a/memory.max", "20971520\n");
	assert_int_equal(allowed(100 * MIB), 20 * MIB);
	put("memory.max", "10485760\n");	/* a container's own root */
	assert_int_equal(allowed(100 * MIB), 10 * MIB);
	assert_int_equal(allowed(5 * MIB), 5 * MIB);
	put("memory.max", "0\n");
	assert_int_equal(allowed(100 * MIB), MIB);
}

static void a_group_of_version_1(void **state)
{
	(void)state;
	put("groups", "9:name=systemd:/\n5:cpu,cpuacct:/c\n4:memory:/a/b\n0::/\n");
	put("memory/memory.limit_in_bytes", "9223372036854771712\n");
	assert_int_equal(allowed(100 * MIB), 100 * MIB);
	put("memory/a/b/memory.limit_in_bytes", "31457280\n");
	assert_int_equal(allowed(100 * MIB), 30 * MIB);
	put("groups", "4:hugetlb,memory:/a/b\n");
	assert_int_equal(allowed(100 * MIB), 30 * MIB);
	put("groups", "4:memory2,xmemory:/a/b\n");
	assert_int_equal(allowed(100 * MIB), 100 * MIB);
}

static void a_quarter_unless_told(void **state)
{
	struct settings settings;
	char why[256];

	(void)state;
	settings_init(&settings);
	assert_int_equal(settings_fit(&settings, 4, false, why, sizeof(why)), 0);
	assert_int_equal(settings.max_memory, memory_there_is() / 4);
	settings_init(&settings);
	assert_int_equal(settings_set(&settings, "memory", "96", why,
				      sizeof(why)), 0);
	assert_int_equal(settings_fit(&settings, 4, false, why, sizeof(why)), 0);
	assert_int_equal(settings.max_memory, 96 * MIB);
	assert_int_equal(settings.window_memory, 48 * MIB);
}

/* --- how it is divided --- */

static void what_is_kept_the_hoard_may_not_have(void **state)
{
	struct pair *pair = *state;
	struct engine *engine = &pair->engine;

	pair_at_rest(pair);
	pair->settings.max_memory = 80 * MIB;
	engine_balance(engine);
	assert_int_equal(engine->hoard.max, 80 * MIB);
	engine->kept += 30 * MIB;
	engine->orphaned += 5 * MIB;
	engine->conns += 1024;		/* 2 MiB */
	engine_balance(engine);
	assert_int_equal(engine->hoard.max, 43 * MIB);
	engine->kept += 100 * MIB;
	engine_balance(engine);
	assert_int_equal(engine->hoard.max, 10 * MIB);
	engine->kept -= 130 * MIB;
	engine->orphaned -= 5 * MIB;
	engine->conns -= 1024;
	engine_balance(engine);
	assert_int_equal(engine->hoard.max, 80 * MIB);
}

/* Of 12 in all a session may have so many that as many are left for another. */
static void who_has_many_connections_is_refused(void **state)
{
	struct pair *pair = *state;
	struct engine *engine = &pair->engine;
	const uint64_t before = engine->incidents.count[INCIDENT_CONNECTIONS];

	pair->settings.max_memory = 12 * CONNS_SHARE * CONN_MEMORY;
	for (int i = 0; i < 3; i++)
		pair_connect(pair, i);
	assert_int_equal(engine->conns, 6);	/* both sessions are here */
	assert_true(session_has_room(pair->lp));
	pair_open(pair, 3);
	assert_int_equal(engine->conns, 7);
	assert_true(session_has_room(pair->lp));
	engine->conns += 2;		/* somebody else's */
	assert_false(session_has_room(pair->lp));
	pair_expect_end(pair, pair->conn[3].client, -ECONNRESET);
	assert_int_equal(engine->incidents.count[INCIDENT_CONNECTIONS],
			 before + 1);
	engine->conns -= 2;
}

static void who_has_few_is_not(void **state)
{
	struct pair *pair = *state;
	struct engine *engine = &pair->engine;

	pair->settings.max_memory = 12 * CONNS_SHARE * CONN_MEMORY;
	engine->conns += 100;
	assert_true(session_has_room(pair->lp));
	pair_connect(pair, 0);
	assert_int_equal(engine->incidents.count[INCIDENT_CONNECTIONS], 0);
	engine->conns -= 100;
}

static void whole_pages_are_forgotten_and_the_rest_is_not(void **state)
{
	enum { PAGES = 4 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = PAGES * page, i;
	uint8_t *block = malloc(size), *from;

	(void)state;
	assert_non_null(block);
	memset(block, 7, size);
	memory_forget(block, size);
	from = block + (page - (uintptr_t)block % page) % page;
	for (i = 0; i < size; i++) {
		bool whole = block + i >= from &&
			block + i < from + (size - (size_t)(from - block)) /
					    page * page;

		assert_int_equal(block[i], whole ? 0 : 7);
	}
	memset(block, 8, size);
	memory_forget(block, 1);	/* no whole page */
	assert_int_equal(block[0], 8);
	assert_int_equal(block[size - 1], 8);
	free(block);
}

#define FILES(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define PAIR(name) cmocka_unit_test_setup_teardown(name, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILES(without_groups_the_machine_says),
		FILES(a_group_of_version_2),
		FILES(a_group_of_version_1),
		FILES(a_quarter_unless_told),
		cmocka_unit_test(whole_pages_are_forgotten_and_the_rest_is_not),
		PAIR(what_is_kept_the_hoard_may_not_have),
		PAIR(who_has_many_connections_is_refused),
		PAIR(who_has_few_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
