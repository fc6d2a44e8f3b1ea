/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lp/socks.h"
#include "mux/wire/wire_ext.h"
#include "random.h"

static const uint8_t greeting[] = { 5, 1, 0 };
static const uint8_t to_ipv4[] = { 5, 1, 0, 1, 192, 0, 2, 7, 0x1F, 0x90 };
static const uint8_t to_name[] = {
	5, 1, 0, 3, 7, 'e', 'x', 'a', 'm', 'p', 'l', 'e', 0, 80
};

/*
 * Feeds what is asked for until there is another verdict than "more", at most
 * @step bytes at a time. Returns it and moves @at on.
 */
static enum socks_verdict feed(struct socks *s, const uint8_t *data,
			       size_t len, size_t *at, size_t step)
{
	enum socks_verdict v = SOCKS_MORE;

	while (v == SOCKS_MORE && *at < len) {
		size_t n = socks_need(s);

		assert_true(n > 0);
		if (n > step)
			n = step;
		if (n > len - *at)
			n = len - *at;
		v = socks_take(s, data + *at, n);
		*at += n;
	}
	return v;
}

static void greet(struct socks *s)
{
	size_t at = 0;

	socks_init(s);
	assert_int_equal(feed(s, greeting, sizeof(greeting), &at, 512),
			 SOCKS_SAY);
	assert_int_equal(s->out_len, 2);
	assert_memory_equal(s->out, "\5\0", 2);
}

/* The verdict on a request behind a good greeting; all of it must be read. */
static enum socks_verdict request(struct socks *s, const uint8_t *data,
				  size_t len)
{
	enum socks_verdict v;
	size_t at = 0;

	greet(s);
	v = feed(s, data, len, &at, 512);
	assert_int_equal(at, len);
	return v;
}

static void assert_refused(const uint8_t *data, size_t len,
			   enum socks_reply reply)
{
	struct socks s;

	assert_int_equal(request(&s, data, len), SOCKS_REJECT);
	assert_int_equal(s.out_len, 10);
	assert_memory_equal(s.out, ((uint8_t[]){ 5, reply, 0, 1, 0, 0, 0, 0,
						 0, 0 }), 10);
}

static void assert_to(const struct socks *s, enum destination_kind kind,
		      const char *text)
{
	char got[DESTINATION_TEXT];

	assert_int_equal(s->to.kind, kind);
	assert_string_equal(destination_text(&s->to, got), text);
}

static void connect_to_an_address(void **state)
{
	struct socks s;

	(void)state;
	assert_int_equal(request(&s, to_ipv4, sizeof(to_ipv4)), SOCKS_REQUEST);
	assert_to(&s, DESTINATION_IPV4, "192.0.2.7:8080");
}

static void connect_to_a_name(void **state)
{
	struct socks s;

	(void)state;
	assert_int_equal(request(&s, to_name, sizeof(to_name)), SOCKS_REQUEST);
	assert_to(&s, DESTINATION_NAME, "example:80");
}

static void the_longest_name(void **state)
{
	uint8_t data[5 + 255 + 2] = { 5, 1, 0, 3, 255 };
	struct socks s;

	(void)state;
	memset(data + 5, 'x', 255);
	data[260] = 0xFF;
	data[261] = 0xFE;
	assert_int_equal(request(&s, data, sizeof(data)), SOCKS_REQUEST);
	assert_int_equal(s.to.kind, DESTINATION_NAME);
	assert_int_equal(s.to.len, 255);
	assert_int_equal(strlen((const char *)s.to.bytes), 255);
	assert_int_equal(s.to.port, 0xFFFE);
}

static void names_that_are_none(void **state)
{
	static const uint8_t empty[] = { 5, 1, 0, 3, 0, 0, 80 };
	static const uint8_t nul[] = { 5, 1, 0, 3, 3, 'a', 0, 'b', 0, 80 };

	(void)state;
	assert_refused(empty, sizeof(empty), SOCKS_HOST_UNREACHABLE);
	assert_refused(nul, sizeof(nul), SOCKS_HOST_UNREACHABLE);
}

static void connect_to_ipv6(void **state)
{
	uint8_t data[4 + 16 + 2] = { 5, 1, 0, 4, 0x20, 1, 0x0d, 0xb8 };
	uint8_t mapped[4 + 16 + 2] = { 5, 1, 0, 4, [14] = 0xff, 0xff,
				       192, 0, 2, 7, 0, 80 };
	struct socks s;

	(void)state;
	data[19] = 7;
	data[21] = 80;
	assert_int_equal(request(&s, data, sizeof(data)), SOCKS_REQUEST);
	assert_to(&s, DESTINATION_IPV6, "[2001:db8::7]:80");
	assert_int_equal(request(&s, mapped, sizeof(mapped)), SOCKS_REQUEST);
	assert_to(&s, DESTINATION_IPV4, "192.0.2.7:80");
}

