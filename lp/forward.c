/* SPDX-License-Identifier: MIT */
#include "forward.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "../mux/base/list.h"
#include "../mux/base/log.h"
#include "../mux/base/resolver.h"
#include "../mux/base/sock.h"
#include "../mux/session/session.h"
#include "../mux/settings/incident.h"
#include "proxy.h"
#include "rule.h"
#include "target.h"

struct forward {
	struct proxy *proxy;
	const struct rule *rule;
	char to[ENDPOINT_TEXT];
	struct list waiting;
	unsigned int nwaiting;
};

struct waiting {		/* for the address of its destination */
	struct list member;
	struct forward *forward;
	struct watch watch;	/* of hang-ups only */
	struct lookup *lookup;
	int fd;
};

static void leave(struct waiting *w)
{
	list_del(&w->member);
	w->forward->nwaiting--;
	loop_unwatch(w->forward->proxy->loop, &w->watch);
	if (w->lookup)
		resolver_cancel(w->lookup);
	free(w);
}

static void drop(struct waiting *w)
{
	int fd = w->fd;

	leave(w);
	sock_reset(fd);
}

static void gone(struct watch *watch, uint32_t events)
{
	(void)events;
	drop(container_of(watch, struct waiting, watch));
}

static void warn(const struct forward *f, const char *why)
{
	struct proxy *p = f->proxy;

	if (incidents_note(p->engine->limits, INCIDENT_CLIENTS, f->to))
		log_warn(p->log, "reset a connection to %s: %s", f->to, why);
}

/* To its host, whose name is known even where it was looked up. */
static void relay(struct forward *f, int fd, const struct destination *to)
{
	bool named = f->rule->dst.kind == DESTINATION_NAME;
	int err = proxy_open(f->proxy, fd, to, named ? f->rule->to.host : NULL);

	if (!err)
		return;
	if (err == -EAFNOSUPPORT)
		warn(f, "rp was reached by the baseline, which carries IPv4 alone");
	sock_reset(fd);
}

static void looked_up(void *asker, const struct answer *answer)
{
	struct waiting *w = asker;
	struct forward *f = w->forward;
	struct destination to;
	int fd = w->fd;

	w->lookup = NULL;
	if (answer->error) {
		warn(f, resolver_error_text(answer->error));
		drop(w);
		return;
	}
	leave(w);
	to = target_among(answer, f->rule->to.port);
	relay(f, fd, &to);
}

static void look_up(struct forward *f, int fd)
{
	struct proxy *p = f->proxy;
	struct waiting *w = calloc(1, sizeof(*w));
	int err;

	if (!w) {
		sock_reset(fd);
		return;
	}
	w->forward = f;
	w->fd = fd;
	w->watch.fd = -1;
	w->watch.ready = gone;
	list_add_tail(&f->waiting, &w->member);
	f->nwaiting++;
	err = loop_watch(p->loop, &w->watch, fd, 0);
	if (!err)
		err = resolver_ask(p->names, f->rule->to.host,
				   proxy_family(p), looked_up, w, &w->lookup);
	if (!err)
		return;
	warn(f, resolver_error_text(EAI_AGAIN));
	drop(w);
}

static void accepted(struct listener *l, int fd,
		     const struct sockaddr_storage *peer)
{
	struct forward *f = listener_owner(l);

	(void)peer;
	if (proxy_ready(f->proxy))
		sock_reset(fd);
	else if (f->rule->dst.kind != DESTINATION_NAME ||
		 proxy_carries_names(f->proxy))
		relay(f, fd, &f->rule->dst);
	else
		look_up(f, fd);
}

struct forward *forward_new(struct proxy *p, const struct rule *rule)
{
	struct forward *f = calloc(1, sizeof(*f));
	struct purpose purpose = { .option = "--forward", .what = "forwarding" };

	if (!f) {
		log_error(p->log, "no memory for --forward");
		return NULL;
	}
	f->proxy = p;
	f->rule = rule;
	endpoint_text(&rule->to, f->to);
	list_init(&f->waiting);
	purpose.to = f->to;
	if (ways_in_listen(p, &rule->addr, rule->addr_len, accepted, f, &purpose))
		return f;
	free(f);
	return NULL;
}

void forward_drop_waiting(struct forward *f)
{
	while (!list_empty(&f->waiting))
		drop(list_first(&f->waiting, struct waiting, member));
}

void forward_free(struct forward *f)
{
	forward_drop_waiting(f);
	free(f);
}

void forward_print(const struct forward *f, FILE *out)
{
	if (f->nwaiting)
		fprintf(out, "forward to %s: %u wait for its address\n",
			f->to, f->nwaiting);
}
