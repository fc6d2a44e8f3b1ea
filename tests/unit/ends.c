/* SPDX-License-Identifier: MIT */
#include "ends.h"

#include <stdlib.h>
#include <string.h>

#include "ends_inside.h"

/* --- what is sent --- */

static struct item *item_get(struct ends *m)
{
	struct item *item = m->spare;

	if (!item)
		return calloc(1, sizeof(*item));
	m->spare = (struct item *)item->kept.next;
	return item;
}

static void item_put(struct ends *m, struct item *item)
{
	item->kept.next = (struct kept_item *)m->spare;
	m->spare = item;
}

void items_put(struct ends *m, struct kept_item *list)
{
	while (list) {
		struct kept_item *next = list->next;

		item_put(m, (struct item *)list);
		list = next;
	}
}

/* HELLO, WELCOME and ACK do not count; all else here does. */
static bool counts(const struct ends *m, const struct message *msg)
{
	switch (msg->kind) {
	case HELLO:
	case WELCOME:
		return false;
	case ACK:
		return m->wrong == ACK_OF_ACK;
	case WINDOW:
		return m->wrong != WINDOW_ONCE;
	default:
		return true;
	}
}

/* Puts @msg on a wire; it is lost if the other end has closed. */
static void transmit(struct wire *wire, int from, const struct message *msg)
{
	struct flight *flight = &wire->flight[from];

	if (wire->open[!from])
		flight->msg[flight->count++] = *msg;
}

static bool has_room(const struct wire *wire, int from)
{
	return wire->flight[from].count < FLIGHT;
}

/* A pipe of @end that takes a message now, or NULL. */
static struct leg *usable(struct ends *m, int end)
{
	int start = (int)random_below(&m->r, PIPES);

	for (int i = 0; i < PIPES; i++) {
		struct leg *leg = &m->end[end].leg[(start + i) % PIPES];

		if (leg->wire && leg->welcomed && has_room(leg->wire, end))
			return leg;
	}
	return NULL;
}

/* It gets the next count on @leg. */
static struct item *keep(struct ends *m, int end, struct leg *leg,
			 const struct message *msg)
{
	struct item *item;

	if (m->wrong == KERNELS_ACK && leg->wire->open[!end]) {
		leg->kept.sent++;
		return NULL;
	}
	item = item_get(m);
	item->msg = *msg;
	kept_add(&leg->kept, &item->kept, 1, sizeof(*item));
	return item;
}

/* Returns what is kept of it, if anything is. */
static struct item *send_on(struct ends *m, int end, struct leg *leg,
			    struct message msg)
{
	struct item *item = NULL;
	uint64_t before = msg.count;

	msg.count = 0;
	msg.ordered = end == RP && !leg->greeted &&
		      m->wrong != BEHIND_NO_WELCOME;
	if (counts(m, &msg)) {
		msg.count = leg->kept.sent + 1;
		item = keep(m, end, leg, &msg);
	}
	if (before && m->wrong == COUNT_OF_BEFORE)
		msg.count = before;
	transmit(leg->wire, end, &msg);
	return item;
}

void ends_send_any(struct ends *m, int end, const struct message *msg)
{
	struct leg *leg = usable(m, end);
	struct item *item;

	if (leg && !m->end[end].again) {
		send_on(m, end, leg, *msg);
		return;
	}
	item = item_get(m);
	item->msg = *msg;
	item->kept.next = NULL;
	*m->end[end].again_end = &item->kept;
	m->end[end].again_end = &item->kept.next;
}

/* --- pipes --- */

static bool was_received(const struct ends *m, struct leg *leg,
			 const struct message *msg)
{
	if (m->unordered && m->wrong != COUNT_FOR_INDEX)
		return tally_told(&leg->tally, counts(m, msg),
				  (uint32_t)msg->count) == TALLY_NEW;
	if (counts(m, msg))
		tally_next(&leg->tally);
	return true;
}

void ends_send_ack(struct ends *m, int end)
{
	struct message msg = { .kind = ACK };
	struct leg *leg = usable(m, end);

	if (!leg || !m->end[end].ack_due)
		return;
	for (int i = 0; i < PIPES; i++) {
		struct leg *about = &m->end[end].leg[i];

		if (!about->wire || !about->welcomed)
			continue;
		msg.acked[i].incarnation = about->wire->incarnation;
		msg.acked[i].received = about->tally.received;
		msg.acked[i].there = true;
	}
	m->end[end].ack_due = false;
	send_on(m, end, leg, msg);
}

