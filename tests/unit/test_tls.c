/* SPDX-License-Identifier: MIT */
/*
 * Layers of TLS, RP's and LP's joined back to back: who is let in, what is told to
 * whom, and what becomes of records that are cut, changed or said twice.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "loopback.h"
#include "mux/base/list.h"
#include "mux/wire/run.h"
#include "random.h"
#include "tls/tls.h"
#include "tls/tls_inside.h"
#include "tls_pair.h"

enum { ROUNDS = 20, BYTES = 1 << 20, RECORD_MORE = 22 };

static struct key house[] = {
	{ .name = "laptop", .len = 32, .secret = { 1, 2, 3 } },
	{ .name = "phone", .len = 16, .secret = { 4, 5, 6 } },
};
static struct key strange[] = {
	{ .name = "laptop", .len = 32, .secret = { 1, 2, 4 } },
	{ .name = "nobody", .len = 32, .secret = { 1, 2, 3 } },
};

static struct tls_pair here;
static unsigned int reads;	/* times that OpenSSL was asked for what came */

int SSL_read_ex(SSL *ssl, void *buf, size_t len, size_t *n)
{
	int (*real)(SSL *, void *, size_t, size_t *);

	*(void **)&real = dlsym(RTLD_NEXT, "SSL_read_ex");
	reads++;
	return real(ssl, buf, len, n);
}

static int set_up(void **state)
{
	(void)state;
	here.rp_keys = (struct keys){ house, 2 };
	return tls_pair_init(&here);
}

static int tear_down(void **state)
{
	(void)state;
	tls_pair_fini(&here);
	return 0;
}

static void join(struct key *shown)
{
	tls_pair_join(&here, shown);
}

static void shake(struct key *shown)
{
	join(shown);
	here.rp_err = here.lp_err = -EAGAIN;
	for (int i = 0; i < ROUNDS; i++) {
		if (here.lp_err == -EAGAIN)
			here.lp_err = conduit_shake(here.lp);
		if (here.rp_err == -EAGAIN)
			here.rp_err = conduit_shake(here.rp);
	}
}

static void each_key_of_rp_is_let_in_by_its_name(void **state)
{
	char got[8] = "";

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		shake(&house[i]);
		assert_int_equal(here.rp_err, 0);
		assert_int_equal(here.lp_err, 0);
		assert_string_equal(here.rp.layer->name, house[i].name);
		assert_true(conduit_say(here.lp, "hello", 6));
		assert_int_equal(conduit_read(here.rp, got, sizeof(got)), 6);
		assert_string_equal(got, "hello");
		assert_int_equal(conduit_read(here.rp, got, sizeof(got)), -1);
		assert_int_equal(errno, EAGAIN);
		conduit_close(here.rp);
		conduit_close(here.lp);
	}
	here.rp = here.lp = (struct conduit){ 0 };
}

static void nobody_else_is(void **state)
{
	static const char *const said[] = {
		"its key is not the one of laptop here",
		"it gave a name that no key here has",
	};

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		shake(&strange[i]);
		assert_int_equal(here.rp_err, -EACCES);
		assert_int_equal(here.lp_err, -EACCES);
		assert_string_equal(here.rp.layer->ops->why(here.rp.layer),
				    said[i]);
		assert_non_null(strstr(here.lp.layer->ops->why(here.lp.layer),
				       "rp has not got this key of "));
		conduit_close(here.rp);
		conduit_close(here.lp);
	}
	here.rp = here.lp = (struct conduit){ 0 };
}

/* A ClientHello may be long, but nobody may go on for ever before it has shown a key. */
static void a_stranger_may_not_say_much(void **state)
{
	static const uint8_t head[] = { 22, 3, 1, 0x3f, 0xff, 1, 0, 0x3f, 0xfb };
	uint8_t bytes[8192] = { 0 };

	(void)state;
	join(&house[0]);
	memcpy(bytes, head, sizeof(head));
	assert_int_equal(send(here.lp.fd, bytes, 4000, 0), 4000);
	assert_int_equal(conduit_shake(here.rp), -EAGAIN);
	assert_int_equal(send(here.lp.fd, bytes + 4000, 4000, 0), 4000);
	assert_int_equal(conduit_shake(here.rp), -EMSGSIZE);
	assert_int_equal(recv(here.rp.fd, bytes, sizeof(bytes), 0),
			 8000 - 4096);
}

