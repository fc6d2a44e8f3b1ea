/* SPDX-License-Identifier: MIT */
/*
 * The extension's messages: ordinary data messages of connection id 0, whose
 * first body byte is the type and whose fields follow, little-endian. A reader
 * that does not know a type steps over it; one that knows fewer fields than
 * came ignores what lies behind them. docs/wire-format.md is the long form.
 *
 * Only bytes to fields and back: what a field is good for, and which message
 * may come when, is the business of who negotiates. No sockets, no clock, no
 * allocation.
 */
#ifndef TM3_WIRE_EXT_H
#define TM3_WIRE_EXT_H

#include <stddef.h>
#include <stdint.h>

#include "wire.h"

enum {
	WIRE_EXT_VERSION = 1,
	WIRE_EXT_SESSION_SIZE = 16,	/* bytes that name a session */
	WIRE_EXT_ADDRESS_MAX = 255,
	/* The longest that wire_ext_put() writes: an OPEN. */
	WIRE_EXT_SIZE_MAX = WIRE_HEADER + 5 + WIRE_EXT_ADDRESS_MAX + 2,
};

enum wire_ext_type {
	WIRE_HELLO = 1,
	WIRE_WELCOME = 2,
	WIRE_SYNACK = 3,
	WIRE_WINDOW = 4,
	WIRE_PING = 5,
	WIRE_PONG = 6,
	WIRE_GOODBYE = 7,
	WIRE_HINT = 8,
	WIRE_ACK = 9,
	WIRE_RELEASE = 10,
	WIRE_OPEN = 11,
};

enum wire_feature {
	WIRE_FEATURE_SYNACK = 1 << 0,	/* and limits of early data */
	WIRE_FEATURE_WINDOW = 1 << 1,
	WIRE_FEATURE_HALF_CLOSE = 1 << 2,
	WIRE_FEATURE_OPEN = 1 << 3,
	WIRE_FEATURE_PING = 1 << 4,
	WIRE_FEATURE_HINT = 1 << 5,
	WIRE_FEATURE_RECOVERY = 1 << 6,	/* ACK, RELEASE, pipes come back */
};

enum wire_welcome_status {
	WIRE_WELCOME_NEW = 0,
	WIRE_WELCOME_RESUMED = 1,
	WIRE_WELCOME_UNKNOWN = 2,	/* no such session: reset all */
	WIRE_WELCOME_REFUSED = 3,
};

enum wire_synack_result {
	WIRE_SYNACK_CONNECTED = 0,
	WIRE_SYNACK_REFUSED = 1,
	WIRE_SYNACK_UNREACHABLE = 2,
	WIRE_SYNACK_TIMEOUT = 3,
	WIRE_SYNACK_DENIED = 4,
	WIRE_SYNACK_LIMIT = 5,
	WIRE_SYNACK_NO_NAME = 6,	/* it does not resolve */
};

enum wire_goodbye_reason {
	WIRE_GOODBYE_SHUTDOWN = 0,
	WIRE_GOODBYE_PROTOCOL = 1,	/* the peer broke the rules */
	WIRE_GOODBYE_LIMIT = 2,
};

enum wire_open_kind {
	WIRE_OPEN_IPV4 = 4,
	WIRE_OPEN_IPV6 = 6,
	WIRE_OPEN_NAME = 'n',
};

struct wire_hello {
	uint8_t version;
	uint32_t features;
	uint8_t session[WIRE_EXT_SESSION_SIZE];
	uint8_t pipe;
	uint8_t pipes;
	uint16_t incarnation;		/* counts this pipe's redials */
	uint64_t received;		/* on its previous incarnation */
	uint32_t conn_window;		/* bytes the peer may send at first */
	uint32_t session_window;
};

struct wire_welcome {
	uint8_t version;
	uint32_t features;		/* the common ones */
	uint8_t status;			/* enum wire_welcome_status */
	uint64_t received;
	uint32_t conn_window;
	uint32_t session_window;
	uint32_t conn_early;		/* limits of early data */
	uint32_t session_early;
};

struct wire_synack {
	uint16_t id;
	uint8_t result;			/* enum wire_synack_result */
};

struct wire_window {
	uint16_t id;			/* 0: the session */
	uint64_t offset;		/* payload bytes allowed in all */
};

struct wire_ping {
	uint64_t token;
	uint64_t sent_us;		/* by the clock of who pings */
	uint64_t received_us;		/* PONG only: of who answers */
};

struct wire_goodbye {
	uint8_t reason;			/* enum wire_goodbye_reason */
};

struct wire_hint {
	uint16_t id;
	uint8_t priority;
	uint64_t remaining;		/* bytes */
};

struct wire_ack {
	uint8_t pipe;
	uint16_t incarnation;
	uint64_t received;		/* messages */
	uint64_t received_us;
	uint32_t reorder_bytes;		/* in the receiver's queues */
};

struct wire_release {
	uint16_t id;
};

struct wire_open {
	uint16_t id;
	uint8_t kind;			/* enum wire_open_kind */
	uint8_t address_len;		/* 4, 16, or that of the name */
	/* As it is written: the first byte of an address first; a name ends in
	 * a NUL here, which is not counted and not sent. */
	uint8_t address[WIRE_EXT_ADDRESS_MAX + 1];
	uint16_t port;
};

struct wire_ext {
	enum wire_ext_type type;
	union {
		struct wire_hello hello;
		struct wire_welcome welcome;
		struct wire_synack synack;
		struct wire_window window;
		struct wire_ping ping;		/* and PONG */
		struct wire_goodbye goodbye;
		struct wire_hint hint;
		struct wire_ack ack;
		struct wire_release release;
		struct wire_open open;
	};
};

enum wire_ext_result {
	WIRE_EXT_OK = 0,
	WIRE_EXT_UNKNOWN,	/* a type of the future: step over it */
	WIRE_EXT_SHORT,		/* its fields do not fit into its body */
	WIRE_EXT_BAD_ID,	/* 0 where a connection is meant */
	WIRE_EXT_BAD_ADDRESS,	/* OPEN: kind and length do not go together,
				   or a name with a NUL in it */
};

/*
 * Writes a whole message, header included, to @buf (WIRE_EXT_SIZE_MAX bytes
 * serve for any). Returns its size, or 0 for what wire_ext_get() would refuse.
 */
size_t wire_ext_put(uint8_t *buf, const struct wire_ext *ext);

/*
 * Reads what wire_read() took as a data message of connection id 0. After
 * WIRE_EXT_SHORT @ext holds no more than the type; after WIRE_EXT_BAD_ADDRESS
 * also the id of the connection that this condemns.
 */
enum wire_ext_result wire_ext_get(const struct wire_msg *msg,
				  struct wire_ext *ext);

const char *wire_ext_name(unsigned int type);	/* "HELLO", "unknown" */
const char *wire_ext_result_text(enum wire_ext_result result);

#endif
