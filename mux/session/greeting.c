/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "greeting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/loop.h"
#include "../base/sock.h"
#include "../extension/admission.h"
#include "../pipe/transport.h"
#include "../settings/settings.h"
#include "dialect.h"
#include "session.h"

struct session *greet_baseline(struct engine *engine,
			       const struct session_role *role, void *owner,
			       const char *peer, const int *fds,
			       unsigned int n)
{
	struct session *s = session_new(engine, &dialect_baseline, role, owner,
				       peer);
	int err = s ? 0 : -1;
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (!err)
			err = session_add_pipe(s, fds[i]);
		else
			close(fds[i]);
	}
	if (!err) {
		session_start(s);
		return s;
	}
	if (s)
		session_free(s);
	return NULL;
}

/* --- the first message each way --- */

/* HELLO and WELCOME take some dozen bytes; later versions may have longer ones. */
enum { GREETING_MAX = 4096 };

struct greeting {
	const struct greeting_ops *ops;
	void *owner;
	struct loop *loop;
	struct watch watch;
	struct timer deadline;
	struct conduit conduit;
	bool shaken;		/* its layer's handshake is done */
	struct wire_hello hello;	/* LP: to be said then */
	enum wire_ext_type awaited;
	bool in_letters;	/* over SCTP: it has to be one, whole and alone */
	size_t len;
	uint8_t buf[GREETING_MAX];
};

void *greeting_owner(const struct greeting *g)
{
	return g->owner;
}

int greeting_fd(const struct greeting *g)
{
	return g->watch.fd;
}

const char *greeting_why(const struct greeting *g)
{
	return g->conduit.layer->ops->why(g->conduit.layer);
}

const char *greeting_key(const struct greeting *g)
{
	return g->conduit.layer ? g->conduit.layer->tried : NULL;
}

bool greeting_is_shaken(const struct greeting *g)
{
	return g->shaken || !g->conduit.layer;
}

const uint8_t *greeting_heard(const struct greeting *g, size_t *len)
{
	*len = g->len;
	return g->buf;
}

struct conduit greeting_take(struct greeting *g)
{
	struct conduit conduit = g->conduit;

	loop_unwatch(g->loop, &g->watch);
	loop_timer_stop(g->loop, &g->deadline);
	free(g);
	return conduit;
}

void greeting_free(struct greeting *g)
{
	if (g)
		conduit_close(greeting_take(g));
}

/* Nothing more is heard of it, whatever the owner does. */
static void disregard(struct greeting *g)
{
	loop_want(g->loop, &g->watch, 0);
	loop_timer_stop(g->loop, &g->deadline);
}

static void fail(struct greeting *g, enum greeting_failure why)
{
	disregard(g);
	g->ops->failed(g, why);
}

static void silent(struct timer *t)
{
	fail(container_of(t, struct greeting, deadline), GREETING_SILENT);
}

/* Bytes that the message still needs, as far as that is known; -1: it has none. */
static ssize_t missing(const struct greeting *g)
{
	struct wire_head head;

	if (g->len < WIRE_HEADER)
		return (ssize_t)(WIRE_HEADER - g->len);
	if (!wire_head(g->buf, g->len, &head) || head.id ||
	    head.size > GREETING_MAX)
		return -1;
	return (ssize_t)(head.size - g->len);
}

static void judge(struct greeting *g)
{
	struct wire_ext said;
	struct wire_msg msg;

	wire_read(g->buf, g->len, &msg);
	if (wire_ext_get(&msg, g->awaited == WIRE_WELCOME, &said) ||
	    said.type != g->awaited) {
		fail(g, GREETING_WRONG);
		return;
	}
	disregard(g);
	g->ops->came(g, &said);
}

/* A socket that was just connected takes a message whole. */
static void say(struct conduit conduit, const struct wire_ext *what)
{
	uint8_t buf[WIRE_MESSAGE_MAX];

	if (!conduit_say(conduit, buf, wire_ext_put(buf, what)))
		shutdown(conduit.fd, SHUT_RDWR);	/* as if the other end had */
}

/* Of @err, of the layer or its socket; @otherwise: what any other one is. */
static enum greeting_failure failure(int err, enum greeting_failure otherwise)
{
	switch (err) {
	case -ENOMEM:
		return GREETING_SHORT;
	case -ECONNRESET:
	case -EPIPE:
		return GREETING_CLOSED;
	default:
		return otherwise;
	}
}

/* False: it is not over yet, or failed. */
static bool shake(struct greeting *g)
{
	struct wire_ext what = { .type = WIRE_HELLO, .hello = g->hello };
	int err = g->shaken ? 0 : conduit_shake(g->conduit);

	if (err == -EAGAIN)
		return false;
	if (err) {
		fail(g, failure(err, GREETING_STRANGER));
		return false;
	}
	if (!g->shaken && g->awaited == WIRE_WELCOME)
		say(g->conduit, &what);
	g->shaken = true;
	return true;
}

