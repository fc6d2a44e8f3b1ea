/* SPDX-License-Identifier: MIT */
/*
 * Writes tests/vectors/vectors.json to stdout: messages made by the encoders
 * in mux/, and their fields as mux/ reads them back. `make vectors` runs it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum direction { UP, DOWN };

static int written;		/* vectors so far, for the commas */

static void begin(const char *name, enum direction dir, const uint8_t *bytes,
		  size_t n)
{
	printf("%s\n    {\"name\": \"%s\", \"direction\": \"%s\"",
	       written++ ? "," : "", name, dir == UP ? "up" : "down");
	print_hex("hex", bytes, n);
	printf(",\n     ");
}

static const char *ext_error(enum wire_ext_result result)
{
	static const char *const text[] = {
		[WIRE_EXT_SYN] = "syn",
		[WIRE_EXT_UNKNOWN] = "unknown type",
		[WIRE_EXT_SHORT] = "short body",
		[WIRE_EXT_BAD_ID] = "connection id",
		[WIRE_EXT_BAD_REASON] = "reason",
		[WIRE_EXT_WRONG_WAY] = "direction",
		[WIRE_EXT_BAD_PIPE] = "pipe",
		[WIRE_EXT_BAD_PROTOCOL] = "protocol",
		[WIRE_EXT_BAD_ADDRESS] = "address",
	};

	return text[result];
}

static const char *scope(enum wire_ext_result result)
{
	static const char *const text[] = {
		[WIRE_SCOPE_MESSAGE] = "message",
		[WIRE_SCOPE_CONNECTION] = "connection",
		[WIRE_SCOPE_PIPE] = "pipe",
		[WIRE_SCOPE_SESSION] = "session",
	};

	return text[wire_ext_scope(result)];
}

static void print_error(const char *error)
{
	printf("\"error\": \"%s\"}", error);
}

/* One vector: what mux/ makes of @bytes as a message of the baseline. */
static void baseline(const char *name, enum direction dir, const uint8_t *bytes,
		     size_t n)
{
	struct wire_msg msg;
	enum wire_error err = WIRE_BAD_LENGTH;

	begin(name, dir, bytes, n);
	if (wire_read(bytes, n, &msg) >= 0)
		err = wire_check(&msg, dir == DOWN);
	if (err == WIRE_SYN_DOWNLINK)
		print_error("direction");
	else if (err)
		print_error(wire_error_field(err));
	else
		print_baseline(&msg);
}

/* One vector: what mux/ makes of @bytes on a pipe of the extension. */
static void extension(const char *name, enum direction dir,
		      const uint8_t *bytes, size_t n)
{
	enum wire_ext_result result;
	struct wire_msg msg;
	struct wire_ext ext;

	begin(name, dir, bytes, n);
	wire_read(bytes, n, &msg);
	result = wire_ext_get(&msg, dir == DOWN, &ext);
	printf("\"counts\": %s, ", wire_ext_counts(&msg) ? "true" : "false");
	if (result != WIRE_EXT_OK)
		printf("\"error\": \"%s\", \"ends\": \"%s\"}",
		       ext_error(result), scope(result));
	else if (ext.type == WIRE_EXT_NONE)
		print_baseline(&msg);
	else
		print_ext(&ext);
}

static void data(const char *name, enum direction dir, uint16_t id,
		 uint32_t number, size_t payload)
{
	uint8_t buf[WIRE_MESSAGE_MAX];

	wire_put_data(buf, id, number, payload);
	for (size_t i = 0; i < payload; i++)
		buf[WIRE_HEADER + i] = (uint8_t)(i * 7 + 'A');
	baseline(name, dir, buf, WIRE_HEADER + payload);
}

static void syn(const char *name, uint16_t id, uint8_t a, uint8_t b, uint8_t c,
		uint8_t d, uint16_t port)
{
	const uint8_t addr[4] = { a, b, c, d };
	uint8_t buf[WIRE_SYN_SIZE];

	baseline(name, UP, buf, wire_put_syn(buf, id, addr, port));
}

