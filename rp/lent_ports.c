/* SPDX-License-Identifier: MIT */
#include "lent_ports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../mux/base/addr.h"
#include "../mux/base/listener.h"
#include "../mux/base/log.h"
#include "../mux/base/sock.h"
#include "../mux/conn/address.h"
#include "../mux/conn/conn.h"
#include "../mux/session/reverse.h"
#include "../mux/session/session.h"
#include "../mux/settings/incident.h"
#include "connects.h"
#include "options.h"
#include "quota.h"

struct lent_port {
	struct lent_ports *of;
	struct list member;
	uint16_t listener;	/* as LP numbers them */
	struct sockaddr_storage addr;
	struct listener *socket;
};

static struct lent_port *port_at(const struct list *pos)
{
	return list_entry(pos, struct lent_port, member);
}

static struct log *log_of(const struct lent_ports *l)
{
	return session_engine(l->session)->log;
}

static void port_free(struct lent_port *p)
{
	list_del(&p->member);
	listener_free(p->socket);
	connector_counts(p->of->connector, -1);
	free(p);
}

/* --- who comes --- */

static void refuse(struct lent_port *p, int fd,
		   const struct sockaddr_storage *peer, enum incident limit,
		   const char *why)
{
	char at[ADDR_TEXT], from[ADDR_TEXT];

	sock_reset(fd);
	if (session_notes(p->of->session, limit))
		log_warn(log_of(p->of), "session %u: a connection from %s to %s, and others, were reset: %s",
			 session_number(p->of->session), addr_text(peer, from),
			 addr_text(&p->addr, at), why);
}

/* @each in a second, and a second's worth at once. @due is when the next one would be even. */
static bool comes_too_soon(const struct lent_ports *l, int64_t *due,
			   unsigned int each)
{
	int64_t now = loop_now(session_engine(l->session)->loop);

	if (*due - now > NS_PER_SEC)
		return true;
	*due = (*due > now ? *due : now) + NS_PER_SEC / each;
	return false;
}

static void accepted(struct listener *socket, int fd,
		     const struct sockaddr_storage *peer)
{
	struct lent_port *p = listener_owner(socket);
	struct lent_ports *l = p->of;

	if (!session_is_up(l->session) || session_is_alone(l->session))
		sock_reset(fd);
	else if (comes_too_soon(l, &l->open_at, l->options->max_opens))
		refuse(p, fd, peer, INCIDENT_OPENS,
		       "more come in a second than --max-opens");
	else if (!connector_takes_lent(l->connector) ||
		 !connector_keeps(l->connector, fd))
		refuse(p, fd, peer, INCIDENT_DESCRIPTORS,
		       "no descriptor is left for them");
	else if (session_accept(l->session, fd, p->listener, peer))
		refuse(p, fd, peer, INCIDENT_CONNECTIONS,
		       "its session has no room for more");
	else
		connector_counts_lent(l->connector);
}

/* --- what is asked for --- */

static struct lent_port *find(const struct lent_ports *l, uint16_t listener)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &l->all) {
		if (port_at(pos)->listener == listener)
			return port_at(pos);
	}
	return NULL;
}

static int listen_on(struct lent_port *p)
{
	struct lent_ports *l = p->of;
	int fd = sock_tcp(p->addr.ss_family);

	if (fd >= 0 && !connector_keeps(l->connector, fd)) {
		close(fd);
		fd = -EMFILE;
	}
	if (fd >= 0)
		conn_prepare(fd);	/* and those it accepts */
	p->socket = listener_new(session_engine(l->session)->loop, log_of(l),
				 fd, &p->addr, addr_size(&p->addr), accepted, p);
	return p->socket ? 0 : errno;
}

/* 0 or an errno. */
static int lend(struct lent_ports *l, uint16_t listener,
		const struct sockaddr_storage *addr)
{
	struct lent_port *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return ENOMEM;
	p->of = l;
	p->listener = listener;
	p->addr = *addr;
	err = listen_on(p);
	if (err == EADDRINUSE)
		err = l->gives_way(l, listener, addr);
	if (!err && !p->socket)
		err = listen_on(p);
	if (err) {
		free(p);
		return err;
	}
	list_add_tail(&l->all, &p->member);
	connector_counts(l->connector, 1);
	return 0;
}

static enum wire_listening_result result_of(int err)
{
	switch (err) {
	case 0:
		return WIRE_LISTENING_YES;
	case EADDRINUSE:
		return WIRE_LISTENING_IN_USE;
	case EADDRNOTAVAIL:
		return WIRE_LISTENING_NOT_HERE;
	default:
		return sock_is_shortage(err) ? WIRE_LISTENING_LIMIT :
					       WIRE_LISTENING_FAILED;
	}
}

static void say_not(struct lent_ports *l, const struct sockaddr_storage *addr,
		    const char *why)
{
	char at[ADDR_TEXT];

	if (session_notes(l->session, INCIDENT_LISTEN))
		log_warn(log_of(l), "session %u of %s wants rp to listen on %s, and it does not: %s",
			 session_number(l->session), session_peer(l->session),
			 addr_text(addr, at), why);
}

