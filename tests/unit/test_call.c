/* SPDX-License-Identifier: MIT */
/*
 * Connections of rp to names. getaddrinfo() is our own: a name is the list of its
 * addresses, "none" has none, and "hang..." hangs until it is let go. Servers
 * listen on one port of 127.0.0.1 and 127.0.0.2; 127.0.0.3 refuses.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/addr.h"
#include "mux/base/host.h"
#include "mux/base/log.h"
#include "mux/base/resolver.h"
#include "mux/base/sock.h"
#include "mux/conn/conn.h"
#include "mux/options/options.h"
#include "mux/session/greeting.h"
#include "mux/session/session.h"
#include "mux/settings/incident.h"
#include "rp/access.h"
#include "rp/call.h"
#include "rp/connects.h"
#include "rp/entrances.h"
#include "rp/options.h"
#include "rp/quota.h"
#include "rp/reach.h"
#include "addr.h"
#include "addrinfo.h"
#include "halted.h"
#include "loopback.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned int hanging, asked;
static bool let_go;

static void hang(void)
{
	hanging++;
	while (!let_go)
		pthread_cond_wait(&changed, &lock);
	hanging--;
	pthread_cond_broadcast(&changed);
}

int getaddrinfo(const char *name, const char *service,
		const struct addrinfo *hints, struct addrinfo **found)
{
	char copy[DESTINATION_TEXT], *comma;

	(void)service, (void)hints;
	*found = NULL;
	pthread_mutex_lock(&lock);
	asked++;
	if (!strncmp(name, "hang", 4))
		hang();
	pthread_mutex_unlock(&lock);
	if (strncmp(name, "none", 4) == 0 || strncmp(name, "hang", 4) == 0)
		return EAI_NONAME;
	snprintf(copy, sizeof(copy), "%s", name);
	while ((comma = strrchr(copy, ','))) {
		*found = an_address(comma + 1, *found);
		*comma = '\0';
	}
	*found = an_address(copy, *found);
	return 0;
}

static unsigned int now_hanging(void)
{
	unsigned int n;

	pthread_mutex_lock(&lock);
	n = hanging;
	pthread_mutex_unlock(&lock);
	return n;
}

static void release_all(void)
{
	pthread_mutex_lock(&lock);
	let_go = true;
	pthread_cond_broadcast(&changed);
	while (hanging)
		pthread_cond_wait(&changed, &lock);
	let_go = false;
	pthread_mutex_unlock(&lock);
}

enum { CONNS = CALLS_LOOKING + 4 };

static struct {
	struct log log;
	struct settings settings;
	struct engine engine;
	struct session *session;
	struct conn_owner owner;
	struct options options;
	struct host host;
	struct entrances entrances;
	struct reach reach;
	struct connects connects;
	struct connector connector;
	struct quota quota;
	struct quota_share share;
	int listener[2];
	uint16_t port;
	struct conn *conn[CONNS];
	unsigned int n;
} here;

/* --- connections, as far as a connector sees them --- */

static void note(struct conn *c)
{
	(void)c;
}

static void note_bytes(struct conn *c, size_t queued, size_t early)
{
	(void)c, (void)queued, (void)early;
}

static void moved(struct conn *c, int from)
{
	connector_moved(&here.connector, c, from);
}

static const struct conn_ops conn_ops = {
	.ready = note,
	.idle = note,
	.released = note_bytes,
	.moved = moved,
	.ended = note,
	.gone = note,
};

static struct conn *connection_to(struct destination to)
{
	struct conn *c = conn_new(&here.owner, (uint16_t)(here.n + 1));

	assert_non_null(c);
	assert_int_equal(conn_set_destination(c, &to), 0);
	here.conn[here.n++] = c;
	connector_add(&here.connector, c);
	return c;
}

static struct conn *call(const char *name)
{
	return connection_to(destination_name(name, strlen(name), here.port));
}

static int listen_at(const char *text, uint16_t port)
{
	struct sockaddr_storage addr;
	socklen_t len;

	assert_int_equal(addr_parse(text, NULL, port, &addr, &len), 0);
	return sock_listen(sock_tcp(AF_INET), &addr, len);
}