static void fin(const char *name, enum direction dir, uint16_t id,
		uint32_t number, enum wire_reason reason)
{
	uint8_t buf[WIRE_FIN_SIZE];

	baseline(name, dir, buf, wire_put_fin(buf, id, number, reason));
}

static void baseline_messages(void)
{
	syn("syn", 1, 192, 0, 2, 33, 443);
	syn("syn-largest-lp-id", WIRE_ID_LP_MAX, 10, 20, 30, 40, 80);
	syn("syn-largest-id", WIRE_ID_MAX, 255, 255, 255, 255, 65535);
	syn("syn-port-low-byte", 2, 1, 2, 3, 4, 0x00FF);
	syn("syn-port-high-byte", 2, 1, 2, 3, 4, 0xFF00);
	syn("syn-port-0", 258, 127, 0, 0, 1, 0);
	data("data-1-byte", UP, 1, 1, 1);
	data("data-2-bytes-downlink-first", DOWN, 1, 0, 2);
	data("data-every-header-byte-differs", UP, 0x0102, 0x03040506, 16);
	data("data-248-bytes", UP, 1, 2, 248);
	data("data-4095-bytes", UP, 1, 3, 4095);
	data("data-4096-bytes", DOWN, WIRE_ID_MAX, 1, 4096);
	data("data-last-number", UP, 1, UINT32_MAX, 3);
	data("data-number-wrapped", UP, 1, 0, 3);
	data("data-number-2-to-31", DOWN, 1, 1u << 31, 3);
	fin("fin-0x88", UP, 1, 5, WIRE_REASON_FIN);
	fin("fin-0x99", DOWN, 1, 0, WIRE_REASON_RST);
	fin("fin-largest", DOWN, WIRE_ID_MAX, UINT32_MAX, WIRE_REASON_FIN);
}

/* A sound message with some bytes put differently. */
static void with_length(const char *name, uint16_t length)
{
	uint8_t buf[WIRE_HEADER + 8] = { 0 };

	wire_put_data(buf, 1, 1, 8);
	buf[6] = (uint8_t)length;
	buf[7] = (uint8_t)(length >> 8);
	baseline(name, UP, buf, sizeof(buf));
}

static void baseline_errors(void)
{
	static const uint8_t addr[4] = { 192, 0, 2, 1 };
	uint8_t buf[WIRE_SYN_SIZE];

	with_length("length-0", 0);
	with_length("length-7", 7);
	with_length("length-8", 8);
	with_length("length-4105", 4105);
	with_length("length-0x8000", 0x8000);
	with_length("length-0xfffd", 0xFFFD);
	data("data-id-0", UP, 0, 1, 3);
	syn("syn-id-0", 0, 192, 0, 2, 1, 80);
	fin("fin-id-0", DOWN, 0, 1, WIRE_REASON_FIN);
	wire_put_syn(buf, 3, addr, 80);
	baseline("syn-downlink", DOWN, buf, sizeof(buf));
	buf[2] = 1;
	baseline("syn-number-1", UP, buf, sizeof(buf));
	fin("fin-reason-0", UP, 1, 5, 0);
	fin("fin-reason-0x77", UP, 1, 5, WIRE_REASON_NO_MORE);
	fin("fin-reason-0xff", DOWN, 1, 5, 0xFF);
}

#define SESSION { 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, \
		  0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF }
#define DISTINCT_U32 0xA4A3A2A1u
#define DISTINCT_U64 0xB8B7B6B5B4B3B2B1u
#define OTHER_U64 0xC8C7C6C5C4C3C2C1u
#define LONG_NAME "a-name-of-sixty-three-characters-which-is-what-one-label-may-be"
#define TO_NONE { DESTINATION_NONE, 0, 0, { 0 } }
#define TO_IPV4 { DESTINATION_IPV4, 4, 443, { 192, 0, 2, 33 } }
#define TO_IPV6 { DESTINATION_IPV6, 16, 65535, \
		  { 0x20, 0x01, 0x0D, 0xB8, [15] = 1 } }
