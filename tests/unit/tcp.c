/* SPDX-License-Identifier: MIT */
#include "tcp.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "mux/base/loop.h"
#include "mux/pipe/owed.h"

#define DELAYED_ACK (40 * NS_PER_MS)
#define LEAST_TIMEOUT (200 * NS_PER_MS)
enum { OVERTAKEN = 3 };

void tcp_init(struct tcp *t, struct clock *clock, struct network *network,
	      enum tcp_cc cc, bool delayed_acks, const struct tcp_ops *ops,
	      void *who)
{
	memset(t, 0, sizeof(*t));
	t->clock = clock;
	t->network = network;
	t->cc = cc;
	t->delayed_acks = delayed_acks;
	t->ops = ops;
	t->who = who;
	t->cwnd = TCP_WINDOW;
	t->ssthresh = 1e9;
	t->srtt = t->least = (double)network_handshake(network);
	t->rttvar = t->srtt / 2;
}

void *ring_for(void *ring, size_t size, uint64_t *room, uint64_t first,
	       uint64_t end)
{
	uint64_t more = *room ? 2 * *room : 256;
	char *grown;

	if (end - first < *room)
		return ring;
	grown = calloc(more, size);
	assert(grown);
	for (uint64_t i = first; i < end; i++)
		memcpy(grown + i % more * size,
		       (char *)ring + i % *room * size, size);
	free(ring);
	*room = more;
	return grown;
}

void tcp_fini(struct tcp *t)
{
	free(t->ring);
}

/* --- the timer: a probe first, then all that flies is taken for lost --- */

static void timer(void *who, const struct clock_event *e);

static void set_timer(struct tcp *t)
{
	/* One alone might be kept back for as long as Linux lets that take. */
	double probe = 2 * t->srtt + (double)(t->next - t->first == 1 ?
				LEAST_TIMEOUT : t->delayed_acks ? DELAYED_ACK : 0);
	double rto = t->srtt + (4 * t->rttvar > (double)LEAST_TIMEOUT ?
				4 * t->rttvar : (double)LEAST_TIMEOUT);

	t->deadline = 0;
	if (t->first == t->next)
		return;
	rto *= 1 << t->backoff;
	t->deadline = t->clock->now + (int64_t)
		(!t->probed && !t->recovering && probe < rto ? probe : rto);
	if (t->timer_at && t->timer_at <= t->deadline)
		return;
	t->timer_at = t->deadline;
	clock_at(t->clock, (struct clock_event){ .at = t->deadline,
		 .happen = timer, .who = t, .when = t->deadline });
}

/* --- out --- */

static void arrived(void *who, const struct clock_event *e);

static void transmit(struct tcp *t, uint64_t number)
{
	struct tcp_segment *s = tcp_at(t, number);
	int64_t now = t->clock->now, at;

	if (s->state == TCP_UNSENT) {
		t->unsent -= s->len;
		t->ops->left(t->who, number);
	} else if (s->state == TCP_GONE) {
		t->gone -= s->len;
	}
	if (s->state != TCP_FLYING)
		t->flying += s->len;
	if (s->state != TCP_UNSENT) {
		s->again = true;
		t->again++;
	}
	if (t->first == t->next)
		t->counted_at = now;
	s->state = TCP_FLYING;
	s->sent_at = now;
	s->order = ++t->order;
	s->delivered = t->delivered;
	s->counted_at = t->counted_at;
	s->limited = t->delivered < t->limited_until;
	at = network_send(t->network, now, s->len);
	if (at >= 0)
		clock_at(t->clock, (struct clock_event){ .at = at,
			 .happen = arrived, .who = t, .number = number });
}

static bool next_to_send(struct tcp *t, uint64_t *number)
{
	if (t->gone) {
		if (t->gone_from < t->first)
			t->gone_from = t->first;
		while (tcp_at(t, t->gone_from)->state != TCP_GONE)
			t->gone_from++;
		*number = t->gone_from;
		return true;
	}
	*number = t->next;
	return t->next < t->end && t->flying + t->sacked < TCP_RECEIVE;
}

/* After a rest the window is what it was at first. */
static void mind_rest(struct tcp *t)
{
	int64_t rest = t->clock->now - t->heard_at;

	if (t->first != t->next || t->end == t->next || t->cc != TCP_CUBIC)
		return;
	if (t->epoch)
		t->epoch += rest;
	if (t->cwnd > TCP_WINDOW &&
	    (double)rest > t->srtt + (double)LEAST_TIMEOUT)
		t->cwnd = TCP_WINDOW;
}

