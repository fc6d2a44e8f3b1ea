/* SPDX-License-Identifier: MIT */
#include "ext_peer.h"


static void say(struct far_end *far, const struct wire_ext *what)
{
	uint8_t buf[WIRE_MESSAGE_MAX];

	far_send(far, buf, wire_ext_put(buf, what));
}

void peer_says_raw(struct ext_peer *peer, struct far_end *far,
		   struct input *in)
{
	size_t n = input_take(in) & 63;

	peer->said_raw = true;
	n = n < in->left ? n : in->left;
	far_send(far, in->at, n);
	in->at += n;
	in->left -= n;
}

/* Mostly the next one; or a copy's, or one ahead, or one far away. */
static uint32_t number_for(struct followed *f, uint8_t where)
{
	if (where < 180)
		return f->next++;
	if (where < 215)
		return f->next + where % 8 + 1;
	if (where < 250)
		return f->next - where % 8 - 1;
	return (uint32_t)where << 18;
}

/* To one of some listeners, of which the session has asked for a few. */
static struct destination who_came(uint8_t kind)
{
	struct destination peer = destination_ipv4((uint8_t[]){ 192, 0, 2, 9 },
						   kind >> 6);

	return destination_listener(kind >> 2 & 7, &peer);
}

/* A few bytes, or as many as a message has; seldom one more, which breaks the framing. */
static size_t payload_for(const struct far_end *far, uint8_t kind, uint8_t where)
{
	size_t most = far->framing.large && kind & 0x40 ? WIRE_LARGE_PAYLOAD :
							  WIRE_PAYLOAD_MAX;

	if (!(kind & 0x80))
		return (kind >> 5) + 1u;
	if (kind & 0x10 && where == 255)
		return (far->framing.large ? WIRE_LARGE_PAYLOAD : WIRE_PAYLOAD_MAX) + 1;
	return kind & 0x10 && most > WIRE_PAYLOAD_MAX ? WIRE_PAYLOAD_MAX + 1 : most;
}

void peer_says_numbered(struct ext_peer *peer, struct far_end *far,
			struct input *in)
{
	uint8_t kind = input_take(in), where = input_take(in);
	bool of_rp = kind & 0x20;
	uint16_t id = (of_rp ? WIRE_ID_LP_MAX + 1 : 1) + (kind >> 2 & 3);
	struct followed *f = followed_id(peer, id);
	uint32_t number = number_for(f, where);
	static uint8_t buf[WIRE_LARGE_MAX + 1];
	struct wire_ext what = { .number = number };
	size_t payload;

	switch (kind & 3) {
	case 0:
		if (peer->hears_rp != of_rp) {
			what.type = WIRE_OPEN;
			what.open = (struct wire_open){
				.id = id,
				.protocol = kind & 0x80 ? WIRE_PROTOCOL_UDP :
							  WIRE_PROTOCOL_TCP,
				.to = destination_name("x", 1, kind >> 4),
				.window = (uint32_t)where << 8,
			};
			if ((kind & 0xc0) == 0xc0)
				what.open.to = (struct destination){ 0 };
			if (of_rp && kind & 0x10)
				what.open.to = who_came(kind);
			f->granted += what.open.window;
		} else {
			what.type = WIRE_SYNACK;
			what.synack = (struct wire_synack){
				.id = id,
				.result = kind >> 4 & 7,
				.offset = (uint64_t)where << 9,
			};
			f->granted += what.synack.offset;
		}
		say(far, &what);
		return;
	case 1:
		far_send(far, buf, wire_put_fin(buf, id, number,
			kind & 0x80 ? WIRE_REASON_RST : WIRE_REASON_NO_MORE));
		return;
	default:
		payload = payload_for(far, kind, where);
		buf[WIRE_HEADER] = 0;	/* there stands a FIN's reason */
		far_send_cut(far, buf, wire_put_data(buf, id, number, payload) + payload,
			     kind & 1 && payload > WIRE_PAYLOAD_MAX ?
			     where * (size_t)64 % payload : 0);
	}
}

static void say_ack(struct ext_peer *peer, struct far_end *far, uint8_t how)
{
	struct wire_ext what = { .type = WIRE_ACK };

	for (unsigned int i = 0; i < peer->npipes; i++) {
		const struct far_end *of = &peer->far[i];

		what.ack.pipe[what.ack.pipes++] = (struct wire_ack_pipe){
			.pipe = (uint8_t)i,
			.incarnation = of->incarnation - (how == 253),
			.received = how < 250 || of->heard < how - 249u ?
				    of->heard : of->heard - (how - 249u),
		};
	}
	/* Once in a while a lie. */
	what.ack.pipe[0].received += how == 255;
	say(far, &what);
}

void peer_says_control(struct ext_peer *peer, struct far_end *far,
		       struct input *in)
{
	uint8_t kind = input_take(in), how = input_take(in);
	struct wire_ext what = { .type = kind % 16 ? kind % 16 : WIRE_TOO_BIG };

	switch (what.type) {
	case WIRE_ACK:
		say_ack(peer, far, how);
		return;
	case WIRE_WINDOW:
		what.window.id = (how & 4 ? WIRE_ID_LP_MAX + 1 : 1) + (how & 3);
		what.window.offset = (uint64_t)how << (kind >> 4);
		followed_id(peer, what.window.id)->granted += what.window.offset;
		break;
	case WIRE_PING:
	case WIRE_PONG:
		what.ping.token = how;
		break;
	case WIRE_HELLO:
	case WIRE_WELCOME:
	case WIRE_GOODBYE:
		if (how)	/* they end what the input is about */
			return;
		what.hello.pipes = 1;
		break;
	case WIRE_HINT:
		what.hint.id = 1 + (how & 3);
		what.hint.priority = what.hint.paths = how;
		what.hint.remaining = (uint64_t)how << (kind >> 4) * 4;
		break;
	case WIRE_DATAGRAM:
		what.datagram.id = 1 + (how & 3);
		if (kind & 16)
			what.datagram.at = destination_name("y", 1, how);
		else
			what.datagram.at.port = how >> 4;	/* flags */
		what.datagram.payload = in->at;
		what.datagram.payload_len = (uint16_t)(in->left & how);
		break;
	case WIRE_LISTEN:
		if (!peer->hears_rp)
			return;
		what.listen.listener = how;
		what.listen.protocol = WIRE_PROTOCOL_TCP;
		what.listen.at = destination_ipv4((uint8_t[]){ 127, 0, 0, 1 },
						  how);
		break;
	case WIRE_LISTENING:
		if (peer->hears_rp)
			return;
		what.listening.listener = how;
		what.listening.result = kind >> 4;
		break;
	case WIRE_PATH:
		if (!peer->hears_rp)
			return;
		what.path.path = how & 7;
		what.path.state = kind >> 4 & 3;
		what.path.serial = how >> 3;
		break;
	case WIRE_TOO_BIG:
		if (peer->hears_rp == (how == 255))	/* seldom the wrong way */
			return;
		what.too_big.id = 1 + (how & 3);
		what.too_big.mtu = (uint16_t)(kind << 4 | how >> 4);
		break;
	default:
		return;
	}
	say(far, &what);
}