#define AT_LISTENER { DESTINATION_LISTENER, 6, 4711, \
		      { 0x03, 0x02, 192, 0, 2, 9 } }
#define AT_LISTENER_IPV6 { DESTINATION_LISTENER, 18, 4711, \
			   { 0, 0, 0x20, 0x01, 0x0D, 0xB8, [17] = 9 } }
#define TO_NAME { DESTINATION_NAME, 11, 80, "example.org" }
#define TO_LONGEST { DESTINATION_NAME, 255, 0x00FF, LONG_NAME "." LONG_NAME "." \
		     LONG_NAME "." LONG_NAME }

static const struct {
	const char *name;
	enum direction dir;
	struct wire_ext ext;
} ext_messages[] = {
	{ "hello", UP, { .type = WIRE_HELLO, .hello = {
		1, 0x5F, SESSION, 2, 4, 0, 0, 0, 0, 64 << 20 } } },
	{ "hello-redial", UP, { .type = WIRE_HELLO, .hello = {
		1, DISTINCT_U32, SESSION, 63, 64, 0x04030201, 5,
		WIRE_PATH_FLAG_BACKUP, 0x0201, 0x08070605 } } },
	{ "hello-largest", UP, { .type = WIRE_HELLO, .hello = {
		255, UINT32_MAX, SESSION, 63, 64, UINT32_MAX, 255, 255, 65535,
		UINT32_MAX } } },
	{ "welcome-new", DOWN, { .type = WIRE_WELCOME, .welcome = {
		1, 0x5F, WIRE_WELCOME_NEW, 1024, 64 << 10, 1 << 20, 120,
		64 << 20 } } },
	{ "welcome-resumed", DOWN, { .type = WIRE_WELCOME, .welcome = {
		1, DISTINCT_U32, WIRE_WELCOME_RESUMED, 0x0201, 0x0C0B0A09,
		0x100F0E0D, 0x1211, 0x08070605 } } },
	{ "welcome-unknown", DOWN, { .type = WIRE_WELCOME, .welcome = {
		1, 0, WIRE_WELCOME_UNKNOWN, 0, 0, 0, 0, 0 } } },
	{ "welcome-refused", DOWN, { .type = WIRE_WELCOME, .welcome = {
		2, 0, WIRE_WELCOME_REFUSED, 65535, UINT32_MAX, UINT32_MAX,
		65535, UINT32_MAX } } },
	{ "welcome-busy", DOWN, { .type = WIRE_WELCOME, .welcome = {
		1, 0x5F, WIRE_WELCOME_BUSY, 0, 0, 0, 0, 0 } } },
	{ "synack-connected", DOWN, { .type = WIRE_SYNACK, .number = 0,
		.synack = { 1, WIRE_SYNACK_CONNECTED, 1 << 16 } } },
	{ "synack-refused", DOWN, { .type = WIRE_SYNACK,
		.number = DISTINCT_U32,
		.synack = { 0x0102, WIRE_SYNACK_REFUSED, DISTINCT_U64 } } },
	{ "synack-of-lp", UP, { .type = WIRE_SYNACK, .number = UINT32_MAX,
		.synack = { WIRE_ID_MAX, 255, UINT64_MAX } } },
	{ "window", UP, { .type = WIRE_WINDOW, .window = {
		0x0102, DISTINCT_U64 } } },
	{ "window-largest", DOWN, { .type = WIRE_WINDOW, .window = {
		WIRE_ID_MAX, UINT64_MAX } } },
	{ "ping", UP, { .type = WIRE_PING, .ping = {
		DISTINCT_U64, OTHER_U64, 0 } } },
	{ "pong", DOWN, { .type = WIRE_PONG, .ping = {
		DISTINCT_U64, OTHER_U64, 0xD8D7D6D5D4D3D2D1u } } },
	{ "goodbye", UP, { .type = WIRE_GOODBYE, .goodbye = {
		WIRE_GOODBYE_SHUTDOWN } } },
	{ "goodbye-largest", DOWN, { .type = WIRE_GOODBYE, .goodbye = {
		255 } } },
	{ "hint", UP, { .type = WIRE_HINT, .hint = {
		0x0102, 3, DISTINCT_U64, WIRE_HINT_COPIES | 2 } } },
	{ "hint-smallest", DOWN, { .type = WIRE_HINT, .hint = {
		1, 0, 0, 0 } } },
	{ "ack", DOWN, { .type = WIRE_ACK, .ack = {
		OTHER_U64, DISTINCT_U32, 2,
		{ { 5, 0x04030201, DISTINCT_U64 }, { 0, 0, 7 } } } } },
	{ "ack-of-no-pipe", UP, { .type = WIRE_ACK, .ack = { .pipes = 0 } } },
	{ "ack-of-64-pipes", UP, { .type = WIRE_ACK, .ack = {
		UINT64_MAX, UINT32_MAX, 64,
		{ [63] = { 63, UINT32_MAX, UINT64_MAX } } } } },
	{ "open-ipv4", UP, { .type = WIRE_OPEN, .open = {
		1, WIRE_PROTOCOL_TCP, TO_IPV4, 64 << 10 } } },
	{ "open-ipv6", UP, { .type = WIRE_OPEN, .number = DISTINCT_U32,
		.open = { 0x0102, WIRE_PROTOCOL_TCP, TO_IPV6, 0x08070605 } } },
	{ "open-name", UP, { .type = WIRE_OPEN, .number = UINT32_MAX, .open = {
		2, WIRE_PROTOCOL_TCP, TO_NAME, UINT32_MAX } } },
	{ "open-name-1-byte", UP, { .type = WIRE_OPEN, .open = {
		WIRE_ID_LP_MAX, WIRE_PROTOCOL_TCP,
		{ DESTINATION_NAME, 1, 0, "x" }, 0 } } },
	{ "open-name-255-bytes", UP, { .type = WIRE_OPEN, .open = {
		3, WIRE_PROTOCOL_TCP, TO_LONGEST, 1 } } },
	{ "open-of-rp", DOWN, { .type = WIRE_OPEN, .open = {
		WIRE_ID_LP_MAX + 1, WIRE_PROTOCOL_TCP, TO_IPV4, 1 } } },
	{ "open-of-listener", DOWN, { .type = WIRE_OPEN, .open = {
		WIRE_ID_LP_MAX + 1, WIRE_PROTOCOL_TCP, AT_LISTENER, 1 << 16 } } },
	{ "open-of-listener-ipv6", DOWN, { .type = WIRE_OPEN, .number = 9,
		.open = { WIRE_ID_MAX, WIRE_PROTOCOL_TCP, AT_LISTENER_IPV6,
			  0x08070605 } } },
	{ "open-udp", UP, { .type = WIRE_OPEN, .number = 4, .open = {
		4, WIRE_PROTOCOL_UDP, TO_IPV4, 0 } } },
	{ "open-udp-to-many", UP, { .type = WIRE_OPEN, .number = 1, .open = {
		5, WIRE_PROTOCOL_UDP, TO_NONE, 0 } } },
	{ "datagram", UP, { .type = WIRE_DATAGRAM, .datagram = {
		4, TO_NONE, (const uint8_t *)"hi", 2 } } },
	{ "datagram-empty", UP, { .type = WIRE_DATAGRAM, .datagram = {
		4, TO_NONE, NULL, 0 } } },
	{ "datagram-ipv4", DOWN, { .type = WIRE_DATAGRAM, .datagram = {
		5, TO_IPV4, (const uint8_t *)"answer", 6 } } },
	{ "datagram-ipv6", DOWN, { .type = WIRE_DATAGRAM, .datagram = {
		WIRE_ID_MAX, TO_IPV6, (const uint8_t *)"x", 1 } } },
	{ "datagram-name", UP, { .type = WIRE_DATAGRAM, .datagram = {
		5, TO_NAME, (const uint8_t *)"question", 8 } } },
	{ "listen", UP, { .type = WIRE_LISTEN, .listen = {
		0x0203, WIRE_PROTOCOL_TCP, TO_IPV4 } } },
	{ "listen-ipv6", UP, { .type = WIRE_LISTEN, .listen = {
		0, WIRE_PROTOCOL_TCP, TO_IPV6 } } },
	{ "listening", DOWN, { .type = WIRE_LISTENING, .listening = {
		0x0203, WIRE_LISTENING_YES, 443 } } },
	{ "listening-denied", DOWN, { .type = WIRE_LISTENING, .listening = {
		0, WIRE_LISTENING_DENIED, 0 } } },
	{ "listening-largest", DOWN, { .type = WIRE_LISTENING, .listening = {
		65535, 255, 65535 } } },
	{ "path", UP, { .type = WIRE_PATH, .path = {
		5, WIRE_PATH_BACKUP, 0x0201, 0x08070605 } } },
	{ "path-largest", UP, { .type = WIRE_PATH, .path = {
		255, 255, 65535, UINT32_MAX } } },
	{ "datagram-whole", UP, { .type = WIRE_DATAGRAM, .datagram = {
		4, { .kind = DESTINATION_NONE, .port = WIRE_DATAGRAM_WHOLE },
		(const uint8_t *)"hi", 2 } } },
	{ "too-big", DOWN, { .type = WIRE_TOO_BIG, .too_big = {
		0x0405, 1400 } } },
};

