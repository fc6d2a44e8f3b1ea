/* SPDX-License-Identifier: MIT */
#include "credit.h"

static uint64_t left(uint64_t limit, uint64_t used)
{
	return used < limit ? limit - used : 0;
}

uint64_t credit_left(const struct credit_out *out)
{
	return left(out->allowed, out->sent);
}

bool credit_allow(struct credit_out *out, uint64_t offset)
{
	if (offset <= out->allowed)
		return false;
	out->allowed = offset;
	return true;
}

bool credit_take(struct credit_in *in, uint64_t n)
{
	uint64_t limit = in->granted > in->early ? in->granted : in->early;

	in->taken += n;
	return in->taken <= limit;
}

uint64_t credit_grant(struct credit_in *in, uint64_t ahead)
{
	if (in->taken + ahead > in->granted)
		in->granted = in->taken + ahead;
	return in->granted;
}

void credit_begin_early(struct credit_in *in, uint64_t limit)
{
	in->early = in->taken + limit;
}

uint64_t early_left(const struct early *early, uint64_t by_use)
{
	uint64_t one = left(early->conn, by_use);
	uint64_t all = left(early->all, early->used);

	return one < all ? one : all;
}