static int set_up(void **state)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);

	(void)state;
	memset(&here, 0, sizeof(here));
	asked = 0;
	log_init(&here.log, "test", LOG_ERROR);
	settings_init(&here.settings);
	assert_int_equal(engine_init(&here.engine, &here.settings, &here.log),
			 0);
	here.session = greet_baseline(&here.engine, NULL, NULL, "peer", NULL,
				      0);
	conn_owner_init(&here.owner, here.engine.loop, &here.engine.room,
			&conn_ops, &conn_speech_baseline, here.session);
	access_init(&here.options.access);
	here.options.connect_timeout = 3 * NS_PER_SEC;
	here.options.max_connects = CONNS;
	here.options.max_opens = 1000;
	host_open(&here.host, here.engine.loop, &here.log, NULL);
	entrances_init(&here.entrances, here.engine.loop, &here.log,
		       &here.engine.incidents, NULL, NULL);
	here.reach = (struct reach){ &here.options.access, &here.host,
				     { &here.entrances, &here.entrances } };
	quota_init(&here.quota, &here.engine.hoard, NULL, 1, 1, NULL, NULL);
	assert_int_equal(connects_init(&here.connects, &here.engine,
				       &here.options, &here.reach, &here.quota), 0);
	connector_init(&here.connector, &here.connects, &here.share, true);
	here.listener[0] = listen_at("127.0.0.1", 0);
	getsockname(here.listener[0], (struct sockaddr *)&addr, &len);
	here.port = addr_port(&addr);
	here.listener[1] = listen_at("127.0.0.2", here.port);
	return here.listener[1] < 0;
}

static int tear_down(void **state)
{
	(void)state;
	connector_fini(&here.connector);
	assert_true(list_empty(&here.connector.calls));
	assert_true(list_empty(&here.connector.unasked));
	assert_int_equal(here.connector.looking, 0);
	while (here.n) {
		struct conn *c = here.conn[--here.n];

		conn_abort(c, CONN_END_SESSION);
		conn_free(c);
	}
	assert_int_equal(here.connector.under_way, 0);
	assert_int_equal(here.share.sockets, 0);
	release_all();
	connects_fini(&here.connects);
	host_close(&here.host);
	close(here.listener[0]);
	close(here.listener[1]);
	access_fini(&here.options.access);
	session_free(here.session);
	engine_fini(&here.engine);
	return 0;
}

static bool decided(void *arg)
{
	const struct conn *c = arg;

	return c->state == CONN_OPEN || c->end != CONN_END_NONE;
}

static void await(struct conn *c)
{
	assert_true(run_until(here.engine.loop, "the end of a call", decided,
			      c));
}

