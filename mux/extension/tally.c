/* SPDX-License-Identifier: MIT */
#include "tally.h"

#include <string.h>

void tally_init(struct tally *tally)
{
	memset(tally, 0, sizeof(*tally));
}

static uint64_t *word_of(struct tally *tally, uint64_t count)
{
	return &tally->ahead[count % TALLY_AHEAD / 64];
}

static uint64_t bit_of(uint64_t count)
{
	return (uint64_t)1 << count % 64;
}

enum tally_verdict tally_put(struct tally *tally, uint64_t count)
{
	if (count <= tally->received || count == 0)
		return TALLY_SEEN;
	if (count - tally->received > TALLY_AHEAD)
		return TALLY_TOO_FAR;
	if (*word_of(tally, count) & bit_of(count))
		return TALLY_SEEN;
	*word_of(tally, count) |= bit_of(count);
	for (;;) {
		uint64_t next = tally->received + 1;

		if (!(*word_of(tally, next) & bit_of(next)))
			return TALLY_NEW;
		*word_of(tally, next) &= ~bit_of(next);
		tally->received = next;
	}
}

uint64_t tally_from_low(const struct tally *tally, uint32_t low)
{
	int32_t ahead = (int32_t)(low - (uint32_t)tally->received);

	if (ahead < 0 && (uint64_t)-(int64_t)ahead > tally->received)
		return 0;
	return tally->received + (uint64_t)(int64_t)ahead;
}

void tally_next(struct tally *tally)
{
	tally->received++;
}

enum tally_verdict tally_told(struct tally *tally, bool counts, uint32_t ppid)
{
	if (counts != (ppid != 0))
		return TALLY_UNLIKE;
	return counts ? tally_put(tally, tally_from_low(tally, ppid)) :
			TALLY_NEW;
}

const char *tally_text(enum tally_verdict verdict)
{
	static const char *const texts[] = {
		[TALLY_NEW] = "nothing",
		[TALLY_SEEN] = "a count that came before",
		[TALLY_TOO_FAR] = "a count too far ahead",
		[TALLY_UNLIKE] = "a count where none is due, or none where one is",
	};

	return texts[verdict];
}
