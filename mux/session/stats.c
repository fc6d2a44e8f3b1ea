/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "stats.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "../base/hist.h"
#include "../base/line_file.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "../base/seldom.h"
#include "../conn/conn.h"
#include "../path/path.h"
#include "../pipe/pipe.h"
#include "../sched/sched.h"
#include "../settings/incident.h"
#include "../settings/settings.h"
#include "figures.h"

/* Unwritten bytes that are worth a write before the interval ends. */
enum { FLUSH_BYTES = 64 * 1024 };

struct stats {
	pthread_mutex_t lock;	/* from begin() to end(); all of this is under it */
	struct line_file file;
	FILE *out;		/* its line */
	const char *path;
	struct log *log;
	int64_t unix_offset;	/* UNIX time less monotonic, ns */
	int64_t interval;	/* ns */
	int64_t flushed_at;
	int64_t said_at;	/* when lines that were dropped were logged */
	bool failed;		/* a write did: nothing more is written */
};

/* --- the pieces of a line --- */

/* Whatever is in a string, the line stays ASCII and one line. */
static void put_string(struct stats *st, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	if (!text) {
		fputs("null", st->out);
		return;
	}
	fputc('"', st->out);
	for (; *at; at++) {
		if (*at == '"' || *at == '\\')
			fprintf(st->out, "\\%c", *at);
		else if (*at < 0x20 || *at > 0x7e)
			fprintf(st->out, "\\u%04x", *at);
		else
			fputc(*at, st->out);
	}
	fputc('"', st->out);
}

/* A moment of the monotonic clock as UNIX seconds; 0 never came. */
static void put_time(struct stats *st, const char *name, int64_t at)
{
	int64_t us = (at + st->unix_offset) / NS_PER_US;

	if (at)
		fprintf(st->out, ",\"%s\":%" PRId64 ".%06" PRId64, name,
			us / 1000000, us % 1000000);
	else
		fprintf(st->out, ",\"%s\":null", name);
}

static void put_u64(struct stats *st, const char *name, uint64_t value)
{
	fprintf(st->out, ",\"%s\":%" PRIu64, name, value);
}

static void put_figures(struct stats *st, const struct figure *f, const void *of)
{
	for (; f->name; f++) {
		fprintf(st->out, ",\"%s\":", f->name);
		figure_print(f, of, st->out);
	}
}

static void put_text(struct stats *st, const char *name, const char *text)
{
	fprintf(st->out, ",\"%s\":", name);
	put_string(st, text);
}

static void begin_line(struct stats *st, const char *type)
{
	fprintf(st->out, "{\"type\":\"%s\"", type);
}

/* Statistics are not worth the proxy's life: they stop, it goes on. */
static void flush_now(struct stats *st, int64_t now)
{
	int err = line_file_flush(&st->file);

	st->flushed_at = now;
	if (!err)
		return;
	st->failed = true;
	log_error(st->log, "--stats: %s: %s; no more statistics are written",
		  st->path, strerror(-err));
}

static void end_line(struct stats *st)
{
	fputs("}\n", st->out);
	line_file_end_line(&st->file);
}

static void say_dropped(struct stats *st, int64_t now)
{
	if (st->said_at && now - st->said_at < SELDOM_SECONDS * NS_PER_SEC)
		return;
	st->said_at = now;
	log_warn(st->log, "--stats: %s is not read, so lines are dropped",
		 st->path);
}

/* Once there is room again a record tells how many lines are missing. */
static void put_dropped(struct stats *st, int64_t now)
{
	uint64_t lines = st->file.dropped;

	say_dropped(st, now);
	if (st->file.kept_len > LINE_FILE_MAX / 2)
		return;
	st->file.dropped = 0;
	begin_line(st, "dropped");
	put_time(st, "time", now);
	put_u64(st, "lines", lines);
	end_line(st);
}

/* False: there are no statistics. Else no other thread writes any until end(). */
static bool begin(struct stats *st, const char *type)
{
	if (!st)
		return false;
	pthread_mutex_lock(&st->lock);
	if (st->failed) {
		pthread_mutex_unlock(&st->lock);
		return false;
	}
	begin_line(st, type);
	return true;
}

static void end(struct stats *st, int64_t now)
{
	end_line(st);
	if (st->file.dropped)
		put_dropped(st, now);
	if (now - st->flushed_at >= st->interval ||
	    st->file.kept_len >= FLUSH_BYTES)
		flush_now(st, now);
	pthread_mutex_unlock(&st->lock);
}

/* --- the file --- */

static int64_t clock_offset(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * NS_PER_SEC + ts.tv_nsec - loop_clock();
}

