/* SPDX-License-Identifier: MIT */
#include "handshake.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../mux/base/addr.h"
#include "../mux/base/list.h"
#include "../mux/base/log.h"
#include "../mux/base/resolver.h"
#include "../mux/base/seldom.h"
#include "../mux/base/sock.h"
#include "../mux/conn/address.h"
#include "../mux/conn/conn.h"
#include "../mux/session/session.h"
#include "../mux/settings/incident.h"
#include "../mux/settings/settings.h"
#include "../mux/wire/wire_ext.h"
#include "association.h"
#include "proxy.h"
#include "socks.h"
#include "target.h"

struct handshakes {
	struct proxy *proxy;
	struct list talking;	/* and closing, the oldest first */
	struct list waiting;	/* for a name, or for rp */
	unsigned int count;
	int64_t said_at;	/* that there are too many; 0 never */
	int64_t rejected_at;	/* that UDP was rejected; 0 never */
	struct associations *associations;
};

struct handshake {
	struct list member;
	struct handshakes *all;
	struct watch watch;
	struct timer timer;
	struct lookup *lookup;
	struct conn *asked;	/* that rp was asked for, or NULL */
	int fd;
	bool closing;
	struct socks socks;
};

static void leave(struct handshake *h)
{
	struct loop *loop = h->all->proxy->loop;

	list_del(&h->member);
	h->all->count--;
	loop_timer_stop(loop, &h->timer);
	loop_unwatch(loop, &h->watch);
	if (h->lookup)
		resolver_cancel(h->lookup);
	if (h->asked) {
		h->asked->asker = NULL;
		conn_reset(h->asked, CONN_END_LOCAL_RESET);
	}
	free(h);
}

static void drop(struct handshake *h)
{
	int fd = h->fd;

	leave(h);
	sock_reset(fd);
}

/* --- answers --- */

/* A few bytes into an empty buffer: what does not fit now never will. */
static int say(struct handshake *h)
{
	ssize_t sent = send(h->fd, h->socks.out, h->socks.out_len,
			    MSG_NOSIGNAL);

	return sent == h->socks.out_len ? 0 : -EPIPE;
}

/* Says what is in socks.out, then ends. */
static void close_down(struct handshake *h)
{
	struct loop *loop = h->all->proxy->loop;

	h->closing = true;
	list_move_tail(&h->all->talking, &h->member);
	sock_orderly(h->fd);
	if (say(h) || shutdown(h->fd, SHUT_WR) ||
	    loop_want(loop, &h->watch, EPOLLIN) ||
	    loop_timer_in(loop, &h->timer, LINGER_MS * NS_PER_MS))
		drop(h);
}

static void decline(struct handshake *h, enum socks_reply reply)
{
	socks_answer(&h->socks, reply);
	close_down(h);
}

static enum socks_reply reply_to(int err)
{
	switch (err) {
	case -ENETDOWN:
		return SOCKS_NETWORK_UNREACHABLE;
	case -EAFNOSUPPORT:
		return SOCKS_NO_ADDRESS_TYPE;
	default:
		return SOCKS_FAILURE;
	}
}

/*
 * Nothing of the client is read meanwhile, only its end is of interest. 0 or
 * -errno.
 */
static int wait(struct handshake *h)
{
	struct loop *loop = h->all->proxy->loop;

	loop_timer_stop(loop, &h->timer);
	list_move_tail(&h->all->waiting, &h->member);
	return loop_want(loop, &h->watch, 0);
}

/* That was asked for, whoever looks it up; NULL: it was an address. */
static const char *name_of(const struct handshake *h)
{
	return h->socks.to.kind == DESTINATION_NAME ?
		(const char *)h->socks.to.bytes : NULL;
}

/* --- asking rp first --- */

static void ask(struct handshake *h, const struct destination *to)
{
	h->asked = wait(h) ? NULL : proxy_ask(h->all->proxy, h->fd, to,
					      name_of(h), h);
	if (!h->asked)
		decline(h, SOCKS_FAILURE);
}

/* The connection needs this socket no more, or has to do without. */
static struct conn *let_go(struct handshake *h)
{
	struct conn *c = h->asked;

	c->asker = NULL;
	h->asked = NULL;
	return c;
}

