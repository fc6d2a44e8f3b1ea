/* SPDX-License-Identifier: MIT */
/*
 * Runs that were sent are kept until the other proxy says that it parsed them; when
 * their pipe ends they are sent again on others: those first that went ahead of
 * connections that take turns, the others in place of a turn. What the kernel
 * acknowledged may lie unread in a closed buffer, so it tells nothing.
 *
 * A session keeps --keep at most, and no more than is left of what all sessions of the
 * process may keep: of n that want as much as they can get, each has a part in n + 1,
 * and there is as much left for another. It waits then. What waits for a path that carries
 * nothing counts for all sessions alone: else one path that is gone could stop the others. Nothing can be
 * shed here as hoard.h does it: what is kept goes with its session alone. So when little
 * is left the session that has most ends, if it had no ACK of its oldest run for
 * KEPT_LATE_SECONDS: else some that never acknowledge anything would stop all others. It counts in
 * the same memory, though: what is kept the hoard may not have.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/log.h"
#include "../base/sizes.h"
#include "extended.h"
#include "sent_run.h"

static size_t size_of(unsigned int paths)
{
	return sizeof(struct sent_run) + paths * sizeof(struct list);
}

static size_t memory_of(const struct sent_run *sent)
{
	return size_of(sent->paths) + sizeof(*sent->run) + sent->run->size;
}

static size_t all_may_keep(const struct engine *engine)
{
	return engine_memory(engine) / KEPT_SHARE;
}

/* @kept by all leaves so little that those who keep for long have to go. */
static bool is_short(const struct engine *engine, size_t kept)
{
	return kept > all_may_keep(engine) - all_may_keep(engine) / 4;
}

static void count(struct extended *x, int64_t bytes)
{
	x->kept += (size_t)bytes;
	x->s->engine->kept += (size_t)bytes;
	engine_balance(x->s->engine);
	if (bytes > 0 && is_short(x->s->engine, x->s->engine->kept))
		loop_after(x->s->engine->loop, &x->s->engine->kept_relief);
}

static size_t left_of_all(const struct engine *engine)
{
	return size_less(all_may_keep(engine), engine->kept);
}

/* May something new, or again, go on it? */
static bool is_in_use(const struct pipe *p)
{
	return !p->standby;
}

/* Without what is bound to paths that carry nothing: it waits for these, and nobody else does. */
static size_t kept_for_others(const struct extended *x)
{
	if (!keeping_has_again(x))
		return x->kept;
	return x->kept - again_without(&x->again,
				       paths_with(&x->s->paths, is_in_use));
}

/* Not while nothing is under way: no acknowledgement would come. */
bool keeping_is_full(const struct extended *x)
{
	const struct engine *engine = x->s->engine;
	size_t kept = kept_for_others(x);

	return kept > x->cut && (kept >= engine->settings->keep ||
				 kept >= left_of_all(engine));
}

size_t keeping_room(const struct extended *x)
{
	const struct engine *engine = x->s->engine;
	size_t own = size_less(engine->settings->keep, x->kept);
	size_t all = left_of_all(engine);

	return size_least(own, all) / 2;
}

void keeping_cut(struct extended *x, int64_t bytes)
{
	if (!bytes)
		return;
	x->cut += (size_t)bytes;
	count(x, bytes);
}

static void forget(struct sent_run *sent)
{
	twins_leave(sent);
	list_del(&sent->item.twins);
}

static void put(struct extended *x, struct sent_run *sent)
{
	forget(sent);
	count(x, -(int64_t)sent->item.bytes);
	sent->run->kept = false;
	run_put(&x->s->shared.pool, sent->run);
	free(sent);
}

static void put_all(struct extended *x, struct kept_item *list)
{
	while (list) {
		struct kept_item *next = list->next;

		put(x, sent_run_of(list));
		list = next;
	}
}

/*
 * A run went out that could not be sent again. The other end is told: it would
 * wait for new pipes otherwise. Not while that run is being sent, since this
 * ends connections.
 */
static void end_unkept(struct task *t)
{
	extended_condemn(container_of(t, struct extended, unkept)->s,
			 WIRE_GOODBYE_LIMIT, "no memory to keep what is sent");
}

struct run *keeping_add(struct session *s, struct pipe *p, struct run *run)
{
	struct extended *x = s->ext;
	uint32_t messages = run->messages - run->uncounted;
	unsigned int paths = twins_paths(x, run);
	struct sent_run *sent;
	size_t bytes;

