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
	u32(w, &m->incarnation);
	u8(w, &m->path);
	u8(w, &m->path_flags);
	u16(w, &m->path_cost);
	u32(w, &m->reorder_limit);
}

static void welcome(struct walk *w, struct wire_welcome *m)
{
	u8(w, &m->version);
	u32(w, &m->features);
	u8(w, &m->status);
	u16(w, &m->connections);
	u32(w, &m->conn_early);
	u32(w, &m->session_early);
	u16(w, &m->wait_s);
	u32(w, &m->reorder_limit);
}

static void synack(struct walk *w, struct wire_synack *m)
{
	u16(w, &m->id);
	u8(w, &m->result);
	u64(w, &m->offset);
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
	u8(w, &m->paths);
}

static void ack(struct walk *w, struct wire_ack *m)
{
	u64(w, &m->time_us);
	u32(w, &m->reorder_bytes);
	u8(w, &m->pipes);
	for (int i = 0; i < m->pipes; i++) {
		u8(w, &m->pipe[i].pipe);
		u32(w, &m->pipe[i].incarnation);
		u64(w, &m->pipe[i].received);
	}
}

static void address(struct walk *w, struct destination *m)
{
	u8(w, &m->kind);
	u8(w, &m->len);
	bytes(w, m->bytes, m->len);
	u16(w, &m->port);
}

static void open_to(struct walk *w, struct wire_open *m)
{
	u16(w, &m->id);
	u8(w, &m->protocol);
	address(w, &m->to);
	u32(w, &m->window);
}

/* All that is left is payload: alone of all types it cannot grow fields. */
static void datagram(struct walk *w, struct wire_datagram *m)
{
	u16(w, &m->id);
	address(w, &m->at);
	if (w->in && !w->past_end) {
		m->payload = w->in;
		m->payload_len = (uint16_t)w->left;
	} else if (w->out && room(w, m->payload_len) && m->payload_len) {
		memcpy(w->out, m->payload, m->payload_len);
		w->out += m->payload_len;
	}
}

static void listen_at(struct walk *w, struct wire_listen *m)
{
	u16(w, &m->listener);
	u8(w, &m->protocol);
	address(w, &m->at);
}

static void listening(struct walk *w, struct wire_listening *m)
{
	u16(w, &m->listener);
	u8(w, &m->result);
	u16(w, &m->port);
}

static void path(struct walk *w, struct wire_path *m)
{
	u8(w, &m->path);
	u8(w, &m->state);
	u16(w, &m->cost);
	u32(w, &m->serial);
}

static void too_big(struct walk *w, struct wire_too_big *m)
{
	u16(w, &m->id);
	u16(w, &m->mtu);
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
	case WIRE_OPEN:
		open_to(w, &ext->open);
		return 0;
	case WIRE_DATAGRAM:
		datagram(w, &ext->datagram);
		return 0;
	case WIRE_LISTEN:
		listen_at(w, &ext->listen);
		return 0;
	case WIRE_LISTENING:
		listening(w, &ext->listening);
		return 0;
	case WIRE_PATH:
		path(w, &ext->path);
		return 0;
	case WIRE_TOO_BIG:
		too_big(w, &ext->too_big);
		return 0;
	case WIRE_EXT_NONE:
		break;
	}
	return -1;
}

/* The connection that a message is about, or -1 if it is about none. */
static int connection_of(const struct wire_ext *ext)
{
	switch (ext->type) {
	case WIRE_SYNACK:
		return ext->synack.id;
	case WIRE_WINDOW:
		return ext->window.id;
	case WIRE_HINT:
		return ext->hint.id;
	case WIRE_OPEN:
		return ext->open.id;
	case WIRE_DATAGRAM:
		return ext->datagram.id;
	case WIRE_TOO_BIG:
		return ext->too_big.id;
	default:
		return -1;
	}
}

/* The ways that a message may go: LP opens the lower ids, RP the others. */
enum { UP = 1, DOWN = 2 };

static int ways_of(const struct wire_ext *ext)
{
	switch (ext->type) {
	case WIRE_HELLO:
	case WIRE_LISTEN:
	case WIRE_PATH:
		return UP;
	case WIRE_WELCOME:
	case WIRE_LISTENING:
	case WIRE_TOO_BIG:
		return DOWN;
	case WIRE_OPEN:
		return ext->open.id <= WIRE_ID_LP_MAX ? UP : DOWN;
	case WIRE_SYNACK:
		return ext->synack.id <= WIRE_ID_LP_MAX ? DOWN : UP;
	default:
		return UP | DOWN;
	}
}

static enum wire_ext_result judge_open(const struct wire_open *m)
{
	if (m->protocol != WIRE_PROTOCOL_TCP &&
	    m->protocol != WIRE_PROTOCOL_UDP)
		return WIRE_EXT_BAD_PROTOCOL;
	if (destination_is_listener(&m->to))
		return m->protocol == WIRE_PROTOCOL_TCP &&
		       m->id > WIRE_ID_LP_MAX ? WIRE_EXT_OK :
						WIRE_EXT_BAD_ADDRESS;
	if (!destination_is_sound(&m->to))
		return WIRE_EXT_BAD_ADDRESS;
	if (m->protocol == WIRE_PROTOCOL_TCP && m->to.kind == DESTINATION_NONE)
		return WIRE_EXT_BAD_ADDRESS;
	return WIRE_EXT_OK;
}

