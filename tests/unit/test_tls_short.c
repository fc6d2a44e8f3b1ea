/* SPDX-License-Identifier: MIT */
/*
 * Memory that a layer of TLS does not get, its own and OpenSSL's, one allocation after the
 * other: it says that, and blames nobody at the other end. malloc() and realloc() come here
 * first, by `ld --wrap`.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "mux/base/list.h"
#include "tls/tls_inside.h"
#include "tls_pair.h"

enum { ROUNDS = 6, NEVER = 1 << 30 };

static struct key house[] = {
	{ .name = "laptop", .len = 32, .secret = { 1, 2, 3 } },
};

static struct tls_pair here;
/* So many more are had, and then one is not. */
static int ours = NEVER, theirs = NEVER;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
	return ours-- ? __real_malloc(size) : NULL;
}

void *__wrap_realloc(void *old, size_t size)
{
	return ours-- ? __real_realloc(old, size) : NULL;
}

static void *take(size_t size, const char *file, int line)
{
	(void)file, (void)line;
	return theirs-- ? __real_malloc(size) : NULL;
}

static void *take_other(void *old, size_t size, const char *file, int line)
{
	(void)file, (void)line;
	return theirs-- ? __real_realloc(old, size) : NULL;
}

static void give_back(void *old, const char *file, int line)
{
	(void)file, (void)line;
	free(old);
}

static int set_up(void **state)
{
	(void)state;
	ours = theirs = NEVER;
	here.rp_keys = (struct keys){ house, 1 };
	return tls_pair_init(&here);
}

static int tear_down(void **state)
{
	(void)state;
	ours = theirs = NEVER;
	tls_pair_fini(&here);
	return 0;
}

static const char *why(struct conduit c)
{
	return c.layer->ops->why(c.layer);
}

/*
 * Each of both in turn, and LP says something at once, so that RP reads more than the
 * handshake. @short_one alone has but so many allocations of @which. How many are left.
 */
static int shake_with(const struct conduit *short_one, int *which, int budget)
{
	here.rp_err = here.lp_err = -EAGAIN;
	for (int i = 0; i < ROUNDS; i++) {
		struct conduit *both[] = { &here.lp, &here.rp };
		int *err[] = { &here.lp_err, &here.rp_err };

		for (int j = 0; j < 2; j++) {
			if (*err[j] != -EAGAIN)
				continue;
			*which = both[j] == short_one ? budget : NEVER;
			*err[j] = conduit_shake(*both[j]);
			budget = both[j] == short_one ? *which : budget;
			*which = NEVER;
			if (!j && !*err[j])
				assert_true(conduit_say(here.lp, "hello", 5));
		}
	}
	return budget;
}

static void part(void)
{
	conduit_close(here.rp);
	conduit_close(here.lp);
	here.rp = here.lp = (struct conduit){ 0 };
}

/*
 * How many allocations a handshake has, each of which failed once; and of how many nobody
 * knows it, since OpenSSL did not say it. Some it can do without.
 */
static int allocations_that_fail(const struct conduit *short_one, const int *err, int *which,
				 int *unknown)
{
	int n = 0, left;

	for (*unknown = 0;; n++) {
		tls_pair_join(&here, house);
		left = shake_with(short_one, which, n);
		if (left >= 0)
			break;
		if (*err == -EACCES) {
			assert_non_null(strstr(why(*short_one), "TLS with a key did not come about: "));
			++*unknown;
		} else if (*err) {
			assert_int_equal(*err, -ENOMEM);
			assert_string_equal(why(*short_one), "no memory is left for its handshake");
			/* It stays so, whoever asks again. */
			assert_int_equal(conduit_shake(*short_one), -ENOMEM);
		}
		part();
	}
	assert_int_equal(*err, 0);
	part();
	print_message("%d, %d of them for no known reason\n", n, *unknown);
	return n;
}

static void a_handshake_without_memory_says_so(void **state)
{
	int unknown;

	(void)state;
	assert_in_range(allocations_that_fail(&here.rp, &here.rp_err, &ours, &unknown), 1, 10);
	assert_int_equal(unknown, 0);
	assert_in_range(allocations_that_fail(&here.lp, &here.lp_err, &ours, &unknown), 1, 10);
	assert_int_equal(unknown, 0);
}

