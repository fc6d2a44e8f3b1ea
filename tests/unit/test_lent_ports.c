/* SPDX-License-Identifier: MIT */
/* Ports that rp lends to a session which is played by hand, over real sockets. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/sock.h"
#include "mux/conn/address.h"
#include "mux/session/reverse.h"
#include "rp/connects.h"
#include "rp/lent_ports.h"
#include "rp/options.h"
#include "rp/quota.h"
#include "rp/reach.h"
#include "addr.h"
#include "ext_hand.h"
#include "loopback.h"

enum { LISTENER = 3 };

static struct {
	struct hand hand;
	struct options options;
	struct reach reach;
	struct quota quota;
	struct quota_share share;
	struct connects connects;
	struct connector connector;
	struct lent_ports lent;
	struct sockaddr_storage at;
	int taken;		/* who listens there first */
	bool asked;		/* whether others give way */
} here;

static int ask_others(struct lent_ports *l, uint16_t listener,
		      const struct sockaddr_storage *addr)
{
	assert_ptr_equal(l, &here.lent);
	assert_int_equal(listener, LISTENER);
	assert_true(addr_same(addr, &here.at));
	here.asked = true;
	return EINPROGRESS;
}

static void permit(void)
{
	char text[ADDR_TEXT];

	snprintf(text, sizeof(text), "%u", addr_port(&here.at));
	assert_int_equal(permits_add(&here.options.permits, text), 0);
}

static int set_up(void **state)
{
	uint16_t port;

	(void)state;
	memset(&here, 0, sizeof(here));
	hand_begin(&here.hand, false);
	here.options.max_opens = 1000;
	quota_init(&here.quota, NULL, NULL, UINT_MAX, UINT_MAX, NULL, NULL);
	assert_int_equal(connects_init(&here.connects, &here.hand.engine,
				       &here.options, &here.reach, &here.quota), 0);
	connector_init(&here.connector, &here.connects, &here.share, true);
	lent_ports_init(&here.lent, &here.connector, &here.options, ask_others);
	here.taken = tcp_listen(1, &port);
	here.at = address("127.0.0.1", port);
	permit();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	lent_ports_fini(&here.lent);
	connector_fini(&here.connector);
	connects_fini(&here.connects);
	permits_fini(&here.options.permits);
	hand_end(&here.hand);
	return 0;
}

/* What is said of it, or -1: nothing is yet. */
static int result(void)
{
	const struct reverse *r = &here.hand.s->ext->reverse;

	return r->due >> LISTENER & 1 ? r->listener[LISTENER].result : -1;
}

static bool is_listened_on(void)
{
	int fd = sock_listen(sock_tcp(AF_INET), &here.at, addr_size(&here.at));

	if (fd >= 0)
		close(fd);
	return fd == -EADDRINUSE;
}

/* It is in use, others are asked, and who uses it goes. */
static void wish(void)
{
	struct destination at = address_destination(&here.at);

	lent_ports_open(&here.lent, here.hand.s, LISTENER, &at);
	assert_true(here.asked);
	assert_int_equal(result(), -1);
	close(here.taken);
}

static void it_is_tried_again_when_others_gave_way(void **state)
{
	(void)state;
	wish();
	lent_ports_try(&here.lent, LISTENER, &here.at);
	assert_int_equal(result(), WIRE_LISTENING_YES);
	assert_true(is_listened_on());
}

/* SIGHUP came before the answer of the others. */
static void a_permit_that_went_meanwhile_is_none(void **state)
{
	(void)state;
	wish();
	permits_fini(&here.options.permits);
	lent_ports_review(&here.lent);
	lent_ports_try(&here.lent, LISTENER, &here.at);
	assert_int_equal(result(), WIRE_LISTENING_DENIED);
	assert_false(is_listened_on());
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(it_is_tried_again_when_others_gave_way),
		TEST(a_permit_that_went_meanwhile_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
