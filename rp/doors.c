/* SPDX-License-Identifier: MIT */
#include "doors.h"

#include <string.h>

#include "../mux/base/addr.h"
#include "../mux/base/log.h"
#include "../mux/base/loop.h"
#include "../mux/settings/incident.h"

void doors_init(struct doors *doors, struct log *log,
		struct incidents *incidents,
		const struct sockaddr_storage *home)
{
	memset(doors, 0, sizeof(*doors));
	doors->log = log;
	doors->incidents = incidents;
	doors->home = *home;
}

void doors_open(struct doors *doors, unsigned int path, int64_t now)
{
	doors->door[path].open_until = now + DOORS_OPEN_S * NS_PER_SEC;
}

bool doors_admit(struct doors *doors, unsigned int path,
		 const struct sockaddr_storage *peer, int64_t now,
		 unsigned int session)
{
	struct door *door = &doors->door[path];
	const struct sockaddr_storage *known =
		door->from.ss_family ? &door->from : &doors->home;
	char text[ADDR_TEXT];

	if (!addr_same_host(known, peer)) {
		if (now >= door->open_until)
			return false;
		door->open_until = 0;
		if (incidents_note_peer(doors->incidents, INCIDENT_CHURN,
					&doors->home))
			log_info(doors->log, "session %u: pipes of path %u come from %s",
				 session, path, addr_host(peer, text));
	}
	door->from = *peer;
	return true;
}
