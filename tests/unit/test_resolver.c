/* SPDX-License-Identifier: MIT */
/*
 * The resolver against a getaddrinfo() of our own: a number is a name with so
 * many addresses, an IPv6 address is one, "none" is no name, and "hang..." hangs until it is let go.
 * The clock is ours, too: most of a time limit passes at once.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/addr.h"
#include "mux/base/resolver.h"
#include "addrinfo.h"

enum { THREADS = 3 };

static int64_t ahead;	/* of the kernel's clock, in s */

int clock_gettime(clockid_t id, struct timespec *ts)
{
	long err = syscall(SYS_clock_gettime, id, ts);

	ts->tv_sec += ahead;
	return (int)err;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned int hanging, returned;
static bool let_go;

static void hang(void)
{
	pthread_mutex_lock(&lock);
	hanging++;
	pthread_cond_broadcast(&changed);
	while (!let_go)
		pthread_cond_wait(&changed, &lock);
	hanging--;
	returned++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void await_hanging(unsigned int n)
{
	pthread_mutex_lock(&lock);
	while (hanging != n)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
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

int getaddrinfo(const char *name, const char *service,
		const struct addrinfo *hints, struct addrinfo **found)
{
	char text[ADDR_TEXT], *sixes;
	unsigned int n;

	(void)service, (void)hints;
	*found = NULL;
	if (!strncmp(name, "hang", 4))
		hang();
	if (!strcmp(name, "none"))
		return EAI_NONAME;
	if (strchr(name, ':')) {
		*found = an_address(name, NULL);
		return 0;
	}
	for (n = (unsigned int)strtoul(name, &sixes, 10); n; n--) {
		snprintf(text, sizeof(text), "192.0.2.%u", n);
		*found = an_address(text, *found);
	}
	if (*sixes != '+')
		return 0;
	for (n = (unsigned int)strtoul(sixes, NULL, 10); n; n--) {
		snprintf(text, sizeof(text), "2000::%x", n);
		*found = an_address(text, *found);
	}
	return 0;
}

struct asker {
	struct loop *loop;
	struct lookup *lookup;
	unsigned int answers, awaited;
	struct answer last;
};

static void answered(void *arg, const struct answer *answer)
{
	struct asker *a = arg;

	a->last = *answer;
	if (++a->answers == a->awaited)
		loop_stop(a->loop);
}

static int setup(void **state)
{
	struct asker *a = calloc(1, sizeof(*a));

	ahead = 0;
	a->loop = loop_new();
	*state = a;
	return 0;
}

static int teardown(void **state)
{
	struct asker *a = *state;

	loop_free(a->loop);
	free(a);
	return 0;
}

static int ask(struct resolver *r, struct asker *a, const char *name)
{
	return resolver_ask(r, name, AF_INET, answered, a, &a->lookup);
}

static void a_name_with_addresses(void **state)
{
	struct asker *a = *state;
	struct resolver *r = resolver_new(a->loop, THREADS);
	const struct sockaddr_in *in = (const void *)&a->last.addr[0];

	a->awaited = 1;
	assert_int_equal(ask(r, a, "1"), 0);
	assert_int_equal(a->answers, 0);
	loop_run(a->loop);
	assert_int_equal(a->last.error, 0);
	assert_int_equal(a->last.count, 1);
	assert_int_equal(ntohl(in->sin_addr.s_addr), 0xC0000201);
	resolver_free(r);
}

static void more_addresses_than_are_kept(void **state)
{
	struct asker *a = *state;
	struct resolver *r = resolver_new(a->loop, THREADS);

	a->awaited = 1;
	assert_int_equal(ask(r, a, "9"), 0);
	loop_run(a->loop);
	assert_int_equal(a->last.count, LOOKUP_OF_A_FAMILY);
	resolver_free(r);
}

/* However many a name has of one family, the other one is heard of. */
static void both_families(void **state)
{
	struct asker *a = *state;
	struct resolver *r = resolver_new(a->loop, THREADS);
	const unsigned int last = LOOKUP_OF_A_FAMILY + 2 - 1;

	a->awaited = 1;
	assert_int_equal(ask(r, a, "2+20"), 0);
	loop_run(a->loop);
	assert_int_equal(a->last.count, LOOKUP_OF_A_FAMILY + 2);
	assert_int_equal(a->last.addr[0].ss_family, AF_INET6);
	assert_int_equal(a->last.addr[last].ss_family, AF_INET);
	resolver_free(r);
}

/* One that stands behind an address which has none would make it another one. */
static void a_scope_is_kept_where_it_means_something(void **state)
{
	static const char *const names[] = { "fe80::1%lo", "::1%lo", "2001:db8::1%lo" };
	struct asker *a = *state;
	struct resolver *r = resolver_new(a->loop, THREADS);
	const struct sockaddr_in6 *in6 = (const void *)&a->last.addr[0];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		a->awaited++;
		assert_int_equal(ask(r, a, names[i]), 0);
		loop_run(a->loop);
		assert_int_equal(a->last.count, 1);
		assert_int_equal(in6->sin6_scope_id != 0, i == 0);
	}
	resolver_free(r);
}

static void names_without_addresses(void **state)
{
	struct asker *a = *state;
	struct resolver *r = resolver_new(a->loop, THREADS);

	a->awaited = 1;
	assert_int_equal(ask(r, a, "none"), 0);
	loop_run(a->loop);
	assert_int_equal(a->last.error, EAI_NONAME);
	a->awaited = 2;
	assert_int_equal(ask(r, a, "0"), 0);
	loop_run(a->loop);
	assert_int_equal(a->last.error, EAI_NONAME);
	resolver_free(r);
}

static void many_names(void **state)
{
	struct asker *a = *state;
	struct resolver *r = resolver_new(a->loop, THREADS);
	unsigned int i;

	a->awaited = LOOKUPS_MAX;
	for (i = 0; i < LOOKUPS_MAX; i++) {
		char name[16];

		snprintf(name, sizeof(name), "1.%u", i % 1500);
		assert_int_equal(ask(r, a, name), 0);
	}
	assert_int_equal(ask(r, a, "1"), -EAGAIN);
	loop_run(a->loop);
	assert_int_equal(a->answers, LOOKUPS_MAX);
	a->awaited++;
	assert_int_equal(ask(r, a, "1"), 0);
	loop_run(a->loop);
	resolver_free(r);
}

/* One question for all who ask meanwhile; who leaves takes nobody along. */
static void the_same_name(void **state)
{
	struct asker *a = *state;
	struct resolver *r = resolver_new(a->loop, THREADS);
	struct lookup *first;
	unsigned int i;

	returned = 0;
	assert_int_equal(ask(r, a, "hang"), 0);
	first = a->lookup;
	await_hanging(1);
	for (i = 0; i < 99; i++)
		assert_int_equal(ask(r, a, "hang"), 0);
	resolver_cancel(first);
	release_all();
	a->awaited = 99;
	loop_run(a->loop);
	assert_int_equal(a->answers, 99);
	assert_int_equal(returned, 1);
	resolver_free(r);
}

/* One that hangs keeps one thread, not the others. */
static void a_name_that_hangs(void **state)
{
	struct asker *a = *state;
	struct resolver *r = resolver_new(a->loop, THREADS);
	struct lookup *hung[2];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		assert_int_equal(ask(r, a, i ? "hang 1" : "hang 0"), 0);
		hung[i] = a->lookup;
	}
	await_hanging(2);
	a->awaited = 50;
	for (i = 0; i < 50; i++)
		assert_int_equal(ask(r, a, "1"), 0);
	loop_run(a->loop);
	assert_int_equal(a->answers, 50);
	resolver_cancel(hung[0]);
	release_all();
	a->awaited = 51;
	loop_run(a->loop);
	assert_int_equal(a->answers, 51);
	assert_int_equal(a->last.error, EAI_NONAME);
	resolver_free(r);
}

static void cancelled_in_the_queue(void **state)
{
	struct asker *a = *state;
	struct resolver *r = resolver_new(a->loop, THREADS);
	struct lookup *lookups[THREADS + 2];
	unsigned int i;

	for (i = 0; i < THREADS + 2; i++) {
		char name[16];

		snprintf(name, sizeof(name), "hang %u", i);
		assert_int_equal(ask(r, a, name), 0);
		lookups[i] = a->lookup;
	}
	await_hanging(THREADS);
	returned = 0;
	for (i = 0; i < THREADS + 2; i++)
		resolver_cancel(lookups[i]);
	release_all();
	a->awaited = 1;
	assert_int_equal(ask(r, a, "1"), 0);
	loop_run(a->loop);
	assert_int_equal(a->answers, 1);
	assert_int_equal(returned, THREADS);
	resolver_free(r);
}

/* --- for whom --- */

static int ask_for(struct resolver *r, struct asker *a, const char *who,
		   const char *name)
{
	return resolver_ask_for(r, who, name, AF_INET, answered, a, &a->lookup);
}

static void run_until_answers(struct asker *a, unsigned int n)
{
	a->awaited = n;
	loop_run(a->loop);
	assert_int_equal(a->answers, n);
}

/* So many names of its own; -1: it does not wait. */
static int waits_for(const struct lookup *l)
{
	unsigned int own;

	return resolver_waits(l, &own) ? (int)own : -1;
}

/* As long as getaddrinfo() has them, whether somebody waits for it or not. */
static void each_has_a_part_of_the_threads(void **state)
{
	struct asker *a = *state, waits = { .loop = a->loop };
	struct resolver *r = resolver_new(a->loop, THREADS);

	resolver_limit_each(r, 1);
	returned = 0;
	assert_int_equal(ask_for(r, a, "greedy", "hang 0"), 0);
	await_hanging(1);
	assert_int_equal(waits_for(a->lookup), -1);
	assert_int_equal(ask_for(r, &waits, "greedy", "1"), 0);
	assert_int_equal(waits_for(waits.lookup), 1);
	resolver_cancel(a->lookup);
	assert_int_equal(waits_for(waits.lookup), 1);
	for (unsigned int i = 1; i <= 50; i++) {
		assert_int_equal(ask_for(r, a, "friend", "1.2"), 0);
		run_until_answers(a, i);
	}
	assert_int_equal(waits.answers, 0);
	release_all();
	run_until_answers(&waits, 1);
	assert_int_equal(waits.last.error, 0);
	resolver_free(r);
}

/* Names of one and the same, which hang from now on, @all with those that did before. */
static void ask_to_hang(struct resolver *r, struct asker *a, const char *who,
			unsigned int count, unsigned int all)
{
	char name[32];

	for (unsigned int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "hang %u", ++a->awaited);
		assert_int_equal(ask_for(r, a, who, name), 0);
	}
	await_hanging(all);
}

