/* SPDX-License-Identifier: MIT */
/* Pipes that want to join a session which has just ended, and the keys that they have shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "mux/base/log.h"
#include "mux/options/options.h"
#include "mux/session/engine.h"
#include "rp/entrances.h"
#include "rp/guest.h"
#include "rp/guests.h"
#include "rp/options.h"
#include "addr.h"

static struct {
	struct log log;
	struct options options;
	struct engine engine;
	struct entrances entrances[REACH_ENTRANCES];
	struct guests guests;
	struct guest guest;	/* that has ended */
	struct key file[2];
	unsigned int strays, closed;
} here;

static void put_stray(struct guests *all, const struct sockaddr_storage *peer,
		      const struct wire_hello *hello, struct conduit conduit)
{
	(void)peer;
	(void)hello;
	(void)conduit;
	assert_ptr_equal(all, &here.guests);
	here.strays++;
}

static void count_closed(struct layer *l)
{
	(void)l;
	here.closed++;
}

static const struct layer_ops ops = { .free = count_closed };

static struct key key_of(const char *name, uint8_t secret)
{
	struct key key = { .len = KEY_MADE };

	strcpy(key.name, name);
	memset(key.secret, secret, key.len);
	return key;
}

/* No worker has a thread: what it is told it does at once, what it tells waits in the inbox. */
static int set_up(void **state)
{
	const struct entrances *const entrances[REACH_ENTRANCES] = {
		&here.entrances[0], &here.entrances[1],
	};

	(void)state;
	memset(&here, 0, sizeof(here));
	settings_init(&here.options.settings);
	here.options.workers = 2;
	here.file[0] = key_of("laptop", 1);
	here.file[1] = key_of("phone", 2);
	here.options.keys = (struct keys){ here.file, 2 };
	log_init(&here.log, "test", LOG_ERROR);
	assert_int_equal(engine_init(&here.engine, &here.options.settings,
				     &here.log), 0);
	assert_int_equal(guests_init(&here.guests, &here.engine, &here.options,
				     entrances, NULL, put_stray), 0);
	here.guest.all = &here.guests;
	here.guest.worker = &here.guests.workers.worker[0];
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	guests_fini(&here.guests);
	engine_fini(&here.engine);
	return 0;
}

/* A pipe that shows the key of the phone; NULL: that has no key. */
static void wants_to_join(struct layer *layer)
{
	const struct sockaddr_storage peer = address("192.0.2.7", 1);
	const struct wire_hello hello = { .pipes = 1 };

	guest_join(&here.guest, &peer, &hello,
		   (struct conduit){ .fd = -1, .layer = layer });
	assert_int_equal(here.strays + here.closed, 0);
}

/* After SIGHUP: these keys, and one that there was is gone. */
static void file_has(struct key *key, unsigned int n)
{
	here.options.keys = (struct keys){ key, n };
	here.options.keys_gone++;
	here.guests.keys_gone++;
}

static void comes_back(unsigned int strays, unsigned int closed)
{
	inbox_read(&here.guests.workers.inbox);
	assert_int_equal(here.strays, strays);
	assert_int_equal(here.closed, closed);
}

static void it_comes_back_while_its_key_is_there(void **state)
{
	struct layer layer = { .ops = &ops, .name = "phone" };

	(void)state;
	wants_to_join(&layer);
	comes_back(1, 0);
}

static void it_comes_back_when_another_key_is_gone(void **state)
{
	struct layer layer = { .ops = &ops, .name = "phone" };

	(void)state;
	wants_to_join(&layer);
	file_has(&here.file[1], 1);
	comes_back(1, 0);
}

static void it_is_closed_when_its_key_is_gone(void **state)
{
	struct layer layer = { .ops = &ops, .name = "phone" };

	(void)state;
	wants_to_join(&layer);
	file_has(&here.file[0], 1);
	comes_back(0, 1);
}

static void it_is_closed_when_its_key_is_another(void **state)
{
	struct layer layer = { .ops = &ops, .name = "phone" };

	(void)state;
	wants_to_join(&layer);
	here.file[1] = key_of("phone", 3);
	file_has(here.file, 2);
	comes_back(0, 1);
}

static void without_a_key_it_comes_back(void **state)
{
	(void)state;
	wants_to_join(NULL);
	file_has(&here.file[0], 1);
	comes_back(1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_comes_back_while_its_key_is_there,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(it_comes_back_when_another_key_is_gone,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(it_is_closed_when_its_key_is_gone,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(it_is_closed_when_its_key_is_another,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_a_key_it_comes_back,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