	if (!messages)
		return run;
	sent = malloc(size_of(paths));
	if (!sent) {
		x->twin_of = NULL;
		run->kept = false;	/* it was, if it is sent again */
		x->leg[p->index].kept.sent += messages;
		loop_after(s->engine->loop, &x->unkept);
		return run;
	}
	/* One that is mostly empty would cost a large one's memory as long as it is kept. */
	run = run_trim(&s->shared.pool, run);
	run->kept = true;
	if (!run->order)
		run->order = ++x->order;
	sent->run = run;
	sent->pipe = (uint8_t)p->index;
	sent->paths = (uint8_t)paths;
	sent->sent_at = loop_now(s->engine->loop);
	sent->end = pipe_end_of(p, run->len);
	suspects_watch(x);
	tails_written(s, p, run, sent->end);
	reinjecting_written(s, p);
	bytes = memory_of(sent);
	count(x, (int64_t)bytes);
	kept_add(&x->leg[p->index].kept, &sent->item, messages, bytes);
	sent->counted = sent->item.last;
	sent->incarnation = x->leg[p->index].kept.incarnation;
	twins_enter(x, p, sent);
	run->count = (uint32_t)(sent->counted - messages + 1);
	return run;
}

/* --- when all keep too much --- */

/* When its oldest run was sent. */
static int64_t oldest_of(const struct extended *x)
{
	const struct kept_item *item;
	int64_t oldest = INT64_MAX;
	unsigned int i;
	int list = -1;

	while ((item = again_each(&x->again, &list))) {
		const struct sent_run *sent =
			container_of(item, const struct sent_run, item);

		if (sent->sent_at < oldest)
			oldest = sent->sent_at;
	}
	for (i = 0; i < PIPES_MAX; i++) {
		int64_t sent_at = keeping_oldest(&x->leg[i]);

		if (sent_at && sent_at < oldest)
			oldest = sent_at;
	}
	return oldest;
}

/*
 * Of those whose oldest run was sent before @before, who keeps most, unless that is
 * less than the mean: then others are at fault, and they are not late. And what those
 * keep that are about to end, which will be free in a moment.
 */
static struct extended *most_late(const struct engine *engine, int64_t before,
				  size_t *going)
{
	struct extended *most = NULL;
	struct list *pos, *tmp;
	size_t n = 0;

	*going = 0;
	list_each(pos, tmp, &engine->extended) {
		struct extended *x = list_entry(pos, struct extended, member);

		if (!session_is_up(x->s)) {
			*going += x->kept;
			continue;
		}
		n += x->kept > 0;
		if (x->kept && (!most || x->kept > most->kept) &&
		    oldest_of(x) < before)
			most = x;
	}
	return most && most->kept >= (engine->kept - *going) / n ? most : NULL;
}

void keeping_relieve(struct task *t)
{
	struct engine *engine = container_of(t, struct engine, kept_relief);
	int64_t before = loop_now(engine->loop) -
			 KEPT_LATE_SECONDS * NS_PER_SEC;
	struct extended *x;
	size_t going;

	while ((x = most_late(engine, before, &going)) &&
	       is_short(engine, engine->kept - going)) {
		session_notes(x->s, INCIDENT_MEMORY);
		extended_condemn(x->s, WIRE_GOODBYE_LIMIT, "%zu bytes were not acknowledged for %d s, and all sessions keep too much",
				 x->kept, KEPT_LATE_SECONDS);
	}
}

/* --- again --- */

static void look_again(struct extended *x, struct view *view)
{
	bool none = !keeping_has_again(x);
	unsigned int i;

	for (i = 0; i < PATHS_MAX; i++) {
		struct kept_item *item = none ? NULL : again_first(&x->again, i);

		view->again[i] = item ? sent_run_of(item)->run : NULL;
	}
}

void keeping_look(struct session *s, struct view *view)
{
	struct extended *x = s->ext;

	look_again(x, view);
	view->tail = tails_wait(s, &view->tail_paths);
	view->full = keeping_is_full(x);
	twins_look(x, view);
	reinjecting_look(s, view);
}

bool keeping_has_again(const struct extended *x)
{
	return !again_is_empty(&x->again);
}

/* It is kept anew with the pipe that it goes on. */
void keeping_sends_again(struct session *s, const struct run *run)
{
	struct extended *x = s->ext;
	struct sent_run *sent = sent_run_of(again_take(&x->again, run->ahead,
						       run->paths));

	count(x, -(int64_t)sent->item.bytes);
	sent->run->sent = 0;
	sent->run->next = NULL;
	sent->run->copy = false;
	s->counts.again += sent->run->messages;
	s->counts.again_bytes += sent->run->len;
	free(sent);
}