static unsigned int threads(void)
{
	DIR *all = opendir("/proc/self/task");
	unsigned int n = 0;

	for (struct dirent *one; (one = readdir(all));)
		n += one->d_name[0] != '.';
	closedir(all);
	return n;
}

static unsigned int at_the_start;

/* So many beyond those of the program itself. Who has just ended is still one for a moment. */
static void await_threads(unsigned int n)
{
	while (threads() != at_the_start + n)
		sched_yield();
}

/* Whoever has few does not wait for those that have all threads, however many these are. */
static void a_few_threads_are_there_for_each(void **state)
{
	enum { FEW = 2, MOST = THREADS + 3 * FEW };
	struct asker *a = *state, waits = { .loop = a->loop }, hang = waits;
	struct resolver *r = resolver_new(a->loop, THREADS);

	await_threads(0);
	resolver_grant_each(r, FEW, MOST);
	ask_to_hang(r, &hang, "greedy", THREADS, THREADS);
	assert_int_equal(ask_for(r, &waits, "greedy", "1"), 0);
	assert_int_equal(waits_for(waits.lookup), THREADS);
	for (unsigned int i = 1; i <= 50; i++) {
		assert_int_equal(ask_for(r, a, "friend", "1.2"), 0);
		run_until_answers(a, i);
	}
	/* One of its own that hangs leaves it another thread; and it has no third one. */
	ask_to_hang(r, &hang, "friend", 1, THREADS + 1);
	assert_int_equal(ask_for(r, a, "friend", "1.2"), 0);
	run_until_answers(a, 51);
	ask_to_hang(r, &hang, "friend", 1, THREADS + 2);
	assert_int_equal(ask_for(r, a, "friend", "1.3"), 0);
	assert_int_equal(waits_for(a->lookup), FEW);
	/* Until there are so many in all. */
	ask_to_hang(r, &hang, "second", FEW, THREADS + 2 * FEW);
	ask_to_hang(r, &hang, "third", FEW, MOST);
	assert_int_equal(ask_for(r, a, "fourth", "1.4"), 0);
	await_threads(MOST);
	release_all();
	waits.awaited = 1;
	a->awaited = 53;
	while (waits.answers < 1 || a->answers < 53 ||
	       hang.answers < hang.awaited)
		loop_run(a->loop);
	/* What there is for everybody stays. */
	await_threads(THREADS);
	resolver_free(r);
}

