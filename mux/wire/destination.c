/* SPDX-License-Identifier: MIT */
#include "destination.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number of the listener, in front of the peer's address. */
enum { LISTENER_LEN = 2 };

static struct destination of_bytes(enum destination_kind kind, const void *bytes,
				   size_t len, uint16_t port)
{
	struct destination d = {
		.kind = (uint8_t)kind, .len = (uint8_t)len, .port = port,
	};

	memcpy(d.bytes, bytes, len);
	return d;
}

struct destination destination_ipv4(const uint8_t addr[4], uint16_t port)
{
	return of_bytes(DESTINATION_IPV4, addr, 4, port);
}

struct destination destination_ipv6(const uint8_t addr[16], uint16_t port)
{
	return of_bytes(DESTINATION_IPV6, addr, 16, port);
}

struct destination destination_name(const char *name, size_t len, uint16_t port)
{
	if (!len || len > DESTINATION_NAME_MAX || memchr(name, 0, len))
		return (struct destination){ .kind = DESTINATION_NONE };
	return of_bytes(DESTINATION_NAME, name, len, port);
}

static size_t used(const struct destination *d)
{
	return offsetof(struct destination, bytes) + d->len +
	       (d->kind == DESTINATION_NAME);
}

struct destination *destination_keep(const struct destination *d,
				     struct destination_place *place)
{
	void *kept = used(d) <= sizeof(*place) ? place : malloc(used(d));

	return kept ? memcpy(kept, d, used(d)) : NULL;
}

void destination_forget(const struct destination *kept,
			const struct destination_place *place)
{
	if ((const void *)kept != place)
		free((void *)(uintptr_t)kept);
}

struct destination destination_copy(const struct destination *d)
{
	struct destination copy = { .kind = DESTINATION_NONE };

	memcpy(&copy, d, used(d));
	return copy;
}

bool destination_is_sound(const struct destination *d)
{
	switch (d->kind) {
	case DESTINATION_NONE:
		return d->len == 0;
	case DESTINATION_IPV4:
		return d->len == 4;
	case DESTINATION_IPV6:
		return d->len == 16;
	case DESTINATION_NAME:
		return d->len > 0 && !memchr(d->bytes, 0, d->len);
	}
	return false;
}

struct destination destination_listener(uint16_t listener,
					const struct destination *peer)
{
	struct destination d = {
		.kind = DESTINATION_LISTENER,
		.len = (uint8_t)(LISTENER_LEN + peer->len),
		.port = peer->port,
		.bytes = { (uint8_t)listener, (uint8_t)(listener >> 8) },
	};

	memcpy(d.bytes + LISTENER_LEN, peer->bytes, peer->len);
	return d;
}

bool destination_is_listener(const struct destination *d)
{
	return d->kind == DESTINATION_LISTENER &&
	       (d->len == LISTENER_LEN + 4 || d->len == LISTENER_LEN + 16);
}

uint16_t destination_listener_of(const struct destination *d)
{
	return (uint16_t)(d->bytes[0] | d->bytes[1] << 8);
}

struct destination destination_peer_of(const struct destination *d)
{
	const uint8_t *addr = d->bytes + LISTENER_LEN;

	return d->len == LISTENER_LEN + 4 ? destination_ipv4(addr, d->port) :
					    destination_ipv6(addr, d->port);
}

static void name_text(const struct destination *d,
		      char text[DESTINATION_NAME_MAX + 1])
{
	size_t i;

	for (i = 0; i < d->len; i++)
		text[i] = d->bytes[i] > 0x20 && d->bytes[i] < 0x7f ?
			(char)d->bytes[i] : '?';
	text[i] = '\0';
}

const char *destination_text(const struct destination *d,
			     char text[DESTINATION_TEXT])
{
	char host[DESTINATION_NAME_MAX + 1];
	struct destination peer;

	if (destination_is_listener(d)) {
		peer = destination_peer_of(d);
		d = &peer;
	}
	switch (d->kind) {
	case DESTINATION_IPV4:
		inet_ntop(AF_INET, d->bytes, host, sizeof(host));
		break;
	case DESTINATION_IPV6:
		inet_ntop(AF_INET6, d->bytes, host, sizeof(host));
		snprintf(text, DESTINATION_TEXT, "[%s]:%u", host, d->port);
		return text;
	case DESTINATION_NAME:
		name_text(d, host);
		break;
	default:
		snprintf(text, DESTINATION_TEXT, "nowhere");
		return text;
	}
	snprintf(text, DESTINATION_TEXT, "%s:%u", host, d->port);
	return text;
}