static void put_start(struct stats *st, const char *program,
		      const struct settings *settings, unsigned int pipes)
{
	int64_t now = loop_clock();
	char text[TRANSPORT_SET_TEXT];

	if (!begin(st, "start"))
		return;
	put_text(st, "program", program);
	put_text(st, "version", TM3_VERSION);
	put_time(st, "time", now);
	put_u64(st, "pipes", pipes);
	put_text(st, "transport", transport_set_text(&settings->transports, text));
	put_text(st, "binding", settings->late ? "late" : "early");
	put_text(st, "pipe_policy", settings->pipe_policy->name);
	put_text(st, "path_policy", settings->path_policy->name);
	put_text(st, "conn_policy", settings->conn_policy->name);
	put_text(st, "aggregate", aggregate_mode_name(settings->late ?
		 settings->aggregate : AGGREGATE_OFF));
	put_text(st, "reinject", reinject_mode_name(settings->reinject));
	end(st, now);
	stats_flush(st);
}

void stats_set_interval(struct stats *st, const struct settings *settings)
{
	if (!st)
		return;
	pthread_mutex_lock(&st->lock);
	st->interval = (int64_t)(settings->stats_interval * (double)NS_PER_SEC);
	pthread_mutex_unlock(&st->lock);
}

struct stats *stats_open(const char *path, struct log *log,
			 const struct settings *settings, unsigned int pipes)
{
	struct stats *st = calloc(1, sizeof(*st));
	int err;

	if (!st)
		return NULL;
	err = line_file_open(&st->file, path);
	if (err) {
		free(st);
		errno = -err;
		return NULL;
	}
	pthread_mutex_init(&st->lock, NULL);
	st->out = st->file.line;
	st->path = path;
	st->log = log;
	st->unix_offset = clock_offset();
	stats_set_interval(st, settings);
	st->flushed_at = loop_clock();
	put_start(st, log->name, settings, pipes);
	return st;
}

void stats_flush(struct stats *st)
{
	if (!st)
		return;
	pthread_mutex_lock(&st->lock);
	if (!st->failed)
		flush_now(st, loop_clock());
	pthread_mutex_unlock(&st->lock);
}

void stats_close(struct stats *st)
{
	if (!st)
		return;
	stats_flush(st);
	line_file_close(&st->file);
	pthread_mutex_destroy(&st->lock);
	free(st);
}

/* --- the records --- */

/* Sessions begin and end seldom: their lines are there at once. */
void stats_session(struct stats *st, unsigned int session, const char *event,
		   const char *peer, const char *reason)
{
	int64_t now = loop_clock();

	if (!begin(st, "session"))
		return;
	put_text(st, "event", event);
	put_time(st, "time", now);
	put_u64(st, "session", session);
	put_text(st, "peer", peer);
	put_text(st, "reason", reason);
	end(st, now);
	stats_flush(st);
}

static void put_cc(struct stats *st, int fd)
{
	char name[CC_NAME_MAX + 1] = "";
	socklen_t len = CC_NAME_MAX;

	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len) < 0)
		put_text(st, "cc", NULL);
	else
		put_text(st, "cc", name);
}

void stats_pipe(struct stats *st, unsigned int session, unsigned int path,
		const struct pipe *p, const char *state)
{
	int64_t now = loop_clock();

	if (!begin(st, "pipe"))
		return;
	put_time(st, "time", now);
	put_u64(st, "session", session);
	put_u64(st, "pipe", p->index);
	put_u64(st, "path", path);
	put_text(st, "state", state);
	put_text(st, "transport", transport_name(p->transport));
	put_cc(st, p->fd);
	put_figures(st, pipe_figures, p);
	if (p->transport == TRANSPORT_MPTCP)
		put_u64(st, "subflows", p->info.subflows);
	end(st, now);
}

static const char *state_of(const struct path *path)
{
	if (path->off)
		return "off";
	return path->backup ? "backup" : "use";
}

void stats_path(struct stats *st, unsigned int session, unsigned int number,
		const struct path *path, const char *name, bool standby)
{
	int64_t now = loop_clock();

	if (!begin(st, "path"))
		return;
	put_time(st, "time", now);
	put_u64(st, "session", session);
	put_u64(st, "path", number);
	put_text(st, "name", name);
	put_text(st, "state", state_of(path));
	fprintf(st->out, ",\"rests\":%s", standby ? "true" : "false");
	put_u64(st, "cost", path->cost);
	put_u64(st, "pipes", path->npipes);
	put_u64(st, "written", path->written);
	put_u64(st, "reinjected", path->reinjected);
	fprintf(st->out, ",\"deviation_ms\":%.3f",
		path->variation.deviation * 1e3);
	put_time(st, "came", path->came_at);
	end(st, now);
}

