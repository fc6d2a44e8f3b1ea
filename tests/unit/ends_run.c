/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "ends_inside.h"

enum { STEPS_A_SESSION = 20000, STEPS_A_REST = 300, STEPS_TO_REST = 4000 };

static void fail(struct ends *m, const char *found)
{
	if (!m->result.found)
		m->result.found = found;
}

static void init_id(struct id *id, uint32_t up, uint32_t down, int end)
{
	memset(id, 0, sizeof(*id));
	use_init(&id->use, end == LP ? up : down);
	reorder_init(&id->order, end == LP ? down : up);
}

/* A new session: pipes in order or not, numbers near their wrap or not. */
static void begin_session(struct ends *m)
{
	bool wraps = random_below(&m->r, 2) && m->wrong != NUMBERS_FROM_0;
	uint32_t up = wraps ? UINT32_MAX - random_below(&m->r, 300) : 0;
	uint32_t down = wraps ? UINT32_MAX - random_below(&m->r, 300) : 0;

	m->unordered = random_below(&m->r, 2);
	memset(m->wire, 0, sizeof(m->wire));
	memset(m->end, 0, sizeof(m->end));
	memset(m->dialled, 0, sizeof(m->dialled));
	m->admission = (struct admission){ 0 };
	m->early = (struct early){ .conn = EARLY_BYTES, .all = EARLY_ALL };
	m->early_held = 0;
	for (int end = 0; end < ENDS; end++) {
		m->end[end].again_end = &m->end[end].again;
		for (int n = 0; n < IDS; n++)
			init_id(&m->end[end].id[n], up, down, end);
	}
}

static void end_session(struct ends *m)
{
	for (int end = 0; end < ENDS; end++) {
		for (int i = 0; i < PIPES; i++)
			ends_close(m, end, &m->end[end].leg[i]);
		items_put(m, m->end[end].again);
		for (int n = 0; n < IDS; n++)
			reorder_fini(&m->end[end].id[n].order);
	}
}

/* An end notices that a pipe's other end was closed; RP also drops one that
 * was dialled and given up before its HELLO was parsed. */
static void notice(struct ends *m, struct wire *wire, int end)
{
	struct leg *leg = &m->end[end].leg[wire->index];

	if (!wire->open[end] || wire->open[!end])
		return;
	if (leg->wire == wire)
		ends_close(m, end, leg);
	wire->open[end] = false;
	wire->flight[!end].count = 0;
}

static void kill_pipe(struct ends *m, int end, int index)
{
	struct leg *leg = &m->end[end].leg[index];

	if (leg->wire)
		m->result.deaths++;
	ends_close(m, end, leg);
}

/* One message, off any pipe that has some for this end. */
static void parse_any(struct ends *m, int end)
{
	int start = (int)random_below(&m->r, WIRES);

	for (int i = 0; i < WIRES; i++)
		if (ends_parse(m, &m->wire[(start + i) % WIRES], end))
			return;
}

static void step(struct ends *m)
{
	int end = (int)random_below(&m->r, ENDS);
	int index = (int)random_below(&m->r, PIPES);
	struct wire *wire = &m->wire[random_below(&m->r, WIRES)];
	uint32_t what = random_below(&m->r, 100);

	m->result.steps++;
	if (what < 28)
		parse_any(m, end);
	else if (what < 74)
		ends_act(m, end);
	else if (what < 79)
		ends_send_ack(m, end);
	else if (what < 86)
		ends_send_again(m, end);
	else if (what < 89)
		ends_send_copy(m, end);
	else if (what < 91)
		kill_pipe(m, end, index);
	else if (what < 94)
		notice(m, wire, end);
	else
		ends_dial(m, index);
}

/* Everything that can still happen by itself, once. True: something did. */
static bool settle(struct ends *m)
{
	bool busy = false;

	for (int i = 0; i < WIRES; i++)
		for (int end = 0; end < ENDS; end++)
			while (ends_parse(m, &m->wire[i], end))
				busy = true;
	for (int i = 0; i < WIRES; i++)
		for (int end = 0; end < ENDS; end++)
			notice(m, &m->wire[i], end);
	for (int i = 0; i < PIPES; i++) {
		busy |= !m->end[LP].leg[i].wire;
		ends_dial(m, i);
	}
	for (int end = 0; end < ENDS; end++) {
		busy |= m->end[end].again || m->end[end].ack_due;
		ends_send_again(m, end);
		ends_send_ack(m, end);
		for (int n = 0; n < IDS; n++)
			busy |= ends_send_part(m, end, n);
	}
	return busy;
}

static void check_id(struct ends *m, int n)
{
	const struct id *lp = &m->end[LP].id[n], *rp = &m->end[RP].id[n];

	if (lp->serial_due != rp->serial_sent ||
	    rp->serial_due != lp->serial_sent)
		fail(m, "stuck: messages are missing at rest");
	if (lp->use.open != rp->use.open)
		fail(m, "stuck: the ends differ on whether an id is in use");
	if ((lp->use.open && lp->use.peer_reset) ||
	    (rp->use.open && rp->use.peer_reset))
		fail(m, "stuck: a reset was not answered");
	if (!lp->use.open || !lp->use.answered)
		return;
	if (lp->out.allowed < rp->in.granted ||
	    rp->out.allowed < lp->in.granted)
		fail(m, "stuck: credit was granted and did not come");
	if (lp->out.allowed > rp->in.granted ||
	    rp->out.allowed > lp->in.granted)
		fail(m, "credit came that was not granted");
}

/* No more deaths and nothing new to say: then nothing may be missing. */
static void come_to_rest(struct ends *m)
{
	int rounds = 0;

	while (settle(m) && !m->result.found)
		if (++rounds > STEPS_TO_REST)
			fail(m, "never at rest");
	m->result.rests++;
	for (int n = 0; n < IDS; n++)
		check_id(m, n);
	for (int end = 0; end < ENDS; end++)
		for (int i = 0; i < PIPES; i++)
			if (m->end[end].leg[i].kept.first)
				fail(m, "kept for ever");
}

struct ends_result ends_run(uint64_t seed, uint64_t steps,
			    enum wrong_rule wrong)
{
	struct ends *m = calloc(1, sizeof(*m));
	struct ends_result result;

	m->r.state = seed;
	m->wrong = wrong;
	while (m->result.steps < steps && !m->result.found) {
		begin_session(m);
		for (int i = 1; i <= STEPS_A_SESSION && !m->result.found; i++) {
			step(m);
			if (i % STEPS_A_REST == 0)
				come_to_rest(m);
		}
		end_session(m);
	}
	while (m->spare) {
		struct item *item = m->spare;

		m->spare = (struct item *)item->kept.next;
		free(item);
	}
	result = m->result;
	free(m);
	return result;
}