/* As recv(). @whole: over SCTP, that is where one of the socket's messages ends. */
static ssize_t read_some(struct greeting *g, size_t len, bool *whole)
{
	struct iovec iov = { g->buf + g->len, len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = g->conduit.layer ?
		    conduit_read(g->conduit, iov.iov_base, len) :
		    recvmsg(g->conduit.fd, &mh, 0);

	*whole = mh.msg_flags & MSG_EOR;
	return n;
}

/* What lies behind the message is the pipe's. */
void greeting_go_on(struct greeting *g)
{
	ssize_t need, n;
	bool whole;

	if (!shake(g))
		return;
	while ((need = missing(g)) > 0) {
		n = read_some(g, (size_t)need, &whole);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			fail(g, failure(n ? -errno : 0, GREETING_CLOSED));
			return;
		}
		g->len += (size_t)n;
		if (g->in_letters && whole != (missing(g) <= 0)) {
			fail(g, GREETING_WRONG);
			return;
		}
	}
	if (need < 0)
		fail(g, GREETING_WRONG);
	else
		judge(g);
}

static void readable(struct watch *w, uint32_t events)
{
	struct greeting *g = container_of(w, struct greeting, watch);

	(void)events;
	if (g->ops->due)
		g->ops->due(g);
	else
		greeting_go_on(g);
}

/*
 * Who puts reading off is not told again of what is there already: many of them would fill the
 * batches of events. Each call reads until there is nothing more, so nothing is missed.
 */
static uint32_t events_of(const struct greeting_ops *ops)
{
	return ops->due ? EPOLLIN | EPOLLET : EPOLLIN;
}

struct greeting *greeting_await(struct loop *loop, struct conduit conduit,
				int64_t patience,
				const struct greeting_ops *ops, void *owner)
{
	struct greeting *g = calloc(1, sizeof(*g));

	if (!g)
		goto close_conduit;
	g->loop = loop;
	g->ops = ops;
	g->owner = owner;
	g->conduit = conduit;
	g->awaited = WIRE_HELLO;
	g->in_letters = transport_of(conduit.fd) == TRANSPORT_SCTP;
	g->watch.ready = readable;
	g->deadline.fire = silent;
	sock_nodelay(conduit.fd);
	if (loop_watch(loop, &g->watch, conduit.fd, events_of(ops)) < 0)
		goto free_greeting;
	if (loop_timer_in(loop, &g->deadline, patience) < 0)
		goto unwatch;
	return g;

unwatch:
	loop_unwatch(loop, &g->watch);
free_greeting:
	free(g);
close_conduit:
	conduit_close(conduit);
	return NULL;
}

/*
 * With a layer this begins the handshake. What may be wrong with it already is
 * told from the loop, not to a caller who does not know @g yet.
 */
struct greeting *greeting_say(struct loop *loop, struct conduit conduit,
			      const struct wire_hello *hello, int64_t patience,
			      const struct greeting_ops *ops, void *owner)
{
	struct wire_ext what = { .type = WIRE_HELLO, .hello = *hello };
	struct greeting *g = greeting_await(loop, conduit, patience, ops,
					    owner);

	if (!g)
		return NULL;
	g->awaited = WIRE_WELCOME;
	g->hello = *hello;
	g->shaken = !conduit.layer;
	if (g->shaken)
		say(conduit, &what);
	else if (conduit_shake(conduit) != -EAGAIN)
		shutdown(conduit.fd, SHUT_RDWR);
	return g;
}

/* --- what HELLO and WELCOME say --- */

enum wire_welcome_status greet_objection(const struct wire_hello *hello)
{
	if (hello->version < WIRE_EXT_VERSION ||
	    !admission_features(hello->features, WIRE_FEATURES_VERSION_1) ||
	    !admission_knows_path(hello))
		return WIRE_WELCOME_REFUSED;
	return hello->incarnation ? WIRE_WELCOME_UNKNOWN : WIRE_WELCOME_NEW;
}

void greet_decline(struct conduit conduit, enum wire_welcome_status status)
{
	struct wire_ext what = {
		.type = WIRE_WELCOME,
		.welcome = {
			.version = WIRE_EXT_VERSION,
			.features = WIRE_FEATURES_VERSION_1,
			.status = (uint8_t)status,
		},
	};

	say(conduit, &what);
	sock_orderly(conduit.fd);
	conduit_shut(conduit);
	conduit_close(conduit);
}

int greet_hello(struct wire_hello *hello, unsigned int pipes)
{
	*hello = (struct wire_hello){
		.version = WIRE_EXT_VERSION,
		.features = WIRE_FEATURES_VERSION_1 | WIRE_FEATURE_HINT |
			    WIRE_FEATURES_FLOWS | WIRE_FEATURE_LARGE,
		.pipes = (uint8_t)pipes,
		.reorder_limit = REORDER_MAX_SESSION,
	};
	if (getrandom(hello->session, sizeof(hello->session), 0) !=
	    (ssize_t)sizeof(hello->session))
		return -EAGAIN;
	return 0;
}
