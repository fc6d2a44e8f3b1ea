/* SPDX-License-Identifier: MIT */
/*
 * Who may open pipes, and where connections may go.
 *
 * Pipes: everybody may open them until the first --allow; then only those that
 * some --allow covers.
 *
 * Destinations: the longest prefix among all --deny and --permit that cover one
 * decides, and --permit wins a tie. Without such a rule all is permitted but this
 * host's own addresses, loopback among them, which are for peers that come from
 * this host themselves. Some addresses no rule can open: "this" network, link-local, multicast, reserved and
 * broadcast, and those where clouds answer questions about the machine.
 *
 * Some IPv6 addresses lead to an IPv4 address that is written in them (see
 * access_embedded()). Each rule speaks of one family alone, so whoever asks must
 * ask for both addresses, or IPv6 would be a way around the rules of IPv4. What
 * is given as ::ffff:10.0.0.0/104 is the rule 10.0.0.0/8.
 *
 * No sockets.
 */
#ifndef TM3_RP_ACCESS_H
#define TM3_RP_ACCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "../mux/base/cidr.h"

enum {
	ACCESS_WHY = 128,
	ACCESS_TEXT = 52,	/* the longest address, its prefix, and the end */
};

struct access_rule {
	char text[ACCESS_TEXT];	/* as it was given */
	bool permit;
	struct cidr range;
};

struct access_rules {
	struct access_rule *rule;
	unsigned int n;
};

struct access {
	struct access_rules peers;
	struct access_rules destinations;
};

void access_init(struct access *a);
void access_fini(struct access *a);

/*
 * Add the rule @text ("10.0.0.0/8", "::1", ...). Returns 0, -EINVAL when it is no
 * such thing, -ENOMEM.
 */
int access_allow(struct access *a, const char *text);
int access_deny(struct access *a, const char *text);
int access_permit(struct access *a, const char *text);

/* May anybody open pipes? */
bool access_is_open(const struct access *a);
bool access_admits(const struct access *a, const struct sockaddr_storage *peer);

/*
 * May a peer connect to @dst? @local: the peer comes from this host; @own: @dst
 * is an address of this host. If not, the reason is put into @why.
 */
bool access_reaches(const struct access *a, const struct sockaddr_storage *dst,
		    bool own, bool local, char why[ACCESS_WHY]);

/*
 * Is @addr an IPv6 address that the kernel, or a translator on the way, may turn
 * into an IPv4 address? Then that one is put into @v4, with the same port. There may be
 * several, since some translators choose where it stands: @from is 0 for the first, and
 * is left for the next.
 *
 *	::ffff:0:0/96		mapped: the kernel itself connects by IPv4
 *	::/96			compatible, but for :: and ::1
 *	64:ff9b::/96		NAT64, its well-known prefix
 *	64:ff9b:1::/48		NAT64, prefixes of 48, 56, 64 or 96 bits of a network's own in it
 *	::ffff:0:0:0/96		stateless translation
 *	2002::/16		6to4
 */
bool access_embedded(const struct sockaddr_storage *addr, unsigned int *from,
		     struct sockaddr_storage *v4);

#endif
