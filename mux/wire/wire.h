/* SPDX-License-Identifier: MIT */
/*
 * The wire format: the only place that knows offsets.
 *
 * A pipe carries messages back to back. Each starts with eight bytes,
 * little-endian: connection id (2), number (4), length (2). The length field
 * doubles as the type:
 *
 *	9 to 4104	data, header included; of a connection up to 16392 where
 *			both ends of the extension agreed to it
 *	0xFFFF		SYN: IPv4 address (4, as written) and port (2, LE)
 *	0xFFFE		FIN: one byte, the reason
 *
 * All else breaks the framing: what follows can no longer be found. A message
 * whose frame is sound but whose content is not (a SYN that is not number 0,
 * say) only condemns its connection. docs/wire-format.md is the long form.
 *
 * No sockets, no clock, no allocation here.
 */
#ifndef TM3_WIRE_H
#define TM3_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WIRE_HEADER = 8,
	WIRE_PAYLOAD_MAX = 4096,
	WIRE_MESSAGE_MAX = WIRE_HEADER + WIRE_PAYLOAD_MAX,
	/* Of a connection's data, in a session of the extension that agreed to it. */
	WIRE_LARGE_PAYLOAD = 16384,
	WIRE_LARGE_MAX = WIRE_HEADER + WIRE_LARGE_PAYLOAD,
	WIRE_SYN_SIZE = WIRE_HEADER + 6,
	WIRE_FIN_SIZE = WIRE_HEADER + 1,
	WIRE_ID_MAX = 65535,	/* on receipt */
	WIRE_ID_LP_MAX = 32767,	/* what LP hands out */
	WIRE_PORT = 6000,
	WIRE_PORT_EXTENDED = 6010,
};

/* How far ahead of the expected number a message may be. */
#define WIRE_NUMBER_WINDOW (1u << 20)

enum wire_type { WIRE_DATA, WIRE_SYN, WIRE_FIN };

enum wire_reason {
	WIRE_REASON_NO_MORE = 0x77,	/* extension: half-close */
	WIRE_REASON_FIN = 0x88,
	WIRE_REASON_RST = 0x99,
};

struct wire_msg {
	enum wire_type type;
	uint16_t id;
	uint32_t number;
	uint16_t body_len;	/* bytes behind the header */
	const uint8_t *body;	/* into the buffer that was read */
};

/* What can be wrong with a message, and in which field. */
enum wire_error {
	WIRE_OK = 0,
	WIRE_BAD_LENGTH,	/* framing: ends the session */
	WIRE_BAD_ID,		/* 0 on a baseline pipe */
	WIRE_BAD_SYN_NUMBER,
	WIRE_BAD_REASON,
	WIRE_SYN_DOWNLINK,
	WIRE_BAD_FIRST,		/* number 0 uplink, and not a SYN */
};

/*
 * Read one message from @buf. Returns the bytes it takes (and fills @msg),
 * 0 when more bytes are needed, or -1 when the length field is impossible
 * (then only msg->id and msg->number are filled, and body_len is the
 * length as it was on the wire). The length is judged as soon as the header is
 * there.
 */
int wire_read(const uint8_t *buf, size_t len, struct wire_msg *msg);
/* The same where data of a connection may make a message of @largest bytes. */
int wire_read_up_to(const uint8_t *buf, size_t len, size_t largest,
		    struct wire_msg *msg);

/* A message of which the header is there. */
struct wire_head {
	uint16_t id;
	uint32_t number;
	size_t size;		/* of the whole message */
};

/* False when @len bytes are no header, or one of impossible length. */
bool wire_head(const uint8_t *buf, size_t len, struct wire_head *head);
bool wire_head_up_to(const uint8_t *buf, size_t len, size_t largest,
		     struct wire_head *head);

/*
 * What baseline has to say against a message that wire_read() took.
 * @downlink: it came from RP, which may not send a SYN.
 */
enum wire_error wire_check(const struct wire_msg *msg, int downlink);

const char *wire_error_text(enum wire_error err);	/* "connection id is 0" */
const char *wire_error_field(enum wire_error err);	/* "connection id" */

/* Each writes one header or message to @buf and returns its size. */
size_t wire_put_data(uint8_t *buf, uint16_t id, uint32_t number,
		     size_t payload);	/* the header; payload stands behind */
size_t wire_put_syn(uint8_t *buf, uint16_t id, const uint8_t addr[4],
		    uint16_t port);
size_t wire_put_fin(uint8_t *buf, uint16_t id, uint32_t number,
		    enum wire_reason reason);

/* The destination in a SYN's body (6 bytes): address and host-order port. */
void wire_get_syn(const uint8_t *body, uint8_t addr[4], uint16_t *port);

/* a - b in the circle of numbers: negative when a lies behind b. */
int32_t wire_distance(uint32_t a, uint32_t b);

#endif
