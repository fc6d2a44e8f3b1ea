/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "joiner.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../mux/base/addr.h"
#include "../mux/base/host.h"
#include "../mux/base/log.h"
#include "../mux/base/plural.h"
#include "../mux/base/sock.h"
#include "../mux/session/session.h"
#include "departure.h"
#include "dialer.h"

static int leave(struct join *join)
{
	struct joiner *j = join->joiner;
	int fd = join->watch.fd;

	loop_unwatch(j->loop, &join->watch);
	loop_timer_stop(j->loop, &join->deadline);
	j->under_way--;
	return fd;
}

/* The address whose turn it is. */
static const struct sockaddr_storage *address(const struct joiner *j)
{
	return &j->at.addr[j->turn];
}

static unsigned int lacks(const struct joiner *j)
{
	return session_lacks_on(j->session, j->number);
}

/* "sctp: ", where others may be up: the transport may be the reason. */
static void complain(struct joiner *j, const struct join *join, const char *why)
{
	bool matters = j->transports->n > 1;
	char text[ADDR_TEXT];

	if (j->complained)
		return;
	j->complained = true;
	j->complete = false;
	log_warn(j->log, "%u of %u pipe%s to %s%s%s %s not up: %s%s%s; trying again",
		 lacks(j), j->pipes, plural(j->pipes), addr_text(&join->to, text),
		 j->path ? " over " : "", j->path ? j->path->name : "",
		 lacks(j) == 1 ? "is" : "are",
		 matters ? transport_name(join->kind) : "",
		 matters ? ": " : "", why);
}

/*
 * A pipe that is connected is not up: where rp just ended, or hangs, its kernel still
 * takes connections.
 */
static void say_if_complete(struct joiner *j)
{
	char text[ADDR_TEXT];

	if (j->complete || !session_is_complete(j->session, j->number))
		return;
	j->complete = true;
	j->complained = false;
	log_info(j->log, "%u pipe%s to %s%s%s %s up", j->pipes,
		 plural(j->pipes), addr_text(&j->answered, text),
		 j->path ? " over " : "", j->path ? j->path->name : "",
		 j->pipes == 1 ? "is" : "are");
}

static void dial_all(struct joiner *j);

/* After the last one comes the first, once the name was looked up anew. */
static void next_address(struct joiner *j)
{
	if (++j->turn < j->at.count) {
		dial_all(j);
		return;
	}
	j->turn = 0;
	whereabouts_ask(&j->rp);
	joiner_look(j);
}

static void failed(struct joiner *j, const struct join *join, int err)
{
	const struct sockaddr_storage *to = &join->to;

	if (!session_is_up(j->session))
		return;
	j->failing = true;
	if (err == ECONNREFUSED && addr_same_host(to, &j->home) &&
	    join->kind == j->join[0].kind &&
	    !session_pipes(j->session) && lacks(j) == j->pipes) {
		session_stop(j->session, "rp is there no more: Connection "
			     "refused");
		return;
	}
	complain(j, join, strerror(err));
	/* Others that were dialled there fail as well: one of them is enough. */
	if (addr_same_host(to, address(j)))
		next_address(j);
	else
		joiner_look(j);
}

/* Meanwhile RP may have sent another one away: then it hears of the path anew before it is dialled. */
static void connected(struct watch *w, uint32_t events)
{
	struct join *join = container_of(w, struct join, watch);
	struct joiner *j = join->joiner;
	unsigned int index = j->first + (unsigned int)(join - j->join);
	int fd = leave(join), err = sock_error(fd);

	(void)events;
	if (err || !session_lacks_pipe(j->session, index)) {
		close(fd);
		if (err)
			failed(j, join, err);
		return;
	}
	j->answered = join->to;
	err = session_join(j->session, index, fd);
	if (err)
		failed(j, join, -err);
}

static void too_long(struct timer *t)
{
	struct join *join = container_of(t, struct join, deadline);

	close(leave(join));
	failed(join->joiner, join, ETIMEDOUT);
}

/* 0 or -errno. */
static int dial(struct joiner *j, struct join *join)
{
	int fd, err;

	join->to = *address(j);
	fd = sock_connect(departure_socket(j->path, join->kind,
					   join->to.ss_family), &join->to);
	if (fd < 0)
		return fd;
	err = loop_watch(j->loop, &join->watch, fd, EPOLLOUT);
	if (err) {
		close(fd);
		return err;
	}
	j->under_way++;
	if (j->paid_until < j->tried_at)
		j->paid_until = j->tried_at;
	j->paid_until += JOIN_MIN_MS * NS_PER_MS;
	err = loop_timer_in(j->loop, &join->deadline,
			    JOIN_DIAL_MS * NS_PER_MS);
	if (err)
		close(leave(join));
	return err;
}

static void dial_all(struct joiner *j)
{
	unsigned int i;
	int err = 0;

	j->tried_at = loop_clock();
	j->retries += j->failing;
	j->failing = false;
	for (i = 0; i < j->pipes && !err; i++) {
		if (session_lacks_pipe(j->session, j->first + i) &&
		    j->join[i].watch.fd < 0)
			err = dial(j, &j->join[i]);
	}
	if (err)
		failed(j, &j->join[i - 1], -err);
}

