/* SPDX-License-Identifier: MIT */
#include "reserve.h"

static unsigned long at_least(unsigned long n, unsigned long least)
{
	return n > least ? n : least;
}

static unsigned long at_most(unsigned long n, unsigned long most)
{
	return n < most ? n : most;
}

struct reserve reserve_of(unsigned long limit, unsigned int pipes)
{
	unsigned long all = at_most(limit / 8, RESERVE_MAX);
	unsigned long lobby, left;

	all = at_least(at_least(all, 2UL * pipes), RESERVE_MIN);
	all = at_most(all, limit / 2);
	lobby = at_least(all / 4, pipes);
	left = all > lobby ? all - lobby : 0;
	return (struct reserve){
		.all = (unsigned int)all,
		.lobby = (unsigned int)lobby,
		.reception = (unsigned int)at_least(left * 2 / 3, 1),
	};
}
