/* SPDX-License-Identifier: MIT */
/*
 * Connections that begin at RP. LP asks RP to listen on an address, by a number of LP's
 * choice, the listener's. What RP accepts there is opened towards LP, which alone knows
 * where the connections of a listener go.
 *
 *	LP	session_listen(), after each role->listening() that says no as often as
 *		it likes; role->accepted() for each connection
 *	RP	role->listen(), answered by session_listening(); session_accept()
 *
 * A listener lives as long as its session, with or without pipes, or until RP says
 * that it listens no more.
 */
#ifndef TM3_REVERSE_H
#define TM3_REVERSE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "../wire/destination.h"
#include "../wire/wire_ext.h"

struct session;

enum { LISTENERS_MAX = 64 };	/* of a session; they are numbered from 0 */

/* Did both ends of the session agree to that, and is it up? */
bool session_reverses(const struct session *s);

/* LP: RP shall listen on @at, which must outlive the session. */
void session_listen(struct session *s, uint16_t listener,
		    const struct destination *at);

/* RP: whether it listens now, and on which port. */
void session_listening(struct session *s, uint16_t listener,
		       enum wire_listening_result result, uint16_t port);

/*
 * RP: opens a connection for @fd, which was accepted from @peer. Takes the socket on
 * success; -EAGAIN when no id or place is free. Half of the places are LP's.
 */
int session_accept(struct session *s, int fd, uint16_t listener,
		   const struct sockaddr_storage *peer);

#endif