/* The message of the table's row @i, which must have an encoding. */
static size_t put_row(uint8_t *buf, size_t i)
{
	size_t size = wire_ext_put(buf, &ext_messages[i].ext);

	if (!size)
		abort();
	return size;
}

static void ext_connection(const char *name, enum direction dir, uint16_t id,
			   uint32_t number, enum wire_reason reason)
{
	uint8_t buf[WIRE_HEADER + 2] = { [WIRE_HEADER] = 'h', 'i' };

	size_t size = reason ? wire_put_fin(buf, id, number, reason)
			     : wire_put_data(buf, id, number, 2) + 2;

	extension(name, dir, buf, size);
}

static void extension_messages(void)
{
	uint8_t buf[WIRE_MESSAGE_MAX];

	for (size_t i = 0; i < COUNT(ext_messages); i++)
		extension(ext_messages[i].name, ext_messages[i].dir, buf,
			  put_row(buf, i));
	ext_connection("ext-data", UP, 1, DISTINCT_U32, 0);
	ext_connection("ext-data-of-rp-s-id", DOWN, WIRE_ID_MAX, 1, 0);
	ext_connection("ext-fin-no-more", UP, 1, 7, WIRE_REASON_NO_MORE);
	ext_connection("ext-fin-reset", DOWN, 1, UINT32_MAX, WIRE_REASON_RST);
}