static void what_rp_says_in_socks_words(void **state)
{
	(void)state;
	assert_int_equal(socks_reply_to(WIRE_SYNACK_CONNECTED), 0);
	assert_int_equal(socks_reply_to(WIRE_SYNACK_REFUSED), 5);
	assert_int_equal(socks_reply_to(WIRE_SYNACK_UNREACHABLE), 4);
	assert_int_equal(socks_reply_to(WIRE_SYNACK_NO_NAME), 4);
	assert_int_equal(socks_reply_to(WIRE_SYNACK_TIMEOUT), 6);
	assert_int_equal(socks_reply_to(WIRE_SYNACK_DENIED), 2);
	assert_int_equal(socks_reply_to(WIRE_SYNACK_LIMIT), 1);
	assert_int_equal(socks_reply_to(255), 1);
}

static void only_two_commands_are_served(void **state)
{
	uint8_t ipv6[4 + 16 + 2] = { 5, 2, 0, 4 };
	uint8_t ipv4[sizeof(to_ipv4)];
	uint8_t name[sizeof(to_name)];
	unsigned int command;

	(void)state;
	memcpy(ipv4, to_ipv4, sizeof(ipv4));
	memcpy(name, to_name, sizeof(name));
	for (command = 0; command < 256; command++) {
		if (command == 1 || command == 3)
			continue;
		ipv4[1] = name[1] = ipv6[1] = (uint8_t)command;
		assert_refused(ipv4, sizeof(ipv4), SOCKS_NO_COMMAND);
		assert_refused(name, sizeof(name), SOCKS_NO_COMMAND);
		assert_refused(ipv6, sizeof(ipv6), SOCKS_NO_COMMAND);
	}
}

/* It says where it will send from; the port alone is of interest. */
static void associate(void **state)
{
	static const uint8_t from_ipv4[] = {
		5, 3, 0, 1, 0, 0, 0, 0, 0x1F, 0x90
	};
	static const uint8_t from_ipv6[4 + 16 + 2] = { 5, 3, 0, 4 };
	static const uint8_t from_no_name[] = { 5, 3, 0, 3, 0, 0x1F, 0x91 };
	static const uint8_t from_nowhere[] = { 5, 3, 0, 2 };
	struct socks s;

	(void)state;
	assert_int_equal(request(&s, from_ipv4, sizeof(from_ipv4)),
			 SOCKS_ASSOCIATE);
	assert_int_equal(s.to.port, 0x1F90);
	assert_int_equal(request(&s, from_ipv6, sizeof(from_ipv6)),
			 SOCKS_ASSOCIATE);
	assert_int_equal(s.to.port, 0);
	assert_int_equal(request(&s, from_no_name, sizeof(from_no_name)),
			 SOCKS_ASSOCIATE);
	assert_int_equal(s.to.port, 0x1F91);
	assert_refused(from_nowhere, sizeof(from_nowhere),
		       SOCKS_NO_ADDRESS_TYPE);
}

static void grants(void **state)
{
	static const uint8_t from[] = { 5, 3, 0, 1, 0, 0, 0, 0, 0, 0 };
	uint8_t addr[16] = { 0x20, 1, [15] = 7 };
	struct destination at = destination_ipv6(addr, 0x1F90);
	struct socks s;

	(void)state;
	assert_int_equal(request(&s, from, sizeof(from)), SOCKS_ASSOCIATE);
	socks_grant(&s, &at);
	assert_int_equal(s.out_len, SOCKS_REPLY_MAX);
	assert_memory_equal(s.out, "\5\0\0\4\x20\1", 6);
	assert_memory_equal(s.out + 19, "\7\x1F\x90", 3);
	at = destination_ipv4((uint8_t[]){ 192, 0, 2, 7 }, 53);
	socks_grant(&s, &at);
	assert_int_equal(s.out_len, 10);
	assert_memory_equal(s.out, "\5\0\0\1\300\0\2\7\0\65", 10);
}

/* Their length is unknown, so the head of the request is all that is read. */
static void unknown_address_types(void **state)
{
	unsigned int type;

	(void)state;
	for (type = 0; type < 256; type++) {
		uint8_t data[4] = { 5, 1, 0, (uint8_t)type };

		if (type == 1 || type == 3 || type == 4)
			continue;
		assert_refused(data, sizeof(data), SOCKS_NO_ADDRESS_TYPE);
	}
}

static void assert_no_method(const uint8_t *data, size_t len)
{
	struct socks s;
	size_t at = 0;

	socks_init(&s);
	assert_int_equal(feed(&s, data, len, &at, 512), SOCKS_REJECT);
	assert_int_equal(at, len);
	assert_int_equal(s.out_len, 2);
	assert_memory_equal(s.out, "\5\xFF", 2);
}

static void without_a_method_of_ours(void **state)
{
	static const uint8_t none[] = { 5, 0 };
	static const uint8_t password[] = { 5, 1, 2 };
	uint8_t many[2 + 255] = { 5, 255 };

	(void)state;
	memset(many + 2, 0x80, 255);
	assert_no_method(none, sizeof(none));
	assert_no_method(password, sizeof(password));
	assert_no_method(many, sizeof(many));
}

