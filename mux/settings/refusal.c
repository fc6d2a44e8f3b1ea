/* SPDX-License-Identifier: MIT */
#include "refusal.h"

const struct refusals_kind refusal_kinds[REFUSAL_KINDS] = {
	[REFUSAL_ALLOW] = { "allow", "pipes were reset: no --allow covers them" },
	[REFUSAL_SESSIONS] = { "sessions", "times there was no room for another session (--max-sessions, --max-sessions-each)" },
	[REFUSAL_WAITING] = { "waiting", "pipes were closed: too many waited" },
	[REFUSAL_GROUP] = { "group", "groups of pipes were not what rp was started for" },
	[REFUSAL_HELLO] = { "hello", "pipes were closed: they showed no key or said no HELLO" },
	[REFUSAL_ELSEWHERE] = { "elsewhere", "pipes were sent away: their session is of another address or key" },
	[REFUSAL_JOIN] = { "join", "pipes might not join their session" },
	[REFUSAL_PROTOCOL] = { "protocol", "times a connection, a pipe or a message was given up for what came" },
	[REFUSAL_DENIED] = { "denied", "connections, or addresses of a name, were denied" },
	[REFUSAL_CONNECTS] = { "connects", "times connections had to wait (--max-connects)" },
	[REFUSAL_OPENS] = { "opens", "times connections had to wait, or flows of datagrams and what came to lent ports were refused (--max-opens)" },
	[REFUSAL_EARLY] = { "early", "connections lost what came ahead of their SYN" },
	[REFUSAL_REORDER] = { "reorder", "connections were reset: they held most out of order" },
	[REFUSAL_GAP] = { "gap", "connections were reset: a message was missing too long" },
	[REFUSAL_QUEUE] = { "queue", "times connections were reset for what waits for them" },
	[REFUSAL_CONNECTIONS] = { "connections", "connections were refused: they take too much of --memory, or no place is left for them (--max-conns)" },
	[REFUSAL_FLOWS] = { "flows", "flows of datagrams were refused: their session has too many" },
	[REFUSAL_MEMORY] = { "memory", "times something of it was ended because memory was short" },
	[REFUSAL_DESCRIPTORS] = { "descriptors", "times there was no descriptor (ulimit -n)" },
	[REFUSAL_PORTS] = { "ports", "connections were refused: no local port was left" },
	[REFUSAL_LISTEN] = { "listen", "times rp was asked to listen and did not (--permit-listen, or it cannot)" },
	[REFUSAL_BEGUN] = { "begun", "sessions began, and no line tells of each", REFUSAL_FREE },
	[REFUSAL_CHURN] = { "churn", "times pipes or lent ports of its sessions came or went", REFUSAL_FREE },
};

_Static_assert((int)REFUSAL_KINDS <= (int)REFUSALS_KINDS, "there is a count for each");