void handshake_answered(void *asker, uint8_t result)
{
	struct handshake *h = asker;
	struct conn *c = let_go(h);
	int fd = h->fd;

	if (result != WIRE_SYNACK_CONNECTED) {
		decline(h, socks_reply_to(result));
		return;
	}
	socks_answer(&h->socks, SOCKS_SUCCEEDED);
	if (say(h)) {
		drop(h);
		conn_reset(c, CONN_END_LOCAL_RESET);
		return;
	}
	leave(h);
	if (conn_attach(c, fd))
		conn_reset(c, CONN_END_LIMIT);
}

void handshake_lost(void *asker)
{
	struct handshake *h = asker;

	let_go(h);
	decline(h, SOCKS_FAILURE);
}

/* --- telling first --- */

/* To the engine. Success has to be said first: the socket is its own then. */
static void relay(struct handshake *h, const struct destination *to)
{
	struct proxy *p = h->all->proxy;
	struct destination target = *to, asked = h->socks.to;	/* go with @h */
	const char *name = name_of(h) ? (const char *)asked.bytes : NULL;
	int fd = h->fd;
	int err = proxy_ready_for(p, to);

	if (err) {
		decline(h, reply_to(err));
		return;
	}
	if (proxy_can_ask(p)) {
		ask(h, to);
		return;
	}
	socks_answer(&h->socks, SOCKS_SUCCEEDED);
	if (say(h)) {
		drop(h);
		return;
	}
	leave(h);
	if (proxy_open(p, fd, &target, name))
		sock_reset(fd);
}

/* --- UDP --- */

static void reject_udp(struct handshake *h)
{
	struct proxy *p = h->all->proxy;

	if (seldom(&h->all->rejected_at, p->loop))
		log_warn(p->log, "refused a SOCKS5 UDP ASSOCIATE: %s",
			 proxy_no_flows(p));
	decline(h, SOCKS_NO_COMMAND);
}

static void associate(struct handshake *h)
{
	int err = proxy_ready(h->all->proxy);
	struct association *a;
	struct destination at;

	if (err) {
		decline(h, reply_to(err));
		return;
	}
	if (!proxy_carries_flows(h->all->proxy)) {
		reject_udp(h);
		return;
	}
	a = association_new(h->all->associations, h->fd, &h->socks.to);
	if (!a) {
		decline(h, SOCKS_FAILURE);
		return;
	}
	at = address_destination(association_addr(a));
	socks_grant(&h->socks, &at);
	if (say(h)) {
		association_free(a);
		drop(h);
		return;
	}
	leave(h);
	association_start(a);
}

/* --- names --- */

/* Is it the name that has no address, or is it this machine that failed? */
static enum socks_reply reply_to_lookup(int error)
{
	return error == EAI_SYSTEM || error == EAI_MEMORY ?
	       SOCKS_FAILURE : SOCKS_HOST_UNREACHABLE;
}

static void looked_up(void *asker, const struct answer *answer)
{
	struct handshake *h = asker;
	struct destination to;

	h->lookup = NULL;
	if (!answer->error) {
		to = target_among(answer, h->socks.to.port);
		relay(h, &to);
		return;
	}
	log_debug(h->all->proxy->log, "SOCKS5: a name that was asked for: %s",
		  resolver_error_text(answer->error));
	decline(h, reply_to_lookup(answer->error));
}

static void look_up(struct handshake *h)
{
	struct proxy *p = h->all->proxy;
	int err = proxy_ready(p);

	if (err) {
		decline(h, reply_to(err));
		return;
	}
	err = wait(h);
	if (!err)
		err = resolver_ask(p->names,
				   (const char *)h->socks.to.bytes,
				   proxy_family(p), looked_up, h, &h->lookup);
	if (err)
		decline(h, SOCKS_FAILURE);
}

/* --- talking --- */

static void warn_garbage(const struct handshake *h)
{
	struct proxy *p = h->all->proxy;
	struct sockaddr_storage from = { 0 };
	socklen_t len = sizeof(from);
	char text[ADDR_TEXT];

	getpeername(h->fd, (struct sockaddr *)&from, &len);
	if (incidents_note_peer(p->engine->limits, INCIDENT_CLIENTS, &from))
		log_warn(p->log, "reset a connection from %s: it does not "
			 "speak SOCKS5 (version %u instead of 5)",
			 addr_text(&from, text), h->socks.in[0]);
}

