/* SPDX-License-Identifier: MIT */
#include "exposition.h"

#include <inttypes.h>

#include "../settings/refusal.h"
#include "figures.h"
#include "session_inside.h"

struct exposition {
	FILE *out;
	const struct engine *engine;
	struct sums sums;
	struct session *session[EXPOSED_SESSIONS];
	unsigned int shown, with_pipes, all;	/* sessions */
	unsigned int conns;
};

/* --- what there is --- */

static void look_at(struct exposition *x, struct session *s,
		    unsigned int *pipes)
{
	unsigned int i;

	for (i = 0; i < s->path.npipes; i++) {
		pipe_look_closely(s->path.pipes[i], loop_clock());
		sums_add(x->sums.pipe, pipe_figures, s->path.pipes[i]);
	}
	sums_add(x->sums.counts, counts_figures, &s->counts);
	x->conns += s->nconns;
	x->all++;
	if (x->shown == EXPOSED_SESSIONS)
		return;
	x->session[x->shown++] = s;
	*pipes += s->path.npipes;
	if (*pipes <= EXPOSED_PIPES)
		x->with_pipes = x->shown;
}

static void look(struct exposition *x, struct engine *engine)
{
	unsigned int pipes = 0;
	struct list *pos, *tmp;

	x->engine = engine;
	x->sums = engine->gone;
	list_each(pos, tmp, &engine->all)
		look_at(x, list_entry(pos, struct session, all), &pipes);
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
	const struct engine *engine = x->engine;
	unsigned int i;

	put_head(x, "", "info", "What this is.", false);
	fprintf(x->out, "tm3_info{program=\"%s\",version=\"%s\"} 1\n", program,
		TM3_VERSION);
	put_one(x, "sessions_now", "Sessions that there are.", false, x->all);
	put_one(x, "sessions_left_out", "Sessions without lines of their own.",
		false, x->all - x->shown);
	put_one(x, "sessions", "Sessions that ever began.", true,
		engine->sessions);
	put_one(x, "connections_now", "Connections of all sessions.", false,
		x->conns);
	put_one(x, "held_bytes", "Bytes that wait for applications or servers, "
		"and what ids and encryption take.", false, engine->hoard.bytes);
	put_one(x, "kept_bytes", "Bytes sent and not acknowledged by the other "
		"proxy.", false, engine->kept);
	put_sums(x, pipe_figures, x->sums.pipe);
	put_sums(x, counts_figures, x->sums.counts);
	put_head(x, "", "connections_ended", "Connections that are over, by "
		 "how they ended.", true);
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
	for (i = 0; i < REFUSAL_KINDS; i++)
		fprintf(x->out, "tm3_limits_total{limit=\"%s\"} %" PRIu64 "\n",
			refusal_kinds[i].name, x->engine->refusals.count[i]);
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
	return s->path.npipes;
}

static size_t connections_of(const struct session *s)
{
	return s->nconns;
}

static size_t held_of(const struct session *s)
{
	return s->hoard.bytes;
}

static const void *counts_of(const struct session *s)
{
	return &s->counts;
}

static const void *aggregate_of(const struct session *s)
{
	return &s->path.aggregate;
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
		    "servers.", held_of);
	put_figures(x, "session_", counts_figures, counts_of);
	put_figures(x, "session_aggregate_", aggregate_figures, aggregate_of);
}

static void put_pipe(struct exposition *x, const struct figure *f,
		     const struct session *s, const struct pipe *p)
{
	put_name(x, "pipe_", f->name, f->counts);
	fprintf(x->out, "{session=\"%u\",pipe=\"%u\",transport=\"%s\"} ",
		s->number, p->index, transport_name(p->transport));
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

			for (j = 0; j < s->path.npipes; j++)
				put_pipe(x, f, s, s->path.pipes[j]);
		}
	}
}

void exposition_write(struct engine *engine, const char *program, FILE *out)
{
	struct exposition x = { .out = out };

	look(&x, engine);
	put_process(&x, program);
	put_limits(&x);
	put_sessions(&x);
	put_pipes(&x);
}
