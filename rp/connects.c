/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "connects.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../mux/base/log.h"
#include "../mux/base/plural.h"
#include "../mux/base/sock.h"
#include "../mux/conn/address.h"
#include "../mux/conn/conn.h"
#include "../mux/session/session.h"
#include "../mux/settings/incident.h"
#include "call.h"
#include "options.h"
#include "quota.h"
#include "reach.h"
#include "reserve.h"

const char *conn_text(const struct conn *c, char text[CONN_TEXT])
{
	const struct session *s = c->owner->self;
	char dst[DESTINATION_TEXT];

	snprintf(text, CONN_TEXT, "session %u: connection %u to %s",
		 session_number(s), c->id, destination_text(c->dst, dst));
	return text;
}

/*
 * What a failed socket() or connect() means. EPERM and EACCES come from a local
 * packet filter, so the destination counts as unreachable.
 */
static enum conn_end end_of(int err)
{
	if (sock_is_shortage(err))
		return CONN_END_LIMIT;
	switch (err) {
	case ECONNREFUSED:
		return CONN_END_REFUSED;
	case ETIMEDOUT:
		return CONN_END_TIMEOUT;
	case EAGAIN:
	case EADDRNOTAVAIL:
		return CONN_END_LIMIT;
	default:
		return CONN_END_UNREACHABLE;
	}
}

static enum incident limit_of(int err)
{
	if (err == EADDRNOTAVAIL)
		return INCIDENT_PORTS;
	return err == EMFILE ? INCIDENT_DESCRIPTORS : INCIDENT_MEMORY;
}

/* While a shortage lasts it meets every connection, so it is logged seldom. */
static void say_short(struct connects *all, const struct conn *c, int err)
{
	struct log *log = all->engine->log;
	char text[CONN_TEXT];

	if (!session_notes(c->owner->self, limit_of(err)))
		return;
	conn_text(c, text);
	if (err == EMFILE)
		log_warn(log, "%s and others were refused: no descriptor is left for them; "
			 "more: ulimit -n (now %lu)", text, sock_limit());
	else if (err == EADDRNOTAVAIL)
		log_warn(log, "%s and others were refused: no local port is left",
			 text);
	else if (err == EAGAIN)	/* of resolver_ask(): no connect() of ours says so */
		log_warn(log, "%s and others were refused: no thread is left to look its name up, or %d names are being looked up",
			 text, LOOKUPS_MAX);
	else
		log_warn(log, "%s and others were refused: %s", text, strerror(err));
}

void connector_failed(struct connector *c, struct conn *conn, int err)
{
	enum conn_end end = end_of(err);
	char text[CONN_TEXT];

	if (end == CONN_END_LIMIT)
		say_short(c->all, conn, err);
	else
		log_debug(c->all->engine->log, "%s: %s", conn_text(conn, text),
			  strerror(err));
	conn_reset(conn, end);
}

void connector_connected(struct connector *c, struct conn *conn, int fd)
{
	int err = conn_connecting(conn, fd, c->all->options->connect_timeout);

	if (err)
		connector_failed(c, conn, -err);
}

void connector_counts(struct connector *c, int sockets)
{
	c->share->sockets += (unsigned int)sockets;
	c->all->sockets += (unsigned int)sockets;
}

/*
 * Some descriptors are kept for the pipes of those who come later. How many there are may be
 * changed from outside while rp runs (prlimit), so it is asked for again in each batch of events.
 */
static unsigned long limit_of_sockets(struct connects *all)
{
	int64_t now = loop_now(all->engine->loop);

	if (!all->limit || all->limit_asked_at != now)
		all->limit = sock_limit();
	all->limit_asked_at = now;
	return all->limit - reserve_of(all->limit, all->options->pipes).all;
}

/* Each thread that has sessions may have a part. */
static unsigned long part_of_sockets(const struct connector *c)
{
	return limit_of_sockets(c->all) / c->all->engine->parts;
}

/* No address has more than three quarters of what is left. */
static unsigned long limit_of_address(const struct connector *c)
{
	unsigned long limit = part_of_sockets(c);

	return limit - limit / 4;
}

static bool has_too_many(const struct connector *c)
{
	return quota_sockets(c->share) > limit_of_address(c);
}

/*
 * The kernel gives the lowest number that is free, so a high one tells that those
 * below are in use, by whatever thread.
 */
static bool is_below_limit(const struct connector *c, int fd)
{
	return (unsigned long)fd < limit_of_sockets(c->all) &&
	       (c->all->engine->parts == 1 ||
		c->all->sockets <= part_of_sockets(c));
}

static int below_limit(const struct connector *c, int fd)
{
	if (fd < 0 || is_below_limit(c, fd))
		return fd;
	close(fd);
	return -EMFILE;
}

/* It is counted. Who has most pays for one that has fewer. A descriptor, or -errno. */
static int make_socket(struct connector *c, int (*make)(int family), int family)
{
	bool at_home = has_too_many(c);
	int fd = at_home ? -EMFILE : below_limit(c, make(family));

	if (fd != -EMFILE ||
	    !quota_relieves(c->all->quota, c->share, at_home))
		return fd;
	return below_limit(c, make(family));
}

