/* SPDX-License-Identifier: MIT */
#include "reader.h"

#include <string.h>

/* Who brought so much at once may bring more: its next header is asked for. */
enum { BULK = READER_LEAST / 2 };

/* A pipe has waited while so much was read: ask how much more there is. */
enum { PATIENCE = 1 << 20 };

enum rank {
	DUE,		/* to be read: its next message is due, or unknown */
	UNKNOWN,	/* to be looked at: much may follow, all of it early */
	EARLY,		/* its next message is, for want of one that came */
	GAP,		/* the same, but that one did not come */
};

struct rating {
	enum rank rank;
	uint32_t expected;	/* number, of an EARLY or GAP's connection */
	uint32_t ahead;		/* of it, by so many numbers */
};

void reader_init(struct reader *r, const struct reader_ops *ops, void *arg)
{
	memset(r, 0, sizeof(*r));
	r->ops = ops;
	r->arg = arg;
}

void reader_add(struct reader *r, unsigned int pipe, bool ordered)
{
	r->pipe[pipe] = (struct reader_pipe){ .ordered = ordered };
	if (pipe >= r->npipes)
		r->npipes = pipe + 1;
}

static uint64_t bit_of(unsigned int pipe)
{
	return UINT64_C(1) << pipe;
}

void reader_remove(struct reader *r, unsigned int pipe)
{
	r->unread &= ~bit_of(pipe);
	r->pipe[pipe] = (struct reader_pipe){ 0 };
}

void reader_ready(struct reader *r, unsigned int pipe)
{
	r->unread |= bit_of(pipe);
}

void reader_begin(struct reader *r)
{
	r->all_named = true;
	r->early = 0;
}

void reader_end(struct reader *r)
{
	r->unread = 0;
}

/* --- gaps --- */

static struct reader_gap *find_gap(struct reader *r, uint16_t id)
{
	unsigned int i;

	for (i = 0; id && i < READER_GAPS; i++) {
		if (r->gap[i].id == id)
			return &r->gap[i];
	}
	return NULL;
}

static bool is_gap(struct reader *r, uint16_t id, uint32_t number)
{
	const struct reader_gap *gap = find_gap(r, id);

	return gap && gap->number == number;
}

static void forget_gap(struct reader *r, uint16_t id)
{
	struct reader_gap *gap = find_gap(r, id);

	if (gap)
		gap->id = 0;
}

static void note_gap(struct reader *r, const struct reader_gap *what)
{
	struct reader_gap *gap = find_gap(r, what->id);

	if (!gap)
		gap = &r->gap[r->next_gap++ % READER_GAPS];
	*gap = *what;
}

/* --- rating --- */

static bool is_alone(const struct reader *r, unsigned int pipe)
{
	return r->unread == bit_of(pipe);
}

static struct rating rate(struct reader *r, unsigned int pipe)
{
	const struct reader_pipe *p = &r->pipe[pipe];
	struct rating rating = { .rank = DUE };
	int32_t ahead;

	if (!p->ordered)
		return rating;
	if (!p->known) {
		if (p->bulky && !is_alone(r, pipe))
			rating.rank = UNKNOWN;
		return rating;
	}
	if (!r->ops->expects(r->arg, pipe, &p->head, &rating.expected))
		return rating;
	ahead = wire_distance(p->head.number, rating.expected);
	if (ahead <= 0 || ahead > (int32_t)WIRE_NUMBER_WINDOW) {
		if (!ahead)
			forget_gap(r, p->head.id);
		return rating;
	}
	rating.ahead = (uint32_t)ahead;
	rating.rank = is_gap(r, p->head.id, rating.expected) ? GAP : EARLY;
	return rating;
}

/* --- waiting --- */

static void survey(struct reader *r)
{
	unsigned int i;

	r->survey.at = r->read + 1;
	r->survey.unread = 0;
	for (i = 0; i < r->npipes; i++) {
		r->pipe[i].surveyed = r->ops->unread(r->arg, i);
		r->survey.unread += r->pipe[i].surveyed;
	}
}

/*
 * So much will have been read when all is that was unread elsewhere at a moment while @p has been
 * waiting. One survey serves all pipes that waited then: so there is one for each
 * PATIENCE that is read, however many pipes wait.
 */
static uint64_t all_read_elsewhere(struct reader *r,
				   const struct reader_pipe *p)
{
	if (r->survey.at <= p->waits.since)
		survey(r);
	return r->survey.at + r->survey.unread - p->surveyed;
}

static void begin_to_wait(struct reader *r, struct reader_pipe *p,
			  uint32_t expected)
{
	p->waits = (struct reader_gap){ p->head.id, expected, r->read };
	p->until = 0;
}

