/* SPDX-License-Identifier: MIT */
#include "ext_peer.h"

#include <string.h>

#include "mux/extension/use.h"
#include "mux/settings/limits.h"
#include "check.h"

static uint32_t hash_of(const struct wire_msg *msg)
{
	uint32_t hash = 2166136261u + (uint32_t)msg->type;

	for (unsigned int i = 0; i < msg->body_len; i++)
		hash = (hash ^ msg->body[i]) * 16777619u;
	return hash ? hash : 1;
}

/* A message of a connection: it may come again, but not another one. */
static void follow(struct ext_peer *peer, uint16_t id, uint32_t number,
		   const struct wire_msg *msg, enum use_kind kind)
{
	struct followed *f = followed_id(peer, id);
	uint32_t hash = hash_of(msg);

	if (!f || number >= NUMBERS)
		return;
	check(!f->hash[number] || f->hash[number] == hash);
	f->hash[number] = hash;
	f->kind[number] = (uint8_t)kind;
	f->len[number] = msg->body_len;
}

/* In their order: uses, each of which begins and ends. */
static void check_uses(const struct ext_peer *peer, const struct followed *f)
{
	bool of_rp = f >= &peer->id[IDS];
	enum use_kind first = peer->hears_rp == of_rp ? USE_OPEN : USE_SYNACK;
	enum use_kind before = USE_RESET;
	uint64_t payload = 0, early = 0;

	for (uint32_t n = 0; n < NUMBERS && f->hash[n]; n++) {
		enum use_kind kind = f->kind[n];

		if (kind == first)
			check(before == USE_RESET || before == USE_NO_MORE);
		else if (kind == USE_RESET)
			check(n && before != USE_RESET);
		else
			check(kind == USE_DATA || kind == USE_NO_MORE);
		if (kind == USE_DATA || kind == USE_NO_MORE)
			check(n && before != USE_RESET && before != USE_NO_MORE);
		before = kind;
		early += kind == USE_OPEN ? EARLY_CONN : 0;
		payload += kind == USE_DATA ? f->len[n] : 0;
		check(peer->said_raw || payload <= f->granted + early);
	}
}

static void check_ack(const struct ext_peer *peer, const struct wire_ack *ack)
{
	for (unsigned int i = 0; i < ack->pipes; i++) {
		const struct wire_ack_pipe *said = &ack->pipe[i];
		const struct far_end *far = &peer->far[said->pipe];

		check(said->pipe < peer->npipes);
		if (said->incarnation == far->incarnation)
			check(said->received <= far->said);
	}
}

static void answer_hello(struct ext_peer *peer, struct far_end *far,
			 const struct wire_hello *hello)
{
	static const uint8_t status[] = { WIRE_WELCOME_RESUMED,
		WIRE_WELCOME_RESUMED, WIRE_WELCOME_RESUMED, WIRE_WELCOME_BUSY,
		WIRE_WELCOME_RESUMED, WIRE_WELCOME_UNKNOWN,
		WIRE_WELCOME_RESUMED, WIRE_WELCOME_REFUSED };
	struct wire_ext what = {
		.type = WIRE_WELCOME,
		.welcome = { .version = 1, .features = hello->features },
	};
	uint8_t buf[WIRE_MESSAGE_MAX];

	check(far->joining && &peer->far[hello->pipe] == far);
	check(hello->pipes == peer->npipes);
	check(!memcmp(hello->session, peer->hello.session, 16));
	far->joining = false;
	far->incarnation = hello->incarnation;
	what.welcome.status = status[hello->incarnation & 7];
	far_send(far, buf, wire_ext_put(buf, &what));
}

/* Whoever hears something, and on which pipe. */
struct listener {
	struct ext_peer *peer;
	struct far_end *far;
};

static void hear(void *owner, const struct wire_msg *msg)
{
	const struct listener *listener = owner;
	struct ext_peer *peer = listener->peer;
	struct far_end *far = listener->far;
	struct wire_ext ext;

	check(wire_ext_get(msg, peer->hears_rp, &ext) == WIRE_EXT_OK);
	far->heard += (uint64_t)wire_ext_counts(msg);
	check((ext.type == WIRE_HELLO) == far->joining);
	switch (ext.type) {
	case WIRE_EXT_NONE:
		follow(peer, msg->id, msg->number, msg,
		       msg->type == WIRE_DATA ? USE_DATA :
		       msg->body[0] == WIRE_REASON_NO_MORE ? USE_NO_MORE :
							     USE_RESET);
		break;
	case WIRE_OPEN:
		follow(peer, ext.open.id, ext.number, msg, USE_OPEN);
		break;
	case WIRE_SYNACK:
		follow(peer, ext.synack.id, ext.number, msg, USE_SYNACK);
		break;
	case WIRE_ACK:
		check_ack(peer, &ext.ack);
		break;
	case WIRE_HELLO:
		answer_hello(peer, far, &ext.hello);
		break;
	default:
		break;
	}
}

void peer_hears(struct ext_peer *peer, struct far_end *far)
{
	struct listener listener = { peer, far };

	hearing_read(&far->hearing, far->fd, hear, &listener);
}

void peer_checks(const struct ext_peer *peer)
{
	for (int i = 1; i < 2 * IDS; i++)
		check_uses(peer, &peer->id[i]);
}