/* Unless the other end has it by another pipe, or it is kept for one. */
static void append(struct extended *x, struct kept_item *list)
{
	while (list) {
		struct sent_run *sent = sent_run_of(list);

		list = list->next;
		twins_leave(sent);
		if (!kept_goes_again(&sent->item)) {
			put(x, sent);
			continue;
		}
		again_add(&x->again, &sent->item, sent->run->order,
			  sent->run->ahead, sent->run->paths);
	}
	if (keeping_has_again(x))
		loop_after(x->s->engine->loop, &x->s->out.pump);
}

void keeping_pipe_ended(struct extended *x, struct leg *leg)
{
	append(x, kept_end(&leg->kept));
}

int64_t keeping_oldest(const struct leg *leg)
{
	return leg->kept.first ? sent_run_of(leg->kept.first)->sent_at : 0;
}

/* A run of its own, for one that a pipe's queue still needs. */
static struct sent_run *copy(struct extended *x, const struct sent_run *of)
{
	struct run *run = duplicate_run(of->run);
	struct sent_run *sent = calloc(1, sizeof(*sent));

	if (!run || !sent) {
		free(run);
		free(sent);
		return NULL;
	}
	sent->run = run;
	sent->sent_at = of->sent_at;
	sent->counted = of->counted;
	sent->incarnation = of->incarnation;
	sent->pipe = of->pipe;
	list_init(&sent->item.twins);
	sent->item.bytes = memory_of(sent);
	count(x, (int64_t)sent->item.bytes);
	return sent;
}

/* The pipe's queue has the last of them. */
static void copy_queued(struct extended *x, struct kept_item *first)
{
	for (; first; first = first->next) {
		struct sent_run *sent;

		if (first->there)
			continue;
		sent = copy(x, sent_run_of(first));
		if (!sent)
			return;
		append(x, &sent->item);
	}
}

void keeping_suspect(struct extended *x, struct leg *leg)
{
	struct kept_item *item = leg->kept.first, *written;
	uint64_t last = leg->kept.received;

	while (item && sent_run_of(item)->run->sent == sent_run_of(item)->run->len) {
		last = item->last;
		item = item->next;
	}
	kept_ack(&leg->kept, leg->incarnation, last, &written);
	append(x, written);
	copy_queued(x, item);
}

/* --- acknowledgements --- */

/* What lies in a pipe's queue cannot have been parsed by anybody. */
static bool all_were_written(struct kept_item *list)
{
	for (; list; list = list->next) {
		const struct run *run = sent_run_of(list)->run;

		if (run->sent < run->len)
			return false;
	}
	return true;
}

static void give_to_queue(struct extended *x, struct kept_item *list)
{
	while (list) {
		struct sent_run *sent = sent_run_of(list);

		list = list->next;
		if (sent->run->sent == sent->run->len) {
			put(x, sent);
			continue;
		}
		forget(sent);
		count(x, -(int64_t)sent->item.bytes);
		sent->run->kept = false;	/* its pipe frees it */
		free(sent);
	}
}

/*
 * What acknowledgements take: it rises at once and falls slowly. The first one after
 * a time without any tells how long the network was gone.
 */
static void note_time(struct way *way, const struct leg *leg,
		      struct kept_item *freed, int64_t now)
{
	int64_t took;

	if (!freed || now - leg->progress_at > NS_PER_SEC)
		return;
	took = now - sent_run_of(freed)->sent_at;
	if (took > way->ack_takes)
		way->ack_takes = took;
	else
		way->ack_takes -= (way->ack_takes - took) / 16;
}

/* By pipe, what an ACK says of those that made progress; NULL: it did not. */
struct told {
	const struct wire_ack_pipe *by[PIPES_MAX];
	bool any;
};

/* The ACK tells of it: it went on that pipe. */
static bool is_told(const struct kept_item *item, const void *arg)
{
	const struct sent_run *sent =
		container_of(item, const struct sent_run, item);
	const struct told *told = arg;
	const struct wire_ack_pipe *said = told->by[sent->pipe];

	return said && sent->incarnation == said->incarnation &&
	       sent->counted <= said->received;
}

/*
 * What waits to go again because its pipe is suspect, or has ended, has arrived after all. Once for all
 * pipes: each time all that waits is looked at.
 */
static void drop_again(struct extended *x, const struct told *told)
{
	if (told->any && keeping_has_again(x))
		put_all(x, again_remove(&x->again, is_told, told));
}