static void what_is_no_tls_is_told_at_once(void **state)
{
	(void)state;
	join(&house[0]);
	assert_int_equal(send(here.lp.fd, "GET / HTTP/1.0\r\n\r\n", 18, 0), 18);
	assert_int_equal(conduit_shake(here.rp), -EACCES);
	assert_non_null(strstr(here.rp.layer->ops->why(here.rp.layer), "it does not speak TLS"));
}

/* A record is longer than what is in it by 22 bytes, and has 16 KiB at most. */
static void records_are_as_long_as_is_said(void **state)
{
	static const size_t lens[] = { 1, 9, 1000, 16384, 16385, 65728 };
	uint8_t *bytes = calloc(1, 65728);

	(void)state;
	shake(&house[0]);
	for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		struct layer *l = here.rp.layer;

		assert_int_equal(l->out_len, 0);
		assert_int_equal(l->ops->seal(l, bytes, lens[i]), 0);
		assert_int_equal(l->out_len, layer_len(l, lens[i]));
		l->ops->wrote(l, l->out_len);
	}
	assert_int_equal(here.rp.layer->overhead, RECORD_MORE);
	assert_int_equal(4 * layer_piece(here.rp.layer, WIRE_MESSAGE_MAX), 16384);
	free(bytes);
}

/* So many records of one end, of which so many are read as they were said. */
static unsigned int says(struct conduit from, struct conduit to, unsigned int times,
			 unsigned int *key_updates)
{
	unsigned int right = 0;
	char said[32], got[32];

	for (unsigned int i = 0; i < times; i++) {
		struct layer *l = from.layer;
		int len = snprintf(said, sizeof(said), "record %u", i) + 1;

		assert_int_equal(l->ops->seal(l, said, (size_t)len), 0);
		*key_updates += l->out_len > layer_len(l, (size_t)len);
		assert_int_equal(send(from.fd, l->out, l->out_len, 0),
				 l->out_len);
		l->ops->wrote(l, l->out_len);
		assert_int_equal(conduit_read(to, got, sizeof(got)), len);
		right += !strcmp(said, got);
	}
	return right;
}

/* An update is what is written beyond the record itself. */
static void a_key_is_changed_before_it_was_used_too_often(void **state)
{
	enum { MOST = 10, TIMES = 95 };
	unsigned int up = 0, down = 0;
	struct tls *tls;

	(void)state;
	tls = container_of(here.rp_layers, struct tls, layers);
	assert_int_equal(tls->records_most, RECORDS_OF_A_KEY);
	assert_in_range(RECORDS_OF_A_KEY, 1, 1 << 24);
	tls->records_most = MOST;
	container_of(here.lp_layers, struct tls, layers)->records_most = MOST;
	shake(&house[0]);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(says(here.lp, here.rp, TIMES, &up), TIMES);
		assert_int_equal(says(here.rp, here.lp, TIMES, &down), TIMES);
	}
	/* One before each record that would be one too many. */
	assert_int_equal(up, (2 * TIMES - 1) / MOST);
	assert_int_equal(down, (2 * TIMES - 1) / MOST);
}

/* Of a long run each 16 KiB are a record. */
static void records_of_a_long_run_count_one_by_one(void **state)
{
	uint8_t *bytes = calloc(1, 65728);
	struct layer *l;

	(void)state;
	container_of(here.rp_layers, struct tls, layers)->records_most = 10;
	shake(&house[0]);
	l = here.rp.layer;
	for (unsigned int i = 0; i < 3; i++) {	/* 5, 10, and none is left */
		assert_int_equal(l->ops->seal(l, bytes, 65728), 0);
		if (i < 2)
			assert_int_equal(l->out_len, layer_len(l, 65728));
		else
			assert_true(l->out_len > layer_len(l, 65728));
		l->ops->wrote(l, l->out_len);
	}
	free(bytes);
}

