/* SPDX-License-Identifier: MIT */
/*
 * Writes tests/vectors/vectors.json to stdout: messages made by the encoders
 * in mux/, and their fields as mux/ reads them back. From the top:
 *
 *	cc -I. -o build/generate tests/vectors/generate.c mux/wire*.c
 *	build/generate > tests/vectors/vectors.json
 */
#include <stdio.h>
#include <string.h>

#include "mux/wire/wire.h"
#include "mux/wire/wire_ext.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum direction { UP, DOWN };

static int written;		/* vectors so far, for the commas */

static void print_hex(const char *name, const uint8_t *bytes, size_t n)
{
	printf(", \"%s\": \"", name);
	for (size_t i = 0; i < n; i++)
		printf("%02x", bytes[i]);
	printf("\"");
}

static void print_number(const char *name, uint64_t value)
{
	printf(", \"%s\": %llu", name, (unsigned long long)value);
}

static void begin(const char *name, enum direction dir, const uint8_t *bytes,
		  size_t n)
{
	printf("%s\n    {\"name\": \"%s\", \"direction\": \"%s\"",
	       written++ ? "," : "", name, dir == UP ? "up" : "down");
	print_hex("hex", bytes, n);
	printf(",\n     ");
}

static void print_open(const struct wire_open *m)
{
	print_number("connection", m->id);
	print_number("kind", m->kind);
	print_hex("address", m->address, m->address_len);
	print_number("port", m->port);
}

static void print_hello(const struct wire_hello *m)
{
	print_number("version", m->version);
	print_number("features", m->features);
	print_hex("session", m->session, sizeof(m->session));
	print_number("pipe", m->pipe);
	print_number("pipes", m->pipes);
	print_number("incarnation", m->incarnation);
	print_number("received", m->received);
	print_number("conn_window", m->conn_window);
	print_number("session_window", m->session_window);
}

static void print_welcome(const struct wire_welcome *m)
{
	print_number("version", m->version);
	print_number("features", m->features);
	print_number("status", m->status);
	print_number("received", m->received);
	print_number("conn_window", m->conn_window);
	print_number("session_window", m->session_window);
	print_number("conn_early", m->conn_early);
	print_number("session_early", m->session_early);
}

static void print_ack(const struct wire_ack *m)
{
	print_number("pipe", m->pipe);
	print_number("incarnation", m->incarnation);
	print_number("received", m->received);
	print_number("received_us", m->received_us);
	print_number("reorder_bytes", m->reorder_bytes);
}

static void print_ping(const struct wire_ext *ext)
{
	print_number("token", ext->ping.token);
	print_number("sent_us", ext->ping.sent_us);
	if (ext->type == WIRE_PONG)
		print_number("received_us", ext->ping.received_us);
}

static void print_ext(const struct wire_ext *ext)
{
	printf("\"fields\": {\"type\": \"%s\"", wire_ext_name(ext->type));
	switch (ext->type) {
	case WIRE_HELLO:
		print_hello(&ext->hello);
		break;
	case WIRE_WELCOME:
		print_welcome(&ext->welcome);
		break;
	case WIRE_SYNACK:
		print_number("connection", ext->synack.id);
		print_number("result", ext->synack.result);
		break;
	case WIRE_WINDOW:
		print_number("connection", ext->window.id);
		print_number("offset", ext->window.offset);
		break;
	case WIRE_PING:
	case WIRE_PONG:
		print_ping(ext);
		break;
	case WIRE_GOODBYE:
		print_number("reason", ext->goodbye.reason);
		break;
	case WIRE_HINT:
		print_number("connection", ext->hint.id);
		print_number("priority", ext->hint.priority);
		print_number("remaining", ext->hint.remaining);
		break;
	case WIRE_ACK:
		print_ack(&ext->ack);
		break;
	case WIRE_RELEASE:
		print_number("connection", ext->release.id);
		break;
	case WIRE_OPEN:
		print_open(&ext->open);
		break;
	}
	printf("}}");
}

static void print_baseline(const struct wire_msg *msg)
{
	static const char *const type[] = {
		[WIRE_DATA] = "data", [WIRE_SYN] = "syn", [WIRE_FIN] = "fin",
	};
	uint8_t a[4];
	uint16_t port;

	printf("\"fields\": {\"type\": \"%s\"", type[msg->type]);
	print_number("connection", msg->id);
	print_number("number", msg->number);
	switch (msg->type) {
	case WIRE_DATA:
		print_hex("payload", msg->body, msg->body_len);
		break;
	case WIRE_SYN:
		wire_get_syn(msg->body, a, &port);
		printf(", \"address\": \"%d.%d.%d.%d\"", a[0], a[1], a[2], a[3]);
		print_number("port", port);
		break;
	case WIRE_FIN:
		print_number("reason", msg->body[0]);
		break;
	}
	printf("}}");
}

