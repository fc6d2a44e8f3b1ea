/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "proxy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../mux/base/log.h"
#include "../mux/base/resolver.h"
#include "../mux/base/seldom.h"
#include "../mux/base/sock.h"
#include "../mux/conn/conn.h"
#include "../mux/session/flow.h"
#include "../mux/session/greeting.h"
#include "../mux/session/session.h"
#include "../mux/wire/wire.h"
#include "dialer.h"
#include "forward.h"
#include "handshake.h"
#include "options.h"
#include "origin.h"
#include "redirect.h"
#include "remote_forward.h"
#include "tproxy.h"
#include "udp_forward.h"

enum { RESOLVER_THREADS = 8 };

/* Applications wait for an id for so long at most. */
#define ID_WAIT_MAX NS_PER_SEC

/* --- room --- */

static void say_full(struct proxy *p, int64_t wait)
{
	if (!seldom(&p->said_at, p->loop))
		return;
	if (wait > ID_WAIT_MAX)
		log_warn(p->log, "all %d connection ids are in use or rest for "
			 "%d s after it: connections are refused for %.0f s",
			 WIRE_ID_LP_MAX, REST_SECONDS,
			 (double)wait / (double)NS_PER_SEC);
	else
		log_warn(p->log, "as many connections as there is room for "
			 "(--max-conns, or ids that must rest): more have to "
			 "wait");
}

/*
 * A session that failed is still there until it ends, but takes nobody; nor
 * does one that has been without pipes for too long.
 */
static bool is_up(const struct proxy *p)
{
	return p->session && !p->stopping && session_is_up(p->session) &&
	       !session_is_alone(p->session);
}

/*
 * Call this whenever there may be room again, or none any more. Who would have to
 * wait for long is not left waiting: what is accepted is refused then.
 */
static void update_room(struct proxy *p)
{
	bool full = is_up(p) && !session_has_room(p->session);
	int64_t wait = full ? session_next_id_in(p->session) : 0;
	unsigned int i;

	if (full == p->full)
		return;
	p->full = full;
	for (i = 0; i < p->nways_in; i++)
		listener_pause(p->ways_in[i].listener,
			       full && wait <= ID_WAIT_MAX);
	if (full)
		say_full(p, wait);
}

static void room(struct session *s)
{
	update_room(session_owner(s));
}

/* --- sessions --- */

static void drop_waiting(struct proxy *p)
{
	unsigned int i;

	if (p->socks)
		handshakes_drop_waiting(p->socks);
	for (i = 0; i < p->nforwards; i++)
		forward_drop_waiting(p->forwards[i]);
}

static void ended(struct session *s)
{
	struct proxy *p = session_owner(s);

	remote_forwards_end(p->remote);
	p->session = NULL;
	joiner_stop(&p->joiner);
	drop_waiting(p);
	update_room(p);
	if (p->stopping)
		loop_stop(p->loop);
	else if (session_is_unknown(s))
		dialer_begin_anew(p->dialer, session_why(s));
	else
		dialer_lost(p->dialer, session_why(s));
}

static void roamed(struct host *host)
{
	struct proxy *p = container_of(host, struct proxy, host);

	if (p->stopping)
		return;
	dialer_roam(p->dialer);
	if (p->session)
		session_roam(p->session, host);
	joiner_roam(&p->joiner, host);
}

static void lacks(struct session *s)
{
	struct proxy *p = session_owner(s);

	joiner_look(&p->joiner);
	update_room(p);
}

static void joined(struct session *s)
{
	struct proxy *p = session_owner(s);

	joiner_welcomed(&p->joiner);
}

static void answered(struct session *s, struct conn *c, uint8_t result)
{
	(void)s;
	if (c->asker)
		handshake_answered(c->asker, result);
}

static void moved(struct session *s, struct conn *c, int from)
{
	(void)s;
	(void)from;
	if (c->state != CONN_CLOSED)
		return;
	if (!c->ours)
		remote_forwards_closed(c);
	else if (c->asker)
		handshake_lost(c->asker);
}

