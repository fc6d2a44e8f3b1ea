/* SPDX-License-Identifier: MIT */
/*
 * What may stand on a pipe of the extension. Its own messages are data messages
 * of connection id 0 whose first body byte is the type; the fields follow,
 * little-endian. Data messages and FINs of connections look as they do in the
 * baseline, but the reasons of a FIN are 0x77 and 0x99, and there is no SYN.
 * docs/wire-format.md is the long form.
 *
 * Only bytes to fields and back, and what a single message tells to be wrong by
 * itself. Which message may come when is the business of who knows the session.
 * No sockets, no clock, no allocation.
 */
#ifndef TM3_WIRE_EXT_H
#define TM3_WIRE_EXT_H

#include <stddef.h>
#include <stdint.h>

#include "destination.h"
#include "wire.h"

enum {
	WIRE_EXT_VERSION = 1,
	WIRE_EXT_SESSION_SIZE = 16,	/* bytes that name a session */
	WIRE_EXT_PIPES_MAX = 64,	/* of a session, */
	WIRE_EXT_PATHS_MAX = 7,		/* on so many paths, numbered from 0 */
	WIRE_ACK_PIPES_MAX = 255,	/* that one ACK has room for */
};

/*
 * Type 10 was RELEASE in a draft and is not used again; a reader steps over it, as
 * over any it does not know.
 */
enum wire_ext_type {
	WIRE_EXT_NONE = 0,	/* no type: a message of a connection */
	WIRE_HELLO = 1,
	WIRE_WELCOME = 2,
	WIRE_SYNACK = 3,
	WIRE_WINDOW = 4,
	WIRE_PING = 5,
	WIRE_PONG = 6,
	WIRE_GOODBYE = 7,
	WIRE_HINT = 8,
	WIRE_ACK = 9,
	WIRE_OPEN = 11,
	WIRE_DATAGRAM = 12,
	WIRE_LISTEN = 13,
	WIRE_LISTENING = 14,
	WIRE_PATH = 15,
	WIRE_TOO_BIG = 16,
};

/* Version 1 is one set: who speaks it sets all of these bits. */
#define WIRE_FEATURES_VERSION_1 0x5Fu

enum wire_feature {		/* the optional ones */
	WIRE_FEATURE_HINT = 0x20,
	WIRE_FEATURE_DATAGRAM = 0x80,
	WIRE_FEATURE_LISTEN = 0x100,
	WIRE_FEATURE_PATH = 0x200,
	WIRE_FEATURE_MTU = 0x400,
	WIRE_FEATURE_LARGE = 0x800,	/* messages of WIRE_LARGE_MAX */
};

/* Of flows: the one says something only where the other is. */
#define WIRE_FEATURES_FLOWS (WIRE_FEATURE_DATAGRAM | WIRE_FEATURE_MTU)

enum wire_welcome_status {
	WIRE_WELCOME_NEW = 0,
	WIRE_WELCOME_RESUMED = 1,
	WIRE_WELCOME_UNKNOWN = 2,	/* no such session: reset all */
	WIRE_WELCOME_REFUSED = 3,
	WIRE_WELCOME_BUSY = 4,		/* try later */
};

enum wire_synack_result {
	WIRE_SYNACK_CONNECTED = 0,
	WIRE_SYNACK_REFUSED = 1,
	WIRE_SYNACK_UNREACHABLE = 2,
	WIRE_SYNACK_TIMEOUT = 3,
	WIRE_SYNACK_DENIED = 4,
	WIRE_SYNACK_LIMIT = 5,
	WIRE_SYNACK_NO_NAME = 6,	/* it does not resolve */
	WIRE_SYNACK_FAILED = 255,	/* or any other that is not above */
};

/* As SYNACK has them, where they mean the same. */
enum wire_listening_result {
	WIRE_LISTENING_YES = 0,
	WIRE_LISTENING_IN_USE = 1,
	WIRE_LISTENING_NOT_HERE = 2,	/* RP's host has no such address */
	WIRE_LISTENING_DENIED = 4,
	WIRE_LISTENING_LIMIT = 5,
	WIRE_LISTENING_FAILED = 255,	/* or any other that is not above */
};

enum wire_goodbye_reason {
	WIRE_GOODBYE_SHUTDOWN = 0,
	WIRE_GOODBYE_PROTOCOL = 1,	/* the peer broke the rules */
	WIRE_GOODBYE_LIMIT = 2,
};

enum wire_protocol {			/* numbers of the IP header */
	WIRE_PROTOCOL_TCP = 6,
	WIRE_PROTOCOL_UDP = 17,
};

enum wire_path_flag {
	WIRE_PATH_FLAG_BACKUP = 1,
};

enum wire_path_state {
	WIRE_PATH_USE = 0,
	WIRE_PATH_BACKUP = 1,
	WIRE_PATH_OFF = 2,
};

enum {
	WIRE_HINT_PATHS = 0x7f,		/* in hint.paths: a bit each, path 0 is the lowest */
	WIRE_HINT_COPIES = 0x80,	/* and copies on all of them */
};

#define WIRE_HINT_MOST (UINT64_C(1) << 50)	/* bytes that may be said to remain */

struct wire_hello {
	uint8_t version;
	uint32_t features;
	uint8_t session[WIRE_EXT_SESSION_SIZE];
	uint8_t pipe;			/* below pipes */
	uint8_t pipes;			/* 1 to WIRE_EXT_PIPES_MAX */
	uint32_t incarnation;		/* grows with each redial of the pipe */
	uint8_t path;			/* that it is on */
	uint8_t path_flags;		/* enum wire_path_flag */
	uint16_t path_cost;
	uint32_t reorder_limit;		/* bytes LP keeps out of order */
};

