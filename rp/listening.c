/* SPDX-License-Identifier: MIT */
#include "listening.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../mux/base/addr.h"
#include "../mux/base/log.h"
#include "../mux/base/plural.h"
#include "../mux/wire/wire.h"
#include "entrances.h"
#include "options.h"

/* The addresses of one kind, on the way to being listened on. */
struct listening {
	struct entrances *entrances;
	const struct options *options;
	bool extended;
	struct log *log;
	unsigned int n;		/* of its entrances so far */
	struct ports *ports;
};

/* What may help, in two parts around the option that sets the address. */
static const char *const *hint(int err)
{
	static const char *const none[2];
	static const char *const in_use[2] = {
		"; is another rp running? ", " chooses another port",
	};

	return err == EADDRINUSE ? in_use : none;
}

static const char *plain_hint(int err)
{
	if (err == EACCES)
		return "; ports below 1024 are for root";
	if (err == EMFILE)
		return "; more descriptors: ulimit -n";
	return "";
}

/* " over sctp", for a line about pipes of that @kind. */
static const char *over_transport(enum transport kind)
{
	switch (kind) {
	case TRANSPORT_MPTCP:
		return " over mptcp or tcp";
	case TRANSPORT_SCTP:
		return " over sctp";
	case TRANSPORT_TCP:
		break;
	}
	return "";
}

/* The extension, by default: it goes with an address of --listen, and rp also without it. */
static bool is_by_the_way(const struct listening *l)
{
	return l->extended && !l->options->extended_meant;
}

/* None of this host's yet. By the way: that of --listen is awaited. */
static void await(const struct listening *l, struct sockaddr_storage addr)
{
	if (is_by_the_way(l))
		addr_set_port(&addr, WIRE_PORT);
	addr_text(&addr, l->ports->awaited);
}

static void say_cannot(const struct listening *l, enum transport kind,
		       const struct sockaddr_storage *addr, int err)
{
	const char *option = l->extended ? "--extended" : "--listen";
	const char *const *parts = hint(err);
	char text[ADDR_TEXT];

	addr_text(addr, text);
	if (err == EADDRNOTAVAIL)
		await(l, *addr);
	else if (is_by_the_way(l))
		log_warn(l->log, "the extension is not spoken on %s%s: %s",
			 text, over_transport(kind), strerror(err));
	else if (parts[0])
		log_error(l->log, "cannot listen on %s%s: %s%s%s%s", text,
			  over_transport(kind), strerror(err), parts[0], option,
			  parts[1]);
	else
		log_error(l->log, "cannot listen on %s%s: %s%s", text,
			  over_transport(kind), strerror(err), plain_hint(err));
}

static int listen_for(struct listening *l, enum transport kind,
		      const struct sockaddr_storage *addr, socklen_t len)
{
	int err = entrances_open(l->entrances, kind, addr, len);

	if (err)
		say_cannot(l, kind, addr, -err);
	else
		l->n++;
	return err;
}

/*
 * An MPTCP listener accepts TCP connections too. SCTP has ports of its own. If
 * the kernel chose TCP's port, SCTP listens on the same number.
 */
static int listen_on(struct listening *l, const struct options_listen *where)
{
	const struct transport_set *set = &l->options->settings.transports;
	bool mptcp = transport_set_has(set, TRANSPORT_MPTCP);
	struct sockaddr_storage addr = where->addr;
	unsigned int before = l->n;
	enum transport kind;
	int err = 0;

	if (mptcp || transport_set_has(set, TRANSPORT_TCP))
		err = listen_for(l, mptcp ? TRANSPORT_MPTCP : TRANSPORT_TCP,
				 &addr, where->len);
	if (err || !transport_set_has(set, TRANSPORT_SCTP))
		return err;
	if (l->n > before)
		addr = *entrances_address(l->entrances, before, &kind);
	return listen_for(l, TRANSPORT_SCTP, &addr, where->len);
}

/* --- sockets that were handed over --- */

static bool is_listed(const struct options_listen *where, unsigned int n,
		      const struct sockaddr_storage *addr)
{
	while (n--) {
		if (addr_same(&where[n].addr, addr))
			return true;
	}
	return false;
}

