/* SPDX-License-Identifier: MIT */
#include "exposition.h"

#include <inttypes.h>

#include "../base/halt.h"
#include "../settings/incident.h"
#include "figures.h"
#include "session_inside.h"

struct exposition {
	FILE *out;
	const struct engine *engine;	/* the first */
	unsigned int began;		/* sessions, of all engines */
	uint64_t buffered, kept;
	struct sums sums;
	struct session *session[EXPOSED_SESSIONS];
	unsigned int shown, with_pipes, all;	/* sessions */
	unsigned int conns;
};

/* --- what there is --- */

static void look_at(struct exposition *x, struct session *s)
{
	unsigned int i;

	for (i = 0; i < s->paths.npipes; i++) {
		pipe_look_closely(s->paths.pipes[i], loop_clock());
		sums_add(x->sums.pipe, pipe_figures, s->paths.pipes[i]);
	}
	sums_add(x->sums.counts, counts_figures, &s->counts);
	x->conns += s->nconns;
	x->all++;
}

static struct session *session_at(const struct list *pos)
{
	return list_entry(pos, struct session, all);
}

/* The one that began next after the one with number @last, in any engine; or NULL. */
static struct session *next_after(const struct engine *engine,
				  unsigned int last)
{
	struct session *next = NULL;

	for (; engine; engine = engine->next) {
		const struct list *pos = engine->all.next;

		while (pos != &engine->all && session_at(pos)->number <= last)
			pos = pos->next;
		if (pos != &engine->all &&
		    (!next || session_at(pos)->number < next->number))
			next = session_at(pos);
	}
	return next;
}

/* The oldest of all engines. */
static void choose(struct exposition *x, const struct engine *first)
{
	struct session *s = next_after(first, 0);
	unsigned int pipes = 0;

	while (s && x->shown < EXPOSED_SESSIONS) {
		x->session[x->shown++] = s;
		pipes += s->paths.npipes;
		if (pipes <= EXPOSED_PIPES)
			x->with_pipes = x->shown;
		s = next_after(first, s->number);
	}
}

static void look_at_engine(struct exposition *x, const struct engine *engine)
{
	const struct list *pos;
	unsigned int i;

	for (i = 0; i < FIGURES_MAX; i++) {
		x->sums.pipe[i] += engine->gone.pipe[i];
		x->sums.counts[i] += engine->gone.counts[i];
	}
	for (i = 0; i < FIGURE_ENDS; i++)
		x->sums.ended[i] += engine->gone.ended[i];
	x->buffered += engine->hoard.bytes;
	x->kept += engine->kept;
	if (engine->sessions > x->began)
		x->began = engine->sessions;
	for (pos = engine->all.next; pos != &engine->all; pos = pos->next)
		look_at(x, session_at(pos));
}

static void look(struct exposition *x, struct engine *first)
{
	const struct engine *engine;

	x->engine = first;
	for (engine = first; engine; engine = engine->next)
		look_at_engine(x, engine);
	choose(x, first);
}

/* --- lines --- */

/* "tm3_pipe_tx_bytes_total": what it is of, its name, and whether it counts. */
static void put_name(struct exposition *x, const char *of, const char *name,
		     bool counts)
{
	fprintf(x->out, "tm3_%s%s%s", of, name, counts ? "_total" : "");
}

static void put_head(struct exposition *x, const char *of, const char *name,
		     const char *help, bool counts)
{
	fputs("# HELP ", x->out);
	put_name(x, of, name, counts);
	fprintf(x->out, " %s\n# TYPE ", help);
	put_name(x, of, name, counts);
	fprintf(x->out, " %s\n", counts ? "counter" : "gauge");
}

/* Of the process. */
static void put_one(struct exposition *x, const char *name, const char *help,
		    bool counts, uint64_t value)
{
	put_head(x, "", name, help, counts);
	put_name(x, "", name, counts);
	fprintf(x->out, " %" PRIu64 "\n", value);
}

static void put_sums(struct exposition *x, const struct figure *figures,
		     const uint64_t sum[FIGURES_MAX])
{
	unsigned int i;

	for (i = 0; figures[i].name; i++) {
		if (figures[i].counts)
			put_one(x, figures[i].name, figures[i].help, true,
				sum[i]);
	}
}

static void put_process(struct exposition *x, const char *program)
{
	unsigned int i;

	put_head(x, "", "info", "What this is.", false);
	fprintf(x->out, "tm3_info{program=\"%s\",version=\"%s\"} 1\n", program,
		TM3_VERSION);
	put_one(x, "sessions_now", "Sessions that there are.", false, x->all);
	put_one(x, "sessions_left_out", "Sessions without lines of their own.",
		false, x->all - x->shown);
	put_one(x, "sessions", "Sessions that ever began.", true,
		x->began);
	put_one(x, "connections_now", "Connections of all sessions.", false,
		x->conns);
	put_one(x, "held_bytes", "Bytes that wait for applications or servers, "
		"and what ids and encryption take.", false, x->buffered);
	put_one(x, "kept_bytes", "Bytes sent and not acknowledged by the other "
		"proxy.", false, x->kept);
	put_sums(x, pipe_figures, x->sums.pipe);
	put_sums(x, counts_figures, x->sums.counts);
	put_head(x, "", "connections_ended", "Connections that have ended, "
		 "by how.", true);
	for (i = 1; i < FIGURE_ENDS; i++)
		fprintf(x->out, "tm3_connections_ended_total{end=\"%s\"} %"
			PRIu64 "\n", conn_end_name((enum conn_end)i),
			x->sums.ended[i]);
}