/* What is read in small pieces is told of by what is held. */
static void nothing_that_is_held_is_forgotten(void **state)
{
	uint8_t *bytes = malloc(BYTES);
	size_t got = 0, sent = 0;
	ssize_t n = 0;

	(void)state;
	shake(&house[0]);
	for (size_t i = 0; i < BYTES; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 1000);
	while (got < BYTES) {
		uint8_t piece[1777];

		if (sent < BYTES && !here.lp.layer->pending && n <= 0) {
			assert_true(conduit_say(here.rp, bytes + sent, 32768));
			sent += 32768;
		}
		n = conduit_read(here.lp, piece, sizeof(piece));
		if (n <= 0) {
			assert_int_equal(n, -1);
			assert_int_equal(errno, EAGAIN);
			assert_int_equal(here.lp.layer->pending, 0);
			continue;
		}
		assert_memory_equal(piece, bytes + got, (size_t)n);
		got += (size_t)n;
	}
	free(bytes);
}

/* Records of any size that come in any pieces, read in any pieces: little is left each time. */
static void what_is_left_is_bounded(void **state)
{
	static uint8_t run[RUN_SIZE], piece[1 << 18];
	size_t said = 0, got = 0, most = 0;
	struct tls_layer *t;
	struct random r;
	struct layer *l;

	(void)state;
	random_begin(&r, __func__);
	shake(&house[0]);
	l = here.rp.layer;
	t = container_of(here.lp.layer, struct tls_layer, layer);
	while (got < 16 * BYTES) {
		size_t len = 1 + random_below(&r, sizeof(piece));
		ssize_t n = 0;

		while (n >= 0 && random_below(&r, 8)) {
			size_t some = 1 + random_below(&r, sizeof(run));

			for (size_t i = 0; !l->out_len && i < some; i++)
				run[i] = (uint8_t)((said + i) % 251);
			if (!l->out_len) {
				assert_int_equal(l->ops->seal(l, run, some), 0);
				said += some;
			}
			n = send(here.rp.fd, l->out, 1 + random_below(&r, l->out_len), 0);
			if (n > 0)
				l->ops->wrote(l, (size_t)n);
		}
		n = conduit_read(here.lp, piece, random_below(&r, 2) ? len : len / 1000 + 1);
		for (ssize_t i = 0; i < n; i++)
			assert_int_equal(piece[i], (got + (size_t)i) % 251);
		assert_true(n > 0 || errno == EAGAIN);
		got += n > 0 ? (size_t)n : 0;
		most = t->in_len > most ? t->in_len : most;
	}
	assert_in_range(most, READ_LEAST / 2, READ_LEAST);
}

static void an_end_is_one_when_it_was_said(void **state)
{
	char got[8];

	(void)state;
	shake(&house[0]);
	assert_true(conduit_say(here.lp, "last", 4));
	conduit_shut(here.lp);
	assert_int_equal(conduit_read(here.rp, got, sizeof(got)), 4);
	assert_true(here.rp.layer->pending);
	assert_int_equal(conduit_read(here.rp, got, sizeof(got)), 0);
}

static void an_end_inside_a_record_is_a_reset(void **state)
{
	struct layer *l;
	char got[8];

	(void)state;
	shake(&house[0]);
	l = here.lp.layer;
	assert_int_equal(l->ops->seal(l, "whole", 5), 0);
	assert_int_equal(send(l->fd, l->out, l->out_len - 1, 0),
			 l->out_len - 1);
	shutdown(l->fd, SHUT_WR);
	assert_int_equal(conduit_read(here.rp, got, sizeof(got)), -1);
	assert_int_equal(errno, EAGAIN);	/* the end is not read yet */
	assert_int_equal(conduit_read(here.rp, got, sizeof(got)), -1);
	assert_int_equal(errno, ECONNRESET);
}

static void send_changed(size_t at)
{
	struct layer *l = here.lp.layer;
	uint8_t record[64];
	size_t len;

	assert_int_equal(l->ops->seal(l, "whole", 5), 0);
	len = l->out_len;
	memcpy(record, l->out, len);
	l->ops->wrote(l, len);
	if (at < len)
		record[at] ^= 1;
	assert_int_equal(send(l->fd, record, len, 0), len);
	if (at >= len)
		assert_int_equal(send(l->fd, record, len, 0), len);
}