/* Sends again one message that was kept for a pipe that has ended. */
void ends_send_again(struct ends *m, int end)
{
	struct end *at = &m->end[end];
	struct item *item = (struct item *)at->again;
	struct leg *leg = item ? usable(m, end) : NULL;

	if (!leg)
		return;
	at->again = item->kept.next;
	if (!at->again)
		at->again_end = &at->again;
	m->result.again++;
	send_on(m, end, leg, item->msg);
	item_put(m, item);
}

/* A copy of the oldest message that is kept for some pipe: half of them are twins. */
void ends_send_copy(struct ends *m, int end)
{
	struct leg *from = &m->end[end].leg[random_below(&m->r, PIPES)];
	struct leg *leg = usable(m, end);
	struct kept_item *of = from->kept.first;
	struct item *item;

	if (!leg || !from->wire || !of)
		return;
	m->result.copies++;
	item = send_on(m, end, leg, ((struct item *)of)->msg);
	if (item && leg != from && random_below(&m->r, 2))
		kept_twin(&item->kept, of);
}

/* What was kept for a pipe that has ended, but for what need not go again. */
static void go_again(struct ends *m, struct end *at, struct kept_item *list)
{
	while (list) {
		struct kept_item *item = list;

		list = list->next;
		item->next = NULL;
		if (m->wrong == TWIN_OF_A_DEAD_PIPE && !list_empty(&item->twins)) {
			kept_arrived(item);
			item->there = true;
		}
		if (!kept_goes_again(item)) {
			m->result.spared++;
			items_put(m, item);
			continue;
		}
		*at->again_end = item;
		at->again_end = &item->next;
	}
}

/* @end closes its end of the pipe: what is left of it goes again. */
void ends_close(struct ends *m, int end, struct leg *leg)
{
	struct wire *wire = leg->wire;
	struct end *at = &m->end[end];

	if (!wire)
		return;
	wire->open[end] = false;
	wire->flight[!end].count = 0;
	leg->wire = NULL;
	leg->welcomed = leg->greeted = false;
	/* An ACK may have been lost with the pipe. */
	at->ack_due |= m->wrong != ACK_ONCE;
	go_again(m, at, kept_end(&leg->kept));
}

void ends_dial(struct ends *m, int index)
{
	struct leg *leg = &m->end[LP].leg[index];
	struct message hello = { .kind = HELLO, .ordered = true };

	if (leg->wire)
		return;
	for (int i = 0; i < WIRES; i++) {
		struct wire *wire = &m->wire[i];

		if (wire->open[LP] || wire->open[RP])
			continue;
		*wire = (struct wire){ .open = { true, true }, .index = index };
		wire->incarnation = ++m->dialled[index];
		leg->wire = wire;
		kept_init(&leg->kept, wire->incarnation);
		tally_init(&leg->tally);
		transmit(wire, LP, &hello);
		return;
	}
}

/* --- what arrives --- */

static void fail(struct ends *m, const char *found)
{
	if (!m->result.found)
		m->result.found = found;
}

static void hello(struct ends *m, struct wire *wire)
{
	struct leg *leg = &m->end[RP].leg[wire->index];
	struct wire_hello said = {
		.pipe = (uint8_t)wire->index,
		.pipes = PIPES,
		.incarnation = wire->incarnation,
	};
	struct message welcome = { .kind = WELCOME, .ordered = true };

	if (admission_enter(&m->admission, &said) != ADMISSION_OK) {
		wire->open[RP] = false;
		wire->flight[LP].count = 0;
		return;
	}
	ends_close(m, RP, leg);
	leg->wire = wire;
	leg->welcomed = true;
	kept_init(&leg->kept, wire->incarnation);
	tally_init(&leg->tally);
	transmit(wire, RP, &welcome);
}

static void acknowledged(struct ends *m, int end, const struct message *msg)
{
	for (int i = 0; i < PIPES; i++) {
		struct leg *leg = &m->end[end].leg[i];
		uint32_t incarnation = m->wrong == ANY_INCARNATION ?
			leg->kept.incarnation : msg->acked[i].incarnation;
		struct kept_item *freed;

		if (!msg->acked[i].there || !leg->wire)
			continue;
		if (kept_ack(&leg->kept, incarnation, msg->acked[i].received,
			     &freed) == KEPT_BEYOND)
			fail(m, "an ACK beyond what was sent");
		leg->greeted |= leg->kept.received > 0;
		for (struct kept_item *item = freed; item; item = item->next)
			kept_arrived(item);
		items_put(m, freed);
	}
}

