/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "proxy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../mux/base/log.h"
#include "../mux/base/plural.h"
#include "../mux/base/resolver.h"
#include "../mux/base/seldom.h"
#include "../mux/conn/conn.h"
#include "../mux/session/flow.h"
#include "../mux/session/greeting.h"
#include "../mux/session/session.h"
#include "../mux/wire/wire.h"
#include "dialer.h"
#include "handshake.h"
#include "options.h"
#include "remote_forward.h"
#include "tproxy.h"

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

	if (full == p->full)
		return;
	p->full = full;
	ways_in_pause(&p->ways_in, full && wait <= ID_WAIT_MAX);
	if (full)
		say_full(p, wait);
}

/*
 * RP knew the session no more and answers, so that the next one is some round trips
 * away: applications that connect meanwhile wait for it.
 */
static void begins_anew(struct proxy *p, bool yes)
{
	if (yes == p->begins_anew)
		return;
	p->begins_anew = yes;
	ways_in_pause(&p->ways_in, yes);
}

static void room(struct session *s)
{
	update_room(session_owner(s));
}

/* --- sessions --- */

static void stop_joining(struct proxy *p)
{
	unsigned int i;

	for (i = 0; i < p->njoiners; i++)
		joiner_stop(&p->joiner[i]);
}

static void ended(struct session *s)
{
	struct proxy *p = session_owner(s);

	remote_forwards_end(p->remote);
	p->session = NULL;
	path_control_begin(&p->control, NULL);
	stop_joining(p);
	ways_in_drop_waiting(&p->ways_in);
	update_room(p);
	if (p->stopping) {
		loop_stop(p->loop);
	} else if (session_is_unknown(s)) {
		begins_anew(p, true);
		dialer_begin_anew(p->dialer, session_why(s));
	} else {
		dialer_lost(p->dialer, session_why(s));
	}
}

static void roamed(struct host *host)
{
	struct proxy *p = container_of(host, struct proxy, host);
	unsigned int i;

	if (p->stopping)
		return;
	dialer_roam(p->dialer);
	if (p->session)
		session_roam(p->session, host);
	for (i = 0; i < p->njoiners; i++)
		joiner_roam(&p->joiner[i], host);
}

static void lacks(struct session *s, unsigned int path)
{
	struct proxy *p = session_owner(s);

	joiner_look(&p->joiner[path]);
	update_room(p);
}