/* A window that is not used does not grow. */
static void mind_use(struct tcp *t, bool blocked)
{
	double flying = (double)t->flying / TCP_MSS;

	if (t->first >= t->used_until) {
		t->used_until = t->next;
		t->most = 0;
		t->used = false;
	}
	if (flying > t->most)
		t->most = flying;
	t->used |= blocked;
}

void tcp_push(struct tcp *t)
{
	bool idle = t->first == t->next, sent = false, blocked = false;
	uint64_t number;

	mind_rest(t);
	while (next_to_send(t, &number)) {
		size_t len = tcp_at(t, number)->len;

		blocked = (double)(t->flying + len) > t->cwnd * TCP_MSS &&
			t->flying && !t->repair;
		if (blocked || !window_paces(t, len))
			break;
		t->repair = false;
		transmit(t, number);
		if (number == t->next)
			t->next++;
		sent = true;
	}
	mind_use(t, blocked);
	if (sent && (idle || !t->deadline))
		set_timer(t);
}

uint64_t tcp_write(struct tcp *t, size_t len)
{
	t->ring = ring_for(t->ring, sizeof(*t->ring), &t->room, t->first,
			   t->end);
	/* It had nothing to send though it might have: the application's doing. */
	if (!t->unsent && !t->gone && (double)t->flying < t->cwnd * TCP_MSS)
		t->limited_until = t->delivered + t->flying + 1;
	*tcp_at(t, t->end) = (struct tcp_segment){ .len = len };
	t->unsent += len;
	return t->end++;
}

/* --- the receiver --- */

static void hears(void *who, const struct clock_event *e);

static void acknowledge(struct tcp *t)
{
	int64_t at = network_back(t->network, t->clock->now);

	t->owed = 0;
	t->owed_number++;
	if (at >= 0)
		clock_at(t->clock, (struct clock_event){ .at = at,
			 .happen = hears, .who = t, .number = t->expects,
			 .when = t->clock->now });
}

static void delay_has_ended(void *who, const struct clock_event *e)
{
	struct tcp *t = who;

	if (t->owed && t->owed_number == e->number)
		acknowledge(t);
}

static bool is_far_apart(struct tcp *t, const struct tcp_segment *s)
{
	int64_t since = t->clock->now - t->network->filled_at;

	if (!t->prompt || s->len < TCP_MSS)
		return false;
	t->network->filled_at = t->clock->now;
	return since >= OWED_FAR_APART;
}

static void arrived(void *who, const struct clock_event *e)
{
	struct tcp *t = who;
	struct tcp_segment *s = tcp_at(t, e->number);
	bool in_order = e->number == t->expects;
	bool delays = t->delayed_acks && !is_far_apart(t, s);

	if (e->number < t->expects || s->arrived) {
		acknowledge(t);
		return;
	}
	s->arrived = true;
	s->arrived_at = t->clock->now;
	if (e->number >= t->beyond)
		t->beyond = e->number + 1;
	while (t->expects < t->beyond && tcp_at(t, t->expects)->arrived)
		t->ops->delivered(t->who, t->expects++);
	if (!delays || !in_order || t->expects != t->beyond ||
	    ++t->owed > 1 || t->expects > e->number + 1) {
		acknowledge(t);
		return;
	}
	clock_at(t->clock, (struct clock_event){
		 .at = t->clock->now + DELAYED_ACK, .happen = delay_has_ended,
		 .who = t, .number = t->owed_number });
}

/* --- what an acknowledgement tells --- */

struct news {
	size_t bytes;		/* newly delivered */
	double rtt;		/* of the latest sent, 0: none */
	struct tcp_segment newest;
};

static void take_for_lost(struct tcp *t, uint64_t number)
{
	struct tcp_segment *s = tcp_at(t, number);

	s->state = TCP_GONE;
	t->flying -= s->len;
	t->gone += s->len;
	if (number < t->gone_from)
		t->gone_from = number;
}