int connector_udp(struct connector *c, int family)
{
	int fd;

	connector_counts(c, 1);	/* as when it is there */
	fd = make_socket(c, sock_udp, family);
	connector_counts(c, -1);
	return fd;
}

bool connector_takes_lent(const struct connector *c)
{
	return quota_lent(c->share) < limit_of_address(c) / 2;
}

void connector_counts_lent(struct connector *c)
{
	connector_counts(c, 1);
	c->share->lent++;
}

bool connector_keeps(struct connector *c, int fd)
{
	bool at_home = has_too_many(c);

	return (!at_home && is_below_limit(c, fd)) ||
	       quota_relieves(c->all->quota, c->share, at_home);
}

void connector_makes_room(struct connector *c, int fd)
{
	if (!is_below_limit(c, fd) &&
	    !quota_relieves(c->all->quota, c->share, false))
		c->all->quota->give_up(c->share);
}

int connector_dial(struct connector *c, const struct sockaddr_storage *to)
{
	return sock_connect(make_socket(c, sock_tcp, to->ss_family), to);
}

/* --- names --- */

void connector_reserves(struct connector *c)
{
	c->reserves = !resolver_reserve(c->all->names, quota_who(c->share));
}

void connector_releases(struct connector *c)
{
	if (c->reserves)
		resolver_release(c->all->names, quota_who(c->share));
	c->reserves = false;
}

static void say_that_it_waits(struct connector *c, const struct conn *conn,
			      unsigned int own)
{
	struct log *log = c->all->engine->log;
	char text[CONN_TEXT];

	if (!session_notes(conn->owner->self, INCIDENT_NAMES))
		return;
	if (own < LOOKUPS_FEW)
		log_warn(log, "%s and others have to wait: names of other peers, that hang, have all threads",
			 conn_text(conn, text));
	else
		log_warn(log, "%s and others have to wait: %u names of this peer are being looked up",
			 conn_text(conn, text), own);
}

int connector_asks(struct connector *c, const struct conn *conn,
		   const char *name, answered_fn answered, void *asker,
		   struct lookup **lookup)
{
	unsigned int own;
	int err = resolver_ask_for(c->all->names, quota_who(c->share), name,
				   AF_UNSPEC, answered, asker, lookup);

	if (!err && resolver_waits(*lookup, &own))
		say_that_it_waits(c, conn, own);
	return err;
}

/* --- whose turn it is --- */

static void begin_address(struct connector *c, struct conn *conn)
{
	struct sockaddr_storage to = destination_address(conn->dst);
	int fd = connector_dial(c, &to);

	if (fd < 0)
		connector_failed(c, conn, -fd);
	else
		connector_connected(c, conn, fd);
}

/* Looking it up takes of the time that its connect() may take. */
static void begin_name(struct connector *c, struct conn *conn)
{
	int err = conn_await_connect(conn, c->all->options->connect_timeout);

	if (!err)
		err = call_begin(c, conn);
	if (err)
		connector_failed(c, conn, -err);
}

static void count_open(struct connector *c)
{
	int64_t now = loop_now(c->all->engine->loop);

	c->open_at = (c->open_at > now ? c->open_at : now) +
		     NS_PER_SEC / c->all->options->max_opens;
}

static void begin(struct connector *c, struct conn *conn)
{
	conn_leave_line(conn);
	count_open(c);
	c->waits = false;
	c->under_way++;
	connector_counts(c, 1);
	if (conn->dst->kind == DESTINATION_NAME)
		begin_name(c, conn);
	else
		begin_address(c, conn);
}

static bool is_full(const struct connector *c)
{
	return c->under_way >= c->all->options->max_connects;
}

/* How long until another one may be begun; 0: now. */
static int64_t too_early_by(const struct connector *c)
{
	int64_t ahead = c->open_at - loop_now(c->all->engine->loop);

	return ahead > NS_PER_SEC ? ahead - NS_PER_SEC : 0;
}

bool connector_takes_flow(struct connector *c, const struct conn *conn)
{
	char text[CONN_TEXT];

	if (!too_early_by(c)) {
		count_open(c);
		return true;
	}
	if (session_notes(conn->owner->self, INCIDENT_OPENS))
		log_warn(c->all->engine->log, "%s and others were refused: this "
			 "session opens more than %u in a second (--max-opens)",
			 conn_text(conn, text), c->all->options->max_opens);
	return false;
}

/* Those in line have to wait: once until one of them may begin. */
static void say_they_wait(struct connector *c, bool full)
{
	const struct options *o = c->all->options;
	struct log *log = c->all->engine->log;
	const struct conn *first = list_first(&c->in_line, struct conn, place);
	char text[CONN_TEXT];

	if (c->waits)
		return;
	c->waits = true;
	if (!session_notes(first->owner->self, full ? INCIDENT_CONNECTS :
						  INCIDENT_OPENS))
		return;
	conn_text(first, text);
	if (full)
		log_warn(log, "%s and others have to wait: %u connect%s of this "
			 "session %s under way (--max-connects)", text,
			 o->max_connects, plural(o->max_connects),
			 o->max_connects == 1 ? "is" : "are");
	else
		log_warn(log, "%s and others have to wait: this session opens "
			 "more than %u in a second (--max-opens)", text,
			 o->max_opens);
}

