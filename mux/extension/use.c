/* SPDX-License-Identifier: MIT */
#include "use.h"

void use_init(struct use *use, uint32_t first)
{
	*use = (struct use){ .number = first };
}

static void begin(struct use *use, bool opener)
{
	*use = (struct use){
		.number = use->number,
		.open = true,
		.opener = opener,
	};
}

static void settle(struct use *use)
{
	if (use->ended && use->peer_ended)
		use->open = false;
}

bool use_may_send(const struct use *use, enum use_kind kind)
{
	bool begun = use->open && (use->opener || use->answered);

	switch (kind) {
	case USE_OPEN:
		return !use->open;
	case USE_SYNACK:
		return use->open && !use->opener && !use->answered;
	case USE_DATA:
	case USE_NO_MORE:
		return begun && !use->ended;
	case USE_RESET:
		return begun && !use->reset;
	}
	return false;
}

uint32_t use_send(struct use *use, enum use_kind kind)
{
	switch (kind) {
	case USE_OPEN:
		begin(use, true);
		break;
	case USE_SYNACK:
		use->answered = true;
		break;
	case USE_DATA:
		break;
	case USE_RESET:
		use->reset = true;
		/* fall through */
	case USE_NO_MORE:
		use->ended = true;
		settle(use);
		break;
	}
	return use->number++;
}

static enum use_verdict synack_due(struct use *use)
{
	if (!use->open || !use->opener || use->answered)
		return USE_BROKEN;
	use->answered = true;
	return USE_TAKE;
}

/* Data or an end, where the peer's direction of a use is open. */
static enum use_verdict due_inside(struct use *use, enum use_kind kind)
{
	enum use_verdict verdict = use->reset ? USE_DROP : USE_TAKE;

	if (use->peer_reset || (use->peer_ended && kind != USE_RESET))
		return USE_BROKEN;
	if (kind != USE_DATA)
		use->peer_ended = true;
	if (kind == USE_RESET)
		use->peer_reset = true;
	settle(use);
	return verdict;
}

enum use_verdict use_due(struct use *use, enum use_kind kind)
{
	bool inside = use->open && (!use->opener || use->answered);

	if (kind == USE_OPEN) {
		if (use->open)
			return USE_BROKEN;
		begin(use, false);
		return USE_TAKE;
	}
	if (kind == USE_SYNACK)
		return synack_due(use);
	if (inside)
		return due_inside(use, kind);
	/* A RESET behind a NO_MORE may come when its use has ended already. */
	return kind == USE_RESET ? USE_DROP : USE_BROKEN;
}

bool use_owes_reset(const struct use *use)
{
	return use->open && use->peer_reset && !use->ended;
}