/* What a message does that is due and not dropped, beyond its use. */
static void effect(struct ends *m, struct id *id, const struct message *msg)
{
	switch (msg->kind) {
	case OPEN:
		if (m->wrong == WINDOW_PER_USE)
			ends_forget_credit(id);
		credit_allow(&id->out, id->out.sent + msg->window);
		credit_begin_early(&id->in, EARLY_BYTES);
		break;
	case SYNACK:
		credit_allow(&id->out, msg->offset);
		m->early.used -= id->early_sent;
		id->early_sent = 0;
		break;
	default:
		break;
	}
}

static void due(struct ends *m, int end, const struct message *msg)
{
	struct id *id = &m->end[end].id[msg->id];

	m->result.delivered++;
	if (msg->serial != ++id->serial_due)
		fail(m, "lost, doubled or out of order");
	if (use_due(&id->use, ends_kind(msg->kind)) == USE_BROKEN)
		fail(m, "due where it cannot be");
	if (!credit_take(&id->in, msg->bytes))
		fail(m, "more than the window");
	if (end == RP && id->use.open && !id->use.answered) {
		id->early_due += msg->bytes;
		m->early_held += msg->bytes;
	}
	if (m->early_held > EARLY_ALL)
		fail(m, "more than the early limit in all");
	effect(m, id, msg);
	if (m->wrong == NUMBERS_FROM_0 && !id->use.open) {
		reorder_fini(&id->order);
		reorder_init(&id->order, 0);
		id->use.number = 0;
	}
}

/* A message of an id: it is put into order, and what is due taken. */
static void numbered(struct ends *m, int end, const struct message *msg)
{
	struct id *id = &m->end[end].id[msg->id];
	struct wire_msg as_wire = {
		.type = WIRE_DATA,
		.id = 1,
		.number = msg->number,
		.body = (const uint8_t *)msg,
		.body_len = sizeof(*msg),
	};
	struct reorder_early *held;

	if (m->wrong == SUCCESSOR && msg->kind == OPEN && id->use.open &&
	    msg->number != id->order.next) {
		use_init(&id->use, id->use.number);
		due(m, end, msg);
		return;
	}
	if (reorder_put(&id->order, &as_wire, 0) != REORDER_DUE)
		return;
	due(m, end, msg);
	while ((held = reorder_take(&id->order))) {
		struct message early;

		memcpy(&early, held->body, sizeof(early));
		reorder_release(held);
		due(m, end, &early);
	}
}

static void arrived(struct ends *m, int end, struct wire *wire,
		    const struct message *msg)
{
	struct leg *leg = &m->end[end].leg[wire->index];

	if (msg->kind == HELLO) {
		hello(m, wire);
		return;
	}
	if (msg->kind == WELCOME) {
		leg->welcomed = true;
		return;
	}
	if (!leg->welcomed)
		fail(m, "it came before WELCOME");
	leg->greeted = true;
	if (!was_received(m, leg, msg))
		fail(m, "a count that cannot be");
	m->end[end].ack_due |= counts(m, msg);
	if (msg->kind == ACK)
		acknowledged(m, end, msg);
	else if (msg->kind == WINDOW)
		credit_allow(&m->end[end].id[msg->id].out, msg->offset);
	else
		numbered(m, end, msg);
	for (int n = 0; n < IDS; n++)
		ends_respond(m, end, n);
}

static int first_ordered(const struct flight *flight)
{
	int at = 0;

	while (!flight->msg[at].ordered)
		at++;
	return at;
}

/* Takes one message off a wire. */
bool ends_parse(struct ends *m, struct wire *wire, int end)
{
	struct flight *flight = &wire->flight[!end];
	struct message msg;
	int at = 0;

	if (!flight->count || !wire->open[end])
		return false;
	if (m->unordered)
		at = (int)random_below(&m->r, (uint32_t)flight->count);
	if (flight->msg[at].ordered)
		at = first_ordered(flight);
	msg = flight->msg[at];
	flight->count--;
	memmove(&flight->msg[at], &flight->msg[at + 1],
		(size_t)(flight->count - at) * sizeof(msg));
	arrived(m, end, wire, &msg);
	return true;
}