static void our_method_anywhere_in_the_list(void **state)
{
	uint8_t many[2 + 255] = { 5, 255 };
	int place;

	(void)state;
	for (place = 0; place < 255; place++) {
		struct socks s;
		size_t at = 0;

		memset(many + 2, 2, 255);
		many[2 + place] = 0;
		socks_init(&s);
		assert_int_equal(feed(&s, many, sizeof(many), &at, 512),
				 SOCKS_SAY);
		assert_int_equal(at, sizeof(many));
	}
}

/* Methods of an earlier client must not count for a later one. */
static void stale_methods_do_not_count(void **state)
{
	struct socks s;
	size_t at = 0;

	(void)state;
	memset(&s, 0xA5, sizeof(s));
	socks_init(&s);
	assert_int_equal(feed(&s, (const uint8_t *)"\5\1\2", 3, &at, 1),
			 SOCKS_REJECT);
}

static void garbage(void **state)
{
	static const char *const first[] = { "GET / HTTP/1.1", "\4\1\0\120",
					     "\26\3\1", "\0\0" };
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(first) / sizeof(*first); i++) {
		struct socks s;
		size_t at = 0;

		socks_init(&s);
		assert_int_equal(feed(&s, (const uint8_t *)first[i], 2, &at,
				      512), SOCKS_GARBAGE);
	}
}

static void garbage_instead_of_a_request(void **state)
{
	struct socks s;

	(void)state;
	assert_int_equal(request(&s, (const uint8_t *)"\4\1\0\1", 4),
			 SOCKS_GARBAGE);
}

static void more_than_was_asked_for(void **state)
{
	struct socks s;

	(void)state;
	socks_init(&s);
	assert_int_equal(socks_take(&s, greeting, 3), SOCKS_GARBAGE);
	assert_int_equal(socks_need(&s), 0);
}

/* Whatever the cuts, the same verdicts; and never a byte behind the request. */
static void any_cut_reads_alike(void **state)
{
	uint8_t data[sizeof(greeting) + sizeof(to_name) + 100];
	size_t step;

	(void)state;
	memset(data, 'D', sizeof(data));
	memcpy(data, greeting, sizeof(greeting));
	memcpy(data + sizeof(greeting), to_name, sizeof(to_name));
	for (step = 1; step < sizeof(data); step++) {
		struct socks s;
		size_t at = 0;

		socks_init(&s);
		assert_int_equal(feed(&s, data, sizeof(data), &at, step),
				 SOCKS_SAY);
		assert_int_equal(at, sizeof(greeting));
		assert_int_equal(feed(&s, data, sizeof(data), &at, step),
				 SOCKS_REQUEST);
		assert_int_equal(at, sizeof(greeting) + sizeof(to_name));
		assert_int_equal(socks_need(&s), 0);
		assert_to(&s, DESTINATION_NAME, "example:80");
	}
}

/* Nothing else is waited for: a client says 519 bytes at most. */
static void any_bytes_come_to_an_end(void **state)
{
	struct random random;
	int round;

	(void)state;
	random_begin(&random, "any_bytes_come_to_an_end");
	for (round = 0; round < 20000; round++) {
		enum socks_verdict v = SOCKS_SAY;
		uint8_t data[600];
		struct socks s;
		size_t at = 0, i;

		for (i = 0; i < sizeof(data); i++)
			data[i] = (uint8_t)random_below(&random, 6);
		data[0] = 5;
		socks_init(&s);
		while (v == SOCKS_SAY)
			v = feed(&s, data, sizeof(data), &at,
				 random_range(&random, 1, 300));
		assert_int_not_equal(v, SOCKS_MORE);
		assert_true(at <= 2 + 255 + 4 + 1 + 255 + 2);
	}
}

static void answers(void **state)
{
	struct socks s;

	(void)state;
	assert_int_equal(request(&s, to_ipv4, sizeof(to_ipv4)), SOCKS_REQUEST);
	socks_answer(&s, SOCKS_SUCCEEDED);
	assert_int_equal(s.out_len, 10);
	assert_memory_equal(s.out, "\5\0\0\1\0\0\0\0\0\0", 10);
	socks_answer(&s, SOCKS_NETWORK_UNREACHABLE);
	assert_memory_equal(s.out, "\5\3\0\1\0\0\0\0\0\0", 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connect_to_an_address),
		cmocka_unit_test(connect_to_a_name),
		cmocka_unit_test(the_longest_name),
		cmocka_unit_test(names_that_are_none),
		cmocka_unit_test(connect_to_ipv6),
		cmocka_unit_test(what_rp_says_in_socks_words),
		cmocka_unit_test(only_two_commands_are_served),
		cmocka_unit_test(associate),
		cmocka_unit_test(grants),
		cmocka_unit_test(unknown_address_types),
		cmocka_unit_test(without_a_method_of_ours),
		cmocka_unit_test(our_method_anywhere_in_the_list),
		cmocka_unit_test(stale_methods_do_not_count),
		cmocka_unit_test(garbage),
		cmocka_unit_test(garbage_instead_of_a_request),
		cmocka_unit_test(more_than_was_asked_for),
		cmocka_unit_test(any_cut_reads_alike),
		cmocka_unit_test(any_bytes_come_to_an_end),
		cmocka_unit_test(answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
