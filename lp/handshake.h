/* SPDX-License-Identifier: MIT */
/*
 * SOCKS5 on sockets: everybody who connected and has not been handed to the
 * engine yet, or is being told why not.
 *
 *	talking		greeting and request, HANDSHAKE_MS in all
 *	looking up	the name that was asked for
 *	asking		rp, with --socks-reply late, whether it reaches the
 *			destination
 *	closing		the answer "no" was sent; reading on until the
 *			client's FIN, LINGER_MS at most, or the kernel
 *			would send a reset that may overtake the
 *			answer
 *
 * Who asked for UDP ASSOCIATE is association.h's from the answer on.
 *
 * Without --socks-reply late success is told before anything is known of the
 * destination: connections open without waiting.
 */
#ifndef TM3_HANDSHAKE_H
#define TM3_HANDSHAKE_H

#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

struct handshakes;
struct proxy;

enum {
	HANDSHAKE_MS = 10000,
	/* At a time; past it whoever talks longest makes place. */
	HANDSHAKES_MAX = 8192,
};

/* NULL on failure, which was said. */
struct handshakes *handshakes_new(struct proxy *p,
				  const struct sockaddr_storage *addr,
				  socklen_t len);
/* Resets them all. */
void handshakes_free(struct handshakes *hs);

/*
 * What came of the connection that a handshake, @asker, had proxy_ask() open: rp
 * answered with @result, an enum wire_synack_result, or it ended before.
 */
void handshake_answered(void *asker, uint8_t result);
void handshake_lost(void *asker);

/* Resets those that wait for a name, or for rp. */
void handshakes_drop_waiting(struct handshakes *hs);

void handshakes_print(const struct handshakes *hs, FILE *out);

#endif
