/* SPDX-License-Identifier: MIT */
/* Files of keys: what is taken, what is refused, and in which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/options/key_file.h"
#include "mux/options/options.h"
#include "mux/settings/settings.h"

static const char good[] =
	"# of the house\n"
	"\n"
	"laptop AAECAwQFBgcICQoLDA0ODw==\n"
	"  phone\tAAECAwQFBgcICQoLDA0ODxA=  \r\n"
	"desk AAECAwQFBgcICQoLDA0ODxAR\n";

static char path[] = "/tmp/tm3-keys-XXXXXX";
static char why[512];

static int read_text(struct keys *keys, const char *text, mode_t mode)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
	why[0] = '\0';
	return keys_read(keys, path, why, sizeof(why));
}

/* In place of the C library's: so many bytes of the code's own secrets are wiped. */
static size_t wiped, most_wiped;

void explicit_bzero(void *where, size_t n)
{
	memset(where, 0, n);
	wiped += n;
	if (n > most_wiped)
		most_wiped = n;
}

static void all_that_was_read_is_wiped(void **state)
{
	static const char *const wrong[] = {
		"laptop AAECAwQFBgcICQoLDA0ODw\n", "laptop AAECAwQF\n",
		"laptop AAECAwQFBgcICQoLDA0ODw==\nlaptop AAECAwQFBgcICQoLDA0ODw==\n",
	};
	struct keys keys;

	(void)state;
	most_wiped = 0;
	assert_int_equal(read_text(&keys, good, 0600), 0);
	keys_fini(&keys);
	assert_true(most_wiped >= strlen(good));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		wiped = most_wiped = 0;
		assert_int_equal(read_text(&keys, wrong[i], 0600), -1);
		/* The text, and what was decoded of a line. */
		assert_true(wiped >= strlen(wrong[i]) + KEY_MAX + 1);
	}
}

static void keys_have_names(void **state)
{
	const struct key *key;
	struct keys keys;

	(void)state;
	assert_int_equal(read_text(&keys, good, 0600), 0);
	assert_int_equal(keys.n, 3);
	key = keys_find(&keys, "phone", 5);
	assert_non_null(key);
	assert_int_equal(key->len, 17);
	for (unsigned int i = 0; i < key->len; i++)
		assert_int_equal(key->secret[i], i);
	assert_int_equal(keys_find(&keys, "laptop", 6)->len, 16);
	assert_int_equal(keys_find(&keys, "desk", 4)->len, 18);
	assert_null(keys_find(&keys, "lap", 3));
	assert_null(keys_find(&keys, "laptops", 7));
	assert_true(key_same(key, key));
	assert_false(key_same(key, keys_find(&keys, "desk", 4)));
	keys_fini(&keys);
	assert_int_equal(keys.n, 0);
}

static void wrong(const char *text, const char *said)
{
	struct keys keys;

	assert_int_equal(read_text(&keys, text, 0600), -1);
	assert_null(keys.key);
	if (!strstr(why, said))
		fail_msg("'%s' is not in '%s'", said, why);
}

static void what_is_wrong_is_told_with_its_line(void **state)
{
	(void)state;
	wrong("", ": there is no key in it");
	wrong("# nothing\n", ": there is no key in it");
	wrong("a AAECAwQFBgcICQoLDA0ODw==\n\nb AAECAwQF\n",
	      ":3: the key of b is too short: 16 to 64 bytes");
	wrong("a AAECAwQFBgcICQoLDA0O\n", ":1: the key of a is too short");
	wrong("a\n", ":1: the key of a is too short");
	wrong("a AAECAwQFBgcICQoLDA0ODw\n", ":1: the key of a is not base64");
	wrong("a AAECAwQFBgcICQoLDA0OD===\n", ":1: the key of a is not base64");
	wrong("a AAECAwQFBgcI QoLDA0ODw==\n", ":1: the key of a is not base64");
	wrong("a AAECAwQFBgcICQoLDA0ODw==\n#\na AAECAwQFBgcICQoLDA0ODw==\n",
	      ":3: there is another key of a");
	wrong("a AAECAwQFBgcICQoLDA0ODw==\nb AAECAwQFBgcICQoLDA0ODw==\n",
	      ":2: the key of b is that of a");
	wrong("a\x01 AAECAwQFBgcICQoLDA0ODw==\n", ":1: a name is");
	wrong("a AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4v"
	      "MDEyMzQ1Njc4OTo7PD0+P0BB\n", ":1: the key of a is too long");
}

