/* SPDX-License-Identifier: MIT */
#include "stall.h"

#include "../base/loop.h"
#include "../settings/limits.h"

static void settle(struct stall *s, int64_t cost, int64_t now, uint64_t taken)
{
	s->spent += cost;
	if (s->spent < 0)
		s->spent = 0;
	s->at = now;
	s->taken = taken;
}

/* Unused time is not saved up: the account never falls below 0. */
void stall_begin(struct stall *s, int64_t now, uint64_t taken)
{
	settle(s, -((now - s->at) / STALL_SHARE), now, taken);
}

void stall_charge(struct stall *s, int64_t now, uint64_t taken)
{
	double needed = (double)(taken - s->taken) / STALL_RATE * NS_PER_SEC;

	settle(s, now - s->at - (int64_t)needed, now, taken);
}

void stall_excuse(struct stall *s, int64_t now, uint64_t taken)
{
	settle(s, 0, now, taken);
}

bool stall_is_spent(const struct stall *s)
{
	return s->spent >= STALL_MS * NS_PER_MS;
}
