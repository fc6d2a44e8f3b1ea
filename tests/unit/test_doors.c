/* SPDX-License-Identifier: MIT */
/* From where pipes of a session's paths may come. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "mux/base/addr.h"
#include "mux/base/log.h"
#include "mux/base/loop.h"
#include "mux/settings/incident.h"
#include "rp/doors.h"

static struct doors doors;
static struct log the_log;
static struct loop *loop;
static struct incidents incidents;

static struct sockaddr_storage at(const char *text)
{
	struct sockaddr_storage addr;
	socklen_t len;

	assert_int_equal(addr_parse(text, NULL, 5000, &addr, &len), 0);
	return addr;
}

static bool admits(unsigned int path, const char *text, double seconds)
{
	struct sockaddr_storage peer = at(text);

	return doors_admit(&doors, path, &peer,
			   (int64_t)(seconds * (double)NS_PER_SEC), 1);
}

static int set_up(void **state)
{
	struct sockaddr_storage home = at("192.0.2.1");

	(void)state;
	log_init(&the_log, "test", LOG_ERROR);
	loop = loop_new();
	incidents_init(&incidents, loop, &the_log, incident_kinds);
	doors_init(&doors, &the_log, &incidents, &home);
	return loop ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	incidents_fini(&incidents);
	loop_free(loop);
	return 0;
}

static void all_may_come_from_where_it_began(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < PATHS_MAX; i++) {
		assert_true(admits(i, "192.0.2.1:7", 1));
		assert_false(admits(i, "192.0.2.2", 1));
	}
}

static void a_path_that_was_told_of_shows_where_it_is(void **state)
{
	(void)state;
	assert_false(admits(1, "198.51.100.1", 1));
	doors_open(&doors, 1, NS_PER_SEC);
	assert_true(admits(1, "198.51.100.1:9", 2));
	/* It is known from now on, and nobody else is let in. */
	assert_true(admits(1, "198.51.100.1:10", 1000));
	assert_false(admits(1, "203.0.113.1", 2));
	assert_false(admits(1, "192.0.2.1", 2));
	assert_false(admits(0, "198.51.100.1", 2));
	assert_true(admits(0, "192.0.2.1", 2));
}

static void it_may_move_when_that_was_told(void **state)
{
	(void)state;
	doors_open(&doors, 1, 0);
	assert_true(admits(1, "198.51.100.1", 1));
	doors_open(&doors, 1, 5 * NS_PER_SEC);
	assert_true(admits(1, "198.51.100.1", 6));	/* as before */
	assert_true(admits(1, "203.0.113.1", 7));
	assert_false(admits(1, "198.51.100.1", 8));
}

static void a_door_does_not_stay_open(void **state)
{
	(void)state;
	doors_open(&doors, 1, 0);
	assert_false(admits(1, "198.51.100.1", DOORS_OPEN_S));
	doors_open(&doors, 1, 0);
	assert_true(admits(1, "198.51.100.1", DOORS_OPEN_S - 0.001));
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(all_may_come_from_where_it_began),
		T(a_path_that_was_told_of_shows_where_it_is),
		T(it_may_move_when_that_was_told),
		T(a_door_does_not_stay_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
