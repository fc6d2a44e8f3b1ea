/* SPDX-License-Identifier: MIT */
/*
 * Runs that were sent are kept until the other proxy says that it parsed them;
 * when their pipe is over they are sent again on others, ahead of what is new. What
 * the kernel acknowledged may lie unread in a closed buffer, so it tells nothing.
 *
 * A session keeps --keep at most, and no more than is left of what all sessions of the
 * process may keep: of n that want as much as they can get, each has a part in n + 1,
 * and there is as much left for another. It waits then. Nothing can be
 * shed here as hoard.h does it: what is kept goes with its session alone. So when little
 * is left the session that has most ends, if it had no ACK of its oldest run for
 * KEPT_LATE_SECONDS: else some that never acknowledge anything would stop all others. It counts in
 * the same memory, though: what is kept the hoard may not have.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/log.h"
#include "extended.h"

struct sent_run {
	struct kept_item item;
	struct run *run;
	int64_t sent_at;
	uint64_t end;		/* in the pipe's stream */
};

static struct sent_run *of_item(struct kept_item *item)
{
	return container_of(item, struct sent_run, item);
}

static size_t memory_of(const struct run *run)
{
	return sizeof(struct sent_run) + sizeof(*run) + run->size;
}

static size_t all_may_keep(const struct engine *engine)
{
	return engine->settings->max_held / KEPT_SHARE;
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

bool keeping_is_full(const struct extended *x)
{
	const struct engine *engine = x->s->engine;
	size_t all = all_may_keep(engine);
	size_t left = engine->kept < all ? all - engine->kept : 0;

	return x->kept && (x->kept >= engine->settings->keep ||
			   x->kept >= left);
}

static void put(struct extended *x, struct sent_run *sent)
{
	count(x, -(int64_t)memory_of(sent->run));
	sent->run->kept = false;
	run_put(&x->s->shared.pool, sent->run);
	free(sent);
}

static void put_all(struct extended *x, struct kept_item *list)
{
	while (list) {
		struct kept_item *next = list->next;

		put(x, of_item(list));
		list = next;
	}
}

/* A run that is mostly empty would cost a large one's memory as long as it is kept. */
static struct run *fit(struct run *run)
{
	return run->len < run->size / 2 ? run_trim(run) : run;
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
	struct sent_run *sent;

	if (!messages)
		return run;
	sent = malloc(sizeof(*sent));
	if (!sent) {
		run->kept = false;	/* it was, if it is sent again */
		x->leg[p->index].kept.sent += messages;
		loop_after(s->engine->loop, &x->unkept);
		return run;
	}
	run = fit(run);
	run->kept = true;
	sent->run = run;
	sent->sent_at = loop_now(s->engine->loop);
	sent->end = p->tx_bytes + p->queued + layer_len(p->layer, run->len);
	suspects_watch(x);
	tails_written(s, p, run);
	count(x, (int64_t)memory_of(run));
	kept_add(&x->leg[p->index].kept, &sent->item, messages, memory_of(run));
	run->count = (uint32_t)(sent->item.last - messages + 1);
	return run;
}

/* --- when all keep too much --- */

/* When its oldest run was sent. */
static int64_t oldest_of(const struct extended *x)
{
	int64_t oldest = x->again ? of_item(x->again)->sent_at : INT64_MAX;
	unsigned int i;

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
		session_refuses(x->s, REFUSAL_MEMORY);
		extended_condemn(x->s, WIRE_GOODBYE_LIMIT, "%zu bytes were not acknowledged for %d s, and all sessions keep too much",
				 x->kept, KEPT_LATE_SECONDS);
	}
}

/* --- again --- */

void keeping_look(struct session *s, struct view *view)
{
	struct extended *x = s->ext;

	view->again = x->again ? of_item(x->again)->run : NULL;
	view->tail = tails_wait(s);
	view->full = keeping_is_full(x);
}

/* It is kept anew with the pipe that it goes on. */
void keeping_sends_again(struct session *s)
{
	struct extended *x = s->ext;
	struct sent_run *sent = of_item(x->again);

	x->again = sent->item.next;
	if (!x->again)
		x->again_end = &x->again;
	count(x, -(int64_t)memory_of(sent->run));
	sent->run->sent = 0;
	sent->run->next = NULL;
	s->counts.again += sent->run->messages;
	s->counts.again_bytes += sent->run->len;
	free(sent);
}

static void append(struct extended *x, struct kept_item *list)
{
	*x->again_end = list;
	while (*x->again_end)
		x->again_end = &(*x->again_end)->next;
	if (x->again)
		loop_after(x->s->engine->loop, &x->s->out.pump);
}

void keeping_pipe_over(struct extended *x, struct leg *leg)
{
	append(x, kept_end(&leg->kept));
}

int64_t keeping_oldest(const struct leg *leg)
{
	return leg->kept.first ? of_item(leg->kept.first)->sent_at : 0;
}

/* A run of its own, for one that a pipe's queue still needs. */
static struct sent_run *copy(struct extended *x, const struct sent_run *of)
{
	struct run *run = malloc(sizeof(*run) + of->run->len);
	struct sent_run *sent = malloc(sizeof(*sent));

	if (!run || !sent) {
		free(run);
		free(sent);
		return NULL;
	}
	memcpy(run, of->run, sizeof(*run) + of->run->len);
	run->size = run->len;
	run->next = NULL;
	*sent = *of;
	sent->run = run;
	count(x, (int64_t)memory_of(run));
	return sent;
}