static void a_record_that_is_changed_or_said_twice_is_none(void **state)
{
	char got[16];

	(void)state;
	shake(&house[0]);
	send_changed(10);
	assert_int_equal(conduit_read(here.rp, got, sizeof(got)), -1);
	assert_int_equal(errno, EBADMSG);
	conduit_close(here.rp);
	conduit_close(here.lp);
	shake(&house[0]);
	send_changed(SIZE_MAX);
	assert_int_equal(conduit_read(here.rp, got, sizeof(got)), 5);
	assert_int_equal(conduit_read(here.rp, got, sizeof(got)), -1);
	assert_int_equal(errno, EBADMSG);
}

static void a_handshake_that_is_said_again_leads_nowhere(void **state)
{
	uint8_t first[2048], second[2048];
	struct conduit again;
	ssize_t n, m;
	int fd[2];

	(void)state;
	join(&house[0]);
	assert_int_equal(conduit_shake(here.lp), -EAGAIN);
	n = recv(here.rp.fd, first, sizeof(first), MSG_PEEK);
	assert_int_equal(conduit_shake(here.rp), -EAGAIN);
	assert_int_equal(conduit_shake(here.lp), 0);
	assert_true(conduit_say(here.lp, "HELLO", 5));
	m = recv(here.rp.fd, second, sizeof(second), MSG_PEEK);
	assert_int_equal(conduit_shake(here.rp), 0);

	tcp_pair(fd);
	assert_int_equal(conduit_open(&again, here.rp_layers, fd[0], true), 0);
	assert_int_equal(send(fd[1], first, (size_t)n, 0), n);
	assert_int_equal(conduit_shake(again), -EAGAIN);
	assert_int_equal(send(fd[1], second, (size_t)m, 0), m);
	assert_int_equal(conduit_shake(again), -EACCES);
	conduit_close(again);
	close(fd[1]);
}

/* What TLS may say at any time after the handshake, and OpenSSL takes without end. */
static void change_keys(struct conduit from, int type, int times)
{
	struct layer *l = from.layer;
	SSL *ssl = container_of(l, struct tls_layer, layer)->ssl;

	while (times--) {
		assert_int_equal(SSL_key_update(ssl, type), 1);
		assert_int_equal(SSL_do_handshake(ssl), 1);
	}
	/* As one segment, so that one read has all of them. */
	assert_int_equal(send(from.fd, l->out, l->out_len, 0), l->out_len);
	l->ops->wrote(l, l->out_len);
}

static void who_says_nothing_but_new_keys_is_not_heard_for_ever(void **state)
{
	char got[8] = "";

	(void)state;
	shake(&house[0]);
	for (int i = 0; i < 3; i++) {
		change_keys(here.lp, SSL_KEY_UPDATE_NOT_REQUESTED, CHATTER_MAX);
		assert_int_equal(conduit_read(here.rp, got, sizeof(got)), -1);
		assert_int_equal(errno, EAGAIN);
	}
	assert_true(conduit_say(here.lp, "hello", 6));
	assert_int_equal(conduit_read(here.rp, got, sizeof(got)), 6);
	assert_string_equal(got, "hello");
	change_keys(here.lp, SSL_KEY_UPDATE_NOT_REQUESTED, CHATTER_MAX + 1);
	assert_int_equal(conduit_read(here.rp, got, sizeof(got)), -1);
	assert_int_equal(errno, EBADMSG);
}

/* OpenSSL may answer in the midst of reading: what comes next is sealed all the same. */
static void who_asks_for_new_keys_is_answered_with_what_is_said_next(void **state)
{
	unsigned int updates = 0;
	char got[8];

	(void)state;
	shake(&house[0]);
	for (int i = 0; i < 12; i++) {
		struct conduit from = i % 2 ? here.rp : here.lp;
		struct conduit to = i % 2 ? here.lp : here.rp;

		change_keys(from, SSL_KEY_UPDATE_REQUESTED, 1 + i % 3);
		assert_true(conduit_say(from, "hello", 6));
		assert_int_equal(conduit_read(to, got, sizeof(got)), 6);
		assert_int_equal(says(to, from, 3, &updates), 3);
	}
	assert_int_equal(updates, 12);
}