/* @pipe waits while another one is read; but not for ever. */
static void step_past(struct reader *r, unsigned int pipe, uint32_t expected)
{
	struct reader_pipe *p = &r->pipe[pipe];

	if (p->waits.id != p->head.id || p->waits.number != expected) {
		begin_to_wait(r, p, expected);
	} else if (!p->until) {
		if (r->read - p->waits.since > PATIENCE)
			p->until = all_read_elsewhere(r, p);
	} else if (r->read >= p->until) {
		note_gap(r, &p->waits);
		begin_to_wait(r, p, expected);
	}
}

/* Nothing but what is early: did anything come since pipes were named? */
static bool more_came(struct reader *r)
{
	uint64_t more = r->ops->came(r->arg, ~r->unread);

	r->unread |= more;
	return more != 0;
}

/* --- the choice --- */

struct choice {
	int due, unknown;	/* a pipe of that rank, or -1; */
	int early, gap;		/* here the one that is least ahead */
};

static void consider(struct choice *c, unsigned int pipe,
		     const struct rating *rating)
{
	uint32_t ahead = rating[pipe].ahead;

	switch (rating[pipe].rank) {
	case DUE:
		if (c->due < 0)
			c->due = (int)pipe;
		break;
	case UNKNOWN:
		c->unknown = (int)pipe;
		break;
	case EARLY:
		if (c->early < 0 || ahead < rating[c->early].ahead)
			c->early = (int)pipe;
		break;
	case GAP:
		if (c->gap < 0 || ahead < rating[c->gap].ahead)
			c->gap = (int)pipe;
	}
}

/* In turn, so that of many pipes with something due none is last for ever. */
static struct choice look_round(struct reader *r, struct rating *rating)
{
	struct choice c = { -1, -1, -1, -1 };
	unsigned int n;

	for (n = 1; n <= r->npipes; n++) {
		unsigned int i = (r->last + n) % r->npipes;

		if (!(r->unread & bit_of(i)))
			continue;
		rating[i] = rate(r, i);
		consider(&c, i, rating);
	}
	return c;
}

/*
 * As far as the next number that another pipe has: what follows here is early
 * then. And the header behind it.
 */
static size_t useful(const struct reader *r, unsigned int pipe)
{
	const struct reader_pipe *p = &r->pipe[pipe];
	uint32_t until = WIRE_NUMBER_WINDOW;
	unsigned int i;
	size_t most;

	if (!p->ordered || is_alone(r, pipe))
		return READER_MAX;
	if (!p->known)
		return READER_LEAST;
	for (i = 0; i < r->npipes; i++) {
		const struct reader_pipe *q = &r->pipe[i];
		int32_t n = wire_distance(q->head.number, p->head.number);

		if (r->unread & bit_of(i) && q->known &&
		    q->head.id == p->head.id && n > 0 && (uint32_t)n < until)
			until = (uint32_t)n;
	}
	most = until * p->head.size + WIRE_HEADER - p->had;
	if (most < READER_LEAST)
		return READER_LEAST;
	return most < READER_MAX ? most : READER_MAX;
}

/* Those that are early wait for the one that is read. */
static void let_wait(struct reader *r, const struct rating *rating)
{
	unsigned int i;

	for (i = 0; i < r->npipes; i++) {
		if (r->unread & bit_of(i) && rating[i].rank == EARLY)
			step_past(r, i, rating[i].expected);
	}
}

static int take(struct reader *r, int pipe, bool early, size_t *most)
{
	r->early_turn = !early;
	*most = useful(r, (unsigned int)pipe);
	return pipe;
}

int reader_next(struct reader *r, size_t *most)
{
	struct rating rating[PIPES_MAX];
	struct choice c;

	/* What fills the gap may come any moment, so look again; but not after each small read. */
	if (r->early >= READER_MAX || !r->unread)
		return -1;
	c = look_round(r, rating);
	if (c.unknown >= 0) {
		*most = WIRE_HEADER - r->pipe[c.unknown].had;
		return c.unknown;
	}
	if (c.due < 0 && c.gap < 0) {
		if (!r->all_named)
			return -1;
		if (!more_came(r))
			note_gap(r, &(struct reader_gap){
				 r->pipe[c.early].head.id,
				 rating[c.early].expected, r->read });
		return reader_next(r, most);
	}
	if (c.early >= 0)
		let_wait(r, rating);
	if (c.due < 0 || (c.gap >= 0 && r->early_turn))
		return take(r, c.gap, true, most);
	return take(r, c.due, false, most);
}

void reader_was_read(struct reader *r, unsigned int pipe, size_t most,
		     size_t got, const struct wire_head *head, size_t had)
{
	struct reader_pipe *p = &r->pipe[pipe];

	if (got < most)
		r->unread &= ~bit_of(pipe);
	if (most > WIRE_HEADER) {
		p->bulky = got >= BULK;
		if (!r->early_turn)
			r->early += got;
	}
	p->waits.id = 0;
	p->known = head != NULL;
	if (head)
		p->head = *head;
	p->had = had;
	r->read += got;
	r->last = pipe;
	r->all_named = false;
}