static enum wire_ext_result judge(const struct wire_ext *ext, int ways)
{
	if (connection_of(ext) == 0)
		return WIRE_EXT_BAD_ID;
	if (!(ways_of(ext) & ways))
		return WIRE_EXT_WRONG_WAY;
	switch (ext->type) {
	case WIRE_HELLO:
		return ext->hello.pipe < ext->hello.pipes &&
		       ext->hello.pipes <= WIRE_EXT_PIPES_MAX
			? WIRE_EXT_OK : WIRE_EXT_BAD_PIPE;
	case WIRE_OPEN:
		return judge_open(&ext->open);
	case WIRE_DATAGRAM:
		return destination_is_sound(&ext->datagram.at)
			? WIRE_EXT_OK : WIRE_EXT_BAD_ADDRESS;
	default:
		return WIRE_EXT_OK;
	}
}

/* Whether the header's number means something, for this type. */
static int is_numbered(enum wire_ext_type type)
{
	return type == WIRE_OPEN || type == WIRE_SYNACK;
}

size_t wire_ext_put(uint8_t *buf, const struct wire_ext *ext)
{
	struct wire_ext copy = *ext;
	struct walk w = {
		.out = buf + WIRE_HEADER + 1,
		.left = WIRE_PAYLOAD_MAX - 1,
	};
	size_t body;

	if (judge(ext, UP | DOWN) || fields(&w, &copy) || w.past_end)
		return 0;
	body = (size_t)(w.out - buf) - WIRE_HEADER;
	wire_put_data(buf, 0, is_numbered(ext->type) ? ext->number : 0, body);
	buf[WIRE_HEADER] = (uint8_t)ext->type;
	return WIRE_HEADER + body;
}

static void clear(struct wire_ext *ext, unsigned int type)
{
	memset(ext, 0, sizeof(*ext));
	ext->type = type;
}

static enum wire_ext_result get_own(const struct wire_msg *msg, int downlink,
				    struct wire_ext *ext)
{
	struct walk w = { .in = msg->body + 1, .left = msg->body_len - 1u };

	clear(ext, msg->body[0]);
	if (fields(&w, ext))
		return WIRE_EXT_UNKNOWN;
	if (w.past_end) {
		clear(ext, msg->body[0]);
		return WIRE_EXT_SHORT;
	}
	if (is_numbered(ext->type))
		ext->number = msg->number;
	return judge(ext, downlink ? DOWN : UP);
}

static int reason_is_known(uint8_t reason)
{
	return reason == WIRE_REASON_NO_MORE || reason == WIRE_REASON_RST;
}

enum wire_ext_result wire_ext_get(const struct wire_msg *msg, int downlink,
				  struct wire_ext *ext)
{
	if (msg->type == WIRE_DATA && msg->id == 0)
		return get_own(msg, downlink, ext);
	clear(ext, WIRE_EXT_NONE);
	if (msg->type == WIRE_SYN)
		return WIRE_EXT_SYN;
	if (msg->id == 0)
		return WIRE_EXT_BAD_ID;
	if (msg->type == WIRE_FIN && !reason_is_known(msg->body[0]))
		return WIRE_EXT_BAD_REASON;
	return WIRE_EXT_OK;
}

int wire_ext_counts(const struct wire_msg *msg)
{
	if (msg->type != WIRE_DATA || msg->id)
		return 1;
	switch (msg->body[0]) {
	case WIRE_HELLO:
	case WIRE_WELCOME:
	case WIRE_PING:
	case WIRE_PONG:
	case WIRE_ACK:
	case WIRE_DATAGRAM:
	case WIRE_TOO_BIG:
		return 0;
	}
	return 1;
}

enum wire_ext_scope wire_ext_scope(enum wire_ext_result result)
{
	switch (result) {
	case WIRE_EXT_OK:
		return WIRE_SCOPE_NONE;
	case WIRE_EXT_UNKNOWN:
	case WIRE_EXT_SHORT:
	case WIRE_EXT_BAD_ID:
		return WIRE_SCOPE_MESSAGE;
	case WIRE_EXT_BAD_REASON:
	case WIRE_EXT_BAD_PROTOCOL:
	case WIRE_EXT_BAD_ADDRESS:
		return WIRE_SCOPE_CONNECTION;
	case WIRE_EXT_BAD_PIPE:
		return WIRE_SCOPE_PIPE;
	case WIRE_EXT_SYN:
	case WIRE_EXT_WRONG_WAY:
		break;
	}
	return WIRE_SCOPE_SESSION;
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
		[WIRE_OPEN] = "OPEN",
		[WIRE_DATAGRAM] = "DATAGRAM",
		[WIRE_LISTEN] = "LISTEN",
		[WIRE_LISTENING] = "LISTENING",
		[WIRE_PATH] = "PATH",
		[WIRE_TOO_BIG] = "TOO_BIG",
	};

	if (type > WIRE_TOO_BIG || !name[type])
		return "unknown";
	return name[type];
}

const char *wire_ext_result_text(enum wire_ext_result result)
{
	switch (result) {
	case WIRE_EXT_OK:
		return "nothing is wrong";
	case WIRE_EXT_SYN:
		return "a SYN, which the extension does not have";
	case WIRE_EXT_BAD_REASON:
		return "a FIN whose reason is neither 0x77 nor 0x99";
	case WIRE_EXT_UNKNOWN:
		return "type is unknown";
	case WIRE_EXT_SHORT:
		return "body is shorter than its fields";
	case WIRE_EXT_BAD_ID:
		return "connection id is 0";
	case WIRE_EXT_WRONG_WAY:
		return "it is not sent in this direction";
	case WIRE_EXT_BAD_PIPE:
		return "pipe index is not below a count of 1 to 64";
	case WIRE_EXT_BAD_PROTOCOL:
		return "protocol is neither TCP nor UDP";
	case WIRE_EXT_BAD_ADDRESS:
		return "address is not of its kind";
	}
	return "unknown error";
}
