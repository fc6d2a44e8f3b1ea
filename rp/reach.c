/* SPDX-License-Identifier: MIT */
#include "reach.h"

#include <stdio.h>

#include "../mux/base/host.h"
#include "entrances.h"

static bool is_an_entrance(const struct reach *r,
			   const struct sockaddr_storage *to)
{
	unsigned int i;

	for (i = 0; i < REACH_ENTRANCES; i++) {
		if (entrances_listen_at(r->entrances[i], to))
			return true;
	}
	return false;
}

static bool allows(const struct reach *r, const struct sockaddr_storage *to,
		   bool local, char why[ACCESS_WHY])
{
	bool own = host_has(r->host, to);

	if (own && is_an_entrance(r, to)) {
		snprintf(why, ACCESS_WHY, "it is where rp itself listens");
		return false;
	}
	return access_reaches(r->access, to, own, local, why);
}

bool reach_allows(const struct reach *r, const struct sockaddr_storage *to,
		  bool local, char why[ACCESS_WHY])
{
	struct sockaddr_storage v4;
	unsigned int from = 0;

	if (!allows(r, to, local, why))
		return false;
	while (access_embedded(to, &from, &v4)) {
		if (!allows(r, &v4, local, why))
			return false;
	}
	return true;
}