static void put_limits(struct exposition *x)
{
	unsigned int i;

	put_head(x, "", "limits", "What was refused because of a limit, by which.",
		 true);
	for (i = 0; i < INCIDENT_KINDS; i++)
		fprintf(x->out, "tm3_limits_total{limit=\"%s\"} %" PRIu64 "\n",
			incident_kinds[i].name, x->engine->incidents.count[i]);
}

/* A peer is an address, or a name that somebody gave on a command line. */
static void put_peer(struct exposition *x, const char *peer)
{
	for (; *peer; peer++) {
		if (*peer == '"' || *peer == '\\')
			fputc('\\', x->out);
		if ((unsigned char)*peer >= ' ')
			fputc(*peer, x->out);
	}
}

static void put_session(struct exposition *x, const char *name,
			const char *help, size_t (*of)(const struct session *s))
{
	unsigned int i;

	put_head(x, "session_", name, help, false);
	for (i = 0; i < x->shown; i++)
		fprintf(x->out, "tm3_session_%s{session=\"%u\"} %zu\n", name,
			x->session[i]->number, of(x->session[i]));
}

static size_t pipes_of(const struct session *s)
{
	return s->paths.npipes;
}

static size_t connections_of(const struct session *s)
{
	return s->nconns;
}

static size_t buffered_of(const struct session *s)
{
	return s->hoard.bytes;
}

static const void *counts_of(const struct session *s)
{
	return &s->counts;
}

static void put_figures(struct exposition *x, const char *of,
			const struct figure *f,
			const void *(*part)(const struct session *s))
{
	unsigned int i;

	for (; f->name; f++) {
		put_head(x, of, f->name, f->help, f->counts);
		for (i = 0; i < x->shown; i++) {
			put_name(x, of, f->name, f->counts);
			fprintf(x->out, "{session=\"%u\"} ",
				x->session[i]->number);
			figure_print(f, part(x->session[i]), x->out);
			fputc('\n', x->out);
		}
	}
}

/* Of each path that had a pipe. */
static void put_aggregates(struct exposition *x, const struct figure *f,
			   const struct session *s)
{
	unsigned int i;

	for (i = 0; i < s->paths.npaths; i++) {
		if (!s->paths.path[i].begun)
			continue;
		put_name(x, "session_aggregate_", f->name, f->counts);
		fprintf(x->out, "{session=\"%u\",path=\"%u\"} ", s->number, i);
		figure_print(f, &s->paths.path[i].aggregate, x->out);
		fputc('\n', x->out);
	}
}

static void put_paths(struct exposition *x)
{
	const struct figure *f;
	unsigned int i;

	for (f = aggregate_figures; f->name; f++) {
		put_head(x, "session_aggregate_", f->name, f->help, f->counts);
		for (i = 0; i < x->shown; i++)
			put_aggregates(x, f, x->session[i]);
	}
}

static void put_sessions(struct exposition *x)
{
	unsigned int i;

	put_head(x, "session_", "info", "The other end of a session.", false);
	for (i = 0; i < x->shown; i++) {
		fprintf(x->out, "tm3_session_info{session=\"%u\",peer=\"",
			x->session[i]->number);
		put_peer(x, x->session[i]->peer);
		fputs("\"} 1\n", x->out);
	}
	put_session(x, "pipes", "Pipes of a session.", pipes_of);
	put_session(x, "connections", "Connections of a session.",
		    connections_of);
	put_session(x, "held_bytes", "Bytes that wait for applications or "
		    "servers.", buffered_of);
	put_figures(x, "session_", counts_figures, counts_of);
	put_paths(x);
}

static void put_pipe(struct exposition *x, const struct figure *f,
		     const struct session *s, const struct pipe *p)
{
	put_name(x, "pipe_", f->name, f->counts);
	fprintf(x->out, "{session=\"%u\",path=\"%u\",pipe=\"%u\",transport=\"%s\"} ",
		s->number, paths_number(&s->paths, p), p->index,
		transport_name(p->transport));
	figure_print(f, p, x->out);
	fputc('\n', x->out);
}

static void put_pipes(struct exposition *x)
{
	const struct figure *f;
	unsigned int i, j;

	for (f = pipe_figures; f->name; f++) {
		put_head(x, "pipe_", f->name, f->help, f->counts);
		for (i = 0; i < x->with_pipes; i++) {
			const struct session *s = x->session[i];

			for (j = 0; j < s->paths.npipes; j++)
				put_pipe(x, f, s, s->paths.pipes[j]);
		}
	}
}

void exposition_write(struct engine *engine, const char *program, FILE *out)
{
	struct exposition x = { .out = out };

	halt_begin(engine->halt);
	look(&x, engine);
	put_process(&x, program);
	put_limits(&x);
	put_sessions(&x);
	put_pipes(&x);
	halt_end(engine->halt);
}
