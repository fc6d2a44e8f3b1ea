/* SPDX-License-Identifier: MIT */
/*
 * A session as a table, for the person who asked by SIGUSR1.
 */
#include <stdio.h>

#include "../conn/conn.h"
#include "extended.h"

/* More lines than this nobody reads in a terminal. */
enum { CONN_LINES = 200 };

static void print_pipes(struct session *s, FILE *out)
{
	unsigned int i;

	fprintf(out, "  %4s %4s %-5s %9s %6s %6s %9s %9s %9s %12s %12s %7s\n",
		"path", "pipe", "of", "rtt ms", "cwnd", "mss", "unsent", "in fl.", "allowed",
		"sent", "received", "retr.");
	for (i = 0; i < s->paths.npipes; i++) {
		struct pipe *p = s->paths.pipes[i];

		pipe_look_closely(p, loop_clock());
		fprintf(out, "  %4u %4u %-5s %9.3f %6u %6u %9zu %9zu %9zu %12llu %12llu %7u%s\n",
			paths_number(&s->paths, p), p->index,
			transport_name(p->transport), p->info.rtt_ms, p->info.cwnd, p->info.mss,
			p->info.unsent + p->queued, p->info.in_flight,
			p->allowance, (unsigned long long)p->tx_bytes,
			(unsigned long long)p->rx_bytes, p->info.retransmits,
			p->standby ? " standby" : "");
	}
}

void session_look_at_path(struct session *s, unsigned int number,
			  struct path_figures *at)
{
	const struct path *path = &s->paths.path[number];
	unsigned int i;

	*at = (struct path_figures){
		.pipes = path->npipes,
		.standby = paths_stands_by(&s->paths, path),
		.down = s->ext && s->ext->way[number].down,
		.held = path_held(path),
		.written = path->written,
	};
	for (i = 0; i < path->npipes; i++) {
		struct pipe *p = path->pipes[i];

		pipe_look_closely(p, loop_clock());
		if (!i || p->info.rtt_ms < at->rtt_ms)
			at->rtt_ms = p->info.rtt_ms;
	}
}

/* The paths that @c is bound to, by the names that LP has for them. */
static void print_bound(const struct path_set *set, const struct conn *c,
			FILE *out)
{
	const char *before = " over ";
	unsigned int i;

	for (i = 0; c->paths && i < PATHS_MAX; i++) {
		if (!conn_may_use(c, i))
			continue;
		if (path_set_name(set, i))
			fprintf(out, "%s%s", before, path_set_name(set, i));
		else
			fprintf(out, "%s%u", before, i);
		before = ",";
	}
}

static void print_conn(const struct session *s, const struct conn *c,
		       int64_t now, FILE *out)
{
	char dst[DESTINATION_TEXT];

	destination_text(c->dst, dst);
	fprintf(out, "  %5u %-21s %-10s %8.1f %12llu %12llu %9zu %9zu",
		c->id, dst, c->flow ? "udp" : conn_state_name(c->state),
		(double)(now - c->opened_at) / (double)NS_PER_SEC,
		(unsigned long long)c->tx_bytes,
		(unsigned long long)c->rx_bytes, conn_queued(c),
		s->dialect->early(c));
	print_bound(&s->engine->settings->paths, c, out);
	fputc('\n', out);
}

static void print_conns(struct session *s, FILE *out)
{
	unsigned int left = CONN_LINES, more = 0;
	int64_t now = loop_clock();
	struct list *pos, *tmp;

	if (list_empty(&s->conns))
		return;
	fprintf(out, "  %5s %-21s %-10s %8s %12s %12s %9s %9s\n", "conn",
		"destination", "state", "age s", "sent", "received", "queued",
		"early");
	list_each(pos, tmp, &s->conns) {
		if (left) {
			print_conn(s, list_entry(pos, struct conn, member), now,
				   out);
			left--;
		} else {
			more++;
		}
	}
	if (more)
		fprintf(out, "  (and %u more)\n", more);
}

void session_print(struct session *s, FILE *out)
{
	const struct stats_counts *n = &s->counts;

	fprintf(out, "session %u with %s: %u pipes, %u connections, %u ids remembered, %zu bytes queued, %zu held out of order%s\n",
		s->number, s->peer, s->paths.npipes, s->nconns,
		s->dialect->ids(s), s->in.queued, s->in.early,
		s->in.paused ? ", pipes paused" : "");
	print_pipes(s, out);
	print_conns(s, out);
	fprintf(out, "  dropped: %llu duplicate, %llu late, %llu early; limits hit: %llu reorder, %llu gap, %llu queue; pauses %llu; malformed %llu\n",
		(unsigned long long)n->duplicates, (unsigned long long)n->late,
		(unsigned long long)n->early_dropped,
		(unsigned long long)n->reorder_limit,
		(unsigned long long)n->gap_limit,
		(unsigned long long)n->queue_limit,
		(unsigned long long)n->pauses, (unsigned long long)n->protocol);
	if (s->ext)
		fprintf(out, "  of the extension: %zu bytes kept; %llu messages sent again (%llu bytes); %llu dropped, %llu of them stale\n",
			s->ext->kept, (unsigned long long)n->again,
			(unsigned long long)n->again_bytes,
			(unsigned long long)n->dropped,
			(unsigned long long)n->stale);
	if (n->datagrams.sent || n->datagrams.received)
		fprintf(out, "  datagrams: %llu sent, %llu received; dropped: %llu stale, %llu crowded, %llu large, %llu stray, %llu denied, %llu narrow, %llu unsent; %llu TOO_BIG\n",
			(unsigned long long)n->datagrams.sent,
			(unsigned long long)n->datagrams.received,
			(unsigned long long)n->datagrams.stale,
			(unsigned long long)n->datagrams.crowded,
			(unsigned long long)n->datagrams.large,
			(unsigned long long)n->datagrams.stray,
			(unsigned long long)n->datagrams.denied,
			(unsigned long long)n->datagrams.narrow,
			(unsigned long long)n->datagrams.unsent,
			(unsigned long long)n->too_big);
}