static void note_arrival(struct kept_item *freed)
{
	for (; freed; freed = freed->next)
		kept_arrived(freed);
}

static void note_progress(struct leg *leg, const struct wire_ack_pipe *said,
			  int64_t now, struct told *told)
{
	if (said->received <= leg->heard)
		return;
	leg->heard = said->received;
	leg->progress_at = now;
	told->by[said->pipe] = said;
	told->any = true;
}

/* Who parsed what counts had WELCOME before. */
static void heard_of(struct session *s, const struct wire_ack_pipe *said)
{
	if (said->received && s->pipes[said->pipe])
		s->pipes[said->pipe]->in_order = false;
}

static void acked_pipe(struct session *s, const struct wire_ack_pipe *said,
		       struct told *told)
{
	struct extended *x = s->ext;
	int64_t now = loop_now(s->engine->loop);
	struct kept_item *freed = NULL;
	enum kept_verdict verdict = KEPT_OTHER;
	bool sound;

	if (said->pipe < PIPES_MAX && x->leg[said->pipe].known)
		verdict = kept_ack(&x->leg[said->pipe].kept, said->incarnation,
				   said->received, &freed);
	if (verdict == KEPT_OTHER) {
		s->counts.dropped++;
		s->counts.stale++;
	}
	if (verdict == KEPT_OK) {
		heard_of(s, said);
		note_time(ways_of(x, said->pipe), &x->leg[said->pipe],
			  freed, now);
		note_progress(&x->leg[said->pipe], said, now, told);
	}
	note_arrival(freed);
	sound = all_were_written(freed);
	if (sound)
		put_all(x, freed);
	else
		give_to_queue(x, freed);
	if (verdict == KEPT_BEYOND || !sound)
		extended_condemn(s, WIRE_GOODBYE_PROTOCOL,
				 "an ACK of %llu messages of pipe %u, which were not sent",
				 (unsigned long long)said->received,
				 said->pipe);
}

/*
 * An ACK is sent when messages came, or when a pipe ends. So one that tells nothing
 * new was sent for the latter, and which pipe it is can be found out before the next
 * PING is due.
 */
static bool tells_of_an_end(const struct extended *x, const struct wire_ack *ack)
{
	unsigned int i;

	for (i = 0; i < ack->pipes; i++) {
		const struct wire_ack_pipe *said = &ack->pipe[i];
		const struct leg *leg = &x->leg[said->pipe % PIPES_MAX];

		if (said->incarnation != leg->incarnation ||
		    said->received != leg->heard)
			return false;
	}
	return ack->pipes;
}

/*
 * Who is full has something that is not acknowledged yet, so an ACK always comes; whether others
 * made room for it since it last looked, nobody has told it.
 */
void keeping_acked(struct session *s, const struct wire_ack *ack)
{
	/* One of before: it was overtaken, or went again with what it shared a run with. */
	bool stale = ack->time_us < s->ext->acked_us;
	struct told told = { .any = false };
	unsigned int i;

	if (s->ext->lp && tells_of_an_end(s->ext, ack))
		control_ask_quiet(s);
	if (!stale) {
		s->ext->acked_us = ack->time_us;
		s->ext->early_there = ack->reorder_bytes;
		reinjecting_acked(s, ack);
	}
	for (i = 0; i < ack->pipes && session_is_up(s); i++)
		acked_pipe(s, &ack->pipe[i], &told);
	drop_again(s->ext, &told);
	loop_after(s->engine->loop, &s->out.pump);
}

void keeping_init(struct extended *x)
{
	loop_task_init(&x->unkept, end_unkept);
}

static void put_again(struct extended *x)
{
	struct kept_item *item;
	int list = -1;

	while ((item = again_each(&x->again, &list)))
		put_all(x, item);
	memset(&x->again, 0, sizeof(x->again));
}

void keeping_let_go(struct extended *x)
{
	unsigned int i;

	for (i = 0; i < PIPES_MAX; i++) {
		if (x->leg[i].known)
			give_to_queue(x, kept_end(&x->leg[i].kept));
	}
	put_again(x);
}

void keeping_fini(struct extended *x)
{
	unsigned int i;

	loop_task_stop(&x->unkept);
	for (i = 0; i < PIPES_MAX; i++) {
		if (x->leg[i].known)
			put_all(x, kept_end(&x->leg[i].kept));
	}
	put_again(x);
	keeping_cut(x, -(int64_t)x->cut);
}