/* Returns whether to read on. The handshake may be gone then. */
static bool act(struct handshake *h, enum socks_verdict verdict)
{
	switch (verdict) {
	case SOCKS_MORE:
		return true;
	case SOCKS_SAY:
		if (!say(h))
			return true;
		drop(h);
		return false;
	case SOCKS_REQUEST:
		if (h->socks.to.kind == DESTINATION_NAME &&
		    !proxy_carries_names(h->all->proxy))
			look_up(h);
		else
			relay(h, &h->socks.to);
		return false;
	case SOCKS_ASSOCIATE:
		associate(h);
		return false;
	case SOCKS_REJECT:
		close_down(h);
		return false;
	case SOCKS_GARBAGE:
		warn_garbage(h);
		drop(h);
		return false;
	}
	return false;
}

static void talk(struct handshake *h)
{
	uint8_t piece[SOCKS_PIECE_MAX];
	enum socks_verdict verdict;

	do {
		ssize_t got = recv(h->fd, piece, socks_need(&h->socks), 0);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (got <= 0) {
			drop(h);
			return;
		}
		verdict = socks_take(&h->socks, piece, (size_t)got);
	} while (act(h, verdict));
}

static void discard(struct handshake *h)
{
	uint8_t waste[4096];
	int fd = h->fd;
	ssize_t got = recv(fd, waste, sizeof(waste), 0);

	if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	if (got < 0) {
		drop(h);
		return;
	}
	leave(h);
	close(fd);	/* the kernel sees to it that the answer arrives */
}

static void came(struct watch *w, uint32_t events)
{
	struct handshake *h = container_of(w, struct handshake, watch);

	(void)events;
	if (h->lookup || h->asked)
		drop(h);
	else if (h->closing)
		discard(h);
	else
		talk(h);
}

static void timed_out(struct timer *t)
{
	drop(container_of(t, struct handshake, timer));
}

/* --- all of them --- */

static void say_too_many(struct handshakes *hs)
{
	if (seldom(&hs->said_at, hs->proxy->loop))
		log_warn(hs->proxy->log, "more than %d SOCKS5 handshakes at a "
			 "time: the oldest are reset", HANDSHAKES_MAX);
}

/* The oldest that is not waiting for us makes place. */
static bool make_place(struct handshakes *hs)
{
	if (hs->count < HANDSHAKES_MAX)
		return true;
	if (list_empty(&hs->talking))
		return false;
	say_too_many(hs);
	drop(list_first(&hs->talking, struct handshake, member));
	return true;
}

static void accepted(struct listener *l, int fd,
		     const struct sockaddr_storage *peer)
{
	struct handshakes *hs = listener_owner(l);
	struct loop *loop = hs->proxy->loop;
	struct handshake *h = make_place(hs) ? calloc(1, sizeof(*h)) : NULL;

	(void)peer;
	if (!h) {
		sock_reset(fd);
		return;
	}
	h->all = hs;
	h->fd = fd;
	h->watch.fd = -1;
	h->watch.ready = came;
	h->timer.fire = timed_out;
	socks_init(&h->socks);
	list_add_tail(&hs->talking, &h->member);
	hs->count++;
	if (loop_watch(loop, &h->watch, fd, EPOLLIN) ||
	    loop_timer_in(loop, &h->timer, HANDSHAKE_MS * NS_PER_MS))
		drop(h);
}

struct handshakes *handshakes_new(struct proxy *p,
				  const struct sockaddr_storage *addr,
				  socklen_t len)
{
	static const struct purpose purpose = {
		.option = "--socks",
		.what = "SOCKS5 on",
	};
	struct handshakes *hs = calloc(1, sizeof(*hs));

	if (!hs) {
		log_error(p->log, "no memory for --socks");
		return NULL;
	}
	hs->proxy = p;
	list_init(&hs->talking);
	list_init(&hs->waiting);
	hs->associations = associations_new(p);
	if (!hs->associations)
		log_error(p->log, "no memory for --socks");
	else if (ways_in_listen(p, addr, len, accepted, hs, &purpose))
		return hs;
	associations_free(hs->associations);
	free(hs);
	return NULL;
}

void handshakes_drop_waiting(struct handshakes *hs)
{
	while (!list_empty(&hs->waiting))
		drop(list_first(&hs->waiting, struct handshake, member));
}

void handshakes_free(struct handshakes *hs)
{
	if (!hs)
		return;
	handshakes_drop_waiting(hs);
	while (!list_empty(&hs->talking))
		drop(list_first(&hs->talking, struct handshake, member));
	associations_free(hs->associations);
	free(hs);
}

void handshakes_print(const struct handshakes *hs, FILE *out)
{
	if (hs->count)
		fprintf(out, "SOCKS5 handshakes: %u\n", hs->count);
	associations_print(hs->associations, out);
}