static const char *ext_error(enum wire_ext_result result)
{
	static const char *const text[] = {
		[WIRE_EXT_UNKNOWN] = "unknown type",
		[WIRE_EXT_SHORT] = "short body",
		[WIRE_EXT_BAD_ID] = "connection id",
		[WIRE_EXT_BAD_ADDRESS] = "address",
	};

	return text[result];
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

/* One vector: what mux/ makes of @bytes as a message of the extension. */
static void extension(const char *name, enum direction dir,
		      const uint8_t *bytes, size_t n)
{
	enum wire_ext_result result;
	struct wire_msg msg;
	struct wire_ext ext;

	begin(name, dir, bytes, n);
	wire_read(bytes, n, &msg);
	result = wire_ext_get(&msg, &ext);
	if (result == WIRE_EXT_OK)
		print_ext(&ext);
	else
		print_error(ext_error(result));
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
#define LONG_NAME "a-name-of-sixty-three-characters-which-is-what-one-label-may-be"

static const struct {
	const char *name;
	enum direction dir;
	struct wire_ext ext;
} ext_messages[] = {
	{ "hello", UP, { .type = WIRE_HELLO, .hello = {
		1, 0x7F, SESSION, 2, 4, 0, 0, 1 << 20, 16 << 20 } } },
	{ "hello-redial", UP, { .type = WIRE_HELLO, .hello = {
		1, DISTINCT_U32, SESSION, 63, 64, 0x0102, DISTINCT_U64,
		0x04030201, 0x08070605 } } },
	{ "hello-largest", UP, { .type = WIRE_HELLO, .hello = {
		255, UINT32_MAX, SESSION, 255, 255, 65535, UINT64_MAX,
		UINT32_MAX, UINT32_MAX } } },
	{ "welcome-new", DOWN, { .type = WIRE_WELCOME, .welcome = {
		1, 0x41, WIRE_WELCOME_NEW, 0, 1 << 20, 16 << 20,
		64 << 10, 1 << 20 } } },
	{ "welcome-resumed", DOWN, { .type = WIRE_WELCOME, .welcome = {
		1, DISTINCT_U32, WIRE_WELCOME_RESUMED, DISTINCT_U64,
		0x04030201, 0x08070605, 0x0C0B0A09, 0x100F0E0D } } },
	{ "welcome-unknown", DOWN, { .type = WIRE_WELCOME, .welcome = {
		1, 0, WIRE_WELCOME_UNKNOWN, 0, 0, 0, 0, 0 } } },
	{ "welcome-refused", DOWN, { .type = WIRE_WELCOME, .welcome = {
		2, 0, WIRE_WELCOME_REFUSED, UINT64_MAX, UINT32_MAX, UINT32_MAX,
		UINT32_MAX, UINT32_MAX } } },
	{ "synack-connected", DOWN, { .type = WIRE_SYNACK, .synack = {
		1, WIRE_SYNACK_CONNECTED } } },
	{ "synack-refused", DOWN, { .type = WIRE_SYNACK, .synack = {
		0x0102, WIRE_SYNACK_REFUSED } } },
	{ "synack-largest", DOWN, { .type = WIRE_SYNACK, .synack = {
		WIRE_ID_MAX, 255 } } },
	{ "window-connection", UP, { .type = WIRE_WINDOW, .window = {
		0x0102, DISTINCT_U64 } } },
	{ "window-session", DOWN, { .type = WIRE_WINDOW, .window = {
		0, UINT64_MAX } } },
	{ "ping", UP, { .type = WIRE_PING, .ping = {
		DISTINCT_U64, 0xC8C7C6C5C4C3C2C1u, 0 } } },
	{ "pong", DOWN, { .type = WIRE_PONG, .ping = {
		DISTINCT_U64, 0xC8C7C6C5C4C3C2C1u, 0xD8D7D6D5D4D3D2D1u } } },
	{ "goodbye", UP, { .type = WIRE_GOODBYE, .goodbye = {
		WIRE_GOODBYE_SHUTDOWN } } },
	{ "goodbye-largest", DOWN, { .type = WIRE_GOODBYE, .goodbye = {
		255 } } },
	{ "hint", UP, { .type = WIRE_HINT, .hint = {
		0x0102, 3, DISTINCT_U64 } } },
	{ "hint-smallest", DOWN, { .type = WIRE_HINT, .hint = { 1, 0, 0 } } },
	{ "ack", DOWN, { .type = WIRE_ACK, .ack = {
		5, 0x0102, DISTINCT_U64, 0xC8C7C6C5C4C3C2C1u,
		DISTINCT_U32 } } },
	{ "ack-smallest", UP, { .type = WIRE_ACK, .ack = { 0, 0, 0, 0, 0 } } },
	{ "release", DOWN, { .type = WIRE_RELEASE, .release = { 0x7FFF } } },
	{ "open-ipv4", UP, { .type = WIRE_OPEN, .open = {
		1, WIRE_OPEN_IPV4, 4, { 192, 0, 2, 33 }, 443 } } },
	{ "open-ipv6", UP, { .type = WIRE_OPEN, .open = {
		0x0102, WIRE_OPEN_IPV6, 16,
		{ 0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 },
		65535 } } },
	{ "open-name", UP, { .type = WIRE_OPEN, .open = {
		2, WIRE_OPEN_NAME, 11, "example.org", 80 } } },
	{ "open-name-1-byte", UP, { .type = WIRE_OPEN, .open = {
		WIRE_ID_MAX, WIRE_OPEN_NAME, 1, "x", 0 } } },
	{ "open-name-255-bytes", UP, { .type = WIRE_OPEN, .open = {
		3, WIRE_OPEN_NAME, 255, LONG_NAME "." LONG_NAME "." LONG_NAME
		"." LONG_NAME, 0x00FF } } },
};

static void extension_messages(void)
{
	uint8_t buf[WIRE_EXT_SIZE_MAX];

	for (size_t i = 0; i < COUNT(ext_messages); i++)
		extension(ext_messages[i].name, ext_messages[i].dir, buf,
			  wire_ext_put(buf, &ext_messages[i].ext));
}

/* Each message with @more bytes behind its fields, or less of them. */
static void resized(const char *suffix, int more)
{
	for (size_t i = 0; i < COUNT(ext_messages); i++) {
		uint8_t buf[WIRE_EXT_SIZE_MAX + 8];
		size_t size = wire_ext_put(buf, &ext_messages[i].ext) +
			      (size_t)more;
		char name[80];

		memset(buf + size - (more > 0 ? more : 0), 0xEE,
		       more > 0 ? (size_t)more : 0);
		wire_put_data(buf, 0, 0, size - WIRE_HEADER);
		snprintf(name, sizeof(name), "%s-%s", ext_messages[i].name,
			 suffix);
		extension(name, ext_messages[i].dir, buf, size);
	}
}

static void ext_bytes(const char *name, enum direction dir, const char *body,
		      size_t n)
{
	uint8_t buf[WIRE_EXT_SIZE_MAX];

	wire_put_data(buf, 0, 0, n);
	memcpy(buf + WIRE_HEADER, body, n);
	extension(name, dir, buf, WIRE_HEADER + n);
}

#define EXT_BYTES(name, dir, body) ext_bytes(name, dir, body, sizeof(body) - 1)

static void extension_errors(void)
{
	resized("short", -1);
	EXT_BYTES("hello-type-alone", UP, "\x01");
	EXT_BYTES("type-0", UP, "\x00\x01\x02");
	EXT_BYTES("type-12", DOWN, "\x0C");
	EXT_BYTES("type-255", DOWN, "\xFF\xFF\xFF\xFF\xFF");
	EXT_BYTES("synack-id-0", DOWN, "\x03\x00\x00\x00");
	EXT_BYTES("release-id-0", DOWN, "\x0A\x00\x00");
	EXT_BYTES("open-kind-5", UP, "\x0B\x01\x00\x05\x04xxxx\x50\x00");
	EXT_BYTES("open-ipv4-of-5", UP, "\x0B\x01\x00\x04\x05xxxxx\x50\x00");
	EXT_BYTES("open-ipv6-of-4", UP, "\x0B\x01\x00\x06\x04xxxx\x50\x00");
	EXT_BYTES("open-name-empty", UP, "\x0B\x01\x00n\x00\x50\x00");
	EXT_BYTES("open-name-nul", UP, "\x0B\x01\x00n\x03x\x00x\x50\x00");
	EXT_BYTES("open-length-beyond", UP, "\x0B\x01\x00n\xFFxx\x50\x00");
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

int main(void)
{
	printf("{\n  \"format\": 1,\n");
	section("baseline", baseline_messages, ",");
	section("baseline_errors", baseline_errors, ",");
	section("extension", extension_messages, ",");
	section("extension_longer", extension_longer, ",");
	section("extension_errors", extension_errors, "");
	printf("}\n");
	return 0;
}
