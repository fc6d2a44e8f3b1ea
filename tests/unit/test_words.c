/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "mux/options/words.h"

static void given(struct words *w, const char *name, const char *value)
{
	assert_int_equal(words_add(w, name, value), 0);
}

static void what_was_given_is_compared(void **state)
{
	struct words a = { NULL, 0 }, b = { NULL, 0 };
	char value[] = "10.0.0.0/8";

	(void)state;
	assert_true(words_same(&a, &b, "allow"));
	given(&a, "allow", value);
	value[0] = 'x';			/* it is not kept by reference */
	given(&b, "allow", "10.0.0.0/8");
	given(&a, "quiet", NULL);
	assert_true(words_same(&a, &b, "allow"));
	assert_false(words_same(&a, &b, "quiet"));
	given(&b, "quiet", NULL);
	assert_true(words_same(&a, &b, "quiet"));

	/* Order counts among the values of one name alone. */
	given(&a, "allow", "::1");
	assert_false(words_same(&a, &b, "allow"));
	assert_false(words_same(&b, &a, "allow"));
	given(&b, "listen", "::1");
	given(&b, "allow", "::1");
	assert_true(words_same(&a, &b, "allow"));
	given(&a, "allow", "1.1.1.1");
	given(&b, "allow", "2.2.2.2");
	assert_false(words_same(&a, &b, "allow"));

	/* No value and some value differ. */
	given(&a, "config", NULL);
	given(&b, "config", "x");
	assert_false(words_same(&a, &b, "config"));
	words_fini(&a);
	words_fini(&b);
}

static void one_name_is_taken_over(void **state)
{
	struct words a = { NULL, 0 }, b = { NULL, 0 };

	(void)state;
	given(&a, "allow", "1");
	given(&a, "listen", "1");
	given(&a, "allow", "2");
	given(&b, "allow", "3");
	given(&b, "listen", "2");
	assert_int_equal(words_take(&a, &b, "allow"), 0);
	assert_true(words_same(&a, &b, "allow"));
	assert_false(words_same(&a, &b, "listen"));
	assert_int_equal(a.n, 2);

	/* What is given no more is gone. */
	words_fini(&b);
	assert_int_equal(words_take(&a, &b, "allow"), 0);
	assert_int_equal(a.n, 1);
	assert_string_equal(a.word[0].name, "listen");
	words_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_given_is_compared),
		cmocka_unit_test(one_name_is_taken_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