static void others_may_not_read_it(void **state)
{
	static const mode_t open[] = { 0604, 0602, 0601, 0620, 0644 };
	struct keys keys;

	(void)state;
	for (size_t i = 0; i < sizeof(open) / sizeof(*open); i++) {
		assert_int_equal(read_text(&keys, good, open[i]), -1);
		assert_non_null(strstr(why, "others may read or write it"));
	}
	assert_int_equal(read_text(&keys, good, 0640), 0);
	keys_fini(&keys);
	unlink(path);
	assert_int_equal(keys_read(&keys, path, why, sizeof(why)), -1);
	assert_non_null(strstr(why, "No such file"));
}

static void a_key_that_is_made_can_be_read(void **state)
{
	char line[KEY_LINE_MAX], again[KEY_LINE_MAX];
	char name[KEY_NAME_MAX + 2];
	struct keys keys;

	(void)state;
	memset(name, 'n', sizeof(name));
	name[KEY_NAME_MAX] = '\0';
	assert_int_equal(key_make(line, name, why, sizeof(why)), 0);
	assert_int_equal(key_make(again, name, why, sizeof(why)), 0);
	assert_string_not_equal(line, again);
	assert_int_equal(read_text(&keys, line, 0600), 0);
	assert_int_equal(keys.key[0].len, KEY_MADE);
	assert_string_equal(keys.key[0].name, name);
	keys_fini(&keys);
	name[KEY_NAME_MAX] = 'n';
	name[KEY_NAME_MAX + 1] = '\0';
	assert_int_equal(key_make(line, name, why, sizeof(why)), -1);
	assert_int_equal(key_make(line, "two words", why, sizeof(why)), -1);
	assert_int_equal(key_make(line, "#1", why, sizeof(why)), -1);
	assert_int_equal(key_make(line, "", why, sizeof(why)), -1);
}

static int combined(const char *key_file, const char *keylog, const char *pipe,
		    bool built)
{
	struct settings s;
	struct keys keys = { 0 };
	int err;

	settings_init(&s);
	if (pipe)
		assert_int_equal(settings_set(&s, "pipe", pipe, why,
					      sizeof(why)), 0);
	strcpy(s.key_file, key_file);
	strcpy(s.keylog, keylog);
	err = keys_of_settings(&keys, &s, built, why, sizeof(why));
	keys_fini(&keys);
	return err;
}

static void what_does_not_go_with_keys_is_refused(void **state)
{
	struct keys keys;

	(void)state;
	assert_int_equal(read_text(&keys, good, 0600), 0);
	keys_fini(&keys);
	assert_int_equal(combined("", "", NULL, false), 0);
	assert_int_equal(combined(path, "log", "mptcp", true), 0);
	assert_int_equal(combined("", "log", NULL, true), -1);
	assert_non_null(strstr(why, "--keylog: without --key-file"));
	assert_int_equal(combined(path, "", NULL, false), -1);
	assert_non_null(strstr(why, "built without OpenSSL"));
	assert_int_equal(combined(path, "", "tcp,sctp", true), -1);
	assert_non_null(strstr(why, "sctp cannot be encrypted"));
}

static int set_up(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_was_read_is_wiped),
		cmocka_unit_test(keys_have_names),
		cmocka_unit_test(what_is_wrong_is_told_with_its_line),
		cmocka_unit_test(others_may_not_read_it),
		cmocka_unit_test(a_key_that_is_made_can_be_read),
		cmocka_unit_test(what_does_not_go_with_keys_is_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