/* A pipe's worth of JOIN_MIN_MS may be owed for each that the session has. */
static int64_t next_at(const struct joiner *j)
{
	int64_t ms = JOIN_MIN_MS;
	unsigned int i;

	if (!j->failing && !j->retries)
		return j->paid_until - j->pipes * JOIN_MIN_MS * NS_PER_MS;
	for (i = 0; i < j->retries && ms < JOIN_MAX_MS; i++)
		ms *= 2;
	return j->tried_at +
	       (ms < JOIN_MAX_MS ? ms : JOIN_MAX_MS) * NS_PER_MS;
}

static void forget_failures(struct joiner *j)
{
	j->failing = false;
	j->retries = 0;
}

void joiner_look(struct joiner *j)
{
	int64_t now = loop_clock();

	if (!j->session || j->next.slot ||
	    lacks(j) <= j->under_way)
		return;
	j->complete = false;
	if (now - j->tried_at > JOIN_QUIET_MS * NS_PER_MS)
		forget_failures(j);
	loop_timer_at(j->loop, &j->next, next_at(j));
}

void joiner_welcomed(struct joiner *j)
{
	forget_failures(j);
	say_if_complete(j);
}

static void next_came(struct timer *t)
{
	struct joiner *j = container_of(t, struct joiner, next);

	if (lacks(j) > j->under_way)
		dial_all(j);
}

/* --- where --- */

static void add(struct joiner *j, const struct sockaddr_storage *addr)
{
	struct sockaddr_storage *to = &j->at.addr[j->at.count++];

	*to = *addr;
	addr_set_port(to, addr_port(&j->home));
}

enum { FARTHEST = 3 };

/* The smaller, the sooner it is tried. */
static int distance(const struct joiner *j, const struct sockaddr_storage *addr)
{
	if (addr_same_host(addr, &j->answered))
		return 0;
	if (addr_same_host(addr, &j->home))
		return 1;
	return addr->ss_family == j->home.ss_family ? 2 : FARTHEST;
}

/* What is being dialled may come to something all the same. */
static void found(struct whereabouts *w, const struct answer *answer)
{
	struct joiner *j = container_of(w, struct joiner, rp);
	unsigned int i;
	int far;

	if (answer->error)
		return;		/* those of before are better than none */
	j->at.count = j->turn = 0;
	for (far = 0; far <= FARTHEST; far++) {
		for (i = 0; i < answer->count; i++) {
			if (distance(j, &answer->addr[i]) == far)
				add(j, &answer->addr[i]);
		}
	}
	joiner_look(j);
}

/* --- from outside --- */

static void at_once(struct joiner *j)
{
	forget_failures(j);
	j->tried_at = j->paid_until = 0;
	loop_timer_stop(j->loop, &j->next);
	joiner_look(j);
}

static bool is_stranded(const struct join *join, const struct host *host)
{
	struct sockaddr_storage from;

	if (join->watch.fd < 0 || sock_address(join->watch.fd, &from))
		return false;
	return !host_has(host, &from) ||
	       !departure_is_from(join->joiner->path, &join->to, &from);
}

static void give_up_dialling(struct joiner *j, const struct host *host)
{
	unsigned int i;

	for (i = 0; i < PIPES_MAX; i++) {
		if (is_stranded(&j->join[i], host))
			close(leave(&j->join[i]));
	}
}

void joiner_roam(struct joiner *j, const struct host *host)
{
	if (!j->session)
		return;
	give_up_dialling(j, host);
	if (!lacks(j))
		return;
	at_once(j);
	whereabouts_ask(&j->rp);
}

void joiner_start(struct joiner *j, struct session *s,
		  const struct sockaddr_storage *addr)
{
	j->session = s;
	j->home = j->answered = *addr;
	j->at.count = j->turn = 0;
	add(j, addr);
	j->complained = j->complete = false;
	say_if_complete(j);
	at_once(j);
}

void joiner_stop(struct joiner *j)
{
	unsigned int i;

	j->session = NULL;
	whereabouts_forget(&j->rp);
	loop_timer_stop(j->loop, &j->next);
	for (i = 0; i < PIPES_MAX; i++) {
		if (j->join[i].watch.fd >= 0)
			close(leave(&j->join[i]));
	}
}

int joiner_init(struct joiner *j, struct loop *loop, struct log *log,
		const struct dialer_options *dial, unsigned int number)
{
	const struct path_set *paths = dial->paths;
	unsigned int i;

	memset(j, 0, sizeof(*j));
	j->loop = loop;
	j->log = log;
	j->transports = dial->transports;
	j->path = paths->n ? &paths->path[number] : NULL;
	j->number = number;
	j->first = path_set_first(paths, number);
	j->pipes = j->path ? j->path->pipes : dial->pipes;
	j->next.fire = next_came;
	for (i = 0; i < PIPES_MAX; i++) {
		j->join[i].joiner = j;
		j->join[i].kind = transport_set_of(dial->transports, i);
		j->join[i].watch.fd = -1;
		j->join[i].watch.ready = connected;
		j->join[i].deadline.fire = too_long;
	}
	return whereabouts_init(&j->rp, loop, dial->rp.host, found);
}

void joiner_fini(struct joiner *j)
{
	joiner_stop(j);
	whereabouts_fini(&j->rp);
}

void joiner_print(const struct joiner *j, FILE *out)
{
	if (j->session && lacks(j))
		fprintf(out, "pipes that are lacking%s%s: %u of %u, %u being "
			"dialled\n", j->path ? " over " : "",
			j->path ? j->path->name : "", lacks(j), j->pipes,
			j->under_way);
}