struct wire_welcome {
	uint8_t version;
	uint32_t features;		/* the common ones */
	uint8_t status;			/* enum wire_welcome_status */
	uint16_t connections;		/* at a time */
	uint32_t conn_early;		/* limits of early data, in bytes */
	uint32_t session_early;
	uint16_t wait_s;		/* that a session waits for a pipe */
	uint32_t reorder_limit;		/* bytes RP keeps out of order */
};

struct wire_synack {
	uint16_t id;
	uint8_t result;			/* enum wire_synack_result */
	uint64_t offset;		/* as that of a WINDOW */
};

struct wire_window {
	uint16_t id;
	uint64_t offset;		/* payload bytes since the start */
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
	uint8_t priority;		/* the higher, the more urgent */
	uint64_t remaining;		/* bytes; 0: not known */
	uint8_t paths;			/* WIRE_HINT_PATHS and _COPIES; 0: any */
};

struct wire_ack_pipe {
	uint8_t pipe;
	uint32_t incarnation;
	uint64_t received;		/* messages parsed, without a gap */
};

struct wire_ack {
	uint64_t time_us;		/* by the clock of who received */
	uint32_t reorder_bytes;		/* that wait there out of order */
	uint8_t pipes;			/* of pipe[] */
	struct wire_ack_pipe pipe[WIRE_ACK_PIPES_MAX];
};

struct wire_open {
	uint16_t id;
	uint8_t protocol;		/* enum wire_protocol */
	struct destination to;
	uint32_t window;		/* that the other end may use first */
};

/* Where a datagram up has no address of its own, this stands in the port's place. */
enum wire_datagram_flag {
	WIRE_DATAGRAM_WHOLE = 1,	/* it must not be fragmented */
};

struct wire_datagram {
	uint16_t id;
	struct destination at;		/* kind 0: that of the flow */
	const uint8_t *payload;		/* into the buffer that was read */
	uint16_t payload_len;
};

struct wire_listen {
	uint16_t listener;
	uint8_t protocol;		/* enum wire_protocol */
	struct destination at;
};

struct wire_listening {
	uint16_t listener;
	uint8_t result;			/* enum wire_listening_result */
	uint16_t port;			/* that is listened on, or 0 */
};

struct wire_path {
	uint8_t path;
	uint8_t state;			/* enum wire_path_state */
	uint16_t cost;
	uint32_t serial;		/* of two, the larger counts */
};

struct wire_too_big {
	uint16_t id;
	uint16_t mtu;			/* bytes of a packet, IP's header included */
};

struct wire_ext {
	enum wire_ext_type type;
	uint32_t number;	/* OPEN, SYNACK: in its connection. Else 0 */
	union {
		struct wire_hello hello;
		struct wire_welcome welcome;
		struct wire_synack synack;
		struct wire_window window;
		struct wire_ping ping;		/* and PONG */
		struct wire_goodbye goodbye;
		struct wire_hint hint;
		struct wire_ack ack;
		struct wire_open open;
		struct wire_datagram datagram;
		struct wire_listen listen;
		struct wire_listening listening;
		struct wire_path path;
		struct wire_too_big too_big;
	};
};

/* What can be wrong with a single message; in the order of the checks. */
enum wire_ext_result {
	WIRE_EXT_OK = 0,
	WIRE_EXT_SYN,		/* the extension opens by OPEN alone */
	WIRE_EXT_UNKNOWN,	/* a type of the future: step over it */
	WIRE_EXT_SHORT,		/* its fields do not fit into its body */
	WIRE_EXT_BAD_ID,	/* 0 where a connection is meant */
	WIRE_EXT_BAD_REASON,	/* a FIN with neither 0x77 nor 0x99 */
	WIRE_EXT_WRONG_WAY,	/* uplink what only comes downlink, or so */
	WIRE_EXT_BAD_PIPE,	/* HELLO: index not below count, or count */
	WIRE_EXT_BAD_PROTOCOL,	/* OPEN: neither TCP nor UDP */
	WIRE_EXT_BAD_ADDRESS,	/* kind and length do not go together, a name
				   with a NUL, TCP to no address, or a listener
				   where RP opens no connection of TCP */
};

/* How much ends with a bad message. */
enum wire_ext_scope {
	WIRE_SCOPE_NONE = 0,	/* nothing is wrong */
	WIRE_SCOPE_MESSAGE,	/* it is dropped and counted */
	WIRE_SCOPE_CONNECTION,	/* FIN 0x99 */
	WIRE_SCOPE_PIPE,	/* it is closed */
	WIRE_SCOPE_SESSION,	/* GOODBYE 1 */
};

/*
 * Writes a whole message, header included, to @buf (WIRE_MESSAGE_MAX bytes
 * serve for any). Returns its size, or 0 for what wire_ext_get() would reject
 * whatever its way, and for a DATAGRAM that is too long for a message.
 */
size_t wire_ext_put(uint8_t *buf, const struct wire_ext *ext);

/*
 * Reads any message that wire_read() took on a pipe of the extension.
 * @downlink: it came from RP. For a sound message of a connection (data, FIN)
 * only @ext's type is filled, WIRE_EXT_NONE. After WIRE_EXT_SHORT @ext has no
 * more than the type; after each later result also the fields.
 */
enum wire_ext_result wire_ext_get(const struct wire_msg *msg, int downlink,
				  struct wire_ext *ext);

enum wire_ext_scope wire_ext_scope(enum wire_ext_result result);

/* Whether a message is counted on its pipe, kept until then and acknowledged.
 * What is wrong with it makes no difference: both ends must count alike. */
int wire_ext_counts(const struct wire_msg *msg);

const char *wire_ext_name(unsigned int type);	/* "HELLO", "unknown" */
const char *wire_ext_result_text(enum wire_ext_result result);

#endif
