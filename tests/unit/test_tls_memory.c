/* SPDX-License-Identifier: MIT */
/* What a layer of TLS takes of memory: its own, and what OpenSSL has for it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "mux/base/list.h"
#include "tls/tls_inside.h"
#include "tls_pair.h"

static struct key keys[] = {
	{ .name = "laptop", .len = 32, .secret = { 1, 2, 3 } },
};

static struct tls_pair here;

static int set_up(void **state)
{
	(void)state;
	here.rp_keys = (struct keys){ keys, 1 };
	return tls_pair_init(&here);
}

static int tear_down(void **state)
{
	(void)state;
	tls_pair_fini(&here);
	return 0;
}

/* What OpenSSL has, as it asks for it. */
static size_t taken;

static void *take(size_t n, const char *file, int line)
{
	size_t *block = malloc(sizeof(max_align_t) + n);

	(void)file, (void)line;
	if (!block)
		return NULL;
	*block = n;
	taken += n;
	return (char *)block + sizeof(max_align_t);
}

static void give_back(void *where, const char *file, int line)
{
	size_t *block;

	(void)file, (void)line;
	if (!where)
		return;
	block = (size_t *)(void *)((char *)where - sizeof(max_align_t));
	taken -= *block;
	free(block);
}

static void *take_other(void *where, size_t n, const char *file, int line)
{
	size_t had = where ? *(size_t *)(void *)((char *)where -
						  sizeof(max_align_t)) : 0;
	void *other = n ? take(n, file, line) : NULL;

	if (where && other)
		memcpy(other, where, had < n ? had : n);
	if (other || !n)
		give_back(where, file, line);
	return other;
}

static size_t own(const struct conduit c)
{
	const struct tls_layer *t = container_of(c.layer, struct tls_layer,
						 layer);

	return sizeof(*t) + t->out_size + (t->left ? READ_LEAST : 0);
}

static size_t both(size_t before)
{
	return taken - before + own(here.rp) + own(here.lp);
}

/* As much of a run as goes at once, of which little is read. */
static void fill(struct conduit from, struct conduit to)
{
	static uint8_t run[LAYER_PORTION];
	struct layer *l = from.layer;
	uint8_t got[100];

	assert_int_equal(l->ops->seal(l, run, sizeof(run)), 0);
	while (l->out_len) {
		ssize_t n = send(from.fd, l->out, l->out_len, 0);

		if (n > 0)
			l->ops->wrote(l, (size_t)n);
		while (conduit_read(to, got, sizeof(got)) < 0)
			assert_int_equal(errno, EAGAIN);
	}
	assert_int_equal(l->ops->seal(l, run, sizeof(run)), 0);
}

static void shake(void)
{
	assert_int_equal(conduit_shake(here.lp), -EAGAIN);
	assert_int_equal(conduit_shake(here.rp), -EAGAIN);
	assert_int_equal(conduit_shake(here.lp), 0);
	assert_int_equal(conduit_shake(here.rp), 0);
}

/* The first layers have OpenSSL make what all have in common. */
static void warm_up(void)
{
	tls_pair_join(&here, keys);
	shake();
	fill(here.lp, here.rp);
	fill(here.rp, here.lp);
	conduit_close(here.lp);
	conduit_close(here.rp);
}

/* Not more than rp and lp count it for, nor half of it. */
static void a_layer_takes_no_more_than_it_counts_for(void **state)
{
	size_t before, begun;

	(void)state;
	warm_up();
	before = taken;
	tls_pair_join(&here, keys);
	begun = (taken - before) / 2;
	assert_int_equal(conduit_shake(here.lp), -EAGAIN);
	begun -= taken;
	assert_int_equal(conduit_shake(here.rp), -EAGAIN);
	begun += taken + own(here.rp);
	print_message("a layer takes %zu bytes when it has begun", begun);
	assert_in_range(begun, LAYER_MEMORY_SHAKING / 2, LAYER_MEMORY_SHAKING);
	assert_int_equal(conduit_shake(here.lp), 0);
	assert_int_equal(conduit_shake(here.rp), 0);
	print_message(", %zu at rest", both(before) / 2);
	fill(here.lp, here.rp);
	fill(here.rp, here.lp);
	print_message(", %zu when it is full\n", both(before) / 2);
	assert_in_range(both(before), LAYER_MEMORY, 2 * LAYER_MEMORY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_layer_takes_no_more_than_it_counts_for,
						set_up, tear_down),
	};

	if (!CRYPTO_set_mem_functions(take, take_other, give_back))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
