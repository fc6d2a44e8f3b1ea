/* SPDX-License-Identifier: MIT */
/*
 * Where a connection wants to go: an IPv4 address, an IPv6 address or a name,
 * and a port. A SYN of the baseline can say the first alone, an OPEN of the
 * extension all three. An OPEN of RP's says which of LP's listeners a connection came
 * to, and from where.
 */
#ifndef TM3_DESTINATION_H
#define TM3_DESTINATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	DESTINATION_NAME_MAX = 255,
	DESTINATION_TEXT = DESTINATION_NAME_MAX + 9, /* "NAME:65535" and NUL */
	DESTINATION_SMALL = 8,	/* bytes of memory that one of IPv4 takes */
};

enum destination_kind {
	DESTINATION_NONE = 0,		/* UDP only */
	DESTINATION_IPV4 = 4,
	DESTINATION_IPV6 = 6,
	DESTINATION_NAME = 'n',
	DESTINATION_LISTENER = 'L',	/* in an OPEN of RP's alone */
};

struct destination {
	uint8_t kind;			/* enum destination_kind */
	uint8_t len;			/* 0, 4, 16, that of the name; a listener: 6, 18 */
	uint16_t port;			/* 0 where there is no address */
	/* As it is written: the first byte of an address first; a name ends in
	 * a NUL here, which is not counted and not sent. */
	uint8_t bytes[DESTINATION_NAME_MAX + 1];
};

struct destination destination_ipv4(const uint8_t addr[4], uint16_t port);
struct destination destination_ipv6(const uint8_t addr[16], uint16_t port);
/* @len bytes of a name. Kind NONE for one that is empty, too long or has a NUL. */
struct destination destination_name(const char *name, size_t len, uint16_t port);

/* Where a small one can be kept, and most are: those of IPv4. */
struct destination_place {
	_Alignas(struct destination) uint8_t bytes[DESTINATION_SMALL];
};

/*
 * A copy of @d in as much memory as its bytes need: in @place if that is enough, else in
 * memory of its own. It is not to be copied whole, but by destination_copy().
 * destination_forget() gives it back. NULL: out of memory.
 */
struct destination *destination_keep(const struct destination *d,
				     struct destination_place *place);
void destination_forget(const struct destination *kept,
			const struct destination_place *place);
struct destination destination_copy(const struct destination *d);

/* Length and name are of their kind, and it can be connected to: it is no listener. */
bool destination_is_sound(const struct destination *d);

/* What came to @listener from @peer, an address. */
struct destination destination_listener(uint16_t listener,
					const struct destination *peer);
/* Is it that? */
bool destination_is_listener(const struct destination *d);
/* Of one that is: which listener, and the peer. */
uint16_t destination_listener_of(const struct destination *d);
struct destination destination_peer_of(const struct destination *d);

/*
 * "192.0.2.1:80", "[2001:db8::1]:80", "example.org:80"; of a listener the peer alone. Of
 * a name, bytes that are not printable ASCII are shown as "?": it came from elsewhere.
 */
const char *destination_text(const struct destination *d,
			     char text[DESTINATION_TEXT]);

#endif
