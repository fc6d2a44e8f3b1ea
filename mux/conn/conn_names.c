/* SPDX-License-Identifier: MIT */
/*
 * How a connection's state and end are called, in statistics and reports.
 */
#include "conn.h"

const char *conn_end_name(enum conn_end end)
{
	static const char *const name[] = {
		[CONN_END_NONE] = "none",
		[CONN_END_LOCAL_FIN] = "local-fin",
		[CONN_END_LOCAL_RESET] = "local-reset",
		[CONN_END_PEER_FIN] = "peer-fin",
		[CONN_END_PEER_RESET] = "peer-reset",
		[CONN_END_REFUSED] = "refused",
		[CONN_END_UNREACHABLE] = "unreachable",
		[CONN_END_TIMEOUT] = "timeout",
		[CONN_END_DENIED] = "denied",
		[CONN_END_NO_NAME] = "no-name",
		[CONN_END_LIMIT] = "limit",
		[CONN_END_PROTOCOL] = "protocol",
		[CONN_END_SESSION] = "session-lost",
		[CONN_END_SHUTDOWN] = "shutdown",
		[CONN_END_IDLE] = "idle",
	};

	return name[end];
}

const char *conn_state_name(enum conn_state state)
{
	static const char *const name[] = {
		[CONN_WAIT] = "waiting",
		[CONN_CONNECTING] = "connecting",
		[CONN_OPEN] = "open",
		[CONN_DRAINING] = "draining",
		[CONN_HEEDING] = "heeding",
		[CONN_LINGERING] = "lingering",
		[CONN_CLOSED] = "closed",
	};

	return name[state];
}