/* Its turn comes, if it has somebody in line and may connect. */
static void line_up(struct connector *c)
{
	struct loop *loop = c->all->engine->loop;
	int64_t early = too_early_by(c);

	if (list_empty(&c->in_line))
		return;
	if (is_full(c)) {
		say_they_wait(c, true);
		return;
	}
	if (early && !loop_timer_in(loop, &c->open_timer, early)) {
		say_they_wait(c, false);
		return;
	}
	if (list_empty(&c->member))
		list_add_tail(&c->all->in_line, &c->member);
	loop_after(loop, &c->all->turn);
}

static void open_again(struct timer *t)
{
	line_up(container_of(t, struct connector, open_timer));
}

/* The first of one session, which stands last then if it has more. */
static void begin_one(struct connects *all)
{
	struct connector *c = list_first(&all->in_line, struct connector,
					 member);

	list_del(&c->member);
	if (list_empty(&c->in_line))
		return;
	begin(c, list_first(&c->in_line, struct conn, place));
	line_up(c);
}

static void take_turn(struct task *t)
{
	struct connects *all = container_of(t, struct connects, turn);
	int64_t until = loop_clock() + CONNECTS_TURN_US * NS_PER_US;

	while (!list_empty(&all->in_line) && loop_clock() < until)
		begin_one(all);
	if (!list_empty(&all->in_line))
		loop_after(all->engine->loop, &all->turn);
}

/* What is a name is judged by the addresses that come of it. */
static bool may_go(const struct connector *c, const struct conn *conn)
{
	char why[ACCESS_WHY], text[CONN_TEXT];
	struct sockaddr_storage to;

	if (conn->dst->kind == DESTINATION_NAME)
		return true;
	to = destination_address(conn->dst);
	if (reach_allows(c->all->reach, &to, c->local, why))
		return true;
	if (session_notes(conn->owner->self, INCIDENT_DENIED))
		log_warn(c->all->engine->log, "%s denied: %s",
			 conn_text(conn, text), why);
	return false;
}

void connector_add(struct connector *c, struct conn *conn)
{
	if (!may_go(c, conn)) {
		conn_reset(conn, CONN_END_DENIED);
		return;
	}
	conn->in_line = true;
	list_move_tail(&c->in_line, &conn->place);
	if (conn_await_connect(conn, c->all->options->connect_timeout))
		connector_failed(c, conn, ENOMEM);
	else
		line_up(c);
}

void connector_moved(struct connector *c, struct conn *conn, int from)
{
	if (conn->in_line) {
		conn_leave_line(conn);
		return;
	}
	if (conn->asker)
		call_free(conn->asker);
	if (conn->state == CONN_CLOSED && from != CONN_WAIT) {
		connector_counts(c, -1);
		c->share->lent -= conn->ours;
	}
	if (from != CONN_CONNECTING)
		return;
	c->under_way--;
	line_up(c);
}

void connector_init(struct connector *c, struct connects *all,
		    struct quota_share *share, bool local)
{
	memset(c, 0, sizeof(*c));
	c->all = all;
	c->share = share;
	c->local = local;
	c->open_timer.fire = open_again;
	list_init(&c->member);
	list_init(&c->in_line);
	list_init(&c->calls);
	list_init(&c->unasked);
}

void connector_fini(struct connector *c)
{
	loop_timer_stop(c->all->engine->loop, &c->open_timer);
	while (!list_empty(&c->in_line))
		conn_abort(list_first(&c->in_line, struct conn, place),
			   CONN_END_SESSION);
	calls_end(&c->unasked);
	calls_end(&c->calls);
	c->all->sockets -= c->share->sockets;
	list_del(&c->member);
}

void connects_review(struct connects *all)
{
	unsigned int sessions = all->options->max_sessions;

	if (sessions < LOOKUP_SESSIONS)
		sessions = LOOKUP_SESSIONS;
	resolver_grant_each(all->names, LOOKUPS_FEW,
			    LOOKUP_THREADS + LOOKUPS_FEW * sessions);
}

int connects_init(struct connects *all, struct engine *engine,
		  const struct options *options, const struct reach *reach,
		  struct quota *quota)
{
	all->engine = engine;
	all->sockets = 0;
	all->limit = 0;
	all->options = options;
	all->reach = reach;
	all->quota = quota;
	list_init(&all->in_line);
	loop_task_init(&all->turn, take_turn);
	all->names = resolver_new(engine->loop, LOOKUP_THREADS);
	if (!all->names)
		return -ENOMEM;
	resolver_limit_each(all->names, LOOKUPS_EACH);
	connects_review(all);
	return 0;
}

void connects_fini(struct connects *all)
{
	if (!all->names)
		return;
	loop_task_stop(&all->turn);
	resolver_free(all->names);
	all->names = NULL;
}