static bool is_permitted(struct lent_ports *l,
			 const struct sockaddr_storage *addr)
{
	if (permits_cover(&l->options->permits, addr))
		return true;
	say_not(l, addr, "no --permit-listen covers it");
	return false;
}

/* Why it may not listen there, or YES. */
static enum wire_listening_result may_lend(struct lent_ports *l,
					   const struct sockaddr_storage *addr)
{
	if (!is_permitted(l, addr))
		return WIRE_LISTENING_DENIED;
	if (comes_too_soon(l, &l->try_at, LISTENERS_MAX)) {
		say_not(l, addr, "it is asked too often");
		return WIRE_LISTENING_LIMIT;
	}
	return WIRE_LISTENING_YES;
}

static void answer(struct lent_ports *l, uint16_t listener,
		   enum wire_listening_result result,
		   const struct sockaddr_storage *addr)
{
	session_listening(l->session, listener, result,
			  result ? 0 : addr_port(addr));
}

/* A copy of a wish may come late, and changes nothing. False: there is none yet. */
static bool answer_again(struct lent_ports *l, uint16_t listener,
			 const struct sockaddr_storage *addr)
{
	const struct lent_port *p = find(l, listener);

	if (p)
		answer(l, listener, addr_same(&p->addr, addr) ?
		       WIRE_LISTENING_YES : WIRE_LISTENING_FAILED, addr);
	return p;
}

void lent_ports_try(struct lent_ports *l, uint16_t listener,
		    const struct sockaddr_storage *addr)
{
	char at[ADDR_TEXT];
	int err;

	if (answer_again(l, listener, addr))
		return;
	/* Since others were asked SIGHUP may have taken the permit away. */
	if (!is_permitted(l, addr)) {
		answer(l, listener, WIRE_LISTENING_DENIED, addr);
		return;
	}
	err = lend(l, listener, addr);
	if (err == EINPROGRESS)
		return;
	if (err)
		say_not(l, addr, strerror(err));
	else if (session_notes(l->session, INCIDENT_CHURN))
		log_info(log_of(l), "session %u of %s: listening on %s for it",
			 session_number(l->session), session_peer(l->session),
			 addr_text(addr, at));
	answer(l, listener, result_of(err), addr);
}

void lent_ports_open(struct lent_ports *l, struct session *s, uint16_t listener,
		     const struct destination *at)
{
	struct sockaddr_storage addr = destination_address(at);
	enum wire_listening_result result;

	l->session = s;
	if (answer_again(l, listener, &addr))
		return;
	result = may_lend(l, &addr);
	if (result)
		answer(l, listener, result, &addr);
	else
		lent_ports_try(l, listener, &addr);
}

/* --- what is taken back --- */

static void take_back(struct lent_port *p, enum wire_listening_result result,
		      const char *why)
{
	struct lent_ports *l = p->of;
	char at[ADDR_TEXT];

	if (session_notes(l->session, result == WIRE_LISTENING_LIMIT ?
					INCIDENT_DESCRIPTORS : INCIDENT_CHURN))
		log_info(log_of(l), "session %u of %s: no longer listening on %s for it: %s",
			 session_number(l->session), session_peer(l->session),
			 addr_text(&p->addr, at), why);
	if (session_is_up(l->session))
		session_listening(l->session, p->listener, result, 0);
	port_free(p);
}

bool lent_ports_give_way(struct lent_ports *l,
			 const struct sockaddr_storage *addr)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &l->all) {
		if (!addr_same(&port_at(pos)->addr, addr))
			continue;
		take_back(port_at(pos), WIRE_LISTENING_IN_USE,
			  "it has no pipes, and a newer session wants it");
		return true;
	}
	return false;
}

bool lent_ports_give_up(struct lent_ports *l)
{
	if (list_empty(&l->all))
		return false;
	take_back(port_at(l->all.prev), WIRE_LISTENING_LIMIT,
		  "another one needs the descriptor");
	return true;
}

void lent_ports_review(struct lent_ports *l)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &l->all) {
		if (!permits_cover(&l->options->permits, &port_at(pos)->addr))
			take_back(port_at(pos), WIRE_LISTENING_DENIED,
				  "no --permit-listen covers it now");
	}
}

/* --- life --- */

void lent_ports_init(struct lent_ports *l, struct connector *connector,
		     const struct options *options, gives_way_fn gives_way)
{
	*l = (struct lent_ports){
		.connector = connector,
		.options = options,
		.gives_way = gives_way,
	};
	list_init(&l->all);
}

void lent_ports_fini(struct lent_ports *l)
{
	while (!list_empty(&l->all))
		port_free(port_at(l->all.next));
}

bool lent_ports_serve(const struct lent_ports *l)
{
	return !list_empty(&l->all) && !session_alone_since(l->session);
}

void lent_ports_print(const struct lent_ports *l, FILE *out)
{
	struct list *pos, *tmp;
	char at[ADDR_TEXT];

	list_each(pos, tmp, &l->all)
		fprintf(out, "  listening for it on %s\n",
			addr_text(&port_at(pos)->addr, at));
}