static void listening(struct session *s, uint16_t listener, uint8_t result,
		      uint16_t port)
{
	struct proxy *p = session_owner(s);

	remote_forwards_listening(p->remote, listener, result, port);
}

static void remote_accepted(struct session *s, struct conn *c)
{
	struct proxy *p = session_owner(s);

	remote_forwards_accepted(p->remote, c);
}

static const struct session_role role = {
	.answered = answered,
	.listening = listening,
	.accepted = remote_accepted,
	.moved = moved,
	.room = room,
	.lacks = lacks,
	.joined = joined,
	.ended = ended,
};

static int dialed(void *owner, const int *fds, unsigned int n)
{
	struct proxy *p = owner;

	p->session = greet_baseline(p->engine, &role, p, dialer_peer(p->dialer),
				 fds, n);
	if (!p->session)
		return -ENOMEM;
	remote_forwards_begin(p->remote);
	return 0;
}

static int welcomed(void *owner, const struct wire_hello *hello,
		    const struct wire_welcome *welcome,
		    struct conduit conduit,
		    const struct sockaddr_storage *addr)
{
	struct proxy *p = owner;
	char peer[ADDR_TEXT];

	p->session = greet_welcomed(p->engine, &role, p, addr_text(addr, peer),
				    hello, welcome, conduit);
	if (!p->session)
		return -EPROTO;
	joiner_start(&p->joiner, p->session, addr);
	remote_forwards_begin(p->remote);
	return 0;
}

static const struct dialer_ops dialer_ops = {
	.dialed = dialed,
	.welcomed = welcomed,
};

int proxy_ready(const struct proxy *p)
{
	if (!is_up(p))
		return -ENETDOWN;
	return session_has_room(p->session) ? 0 : -EAGAIN;
}

bool proxy_carries_names(const struct proxy *p)
{
	return !p->options->names_here && is_up(p) &&
	       session_is_extended(p->session);
}

int proxy_family(const struct proxy *p)
{
	return is_up(p) && session_is_extended(p->session) ? AF_UNSPEC :
	       AF_INET;
}

int proxy_ready_for(const struct proxy *p, const struct destination *to)
{
	int err = proxy_ready(p);

	if (err || to->kind == DESTINATION_IPV4 ||
	    session_is_extended(p->session))
		return err;
	return -EAFNOSUPPORT;
}

int proxy_open(struct proxy *p, int fd, const struct destination *to)
{
	int err = proxy_ready_for(p, to);

	if (!err)
		err = session_open(p->session, fd, to);
	update_room(p);
	return err;
}

bool proxy_carries_flows(const struct proxy *p)
{
	return is_up(p) && session_carries_flows(p->session);
}

struct flow *proxy_open_flow(struct proxy *p, const struct destination *to,
			     const struct flow_ops *ops, void *owner)
{
	struct flow *f = NULL;

	if (proxy_carries_flows(p)) {
		if (flows_are_full(p->session))
			tproxy_make_room(p);
		f = flow_open(p->session, to, ops, owner);
	}
	update_room(p);
	return f;
}

const char *proxy_no_flows(const struct proxy *p)
{
	if (!is_up(p))
		return "there are no pipes";
	if (!session_is_extended(p->session))
		return "rp was reached by the baseline, which carries TCP alone";
	if (!session_carries_flows(p->session))
		return "this rp does not carry UDP: it is an older one, or has --udp off";
	return "there are as many connections and flows as there may be";
}

bool proxy_can_ask(const struct proxy *p)
{
	return p->options->late_reply && is_up(p) &&
	       session_is_extended(p->session);
}

struct conn *proxy_ask(struct proxy *p, const struct destination *to,
		       void *asker)
{
	struct conn *c = session_ask(p->session, to);

	if (c)
		c->asker = asker;
	update_room(p);
	return c;
}

/* --- ways in --- */

/* Its name is the option's, without dashes. */
static struct handed_socket *handed_for(const struct proxy *p,
					const struct sockaddr_storage *addr,
					const struct purpose *purpose)
{
	struct handed *h = &p->ports->handed;
	struct handed_socket *s = handed_named(h, purpose->option + 2);

	return s ? s : handed_at(h, addr);
}