static bool is_for(const struct listening *l, const struct handed_socket *s)
{
	const struct options *o = l->options;
	bool pipes = is_listed(o->listen, o->listens, &s->addr);
	bool extended = is_listed(o->extended, o->extendeds, &s->addr);

	if (!strcmp(s->name, "pipes") || !strcmp(s->name, "extended"))
		return l->extended == !strcmp(s->name, "extended");
	if (pipes || extended)
		return l->extended ? extended : pipes;
	return addr_port(&s->addr) ==
	       (l->extended ? WIRE_PORT_EXTENDED : WIRE_PORT);
}

static int adopt(struct listening *l, struct handed_socket *s)
{
	int fd = handed_take(s);
	enum transport kind;
	int err = fd;

	if (fd >= 0) {
		kind = transport_of(fd);
		if (!transport_set_has(&l->options->settings.transports, kind)) {
			log_error(l->log, "a socket of %s was handed over, "
				  "which is not of --pipe",
				  transport_name(kind));
			close(fd);
			return -EINVAL;
		}
		err = entrances_adopt(l->entrances, kind, fd);
	}
	if (err)
		log_error(l->log, "a socket that was handed over cannot be "
			  "used: %s", strerror(-err));
	return err;
}

static int adopt_all(struct listening *l)
{
	struct handed *h = &l->ports->handed;
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < h->n; i++) {
		if (!h->socket[i].taken && is_for(l, &h->socket[i]))
			err = adopt(l, &h->socket[i]);
	}
	return err;
}

static bool is_open(const struct listening *l,
		    const struct options_listen *where)
{
	const struct sockaddr_storage *addr;
	enum transport kind;
	unsigned int i;

	for (i = 0; (addr = entrances_address(l->entrances, i, &kind)); i++) {
		if (addr_port(addr) && addr_same(addr, &where->addr))
			return true;
	}
	return false;
}

int listening_open(struct entrances *entrances, const struct options *options,
		   bool extended, struct log *log, struct ports *ports)
{
	struct listening l = { entrances, options, extended, log, 0, ports };
	const struct options_listen *where = extended ? options->extended :
					     options->listen;
	unsigned int n = extended ? options->extendeds : options->listens;
	bool given = extended ? options->extended_given : options->listen_given;
	unsigned int i;
	int err = adopt_all(&l);

	if (err)
		return err;
	for (i = 0; i < n; i++) {
		if (ports->handed.n && (!given || is_open(&l, &where[i])))
			continue;
		err = listen_on(&l, &where[i]);
		if (err == -EADDRNOTAVAIL || (err && !is_by_the_way(&l)))
			return err;
	}
	return 0;
}

void listening_say(const struct entrances *entrances,
		   const struct options *options, bool extended,
		   struct log *log)
{
	unsigned int n = options->pipes;
	const struct sockaddr_storage *addr;
	char text[ADDR_TEXT];
	enum transport kind;
	unsigned int i;

	for (i = 0; (addr = entrances_address(entrances, i, &kind)); i++) {
		addr_text(addr, text);
		if (extended)
			log_info(log, "listening on %s for pipes of the "
				 "extension%s%s", text, over_transport(kind),
				 options->keys.n ? ", with a key" : "");
		else
			log_info(log, "listening on %s for %u pipe%s%s", text,
				 n, plural(n), over_transport(kind));
	}
}

static bool all_loopback(const struct entrances *entrances)
{
	const struct sockaddr_storage *addr;
	enum transport kind;
	unsigned int i;

	for (i = 0; (addr = entrances_address(entrances, i, &kind)); i++) {
		if (!addr_is_loopback(addr))
			return false;
	}
	return true;
}

void listening_say_who_may(const struct options *o,
			   const struct entrances *baseline,
			   const struct entrances *extended, struct log *log)
{
	if (!access_is_open(&o->access) ||
	    (all_loopback(baseline) &&
	     (o->keys.n || all_loopback(extended))))
		return;
	log_warn(log, "anybody may open pipes and reach the network through "
		 "this proxy; --allow CIDR narrows it");
}

void listening_say_if_in_vain(const struct options *o,
			      const struct entrances *extended, struct log *log)
{
	enum transport kind;

	if (o->permits.n && !entrances_address(extended, 0, &kind))
		log_warn(log, "--permit-listen permits nothing: lp asks for it in the extension, which is not spoken here (--extended)");
}