void stats_aggregate(struct stats *st, unsigned int session,
		     unsigned int number, const struct path *path)
{
	const struct aggregate *a = &path->aggregate;
	int64_t now = loop_clock();

	if (a->mode == AGGREGATE_OFF || !begin(st, "aggregate"))
		return;
	put_time(st, "time", now);
	put_u64(st, "session", session);
	put_u64(st, "path", number);
	put_text(st, "mode", aggregate_mode_name(a->mode));
	put_text(st, "state", aggregate_state_name(a->state));
	if (a->limit == AGGREGATE_NONE)
		fputs(",\"limit\":null", st->out);
	else
		put_u64(st, "limit", a->limit);
	put_u64(st, "held", path_held(path));
	fprintf(st->out, ",\"rate_mbps\":%.3f,\"base_ms\":%.3f,\"rtt_ms\":%.3f",
		a->rate * 8 / 1e6, (double)aggregate_base(a) / 1e6,
		a->before.least / 1e6);
	put_figures(st, aggregate_figures, a);
	end(st, now);
}

void stats_losses(struct stats *st, unsigned int session, unsigned int path,
		  const struct losses *l)
{
	int64_t now = loop_clock();

	if (!begin(st, "losses"))
		return;
	put_time(st, "time", now);
	put_u64(st, "session", session);
	put_u64(st, "path", path);
	put_text(st, "carried_by", l->on_sctp ? "sctp" : "others");
	fprintf(st->out, ",\"percent\":%.3f,\"threshold\":%g",
		losses_share(l) * 100, l->threshold * 100);
	put_u64(st, "segments", losses_sent(l));
	put_u64(st, "retransmits", losses_again(l));
	put_u64(st, "switches", l->switches);
	end(st, now);
}

void stats_queues(struct stats *st, unsigned int session,
		  const struct queues *q, const char *wait)
{
	int64_t now = loop_clock();

	if (!begin(st, "queues"))
		return;
	put_time(st, "time", now);
	put_u64(st, "session", session);
	put_text(st, "sender", wait);
	put_figures(st, queues_figures, q);
	end(st, now);
}

/* Of all that was received: most messages waited for nothing. */
static void put_delays(struct stats *st, const struct conn *c)
{
	struct hist all;
	uint64_t waited;

	hist_init(&all);
	if (c->waits)
		all = c->waits->delays;
	waited = hist_count(&all);
	if (waited < c->rx_messages)
		hist_add_zeros(&all, c->rx_messages - waited);
	fprintf(st->out, ",\"reorder_ms\":{\"p50\":%.3f,\"p75\":%.3f,"
		"\"p99\":%.3f,\"max\":%.3f}",
		(double)hist_quantile(&all, 0.50) / 1e3,
		(double)hist_quantile(&all, 0.75) / 1e3,
		(double)hist_quantile(&all, 0.99) / 1e3,
		(double)hist_quantile(&all, 1.00) / 1e3);
}

void stats_conn(struct stats *st, unsigned int session, const struct conn *c,
		int64_t now)
{
	char dst[DESTINATION_TEXT];

	if (!begin(st, "conn"))
		return;
	put_u64(st, "session", session);
	put_u64(st, "id", c->id);
	put_text(st, "protocol", c->flow ? "udp" : "tcp");
	put_text(st, "dst", c->flow && c->dst->kind == DESTINATION_NONE ?
		 "any" : destination_text(c->dst, dst));
	put_time(st, "opened", c->opened_at);
	put_time(st, "connected", c->connected_at);
	put_time(st, "closed", now);
	put_u64(st, "tx_bytes", c->tx_bytes);
	put_u64(st, "rx_bytes", c->rx_bytes);
	put_u64(st, "tx_messages", c->tx_messages);
	put_u64(st, "rx_messages", c->rx_messages);
	put_delays(st, c);
	put_u64(st, "reorder_max_messages", c->waits ? c->waits->most_messages : 0);
	put_u64(st, "reorder_max_bytes", c->waits ? c->waits->most_payload : 0);
	put_text(st, "end", conn_end_name((enum conn_end)c->end));
	end(st, now);
}

void stats_counters(struct stats *st, unsigned int session,
		    const struct stats_counts *counts)
{
	int64_t now = loop_clock();

	if (!begin(st, "counters"))
		return;
	put_time(st, "time", now);
	put_u64(st, "session", session);
	put_figures(st, counts_figures, counts);
	end(st, now);
}

/* Once an interval at most; and nothing may come after it that would bring it to the file. */
void stats_limits(struct stats *st, const uint64_t *count)
{
	int64_t now = loop_clock();
	unsigned int i;

	if (!begin(st, "limits"))
		return;
	put_time(st, "time", now);
	for (i = 0; i < INCIDENT_KINDS; i++)
		put_u64(st, incident_kinds[i].name, count[i]);
	end(st, now);
	stats_flush(st);
}
