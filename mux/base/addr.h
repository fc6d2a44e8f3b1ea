/* SPDX-License-Identifier: MIT */
/*
 * Addresses of IPv4 and IPv6 with their port, as sockets have them: from text, to text, and
 * compared. IPv6 that only wraps IPv4 is shown and compared as IPv4.
 */
#ifndef TM3_ADDR_H
#define TM3_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { ADDR_TEXT = 64 };	/* "[ipv6%scope]:port" and the end */

/* @least to 65535, digits alone. 0 or -1. */
int port_parse(const char *text, uint16_t least, uint16_t *port);
/*
 * "ADDR", "ADDR:PORT", "[V6]:PORT", or "PORT", which stands for that port of @dflt_host and is
 * no address if there is none (NULL). Numeric only. 0 or -1.
 */
int addr_parse(const char *text, const char *dflt_host, uint16_t dflt_port,
	       struct sockaddr_storage *addr, socklen_t *len);
/* "127.0.0.1:6000"; v4-mapped addresses are shown as IPv4. */
const char *addr_text(const struct sockaddr_storage *addr, char text[ADDR_TEXT]);
/* The address alone, without its port. */
const char *addr_host(const struct sockaddr_storage *addr, char text[ADDR_TEXT]);
/* Copies its IPv4 address, be it wrapped into IPv6 or not. False: it has none. */
bool addr_v4(const struct sockaddr_storage *addr, uint8_t v4[4]);
/* IPv6 that only wraps IPv4 becomes IPv4; any other stays as it is. */
void addr_unmap(struct sockaddr_storage *addr);
uint16_t addr_port(const struct sockaddr_storage *addr);
void addr_set_port(struct sockaddr_storage *addr, uint16_t port);
/* As bind() and connect() want it. */
socklen_t addr_size(const struct sockaddr_storage *addr);
bool addr_is_loopback(const struct sockaddr_storage *addr);
bool addr_is_any(const struct sockaddr_storage *addr);	/* 0.0.0.0 or :: */
bool addr_same_host(const struct sockaddr_storage *a,
		    const struct sockaddr_storage *b);
bool addr_same(const struct sockaddr_storage *a,	/* and port */
	       const struct sockaddr_storage *b);
/* Of address and port: an address may have many ports, and a port many addresses. */
uint32_t addr_hash(const struct sockaddr_storage *addr);

#endif