static void count_delivered(struct tcp *t, struct tcp_segment *s,
			    struct news *news)
{
	if (s->state == TCP_FLYING)
		t->flying -= s->len;
	else if (s->state == TCP_GONE)
		t->gone -= s->len;
	t->delivered += s->len;
	news->bytes += s->len;
	if (s->order > t->rack) {
		t->rack = s->order;
		t->rack_at = s->sent_at;
	}
	if (s->order > news->newest.order) {
		news->newest = *s;
		if (!s->again)
			news->rtt = (double)(t->clock->now - s->sent_at);
	}
}

static void take_acked(struct tcp *t, uint64_t until, struct news *news)
{
	for (; t->first < until; t->first++) {
		struct tcp_segment *s = tcp_at(t, t->first);

		if (s->state == TCP_SACKED)
			t->sacked -= s->len;
		else
			count_delivered(t, s, news);
		t->ops->acked(t->who, t->first);
	}
}

/* The receiver had all that had arrived when it wrote. */
static void take_sacked(struct tcp *t, int64_t written_at, struct news *news)
{
	for (uint64_t i = t->first; i < t->beyond; i++) {
		struct tcp_segment *s = tcp_at(t, i);

		if (!s->arrived || s->arrived_at > written_at ||
		    s->state == TCP_SACKED || s->state == TCP_UNSENT)
			continue;
		count_delivered(t, s, news);
		s->state = TCP_SACKED;
		t->sacked += s->len;
	}
}

static void find_lost(struct tcp *t)
{
	int64_t wait = t->network->is->reorder ? (int64_t)(t->least / 4) : 0;
	bool lost = false;

	if (!t->sacked && !t->recovering)
		return;
	for (uint64_t i = t->first; i < t->next; i++) {
		struct tcp_segment *s = tcp_at(t, i);

		if (s->state != TCP_FLYING || s->order >= t->rack ||
		    s->sent_at + wait > t->rack_at ||
		    (!t->recovering && t->sacked < OVERTAKEN * TCP_MSS &&
		     t->clock->now < s->sent_at + (int64_t)(t->srtt * 1.25)))
			continue;
		take_for_lost(t, i);
		lost = true;
	}
	if (!lost || t->recovering)
		return;
	t->recovering = t->repair = true;
	t->recover = t->next;
	window_shrinks(t);
}

static void take_rtt(struct tcp *t, double rtt)
{
	double off = rtt > t->srtt ? rtt - t->srtt : t->srtt - rtt;

	if (rtt <= 0)
		return;
	t->rttvar += (off - t->rttvar) / 4;
	t->srtt += (rtt - t->srtt) / 8;
	if (rtt < t->least)
		t->least = rtt;
}

static void hears(void *who, const struct clock_event *e)
{
	struct tcp *t = who;
	struct news news = { 0 };

	take_acked(t, e->number > t->first ? e->number : t->first, &news);
	if (t->beyond > t->first)
		take_sacked(t, e->when, &news);
	if (news.bytes) {
		t->counted_at = t->heard_at = t->clock->now;
		t->backoff = 0;
		t->probed = false;
	}
	take_rtt(t, news.rtt);
	if (t->recovering && t->first >= t->recover)
		t->recovering = false;
	find_lost(t);
	if (news.bytes) {
		window_opens(t, news.bytes, news.rtt, &news.newest);
		set_timer(t);
	}
	tcp_push(t);
	t->ops->told(t->who);
}

static void probe(struct tcp *t)
{
	uint64_t i = t->next;

	t->probed = true;
	while (i-- > t->first) {
		if (tcp_at(t, i)->state != TCP_FLYING)
			continue;
		transmit(t, i);
		return;
	}
}

static void time_out(struct tcp *t)
{
	for (uint64_t i = t->first; i < t->next; i++) {
		if (tcp_at(t, i)->state == TCP_FLYING)
			take_for_lost(t, i);
	}
	if (t->backoff < 6)
		t->backoff++;
	t->recovering = true;
	t->recover = t->next;
	window_collapses(t);
}

static void timer(void *who, const struct clock_event *e)
{
	struct tcp *t = who;

	if (e->when != t->timer_at)
		return;
	t->timer_at = 0;
	if (!t->deadline)
		return;
	if (t->clock->now < t->deadline) {
		t->timer_at = t->deadline;
		clock_at(t->clock, (struct clock_event){ .at = t->deadline,
			 .happen = timer, .who = t, .when = t->deadline });
		return;
	}
	if (!t->probed && !t->recovering)
		probe(t);
	else
		time_out(t);
	tcp_push(t);
	set_timer(t);
}