/*
 * Each message with @more bytes behind its fields, or less of them. A DATAGRAM
 * has neither: all behind its head is payload.
 */
static void resized(const char *suffix, int more)
{
	for (size_t i = 0; i < COUNT(ext_messages); i++) {
		const struct wire_ext *ext = &ext_messages[i].ext;
		uint8_t buf[WIRE_MESSAGE_MAX];
		size_t size = put_row(buf, i);
		uint32_t number = ext->number;
		char name[80];

		if (ext->type == WIRE_DATAGRAM)
			continue;
		if (more > 0)
			memset(buf + size, 0xEE, (size_t)more);
		size += (size_t)more;
		wire_put_data(buf, 0, number, size - WIRE_HEADER);
		snprintf(name, sizeof(name), "%s-%s", ext_messages[i].name,
			 suffix);
		extension(name, ext_messages[i].dir, buf, size);
	}
}

static void ext_bytes(const char *name, enum direction dir, const char *body,
		      size_t n)
{
	uint8_t buf[WIRE_MESSAGE_MAX];

	wire_put_data(buf, 0, 0, n);
	memcpy(buf + WIRE_HEADER, body, n);
	extension(name, dir, buf, WIRE_HEADER + n);
}

#define EXT_BYTES(name, dir, body) ext_bytes(name, dir, body, sizeof(body) - 1)
#define OPEN_1 "\x0B\x01\x00"
#define PORT_AND_WINDOW "\x50\x00\x00\x00\x01\x00"