/* Somebody with a name that hangs, which is @who, as @all of them do then. */
static void comes_and_goes(struct resolver *r, const char *who, unsigned int all)
{
	struct asker a = { .answers = 0 };

	assert_int_equal(resolver_reserve(r, who), 0);
	assert_int_equal(ask_for(r, &a, who, who), 0);
	await_hanging(all);
	resolver_cancel(a.lookup);
	resolver_release(r, who);
}

/* Whoever comes and goes; and who comes later has what others leave. */
static void reserved_threads_are_kept(void **state)
{
	struct asker *a = *state, late = { .loop = a->loop };
	struct resolver *r = resolver_new(a->loop, THREADS);

	resolver_grant_each(r, 1, THREADS);
	assert_int_equal(resolver_reserve(r, "friend"), 0);
	comes_and_goes(r, "hang 1", 1);
	comes_and_goes(r, "hang 2", 2);
	comes_and_goes(r, "hang 3", 2);
	assert_int_equal(ask_for(r, a, "friend", "1.2"), 0);
	run_until_answers(a, 1);
	assert_int_equal(resolver_reserve(r, "late"), 0);
	assert_int_equal(ask_for(r, &late, "late", "1.3"), 0);
	assert_int_equal(waits_for(late.lookup), 0);
	resolver_release(r, "friend");
	run_until_answers(&late, 1);
	release_all();
	resolver_free(r);
}