static bool has_caller(unsigned int listener)
{
	int fd = accept(here.listener[listener], NULL, NULL);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void assert_connected(struct conn *c, unsigned int listener)
{
	await(c);
	assert_int_equal(c->state, CONN_OPEN);
	assert_true(has_caller(listener));
	assert_false(has_caller(!listener));
	assert_int_equal(here.connector.under_way, 0);
	assert_int_equal(here.share.sockets, 1);
	assert_null(c->asker);
}

static void a_name_with_an_address(void **state)
{
	(void)state;
	assert_connected(call("127.0.0.1"), 0);
}

static void the_next_address_is_tried(void **state)
{
	(void)state;
	assert_connected(call("127.0.0.3,127.0.0.2"), 1);
}

/* What is closed is not tried, and takes nothing from what is open. */
static void each_address_is_judged(void **state)
{
	(void)state;
	access_deny(&here.options.access, "127.0.0.1");
	assert_connected(call("127.0.0.1,169.254.1.1,127.0.0.2"), 1);
}

static void wrapped_addresses_are_judged(void **state)
{
	(void)state;
	access_deny(&here.options.access, "127.0.0.1");
	assert_connected(call("::ffff:127.0.0.1,::ffff:127.0.0.2"), 1);
}

static void assert_refused(const char *name, enum conn_end end)
{
	struct conn *c = call(name);

	await(c);
	assert_int_equal(c->end, end);
	assert_int_equal(c->fin_pending, WIRE_REASON_RST);
	assert_int_equal(here.connector.under_way, 0);
	assert_int_equal(here.share.sockets, 0);
	assert_null(c->asker);
}

static void how_it_ends(void **state)
{
	(void)state;
	access_deny(&here.options.access, "127.0.0.1");
	assert_refused("127.0.0.1", CONN_END_DENIED);
	assert_refused("127.0.0.1,0.0.0.0,fe80::1", CONN_END_DENIED);
	assert_refused("127.0.0.3", CONN_END_REFUSED);
	assert_refused("127.0.0.3,127.0.0.1", CONN_END_REFUSED);
	assert_refused("none", CONN_END_NO_NAME);
	assert_false(has_caller(0));
}

static void a_name_that_takes_too_long(void **state)
{
	(void)state;
	here.options.connect_timeout = 50 * NS_PER_MS;
	assert_refused("hang", CONN_END_TIMEOUT);
	assert_int_equal(here.connector.looking, 1);	/* a thread is */
	assert_int_equal(here.connector.under_way, 0);
}

static bool all_hang(void *arg)
{
	return now_hanging() == *(const unsigned int *)arg;
}

static void await_hanging(unsigned int n)
{
	assert_true(run_until(here.engine.loop, "names that hang", all_hang,
			      &n));
}

static struct conn *hang_all(void)
{
	struct conn *first = call("hang 0");
	char name[20];

	for (int i = 1; i < CALLS_LOOKING; i++) {
		snprintf(name, sizeof(name), "hang %d", i);
		call(name);
	}
	await_hanging(CALLS_LOOKING);
	return first;
}

/* Names wait for each other, addresses for no name. */
static void so_many_names_at_a_time(void **state)
{
	const uint8_t addr[4] = { 127, 0, 0, 2 };
	struct conn *first = hang_all(), *waits, *passes;

	(void)state;
	assert_int_equal(here.share.sockets, 0);	/* a name takes none, */
	assert_in_range(malloc_usable_size(first->asker), 1, 256);	/* and little else */
	waits = call("127.0.0.1");
	passes = connection_to(destination_ipv4(addr, here.port));
	await(passes);
	assert_int_equal(passes->state, CONN_OPEN);
	assert_true(has_caller(1));
	assert_int_equal(asked, CALLS_LOOKING);
	assert_int_equal(waits->state, CONN_CONNECTING);
	assert_int_equal(here.share.sockets, 1);
	/* Who gives up a name has no more of them: the thread is as busy as before. */
	conn_abort(first, CONN_END_PEER_RESET);
	loop_load(here.engine.loop, 100);
	assert_int_equal(asked, CALLS_LOOKING);
	assert_int_equal(waits->state, CONN_CONNECTING);
	release_all();
	await(waits);
	assert_int_equal(waits->state, CONN_OPEN);
}

static void none_awaited(void *asker, const struct answer *answer)
{
	(void)asker, (void)answer;
	fail();
}

/* It is no lack of ports: who runs rp would look for the wrong thing. */
static void more_names_than_can_be_looked_up(void **state)
{
	static struct lookup *lookup[LOOKUPS_MAX];
	uint64_t count[INCIDENTS_KINDS];

	(void)state;
	for (int i = 0; i < LOOKUPS_MAX; i++)
		assert_int_equal(resolver_ask(here.connects.names, "hang",
					      AF_INET, none_awaited, NULL,
					      &lookup[i]), 0);
	assert_refused("127.0.0.1", CONN_END_LIMIT);
	assert_true(incidents_news(&here.engine.incidents, count));
	assert_int_equal(count[INCIDENT_PORTS], 0);
	assert_int_equal(count[INCIDENT_MEMORY], 1);
	for (int i = 0; i < LOOKUPS_MAX; i++)
		resolver_cancel(lookup[i]);
}

/* The end of the session takes those that look and those that wait. */
static void a_session_that_ends(void **state)
{
	(void)state;
	hang_all();
	call("127.0.0.1");
	call("127.0.0.2");
	run_round(here.engine.loop);
	assert_false(list_empty(&here.connector.unasked));
}

static void reset_while_it_runs(void **state)
{
	struct conn *c;

	(void)state;
	c = call("127.0.0.1");
	conn_abort(c, CONN_END_PEER_RESET);
	assert_null(c->asker);
	c = call("hang");
	await_hanging(1);
	conn_abort(c, CONN_END_PEER_RESET);
	assert_null(c->asker);
	assert_int_equal(here.connector.under_way, 0);
	release_all();
	loop_load(here.engine.loop, 20);
}

/* They share a limit with connects, and are refused where those wait. */
static void flows_are_opens(void **state)
{
	struct conn *c;

	(void)state;
	here.options.max_opens = 4;
	clock_halt();
	c = connection_to(destination_ipv4((uint8_t[]){ 127, 0, 0, 1 },
					   here.port));
	run_round(here.engine.loop);
	for (int i = 1; i <= 4; i++)
		assert_true(connector_takes_flow(&here.connector, c));
	assert_int_equal(here.engine.incidents.count[INCIDENT_OPENS], 0);
	assert_false(connector_takes_flow(&here.connector, c));
	assert_false(connector_takes_flow(&here.connector, c));
	assert_int_equal(here.engine.incidents.count[INCIDENT_OPENS], 2);
	assert_int_equal(here.engine.incidents.peers, 1);
	clock_pass(NS_PER_SEC / 4);
	run_round(here.engine.loop);
	assert_true(connector_takes_flow(&here.connector, c));
	assert_false(connector_takes_flow(&here.connector, c));
	clock_go_on();
	assert_connected(c, 0);
}

static struct quota_share other;
static unsigned int given_up;

static bool gives_up(struct quota_share *share)
{
	assert_ptr_equal(share, &other);
	share->sockets--;
	given_up++;
	return true;
}

/* Who would have as many as the other one then is refused: else each would take from each. */
static void a_socket_for_datagrams_counts_when_it_is_asked_for(void **state)
{
	const struct sockaddr_storage own = address("192.0.2.1", 1),
				      theirs = address("192.0.2.2", 1);
	struct rlimit before, low;
	unsigned int paid[2];
	int got[2];

	(void)state;
	given_up = 0;
	quota_init(&here.quota, &here.engine.hoard, NULL, 2, 1, NULL, gives_up);
	assert_int_equal(quota_take(&here.quota, &here.share, &own, ""), 0);
	assert_int_equal(quota_take(&here.quota, &other, &theirs, ""), 0);
	here.share.sockets = 1;
	getrlimit(RLIMIT_NOFILE, &before);
	low = before;
	low.rlim_cur = 6;	/* what is open stays so */
	setrlimit(RLIMIT_NOFILE, &low);
	for (unsigned int i = 0; i < 2; i++) {
		other.sockets = 2 + i;
		got[i] = connector_udp(&here.connector, AF_INET);
		paid[i] = given_up;
	}
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(got[0], -EMFILE);
	assert_int_equal(paid[0], 0);
	assert_int_equal(got[1], -EMFILE);
	assert_int_equal(paid[1], 1);
	assert_int_equal(here.share.sockets, 1);
	here.share.sockets = other.sockets = 0;
	quota_drop(&here.quota, &other);
	quota_drop(&here.quota, &here.share);
}

static void limit_descriptors(rlim_t n)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* A descriptor that is given back, or -EMFILE. */
static int a_socket(void)
{
	int fd = connector_udp(&here.connector, AF_INET);

	if (fd >= 0)
		close(fd);
	return fd;
}

/* An eighth is kept for pipes. */
static void a_limit_that_changes_holds_from_the_next_batch_on(void **state)
{
	const struct sockaddr_storage own = address("192.0.2.1", 1);
	int filler[16], i, n, lowered, later, raised;
	struct rlimit before;

	(void)state;
	given_up = 0;
	quota_init(&here.quota, &here.engine.hoard, NULL, 2, 1, NULL, gives_up);
	assert_int_equal(quota_take(&here.quota, &here.share, &own, ""), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (i = 0; i < 16; i++)
		filler[i] = dup(0);
	n = a_socket();
	limit_descriptors((rlim_t)n + 1);
	lowered = a_socket();
	here.connects.limit_asked_at--;	/* in a batch before this one */
	later = a_socket();
	limit_descriptors(before.rlim_cur);
	here.connects.limit_asked_at--;
	raised = a_socket();
	for (i = 0; i < 16; i++)
		close(filler[i]);
	assert_true(n >= 16);
	assert_int_equal(lowered, n);	/* the kernel gave it, and it was not asked */
	assert_int_equal(later, -EMFILE);
	assert_int_equal(raised, n);
	quota_drop(&here.quota, &here.share);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_name_with_an_address),
		TEST(the_next_address_is_tried),
		TEST(each_address_is_judged),
		TEST(wrapped_addresses_are_judged),
		TEST(how_it_ends),
		TEST(a_name_that_takes_too_long),
		TEST(so_many_names_at_a_time),
		TEST(more_names_than_can_be_looked_up),
		TEST(a_session_that_ends),
		TEST(reset_while_it_runs),
		TEST(flows_are_opens),
		TEST(a_socket_for_datagrams_counts_when_it_is_asked_for),
		TEST(a_limit_that_changes_holds_from_the_next_batch_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