/* It has some hundred allocations, and tells of half of them "internal error" and the like. */
static void so_it_does_where_openssl_has_none(void **state)
{
	int unknown, n;

	(void)state;
	n = allocations_that_fail(&here.rp, &here.rp_err, &theirs, &unknown);
	assert_in_range(n, 50, 5000);
	assert_in_range(unknown, 0, n * 2 / 3);
	n = allocations_that_fail(&here.lp, &here.lp_err, &theirs, &unknown);
	assert_in_range(n, 50, 5000);
	assert_in_range(unknown, 0, n * 2 / 3);
}

static void begin(void)
{
	tls_pair_join(&here, house);
	shake_with(NULL, &ours, NEVER);
	assert_int_equal(here.rp_err, 0);
	assert_int_equal(here.lp_err, 0);
}

static void says(const char *text)
{
	struct layer *l = here.lp.layer;

	assert_int_equal(l->ops->seal(l, text, strlen(text)), 0);
	assert_int_equal(send(l->fd, l->out, l->out_len, 0), l->out_len);
	l->ops->wrote(l, l->out_len);
}

/* Of two records one is read, and there is no memory to keep the other one in. */
static void what_cannot_be_kept_is_not_looked_for_in_what_others_read(void **state)
{
	struct tls *tls = container_of(here.rp_layers, struct tls, layers);
	char got[8] = "";

	(void)state;
	begin();
	assert_int_equal(conduit_read(here.rp, got, sizeof(got)), 5);	/* "hello" */
	free(container_of(here.rp.layer, struct tls_layer, layer)->left);
	container_of(here.rp.layer, struct tls_layer, layer)->left = NULL;
	says("first");
	says("second");
	ours = 0;
	assert_int_equal(conduit_read(here.rp, got, 5), 5);
	ours = NEVER;
	assert_memory_equal(got, "first", 5);
	assert_true(here.rp.layer->pending);
	memset(tls->in, 0x5a, IN_SIZE);	/* as another layer would */
	assert_int_equal(conduit_read(here.rp, got, sizeof(got)), -1);
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(conduit_read(here.rp, got, sizeof(got)), -1);
	assert_int_equal(errno, ENOMEM);
}

/* A request for a new key is answered; the answer needs memory. */
static void an_answer_without_memory_is_no_breach(void **state)
{
	struct tls_layer *t;
	char got[8];

	(void)state;
	begin();
	assert_int_equal(conduit_read(here.rp, got, sizeof(got)), 5);
	t = container_of(here.lp.layer, struct tls_layer, layer);
	for (int i = 0; i < 2; i++) {	/* OpenSSL answers the first when it reads the next */
		assert_int_equal(SSL_key_update(t->ssl, SSL_KEY_UPDATE_REQUESTED), 1);
		assert_int_equal(SSL_do_handshake(t->ssl), 1);
	}
	says("after");
	t = container_of(here.rp.layer, struct tls_layer, layer);
	free(t->out);
	t->out = NULL;
	t->out_size = 0;
	ours = 0;
	assert_int_equal(conduit_read(here.rp, got, sizeof(got)), -1);
	ours = NEVER;
	assert_int_equal(errno, ENOMEM);
}

static void what_cannot_be_sealed_says_why(void **state)
{
	static const uint8_t run[30000];
	struct layer *l;

	(void)state;
	begin();
	l = here.rp.layer;
	ours = 0;
	assert_int_equal(l->ops->seal(l, run, sizeof(run)), -ENOMEM);
	ours = NEVER;
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_handshake_without_memory_says_so),
		T(so_it_does_where_openssl_has_none),
		T(what_cannot_be_kept_is_not_looked_for_in_what_others_read),
		T(an_answer_without_memory_is_no_breach),
		T(what_cannot_be_sealed_says_why),
	};

	if (!CRYPTO_set_mem_functions(take, take_other, give_back))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