/* It would stand behind those that hang. */
static void what_is_in_line_is_shared_with_nobody(void **state)
{
	struct asker *a = *state, waits = { .loop = a->loop };
	struct resolver *r = resolver_new(a->loop, THREADS);

	resolver_limit_each(r, 1);
	assert_int_equal(ask_for(r, a, "greedy", "hang 0"), 0);
	await_hanging(1);
	resolver_cancel(a->lookup);
	assert_int_equal(ask_for(r, &waits, "greedy", "1"), 0);
	assert_int_equal(ask_for(r, a, "friend", "1"), 0);
	run_until_answers(a, 1);
	assert_int_equal(waits.answers, 0);
	resolver_cancel(waits.lookup);
	release_all();
	resolver_free(r);
}

static unsigned int order;

static void answered_in_order(void *arg, const struct answer *answer)
{
	(void)answer;
	*(unsigned int *)arg = ++order;
}

static void they_take_turns(void **state)
{
	struct asker *a = *state;
	struct resolver *r = resolver_new(a->loop, 1);
	unsigned int at[4] = { 0 };
	char name[16];

	order = 0;
	assert_int_equal(ask_for(r, a, "first", "hang"), 0);
	await_hanging(1);
	for (unsigned int i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "1.%u", i);
		assert_int_equal(resolver_ask_for(r, i < 3 ? "many" : "one", name,
						  AF_INET, answered_in_order,
						  &at[i], &a->lookup), 0);
	}
	assert_int_equal(ask_for(r, a, "many", "1.9"), 0);
	release_all();
	run_until_answers(a, 2);
	assert_int_equal(at[0], 1);
	assert_int_equal(at[3], 2);
	assert_int_equal(at[2], 4);
	resolver_free(r);
}

static void the_end_does_not_wait(void **state)
{
	struct asker *a = *state;
	struct resolver *r = resolver_new(a->loop, THREADS);
	int64_t start;

	assert_int_equal(ask(r, a, "hang"), 0);
	await_hanging(1);
	resolver_cancel(a->lookup);
	start = loop_clock();
	resolver_free(r);
	assert_true(loop_clock() - start < 5 * RESOLVER_END_MS * NS_PER_MS);
	release_all();
	assert_int_equal(a->answers, 0);
}

/* The loop waits for the last second of the limit, the others have passed. */
static void too_long_is_an_answer(void **state)
{
	struct asker *a = *state;
	struct resolver *r = resolver_new(a->loop, 1);
	struct lookup *first;
	int64_t start = loop_clock();

	assert_int_equal(ask(r, a, "hang"), 0);
	first = a->lookup;
	await_hanging(1);
	assert_int_equal(ask(r, a, "1"), 0);
	a->awaited = 2;
	ahead = LOOKUP_SECONDS - 1;
	loop_run(a->loop);
	assert_ptr_not_equal(first, a->lookup);
	assert_int_equal(a->last.error, EAI_AGAIN);
	assert_true(loop_clock() - start >= LOOKUP_SECONDS * NS_PER_SEC);
	release_all();
	a->awaited = 3;
	assert_int_equal(ask(r, a, "1"), 0);
	loop_run(a->loop);
	assert_int_equal(a->last.error, 0);
	assert_int_equal(a->answers, 3);
	resolver_free(r);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_name_with_addresses),
		TEST(more_addresses_than_are_kept),
		TEST(both_families),
		TEST(a_scope_is_kept_where_it_means_something),
		TEST(names_without_addresses),
		TEST(many_names),
		TEST(the_same_name),
		TEST(a_name_that_hangs),
		TEST(cancelled_in_the_queue),
		TEST(each_has_a_part_of_the_threads),
		TEST(a_few_threads_are_there_for_each),
		TEST(reserved_threads_are_kept),
		TEST(what_is_in_line_is_shared_with_nobody),
		TEST(they_take_turns),
		TEST(the_end_does_not_wait),
		TEST(too_long_is_an_answer),
	};

	at_the_start = threads();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
