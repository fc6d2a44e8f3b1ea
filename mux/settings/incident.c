/* SPDX-License-Identifier: MIT */
#include "incident.h"

const struct incidents_kind incident_kinds[INCIDENT_KINDS] = {
	[INCIDENT_ALLOW] = { .name = "allow", .text = "pipes were reset: no --allow covers them" },
	[INCIDENT_SESSIONS] = { .name = "sessions", .text = "times there was no room for another session (--max-sessions, --max-sessions-each)" },
	[INCIDENT_WAITING] = { .name = "waiting", .text = "pipes were closed: too many waited" },
	[INCIDENT_GROUP] = { .name = "group", .text = "groups of pipes were not what rp was started for" },
	[INCIDENT_HELLO] = { .name = "hello", .text = "pipes were closed: they showed no key or said no HELLO that will do" },
	[INCIDENT_ELSEWHERE] = { .name = "elsewhere", .text = "pipes were sent away: their session is of another address or key" },
	[INCIDENT_JOIN] = { .name = "join", .text = "pipes might not join their session" },
	[INCIDENT_PROTOCOL] = { .name = "protocol", .text = "times a connection, a pipe or a message was given up for what came", .lines = INCIDENT_LINES },
	[INCIDENT_DENIED] = { .name = "denied", .text = "connections, or addresses of a name, were denied" },
	[INCIDENT_CONNECTS] = { .name = "connects", .text = "times connections had to wait (--max-connects)" },
	[INCIDENT_OPENS] = { .name = "opens", .text = "times connections had to wait, or flows of datagrams and what came to lent ports were refused (--max-opens)" },
	[INCIDENT_NAMES] = { .name = "names", .text = "times names had to wait for others that are looked up" },
	[INCIDENT_EARLY] = { .name = "early", .text = "connections lost what came ahead of their SYN" },
	[INCIDENT_REORDER] = { .name = "reorder", .text = "connections were reset: they held most out of order" },
	[INCIDENT_GAP] = { .name = "gap", .text = "connections were reset: a message was missing too long" },
	[INCIDENT_QUEUE] = { .name = "queue", .text = "times connections were reset for what waits for them" },
	[INCIDENT_CONNECTIONS] = { .name = "connections", .text = "connections were refused: they take too much of --memory, or no place is left for them (--max-conns)" },
	[INCIDENT_FLOWS] = { .name = "flows", .text = "flows of datagrams, or SOCKS5's UDP associations, were refused: there are too many" },
	[INCIDENT_MEMORY] = { .name = "memory", .text = "times something of it was refused or ended because memory was short" },
	[INCIDENT_DESCRIPTORS] = { .name = "descriptors", .text = "times there was no descriptor (ulimit -n)" },
	[INCIDENT_PORTS] = { .name = "ports", .text = "connections, or UDP associations, were refused: no local port was left" },
	[INCIDENT_LISTEN] = { .name = "listen", .text = "times rp was asked to listen and did not (--permit-listen, or it cannot)" },
	[INCIDENT_BEGUN] = { .name = "begun", .text = "sessions began, and no line tells of each", .lines = INCIDENT_LINES, .in_order = true },
	[INCIDENT_CHURN] = { .name = "churn", .text = "times pipes or lent ports of its sessions came or went", .lines = INCIDENT_LINES, .in_order = true },
	[INCIDENT_CLIENTS] = { .name = "clients", .text = "connections were reset: lp cannot relay them", .lines = INCIDENT_LINES },
};

_Static_assert((int)INCIDENT_KINDS <= (int)INCIDENTS_KINDS, "there is a count for each");
