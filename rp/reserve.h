/* SPDX-License-Identifier: MIT */
/*
 * Descriptors that sockets to servers leave for pipes, and how many of them pipes may have that
 * belong to no session yet. Those in the lobby and in the reception have three quarters of the
 * reserve at most, so whoever opens pipes and says nothing leaves descriptors to accept the next
 * one with.
 *
 * The reserve is an eighth of all descriptors, but twice a whole group of the lobby where that
 * is more, up to half of all descriptors. The lobby has a place for a whole group in any case,
 * and the reception has one: where a group is more than fits into half of all descriptors,
 * pipes that wait may be more than the reserve.
 */
#ifndef TM3_RP_RESERVE_H
#define TM3_RP_RESERVE_H

enum {
	RESERVE_MIN = 4,	/* one in the lobby, one in the reception, two to accept with */
	RESERVE_MAX = 4096,	/* of which the lobby has a quarter, LOBBY_WAITING_MAX */
};

struct reserve {
	unsigned int all;
	unsigned int lobby, reception;	/* pipes that may wait in each */
};

/* Of @limit descriptors, where @pipes are a group of the lobby. */
struct reserve reserve_of(unsigned long limit, unsigned int pipes);

#endif
