/* SPDX-License-Identifier: MIT */
#include "refusal.h"

const struct refusals_kind refusal_kinds[REFUSAL_KINDS] = {
	[REFUSAL_ALLOW] = { .name = "allow", .text = "pipes were reset: no --allow covers them" },
	[REFUSAL_SESSIONS] = { .name = "sessions", .text = "times there was no room for another session (--max-sessions, --max-sessions-each)" },
	[REFUSAL_WAITING] = { .name = "waiting", .text = "pipes were closed: too many waited" },
	[REFUSAL_GROUP] = { .name = "group", .text = "groups of pipes were not what rp was started for" },
	[REFUSAL_HELLO] = { .name = "hello", .text = "pipes were closed: they showed no key or said no HELLO that will do" },
	[REFUSAL_ELSEWHERE] = { .name = "elsewhere", .text = "pipes were sent away: their session is of another address or key" },
	[REFUSAL_JOIN] = { .name = "join", .text = "pipes might not join their session" },
	[REFUSAL_PROTOCOL] = { .name = "protocol", .text = "times a connection, a pipe or a message was given up for what came", .lines = REFUSAL_LINES },
	[REFUSAL_DENIED] = { .name = "denied", .text = "connections, or addresses of a name, were denied" },
	[REFUSAL_CONNECTS] = { .name = "connects", .text = "times connections had to wait (--max-connects)" },
	[REFUSAL_OPENS] = { .name = "opens", .text = "times connections had to wait, or flows of datagrams and what came to lent ports were refused (--max-opens)" },
	[REFUSAL_NAMES] = { .name = "names", .text = "times names had to wait for others that are looked up" },
	[REFUSAL_EARLY] = { .name = "early", .text = "connections lost what came ahead of their SYN" },
	[REFUSAL_REORDER] = { .name = "reorder", .text = "connections were reset: they held most out of order" },
	[REFUSAL_GAP] = { .name = "gap", .text = "connections were reset: a message was missing too long" },
	[REFUSAL_QUEUE] = { .name = "queue", .text = "times connections were reset for what waits for them" },
	[REFUSAL_CONNECTIONS] = { .name = "connections", .text = "connections were refused: they take too much of --memory, or no place is left for them (--max-conns)" },
	[REFUSAL_FLOWS] = { .name = "flows", .text = "flows of datagrams, or SOCKS5's UDP associations, were refused: there are too many" },
	[REFUSAL_MEMORY] = { .name = "memory", .text = "times something of it was refused or ended because memory was short" },
	[REFUSAL_DESCRIPTORS] = { .name = "descriptors", .text = "times there was no descriptor (ulimit -n)" },
	[REFUSAL_PORTS] = { .name = "ports", .text = "connections, or UDP associations, were refused: no local port was left" },
	[REFUSAL_LISTEN] = { .name = "listen", .text = "times rp was asked to listen and did not (--permit-listen, or it cannot)" },
	[REFUSAL_BEGUN] = { .name = "begun", .text = "sessions began, and no line tells of each", .lines = REFUSAL_LINES, .in_order = true },
	[REFUSAL_CHURN] = { .name = "churn", .text = "times pipes or lent ports of its sessions came or went", .lines = REFUSAL_LINES, .in_order = true },
	[REFUSAL_CLIENTS] = { .name = "clients", .text = "connections were reset: lp cannot relay them", .lines = REFUSAL_LINES },
};

_Static_assert((int)REFUSAL_KINDS <= (int)REFUSALS_KINDS, "there is a count for each");
