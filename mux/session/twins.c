/* SPDX-License-Identifier: MIT */
/*
 * Twins: runs that go over another path as well, while what was sent first is kept for its own.
 * The policy of paths says whether there are any: of all that is sent, the oldest first (copies),
 * or of what connections sent last (dems-s, dems-f), unless the connection has more, and waits
 * for credit or for its application, or may have more, as that wrote a moment ago. Of a
 * connection of which a HINT said so all is sent over each path, whatever the policy. A run is
 * kept for each pipe that has it. What the other end has by one of them, as its ACK says, or its
 * kernel has, goes no second time.
 */
#include <stdlib.h>
#include <string.h>

#include "../path/forecast.h"
#include "../settings/path_bits.h"
#include "extended.h"
#include "sent_run.h"

static enum path_twice twice(const struct extended *x)
{
	return x->s->sched.path.policy->twice;
}

unsigned int twins_paths(const struct extended *x, const struct run *run)
{
	unsigned int n = x->s->paths.npaths;

	if (n < 2 || run->copy)
		return 0;
	if (run->on_all)
		return n;
	if (twice(x) == PATH_TWICE_NEVER)
		return 0;
	return twice(x) == PATH_TWICE_ALL || run->of_conn ? n : 0;
}

void twins_enter(struct extended *x, const struct pipe *p,
		 struct sent_run *sent)
{
	struct paths *paths = &x->s->paths;
	unsigned int i;

	if (x->twin_of)
		kept_twin(&sent->item, &x->twin_of->item);
	x->twin_of = NULL;
	for (i = 0; i < sent->paths; i++) {
		list_init(&sent->due[i]);
		if (&paths->path[i] != p->path && paths->path[i].npipes &&
		    path_bits_have(sent->run->paths, i))
			list_add_tail(sent->run->on_all ? &x->on_all[i] :
				      &x->twins[i], &sent->due[i]);
	}
	if (sent->paths)
		sent->arrives_at = path_arrives_at(p->path,
					loop_now(x->s->engine->loop), 0);
}

void twins_leave(struct sent_run *sent)
{
	unsigned int i;

	for (i = 0; i < sent->paths; i++)
		list_del(&sent->due[i]);
}

/* The other end's kernel has it, or the other end itself. */
static bool is_there(const struct extended *x, const struct sent_run *sent)
{
	const struct pipe *p = x->s->pipes[sent->pipe];

	return sent->item.there || (p && sent->end <= pipe_arrived(p));
}

/* The first or the last of those that are @due there and not at the other end; or NULL. */
static struct sent_run *next_of(const struct extended *x, const struct list *due,
				unsigned int path, bool first)
{
	while (!list_empty(due)) {
		struct list *link = first ? due->next : due->prev;
		struct sent_run *sent = container_of(link - path,
						     struct sent_run, due);

		if (!is_there(x, sent))
			return sent;
		list_del(link);
	}
	return NULL;
}

/* What goes on that path next, of what other paths carry; or NULL. */
static struct sent_run *next_on(const struct extended *x, unsigned int path)
{
	struct sent_run *sent = next_of(x, &x->on_all[path], path, true);

	return sent ? sent : next_of(x, &x->twins[path], path,
				     twice(x) == PATH_TWICE_ALL);
}

/* It waits for the other end to grant more, or for what its application was said to write. */
static bool has_more(const struct conn *c)
{
	uint64_t size = conn_size(c);

	return conn_starves(c) || (size && size < UINT64_MAX);
}

/* All that was told of. */
static bool is_through(const struct conn *c)
{
	return conn_outlook(c)->told_to == c->tx_bytes;
}

/*
 * From when on what its connection sent last may be the end of that: NEXT_NEVER: not before
 * something happens.
 */
static int64_t ends_at(const struct extended *x, const struct sent_run *sent)
{
	const struct channel *ch = x->channel[sent->run->id];

	if (twice(x) != PATH_TWICE_LAST || sent->run->on_all || !ch || !ch->conn)
		return 0;
	if (ch->conn->out_ended)
		return 0;
	if (has_more(ch->conn))
		return NEXT_NEVER;
	return is_through(ch->conn) ? 0 : conn_outlook(ch->conn)->silent_at;
}

/* What may go next on that path, of what others carry; NULL: nothing may now. */
static struct sent_run *twin_on(const struct extended *x, unsigned int path,
				struct view *view)
{
	struct sent_run *sent = next_on(x, path);
	int64_t at = sent ? ends_at(x, sent) : 0;

	if (at <= view->now)
		return sent;
	if (at < NEXT_NEVER && (!view->twins_at || at < view->twins_at))
		view->twins_at = at;
	return NULL;
}

void twins_look(struct extended *x, struct view *view)
{
	const struct paths *paths = &x->s->paths;
	unsigned int i;

	view->twins = false;
	view->twins_at = 0;
	if (paths->npaths < 2)
		return;
	for (i = 0; i < paths->npaths; i++) {
		const struct sent_run *sent = NULL;

		if (paths->path[i].npipes && !view->full)
			sent = twin_on(x, i, view);
		view->twin[i].there = sent != NULL;
		view->twin[i].ahead = sent && (sent->run->on_all ||
					       twice(x) == PATH_TWICE_ALL);
		view->twin[i].arrives_at = sent ? sent->arrives_at : 0;
		view->twins |= sent != NULL;
	}
}

struct run *twins_copy(struct session *s, const struct pipe *p)
{
	struct extended *x = s->ext;
	unsigned int path = paths_number(&s->paths, p);
	struct sent_run *sent = next_on(x, path);
	struct run *run = duplicate_run(sent->run);

	if (!run)
		return NULL;
	list_del(&sent->due[path]);
	x->twin_of = sent;
	s->counts.reinjected += run->messages - run->uncounted;
	s->counts.reinjected_bytes += run->len;
	return run;
}

void twins_init(struct extended *x)
{
	unsigned int i;

	for (i = 0; i < PATHS_MAX; i++) {
		list_init(&x->twins[i]);
		list_init(&x->on_all[i]);
	}
}