bool proxy_listen(struct proxy *p, const struct sockaddr_storage *addr,
		  socklen_t len, accepted_fn accepted, void *owner,
		  const struct purpose *purpose)
{
	struct way_in_open *way = &p->ways_in[p->nways_in];
	struct handed_socket *handed = handed_for(p, addr, purpose);
	int fd = handed ? handed_take(handed) : sock_tcp(addr->ss_family);
	char text[ADDR_TEXT];

	way->purpose = *purpose;
	if (purpose->keeps_syns)
		origin_keep_syns(fd);
	way->listener = handed && fd >= 0 ?
		listener_adopt(p->loop, p->log, fd, accepted, owner) :
		listener_new(p->loop, p->log, fd, addr, len, accepted, owner);
	if (!way->listener) {
		p->listen_err = -errno;
		p->listen_addr = *addr;
		if (errno == EADDRNOTAVAIL)
			return false;
		log_error(p->log, "cannot listen on %s: %s; %s chooses another "
			  "address", addr_text(addr, text), strerror(errno),
			  purpose->option);
		return false;
	}
	listener_arm_resets(way->listener);
	p->nways_in++;
	return true;
}

static void announce(const struct proxy *p, const struct way_in_open *way)
{
	const struct purpose *purpose = &way->purpose;
	char text[ADDR_TEXT];

	addr_text(listener_addr(way->listener), text);
	log_info(p->log, "%s %s%s%s", purpose->what, text,
		 purpose->to ? " to " : "", purpose->to ? purpose->to : "");
	if (!addr_is_loopback(listener_addr(way->listener)))
		log_warn(p->log, "%s %s serves everybody who can reach it",
			 purpose->option, text);
}

static bool start_forward(struct proxy *p, const struct rule *rule)
{
	if (rule->udp) {
		struct udp_forward *f = udp_forward_new(p, rule);

		if (f)
			p->udp_forwards[p->nudp_forwards++] = f;
		return f;
	} else {
		struct forward *f = forward_new(p, rule);

		if (f)
			p->forwards[p->nforwards++] = f;
		return f;
	}
}

static bool start_tproxies(struct proxy *p)
{
	const struct options *o = p->options;

	while (p->ntproxies < o->ntproxies) {
		struct tproxy *t = tproxy_new(p, &o->tproxies[p->ntproxies].addr);

		if (!t)
			return false;
		p->tproxies[p->ntproxies++] = t;
	}
	return true;
}

static bool listen_all(struct proxy *p)
{
	const struct options *o = p->options;
	unsigned int i;

	for (i = 0; i < o->nredirects; i++) {
		if (!redirect_start(p, &o->redirects[i].addr,
				    o->redirects[i].len))
			return false;
	}
	if (o->socks.on) {
		p->socks = handshakes_new(p, &o->socks.addr, o->socks.len);
		if (!p->socks)
			return false;
	}
	for (i = 0; i < o->nrules; i++) {
		if (!start_forward(p, &o->rules[i]))
			return false;
	}
	return start_tproxies(p);
}

/* A socket of the unit file that nobody accepts from would be silent for good. */
static int all_are_taken(const struct proxy *p)
{
	const struct handed_socket *left = handed_left(&p->ports->handed);
	char text[ADDR_TEXT];

	if (!left)
		return 0;
	log_error(p->log, "a socket on %s was handed over by the name '%s', "
		  "which is no way in, nor is that address",
		  addr_text(&left->addr, text), left->name);
	return -EINVAL;
}

/* Without an errno it was memory that lacked. */
int proxy_listen_all(struct proxy *p, struct ports *ports)
{
	p->ports = ports;
	if (listen_all(p))
		return all_are_taken(p);
	if (p->listen_err == -EADDRNOTAVAIL)
		addr_text(&p->listen_addr, ports->awaited);
	return p->listen_err ? p->listen_err : -ENOMEM;
}

