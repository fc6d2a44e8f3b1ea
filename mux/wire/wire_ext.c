/* SPDX-License-Identifier: MIT */
#include "wire_ext.h"

#include <string.h>

/*
 * Each message has one function that goes through its fields in their order;
 * it serves to write and to read, so that the two cannot differ.
 */
struct walk {
	const uint8_t *in;	/* where to read, */
	uint8_t *out;		/* or where to write; the other is NULL */
	size_t left;
	int past_end;		/* a field did not fit; all after it are 0 */
};

/* The next @size bytes, or past_end. */
static int room(struct walk *w, size_t size)
{
	if (w->left < size)
		w->past_end = 1;
	if (w->past_end)
		return 0;
	w->left -= size;
	return 1;
}

static void bytes(struct walk *w, uint8_t *p, size_t n)
{
	if (!room(w, n))
		return;
	if (w->out) {
		memcpy(w->out, p, n);
		w->out += n;
	} else {
		memcpy(p, w->in, n);
		w->in += n;
	}
}

static uint64_t integer(struct walk *w, uint64_t value, int size)
{
	uint8_t raw[8] = { 0 };
	uint64_t got = 0;

	for (int i = 0; i < size; i++)
		raw[i] = (uint8_t)(value >> 8 * i);
	bytes(w, raw, (size_t)size);
	for (int i = 0; i < size; i++)
		got |= (uint64_t)raw[i] << 8 * i;
	return got;
}

static void u8(struct walk *w, uint8_t *v)
{
	*v = (uint8_t)integer(w, *v, 1);
}

static void u16(struct walk *w, uint16_t *v)
{
	*v = (uint16_t)integer(w, *v, 2);
}

static void u32(struct walk *w, uint32_t *v)
{
	*v = (uint32_t)integer(w, *v, 4);
}

static void u64(struct walk *w, uint64_t *v)
{
	*v = integer(w, *v, 8);
}

static void hello(struct walk *w, struct wire_hello *m)
{
	u8(w, &m->version);
	u32(w, &m->features);
	bytes(w, m->session, sizeof(m->session));
	u8(w, &m->pipe);
	u8(w, &m->pipes);
	u16(w, &m->incarnation);
	u64(w, &m->received);
	u32(w, &m->conn_window);
	u32(w, &m->session_window);
}

static void welcome(struct walk *w, struct wire_welcome *m)
{
	u8(w, &m->version);
	u32(w, &m->features);
	u8(w, &m->status);
	u64(w, &m->received);
	u32(w, &m->conn_window);
	u32(w, &m->session_window);
	u32(w, &m->conn_early);
	u32(w, &m->session_early);
}

static void synack(struct walk *w, struct wire_synack *m)
{
	u16(w, &m->id);
	u8(w, &m->result);
}

static void window(struct walk *w, struct wire_window *m)
{
	u16(w, &m->id);
	u64(w, &m->offset);
}

static void ping(struct walk *w, struct wire_ping *m)
{
	u64(w, &m->token);
	u64(w, &m->sent_us);
}

static void pong(struct walk *w, struct wire_ping *m)
{
	ping(w, m);
	u64(w, &m->received_us);
}

static void hint(struct walk *w, struct wire_hint *m)
{
	u16(w, &m->id);
	u8(w, &m->priority);
	u64(w, &m->remaining);
}

static void ack(struct walk *w, struct wire_ack *m)
{
	u8(w, &m->pipe);
	u16(w, &m->incarnation);
	u64(w, &m->received);
	u64(w, &m->received_us);
	u32(w, &m->reorder_bytes);
}

static void open_address(struct walk *w, struct wire_open *m)
{
	u16(w, &m->id);
	u8(w, &m->kind);
	u8(w, &m->address_len);
	bytes(w, m->address, m->address_len);
	u16(w, &m->port);
}