static void joined(struct session *s, unsigned int path)
{
	struct proxy *p = session_owner(s);

	joiner_welcomed(&p->joiner[path]);
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

static void first_bytes(struct session *s, struct conn *c)
{
	struct proxy *p = session_owner(s);

	session_bind(s, c, steering_by_first_bytes(&p->steering, c->watch.fd,
						   c->dst));
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
	.first_bytes = first_bytes,
	.moved = moved,
	.room = room,
	.lacks = lacks,
	.joined = joined,
	.ended = ended,
};

static int dialed(void *owner, const int *fds, unsigned int n)
{
	struct proxy *p = owner;
	const struct settings *settings = &p->options->settings;

	p->session = greet_baseline(p->engine, &role, p, dialer_peer(p->dialer),
				 fds, n);
	if (!p->session)
		return -ENOMEM;
	if (settings->thin_given && settings->thin == THIN_COPY)
		log_warn(p->log, "nothing is sent again for --thin copy: rp was reached by the baseline, which has no copies");
	if (settings->reinject != REINJECT_OFF)
		log_warn(p->log, "nothing is sent again for --reinject %s: rp was reached by the baseline, which drops no copies",
			 reinject_mode_name(settings->reinject));
	begins_anew(p, false);
	path_control_begin(&p->control, p->session);
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
	unsigned int i;

	p->session = greet_welcomed(p->engine, &role, p, addr_text(addr, peer),
				    hello, welcome, conduit);
	if (!p->session)
		return -EPROTO;
	begins_anew(p, false);
	path_control_begin(&p->control, p->session);
	for (i = 0; i < p->njoiners; i++)
		joiner_start(&p->joiner[i], p->session, addr);
	remote_forwards_begin(p->remote);
	return 0;
}

static void dial_failed(void *owner)
{
	begins_anew(owner, false);
}

static const struct dialer_ops dialer_ops = {
	.dialed = dialed,
	.welcomed = welcomed,
	.failed = dial_failed,
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

int proxy_open(struct proxy *p, int fd, const struct destination *to,
	       const char *name)
{
	int err = proxy_ready_for(p, to);
	struct bounds bounds;

	if (!err) {
		bounds = steering_bounds(&p->steering, fd, to, name);
		err = session_open(p->session, fd, to, &bounds);
	}
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
	return "there are as many connections and flows as there may be, or memory is short";
}

bool proxy_can_ask(const struct proxy *p)
{
	return p->options->late_reply && is_up(p) &&
	       session_is_extended(p->session);
}

struct conn *proxy_ask(struct proxy *p, int fd, const struct destination *to,
		       const char *name, void *asker)
{
	struct conn *c = session_ask(p->session, to);
	struct bounds bounds;

	if (c) {
		bounds = steering_bounds(&p->steering, fd, to, name);
		session_bind(p->session, c, bounds.paths);
		c->asker = asker;
	}
	update_room(p);
	return c;
}

/* --- from start to end --- */

int proxy_listen_all(struct proxy *p, struct ports *ports)
{
	int err = control_socket_open(&p->control_socket, p->loop, p->log,
				      &p->control, p->options->control,
				      p->options->settings.user);

	return err ? err : ways_in_open(p, ports);
}

void proxy_start(struct proxy *p)
{
	ways_in_announce(p);
	steering_announce(&p->steering);
	dialer_start(p->dialer);
}

void proxy_stop(struct proxy *p)
{
	p->stopping = true;
	ways_in_close(&p->ways_in);
	dialer_free(p->dialer);
	p->dialer = NULL;
	stop_joining(p);
	if (p->session)
		session_stop(p->session, "lp was told to end");
	else
		loop_stop(p->loop);
}

/* 0 or -errno. */
static int init_joiners(struct proxy *p, const struct options *o)
{
	int err = 0;

	do {
		err = joiner_init(&p->joiner[p->njoiners], p->loop, p->log,
				  &o->dial, p->njoiners);
		p->njoiners++;
	} while (!err && p->njoiners < o->dial.paths->n);
	return err;
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
	p->remote = remote_forwards_new(p);
	p->icmp = (struct icmp){ -EBADF, -EBADF };
	if (options->ntproxies)
		icmp_open(&p->icmp);
	p->names = resolver_new(p->loop, RESOLVER_THREADS);
	path_control_init(&p->control, &options->settings.paths, &p->ways_in);
	steering_open(&p->steering, &options->path_rules,
		      options->settings.paths.n > 0, p->log);
	err = ways_in_init(&p->ways_in, options);
	if (!err)
		err = init_joiners(p, options);
	host_open(&p->host, p->loop, p->log, roamed);
	dial.layers = engine->layers;
	p->dialer = dialer_new(p->loop, p->log, &dial, &dialer_ops, p);
	if (p->remote && p->names && p->dialer && !err)
		return p;
	proxy_free(p);
	return NULL;
}

void proxy_take_layers(struct proxy *p, struct layers *layers)
{
	p->engine->layers = layers;
	if (!p->stopping)
		dialer_take_layers(p->dialer, layers);
}

const struct layers *proxy_layers_in_use(const struct proxy *p)
{
	return p->session ? session_layers(p->session) : NULL;
}

void proxy_free(struct proxy *p)
{
	if (!p)
		return;
	ways_in_fini(&p->ways_in);
	control_socket_close(&p->control_socket);
	dialer_free(p->dialer);
	while (p->njoiners)
		joiner_fini(&p->joiner[--p->njoiners]);
	host_close(&p->host);
	remote_forwards_free(p->remote);
	resolver_free(p->names);
	icmp_close(&p->icmp);
	steering_close(&p->steering);
	free(p);
}

void proxy_print(struct proxy *p, FILE *out)
{
	unsigned int i;

	if (p->dialer)
		dialer_print(p->dialer, out);
	for (i = 0; i < p->njoiners; i++)
		joiner_print(&p->joiner[i], out);
	if (p->full)
		fprintf(out, "no room: applications wait until a connection "
			"ends, or are refused while all ids rest\n");
	ways_in_print(&p->ways_in, out);
	remote_forwards_print(p->remote, out);
	if (p->session)
		session_print(p->session, out);
}

void proxy_status(const struct proxy *p, char *text, size_t len)
{
	unsigned int n = is_up(p) ? session_pipes(p->session) : 0;

	if (n)
		snprintf(text, len, "%u pipe%s to %s", n, plural(n),
			 session_peer(p->session));
	else
		snprintf(text, len, "no pipes");
}
