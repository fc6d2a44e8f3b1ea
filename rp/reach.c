/* SPDX-License-Identifier: MIT */
#include "reach.h"

#include <stdio.h>

#include "host.h"
#include "lobby.h"

static bool allows(const struct reach *r, const struct sockaddr_storage *to,
		   bool local, char why[ACCESS_WHY])
{
	bool own = host_has(r->host, to);

	if (own && lobby_listens_at(r->lobby, to)) {
		snprintf(why, ACCESS_WHY, "it is where rp itself listens");
		return false;
	}
	return access_reaches(r->access, to, own, local, why);
}

bool reach_allows(const struct reach *r, const struct sockaddr_storage *to,
		  bool local, char why[ACCESS_WHY])
{
	struct sockaddr_storage v4;

	if (!allows(r, to, local, why))
		return false;
	return !access_embedded(to, &v4) || allows(r, &v4, local, why);
}