/* Where there is nothing to say, answers wait; so many of them, and no more. */
static void answers_that_wait_are_bounded(void **state)
{
	struct layer *l;
	char got[8];
	int asked = 0;
	(void)state;
	shake(&house[0]);
	l = here.rp.layer;
	do {
		change_keys(here.lp, SSL_KEY_UPDATE_REQUESTED, 1);
		assert_true(conduit_say(here.lp, "hello", 6));
		assert_in_range(l->out_len, 0, ANSWERS_MAX);
	} while (conduit_read(here.rp, got, sizeof(got)) == 6 && asked++ < 1000);
	assert_int_equal(errno, EBADMSG);
	assert_in_range(asked, 32, 64);
	assert_non_null(strstr(l->ops->why(l), "asks for ever more new keys"));
}

/* To ask OpenSSL in vain takes as long as to have it open a small record. */
static void nothing_is_asked_for_that_cannot_be_there(void **state)
{
	unsigned int updates = 0;
	struct layer *l;
	char got[8];

	(void)state;
	shake(&house[0]);
	reads = 0;
	assert_int_equal(says(here.lp, here.rp, 5, &updates), 5);
	assert_int_equal(reads, 5);
	assert_int_equal(conduit_read(here.rp, got, sizeof(got)), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(reads, 5);
	/* The first part of a record is taken, once. */
	l = here.lp.layer;
	assert_int_equal(l->ops->seal(l, "whole", 5), 0);
	assert_int_equal(send(l->fd, l->out, 10, 0), 10);
	assert_int_equal(conduit_read(here.rp, got, sizeof(got)), -1);
	assert_int_equal(conduit_read(here.rp, got, sizeof(got)), -1);
	assert_int_equal(reads, 6);
	assert_int_equal(send(l->fd, l->out + 10, l->out_len - 10, 0),
			 l->out_len - 10);
	assert_int_equal(conduit_read(here.rp, got, sizeof(got)), 5);
	assert_int_equal(reads, 7);
}

/* Records are full of padding: others get their turn before much of it was read. */
static void one_read_takes_no_more_than_it_needs(void **state)
{
	static uint8_t got[1 << 16];
	struct layer *l;
	SSL *ssl;
	int left;

	(void)state;
	shake(&house[0]);
	l = here.lp.layer;
	ssl = container_of(l, struct tls_layer, layer)->ssl;
	assert_int_equal(SSL_set_block_padding(ssl, 16384), 1);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(l->ops->seal(l, "x", 1), 0);
		assert_int_equal(send(here.lp.fd, l->out, l->out_len, 0),
				 l->out_len);
		l->ops->wrote(l, l->out_len);
	}
	assert_in_range(conduit_read(here.rp, got, 4), 1, 2);
	assert_int_equal(ioctl(here.rp.fd, FIONREAD, &left), 0);
	assert_in_range(left, 4 * 16384, 8 * 16384);
	for (int i = 0, n = 0; n < 6; i++) {
		ssize_t more = conduit_read(here.rp, got, 1);

		assert_in_range(i, 0, 20);
		n += more > 0 ? (int)more : 0;
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_key_of_rp_is_let_in_by_its_name),
		T(nobody_else_is),
		T(a_stranger_may_not_say_much),
		T(what_is_no_tls_is_told_at_once),
		T(records_are_as_long_as_is_said),
		T(a_key_is_changed_before_it_was_used_too_often),
		T(records_of_a_long_run_count_one_by_one),
		T(nothing_that_is_held_is_forgotten),
		T(what_is_left_is_bounded),
		T(an_end_is_one_when_it_was_said),
		T(an_end_inside_a_record_is_a_reset),
		T(a_record_that_is_changed_or_said_twice_is_none),
		T(a_handshake_that_is_said_again_leads_nowhere),
		T(who_says_nothing_but_new_keys_is_not_heard_for_ever),
		T(who_asks_for_new_keys_is_answered_with_what_is_said_next),
		T(answers_that_wait_are_bounded),
		T(nothing_is_asked_for_that_cannot_be_there),
		T(one_read_takes_no_more_than_it_needs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
