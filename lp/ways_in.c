/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "ways_in.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../mux/base/addr.h"
#include "../mux/base/log.h"
#include "../mux/base/ports.h"
#include "../mux/base/sock.h"
#include "../mux/conn/conn.h"
#include "forward.h"
#include "handshake.h"
#include "options.h"
#include "origin.h"
#include "proxy.h"
#include "redirect.h"
#include "tproxy.h"
#include "udp_forward.h"

/* Its name is the option's, without dashes. */
static struct handed_socket *handed_for(const struct proxy *p,
					const struct sockaddr_storage *addr,
					const struct purpose *purpose)
{
	struct handed *h = &p->ways_in.ports->handed;
	struct handed_socket *s = handed_named(h, purpose->option + 2);

	return s ? s : handed_at(h, addr);
}

/*
 * Those that are accepted have the options of the socket that listened when they came. Of one
 * that was handed over some may have come before.
 */
static struct listener *listen_with(struct proxy *p, int fd, bool handed,
				    const struct sockaddr_storage *addr,
				    socklen_t len, accepted_fn accepted,
				    void *owner, void (*prepare)(int fd))
{
	struct listener *l;

	if (!handed || fd < 0) {
		if (fd >= 0)
			prepare(fd);
		return listener_new(p->loop, p->log, fd, addr, len, accepted,
				    owner);
	}
	l = listener_adopt(p->loop, p->log, fd, accepted, owner);
	if (l)
		listener_prepares(l, prepare);
	return l;
}

bool ways_in_listen(struct proxy *p, const struct sockaddr_storage *addr,
		    socklen_t len, accepted_fn accepted, void *owner,
		    const struct purpose *purpose)
{
	struct way_in_open *way = &p->ways_in.open[p->ways_in.n];
	struct handed_socket *handed = handed_for(p, addr, purpose);
	int fd = handed ? handed_take(handed) : sock_tcp(addr->ss_family);
	char text[ADDR_TEXT];

	way->purpose = *purpose;
	if (purpose->keeps_syns)
		origin_keep_syns(fd);
	way->listener = listen_with(p, fd, handed, addr, len, accepted, owner,
				    purpose->prepare ? purpose->prepare :
						       conn_prepare);
	if (!way->listener) {
		p->ways_in.listen_err = -errno;
		p->ways_in.listen_addr = *addr;
		if (errno == EADDRNOTAVAIL)
			return false;
		log_error(p->log, "cannot listen on %s: %s; %s chooses another "
			  "address", addr_text(addr, text), strerror(errno),
			  purpose->option);
		return false;
	}
	p->ways_in.n++;
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
			p->ways_in.udp_forwards[p->ways_in.nudp_forwards++] = f;
		return f;
	} else {
		struct forward *f = forward_new(p, rule);

		if (f)
			p->ways_in.forwards[p->ways_in.nforwards++] = f;
		return f;
	}
}

static bool start_tproxies(struct proxy *p)
{
	const struct options *o = p->options;

	while (p->ways_in.ntproxies < o->ntproxies) {
		struct tproxy *t = tproxy_new(p, &o->tproxies[p->ways_in.ntproxies].addr);

		if (!t)
			return false;
		p->ways_in.tproxies[p->ways_in.ntproxies++] = t;
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
		p->ways_in.socks = handshakes_new(p, &o->socks.addr, o->socks.len);
		if (!p->ways_in.socks)
			return false;
	}
	for (i = 0; i < o->nrules; i++) {
		if (!start_forward(p, &o->rules[i]))
			return false;
	}
	return start_tproxies(p);
}

/* Without an errno it was memory that lacked. */
int ways_in_open(struct proxy *p, struct ports *ports)
{
	struct ways_in *w = &p->ways_in;

	w->ports = ports;
	if (listen_all(p))
		return handed_all_taken(&ports->handed, p->log,
					"no way in, nor is that address");
	if (w->listen_err == -EADDRNOTAVAIL)
		addr_text(&w->listen_addr, ports->awaited);
	return w->listen_err ? w->listen_err : -ENOMEM;
}

void ways_in_close(struct ways_in *w)
{
	while (w->n)
		listener_free(w->open[--w->n].listener);
	handshakes_free(w->socks);
	w->socks = NULL;
	while (w->nforwards)
		forward_free(w->forwards[--w->nforwards]);
	while (w->nudp_forwards)
		udp_forward_free(w->udp_forwards[--w->nudp_forwards]);
	while (w->ntproxies)
		tproxy_free(w->tproxies[--w->ntproxies]);
}

void ways_in_look(const struct ways_in *w)
{
	unsigned int i;

	for (i = 0; i < w->n; i++)
		listener_look(w->open[i].listener);
}

void ways_in_pause(const struct ways_in *w, bool paused)
{
	unsigned int i;

	for (i = 0; i < w->n; i++)
		listener_pause(w->open[i].listener, paused);
}

void ways_in_drop_waiting(const struct ways_in *w)
{
	unsigned int i;

	if (w->socks)
		handshakes_drop_waiting(w->socks);
	for (i = 0; i < w->nforwards; i++)
		forward_drop_waiting(w->forwards[i]);
}

/* --- from start to end --- */

int ways_in_init(struct ways_in *w, const struct options *o)
{
	w->open = calloc(o->nredirects + o->nrules + 1, sizeof(*w->open));
	w->forwards = calloc(o->nrules + 1, sizeof(*w->forwards));
	w->udp_forwards = calloc(o->nrules + 1, sizeof(*w->udp_forwards));
	w->tproxies = calloc(o->ntproxies + 1, sizeof(*w->tproxies));
	return w->open && w->forwards && w->udp_forwards && w->tproxies ?
		0 : -ENOMEM;
}

void ways_in_fini(struct ways_in *w)
{
	ways_in_close(w);
	free(w->open);
	free(w->forwards);
	free(w->udp_forwards);
	free(w->tproxies);
}

void ways_in_announce(const struct proxy *p)
{
	const struct ways_in *w = &p->ways_in;
	unsigned int i;

	for (i = 0; i < w->n; i++)
		announce(p, &w->open[i]);
	for (i = 0; i < w->nudp_forwards; i++)
		udp_forward_announce(w->udp_forwards[i]);
	for (i = 0; i < w->ntproxies; i++)
		tproxy_announce(w->tproxies[i]);
}

void ways_in_print(const struct ways_in *w, FILE *out)
{
	unsigned int i;

	if (w->socks)
		handshakes_print(w->socks, out);
	for (i = 0; i < w->nforwards; i++)
		forward_print(w->forwards[i], out);
	for (i = 0; i < w->nudp_forwards; i++)
		udp_forward_print(w->udp_forwards[i], out);
	for (i = 0; i < w->ntproxies; i++)
		tproxy_print(w->tproxies[i], out);
}