static void bad_types_and_ids(void)
{
	EXT_BYTES("hello-type-alone", UP, "\x01");
	EXT_BYTES("ack-entries-beyond", UP,
		  "\x09" "--time--" "held" "\x02" "\x00" "inca" "received");
	EXT_BYTES("datagram-head-short", UP, "\x0C\x04\x00\x00\x00\x00");
	EXT_BYTES("type-0", UP, "\x00\x01\x02");
	EXT_BYTES("type-10-was-release", DOWN, "\x0A\x01\x00");
	EXT_BYTES("listen-type-and-listener", UP, "\x0D\x01\x00");
	EXT_BYTES("listening-type-and-listener", DOWN, "\x0E\x01\x00");
	EXT_BYTES("type-16", DOWN, "\x10");
	EXT_BYTES("type-255", DOWN, "\xFF\xFF\xFF\xFF\xFF");
	EXT_BYTES("synack-id-0", DOWN, "\x03\x00\x00\x00" "-offset-");
	EXT_BYTES("window-id-0", DOWN, "\x04\x00\x00" "-offset-");
	EXT_BYTES("hint-id-0", DOWN, "\x08\x00\x00\x01" "-remain-" "\x00");
	EXT_BYTES("datagram-id-0", UP, "\x0C\x00\x00\x00\x00\x00\x00x");
	EXT_BYTES("open-id-0", UP,
		  "\x0B\x00\x00\x06\x04\x04xxxx" PORT_AND_WINDOW);
}

static void bad_opens(void)
{
	EXT_BYTES("open-protocol-1", UP, OPEN_1 "\x01\x04\x04xxxx"
		  PORT_AND_WINDOW);
	EXT_BYTES("open-kind-5", UP, OPEN_1 "\x06\x05\x04xxxx"
		  PORT_AND_WINDOW);
	EXT_BYTES("open-tcp-to-none", UP, OPEN_1 "\x06\x00\x00"
		  PORT_AND_WINDOW);
	EXT_BYTES("open-udp-none-of-4", UP, OPEN_1 "\x11\x00\x04xxxx"
		  PORT_AND_WINDOW);
	EXT_BYTES("open-ipv4-of-5", UP, OPEN_1 "\x06\x04\x05xxxxx"
		  PORT_AND_WINDOW);
	EXT_BYTES("open-ipv6-of-4", UP, OPEN_1 "\x06\x06\x04xxxx"
		  PORT_AND_WINDOW);
	EXT_BYTES("open-name-empty", UP, OPEN_1 "\x06n\x00" PORT_AND_WINDOW);
	EXT_BYTES("open-name-nul", UP, OPEN_1 "\x06n\x03x\x00x"
		  PORT_AND_WINDOW);
	EXT_BYTES("open-of-lp-by-listener", UP, OPEN_1 "\x06L\x06xxxxxx"
		  PORT_AND_WINDOW);
	EXT_BYTES("open-udp-by-listener", DOWN,
		  "\x0B\x00\x80\x11L\x06xxxxxx" PORT_AND_WINDOW);
	EXT_BYTES("open-listener-of-5", DOWN,
		  "\x0B\x00\x80\x06L\x05xxxxx" PORT_AND_WINDOW);
	EXT_BYTES("open-length-beyond", UP, OPEN_1 "\x06n\xFFxx"
		  PORT_AND_WINDOW);
	EXT_BYTES("datagram-ipv4-of-1", UP, "\x0C\x04\x00\x04\x01x\x50\x00x");
}