/* The fields behind the type. -1 for a type that is not known. */
static int fields(struct walk *w, struct wire_ext *ext)
{
	switch (ext->type) {
	case WIRE_HELLO:
		hello(w, &ext->hello);
		return 0;
	case WIRE_WELCOME:
		welcome(w, &ext->welcome);
		return 0;
	case WIRE_SYNACK:
		synack(w, &ext->synack);
		return 0;
	case WIRE_WINDOW:
		window(w, &ext->window);
		return 0;
	case WIRE_PING:
		ping(w, &ext->ping);
		return 0;
	case WIRE_PONG:
		pong(w, &ext->ping);
		return 0;
	case WIRE_GOODBYE:
		u8(w, &ext->goodbye.reason);
		return 0;
	case WIRE_HINT:
		hint(w, &ext->hint);
		return 0;
	case WIRE_ACK:
		ack(w, &ext->ack);
		return 0;
	case WIRE_RELEASE:
		u16(w, &ext->release.id);
		return 0;
	case WIRE_OPEN:
		open_address(w, &ext->open);
		return 0;
	}
	return -1;
}

static int address_is_sound(const struct wire_open *m)
{
	switch (m->kind) {
	case WIRE_OPEN_IPV4:
		return m->address_len == 4;
	case WIRE_OPEN_IPV6:
		return m->address_len == 16;
	case WIRE_OPEN_NAME:
		return m->address_len > 0 &&
		       !memchr(m->address, 0, m->address_len);
	}
	return 0;
}

/* The connection that a message is about, or -1 if it is about none. */
static int connection_of(const struct wire_ext *ext)
{
	switch (ext->type) {
	case WIRE_SYNACK:
		return ext->synack.id;
	case WIRE_HINT:
		return ext->hint.id;
	case WIRE_RELEASE:
		return ext->release.id;
	case WIRE_OPEN:
		return ext->open.id;
	default:
		return -1;
	}
}

static enum wire_ext_result judge(const struct wire_ext *ext)
{
	if (connection_of(ext) == 0)
		return WIRE_EXT_BAD_ID;
	if (ext->type == WIRE_OPEN && !address_is_sound(&ext->open))
		return WIRE_EXT_BAD_ADDRESS;
	return WIRE_EXT_OK;
}

size_t wire_ext_put(uint8_t *buf, const struct wire_ext *ext)
{
	struct wire_ext copy = *ext;
	struct walk w = {
		.out = buf + WIRE_HEADER + 1,
		.left = WIRE_EXT_SIZE_MAX - WIRE_HEADER - 1,
	};
	size_t body;

	if (judge(ext) || fields(&w, &copy))
		return 0;
	body = (size_t)(w.out - buf) - WIRE_HEADER;
	wire_put_data(buf, 0, 0, body);
	buf[WIRE_HEADER] = (uint8_t)ext->type;
	return WIRE_HEADER + body;
}

enum wire_ext_result wire_ext_get(const struct wire_msg *msg,
				  struct wire_ext *ext)
{
	struct walk w = { .in = msg->body + 1, .left = msg->body_len - 1u };

	memset(ext, 0, sizeof(*ext));
	ext->type = msg->body[0];
	if (fields(&w, ext))
		return WIRE_EXT_UNKNOWN;
	if (w.past_end) {
		memset(ext, 0, sizeof(*ext));
		ext->type = msg->body[0];
		return WIRE_EXT_SHORT;
	}
	return judge(ext);
}

const char *wire_ext_name(unsigned int type)
{
	static const char *const name[] = {
		[WIRE_HELLO] = "HELLO",
		[WIRE_WELCOME] = "WELCOME",
		[WIRE_SYNACK] = "SYNACK",
		[WIRE_WINDOW] = "WINDOW",
		[WIRE_PING] = "PING",
		[WIRE_PONG] = "PONG",
		[WIRE_GOODBYE] = "GOODBYE",
		[WIRE_HINT] = "HINT",
		[WIRE_ACK] = "ACK",
		[WIRE_RELEASE] = "RELEASE",
		[WIRE_OPEN] = "OPEN",
	};

	if (type == 0 || type > WIRE_OPEN)
		return "unknown";
	return name[type];
}

const char *wire_ext_result_text(enum wire_ext_result result)
{
	switch (result) {
	case WIRE_EXT_OK:
		return "nothing is wrong";
	case WIRE_EXT_UNKNOWN:
		return "type is unknown";
	case WIRE_EXT_SHORT:
		return "body is shorter than its fields";
	case WIRE_EXT_BAD_ID:
		return "connection id is 0";
	case WIRE_EXT_BAD_ADDRESS:
		return "address is not of its kind";
	}
	return "unknown error";
}