/* The pipe's queue has the last of them. */
static void copy_queued(struct extended *x, struct kept_item *first)
{
	for (; first; first = first->next) {
		struct sent_run *sent = copy(x, of_item(first));

		if (!sent)
			return;
		sent->item.next = NULL;
		append(x, &sent->item);
	}
}

void keeping_suspect(struct extended *x, struct leg *leg)
{
	struct kept_item *item = leg->kept.first, *written;
	uint64_t last = leg->kept.received;

	while (item && of_item(item)->run->sent == of_item(item)->run->len) {
		last = item->last;
		item = item->next;
	}
	kept_ack(&leg->kept, leg->incarnation, last, &written);
	append(x, written);
	copy_queued(x, item);
}

/* --- a copy of the last messages --- */

static const struct sent_run *beyond(const struct leg *leg, uint64_t at)
{
	struct kept_item *item = leg->kept.first;

	while (item && of_item(item)->end <= at)
		item = item->next;
	return item ? of_item(item) : NULL;
}

uint64_t keeping_beyond(const struct leg *leg, uint64_t at)
{
	const struct sent_run *sent = beyond(leg, at);

	return sent ? sent->end : 0;
}

/* What ends at or before @at is left out of @run, whose end is at @end. */
static void leave_out(struct run *run, uint64_t end, uint64_t at)
{
	uint64_t begin = end - run->len;
	struct wire_msg msg;
	size_t skip = 0;
	int n;

	while ((n = wire_read(run->buf + skip, run->len - skip, &msg)) > 0 &&
	       begin + skip + (size_t)n <= at) {
		skip += (size_t)n;
		run->messages--;
		run->uncounted -= !wire_ext_counts(&msg);
		run->first++;
	}
	run->len -= skip;
	memmove(run->buf, run->buf + skip, run->len);
}

struct run *keeping_copy(const struct leg *leg, uint64_t at, bool sealed)
{
	const struct sent_run *of = beyond(leg, at);
	struct run *run = malloc(sizeof(*run) + of->run->len);

	if (!run)
		return NULL;
	memcpy(run, of->run, sizeof(*run) + of->run->len);
	run->size = run->len;
	run->sent = 0;
	run->next = NULL;
	run->kept = false;
	if (!sealed)	/* half of a record is nothing to read */
		leave_out(run, of->end, at);
	return run;
}

/* --- acknowledgements --- */

/* What lies in a pipe's queue cannot have been parsed by anybody. */
static bool all_were_written(const struct kept_item *list)
{
	for (; list; list = list->next) {
		const struct run *run =
			container_of(list, const struct sent_run, item)->run;

		if (run->sent < run->len)
			return false;
	}
	return true;
}

static void give_to_queue(struct extended *x, struct kept_item *list)
{
	while (list) {
		struct sent_run *sent = of_item(list);

		list = list->next;
		if (sent->run->sent == sent->run->len) {
			put(x, sent);
			continue;
		}
		count(x, -(int64_t)memory_of(sent->run));
		sent->run->kept = false;	/* its pipe frees it */
		free(sent);
	}
}

/*
 * What acknowledgements take: it rises at once and falls slowly. The first one after
 * a time without any tells how long the network was gone.
 */
static void note_time(struct extended *x, const struct leg *leg,
		      struct kept_item *freed, int64_t now)
{
	int64_t took;

	if (!freed || now - leg->progress_at > NS_PER_SEC)
		return;
	took = now - of_item(freed)->sent_at;
	if (took > x->ack_takes)
		x->ack_takes = took;
	else
		x->ack_takes -= (x->ack_takes - took) / 16;
}

static void note_progress(struct leg *leg, uint64_t received, int64_t now)
{
	if (received <= leg->heard)
		return;
	leg->heard = received;
	leg->progress_at = now;
}

/* Who parsed what counts had WELCOME before. */
static void heard_of(struct session *s, const struct wire_ack_pipe *said)
{
	if (said->received && s->pipes[said->pipe])
		s->pipes[said->pipe]->in_order = false;
}

static void acked_pipe(struct session *s, const struct wire_ack_pipe *said)
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
		note_time(x, &x->leg[said->pipe], freed, now);
		note_progress(&x->leg[said->pipe], said->received, now);
	}
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
 * An ACK is sent when messages came, or when a pipe is over. So one that tells nothing
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

void keeping_acked(struct session *s, const struct wire_ack *ack)
{
	bool was_full = keeping_is_full(s->ext);
	unsigned int i;

	if (s->ext->lp && tells_of_an_end(s->ext, ack))
		control_ask_quiet(s);
	for (i = 0; i < ack->pipes && session_is_up(s); i++)
		acked_pipe(s, &ack->pipe[i]);
	if (was_full)
		loop_after(s->engine->loop, &s->out.pump);
}

void keeping_init(struct extended *x)
{
	x->again_end = &x->again;
	loop_task_init(&x->unkept, end_unkept);
}

void keeping_fini(struct extended *x)
{
	unsigned int i;

	loop_task_stop(&x->unkept);
	for (i = 0; i < PIPES_MAX; i++) {
		if (x->leg[i].known)
			put_all(x, kept_end(&x->leg[i].kept));
	}
	put_all(x, x->again);
	x->again = NULL;
}