/* The row of that name, from the other side. */
static void wrong_way(const char *name)
{
	uint8_t buf[WIRE_MESSAGE_MAX];
	char text[80];
	size_t i = 0;

	while (strcmp(ext_messages[i].name, name))
		i++;
	snprintf(text, sizeof(text), "%s-wrong-way", name);
	extension(text, ext_messages[i].dir == UP ? DOWN : UP, buf,
		  put_row(buf, i));
}

/* A sound HELLO with another pipe index and count. */
static void hello_of(const char *name, uint8_t index, uint8_t count)
{
	uint8_t buf[WIRE_MESSAGE_MAX];
	size_t size = put_row(buf, 0);

	buf[WIRE_HEADER + 22] = index;
	buf[WIRE_HEADER + 23] = count;
	extension(name, UP, buf, size);
}

static void extension_errors(void)
{
	static const uint8_t addr[4] = { 192, 0, 2, 1 };
	uint8_t buf[WIRE_SYN_SIZE];

	resized("short", -1);
	bad_types_and_ids();
	bad_opens();
	wrong_way("hello");
	wrong_way("welcome-new");
	wrong_way("synack-connected");
	wrong_way("synack-of-lp");
	wrong_way("open-name");
	wrong_way("open-of-rp");
	wrong_way("open-of-listener");
	wrong_way("listen");
	wrong_way("listening");
	wrong_way("path");
	hello_of("hello-of-no-pipes", 0, 0);
	hello_of("hello-index-is-count", 4, 4);
	hello_of("hello-of-65-pipes", 0, 65);
	extension("ext-syn", UP, buf, wire_put_syn(buf, 1, addr, 80));
	extension("ext-syn-id-0", UP, buf, wire_put_syn(buf, 0, addr, 80));
	ext_connection("ext-fin-id-0", UP, 0, 0, WIRE_REASON_RST);
	ext_connection("ext-fin-0x88", UP, 1, 7, WIRE_REASON_FIN);
	ext_connection("ext-fin-0xff", DOWN, 1, 7, 0xFF);
}

static void section(const char *name, void (*vectors)(void), const char *end)
{
	written = 0;
	printf("  \"%s\": [", name);
	vectors();
	printf("\n  ]%s\n", end);
}

static void extension_longer(void)
{
	resized("with-future-fields", 3);
}

/* One vector: what mux/ makes of @bytes where both ends have feature 0x800. */
static void large(const char *name, enum direction dir, const uint8_t *bytes, size_t n)
{
	struct wire_msg msg;

	begin(name, dir, bytes, n);
	if (wire_read_up_to(bytes, n, WIRE_LARGE_MAX, &msg) < 0)
		printf("\"error\": \"length\", \"ends\": \"session\"}");
	else
		print_baseline(&msg);
}

static void extension_large(void)
{
	static uint8_t buf[WIRE_LARGE_MAX];

	wire_put_data(buf, 1, 1, WIRE_LARGE_PAYLOAD);
	for (size_t i = 0; i < WIRE_LARGE_PAYLOAD; i++)
		buf[WIRE_HEADER + i] = (uint8_t)(i * 7 + 'A');
	large("large-data-16384-bytes", DOWN, buf, sizeof(buf));
}

/* The length of one is judged by its header. */
static void extension_large_errors(void)
{
	uint8_t buf[WIRE_HEADER];

	wire_put_data(buf, 1, 1, WIRE_LARGE_PAYLOAD + 1);
	large("large-length-16393", UP, buf, sizeof(buf));
	wire_put_data(buf, 0, 0, WIRE_PAYLOAD_MAX + 1);
	large("large-length-4105-id-0", UP, buf, sizeof(buf));
}

int main(void)
{
	printf("{\n  \"format\": 1,\n");
	section("baseline", baseline_messages, ",");
	section("baseline_errors", baseline_errors, ",");
	section("extension", extension_messages, ",");
	section("extension_longer", extension_longer, ",");
	section("extension_errors", extension_errors, ",");
	section("extension_large", extension_large, ",");
	section("extension_large_errors", extension_large_errors, "");
	printf("}\n");
	return 0;
}