static void close_ways_in(struct proxy *p)
{
	while (p->nways_in)
		listener_free(p->ways_in[--p->nways_in].listener);
	handshakes_free(p->socks);
	p->socks = NULL;
	while (p->nforwards)
		forward_free(p->forwards[--p->nforwards]);
	while (p->nudp_forwards)
		udp_forward_free(p->udp_forwards[--p->nudp_forwards]);
	while (p->ntproxies)
		tproxy_free(p->tproxies[--p->ntproxies]);
}

/* --- from start to end --- */

void proxy_start(struct proxy *p)
{
	unsigned int i;

	for (i = 0; i < p->nways_in; i++)
		announce(p, &p->ways_in[i]);
	for (i = 0; i < p->nudp_forwards; i++)
		udp_forward_announce(p->udp_forwards[i]);
	for (i = 0; i < p->ntproxies; i++)
		tproxy_announce(p->tproxies[i]);
	dialer_start(p->dialer);
}

void proxy_stop(struct proxy *p)
{
	p->stopping = true;
	close_ways_in(p);
	dialer_free(p->dialer);
	p->dialer = NULL;
	joiner_stop(&p->joiner);
	if (p->session)
		session_stop(p->session, "lp was told to end");
	else
		loop_stop(p->loop);
}

struct proxy *proxy_new(struct engine *engine, const struct options *options)
{
	struct dialer_options dial = options->dial;
	struct proxy *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return NULL;
	p->engine = engine;
	p->loop = engine->loop;
	p->log = engine->log;
	p->options = options;
	p->ways_in = calloc(options->nredirects + options->nrules + 1,
			    sizeof(struct way_in_open));
	p->forwards = calloc(options->nrules + 1, sizeof(struct forward *));
	p->udp_forwards = calloc(options->nrules + 1,
				 sizeof(struct udp_forward *));
	p->remote = remote_forwards_new(p);
	p->tproxies = calloc(options->ntproxies + 1, sizeof(struct tproxy *));
	p->names = resolver_new(p->loop, RESOLVER_THREADS);
	err = joiner_init(&p->joiner, p->loop, p->log,
			  &options->settings.transports, options->dial.pipes,
			  options->dial.rp.host);
	host_open(&p->host, p->loop, p->log, roamed);
	dial.layers = engine->layers;
	p->dialer = dialer_new(p->loop, p->log, &dial, &dialer_ops, p);
	if (p->ways_in && p->forwards && p->udp_forwards && p->tproxies && p->remote &&
	    p->names && p->dialer && !err)
		return p;
	proxy_free(p);
	return NULL;
}

void proxy_free(struct proxy *p)
{
	if (!p)
		return;
	close_ways_in(p);
	dialer_free(p->dialer);
	joiner_fini(&p->joiner);
	host_close(&p->host);
	remote_forwards_free(p->remote);
	resolver_free(p->names);
	free(p->ways_in);
	free(p->forwards);
	free(p->udp_forwards);
	free(p->tproxies);
	free(p);
}

void proxy_print(struct proxy *p, FILE *out)
{
	unsigned int i;

	if (p->dialer)
		dialer_print(p->dialer, out);
	joiner_print(&p->joiner, out);
	if (p->full)
		fprintf(out, "no room: applications wait until a connection "
			"ends, or are refused while all ids rest\n");
	if (p->socks)
		handshakes_print(p->socks, out);
	for (i = 0; i < p->nforwards; i++)
		forward_print(p->forwards[i], out);
	for (i = 0; i < p->nudp_forwards; i++)
		udp_forward_print(p->udp_forwards[i], out);
	remote_forwards_print(p->remote, out);
	for (i = 0; i < p->ntproxies; i++)
		tproxy_print(p->tproxies[i], out);
	if (p->session)
		session_print(p->session, out);
}

void proxy_status(const struct proxy *p, char *text, size_t len)
{
	unsigned int n = is_up(p) ? session_pipes(p->session) : 0;

	if (n)
		snprintf(text, len, "%u pipe%s to %s", n, n == 1 ? "" : "s",
			 session_peer(p->session));
	else
		snprintf(text, len, "no pipes");
}
