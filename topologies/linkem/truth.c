/* SPDX-License-Identifier: MIT */
#include "truth.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "clock.h"
#include "version.h"

const char *const truth_direction[2] = { "ab", "ba" };

typedef unsigned long long ull;

static double ms_since_start(const struct emulator *e, int64_t at)
{
	return (double)(at - e->started) / (double)NS_PER_MS;
}

void truth_head(const struct emulator *e, FILE *out)
{
	fprintf(out, "\"program\":\"linkem\",\"version\":\"%s\",\"format\":%d",
		LINKEM_VERSION, TRUTH_FORMAT);
	fprintf(out, ",\"pid\":%d,\"seed\":%llu", (int)getpid(), (ull)e->seed);
	fprintf(out, ",\"started_unix\":%.9f,\"started_monotonic_ns\":%lld",
		(double)e->started_wall / (double)NS_PER_S,
		(long long)e->started);
	fprintf(out, ",\"fifo\":%d,\"spin\":%s,\"cpu\":", e->fifo,
		e->spin ? "true" : "false");
	if (e->cpu >= 0)
		fprintf(out, "%d", e->cpu);
	else
		fputs("null", out);
	fputs(",\"a\":", out);
	tap_print(&e->tap[0], out);
	fputs(",\"b\":", out);
	tap_print(&e->tap[1], out);
}

void truth_params(const struct emulator *e, FILE *out)
{
	for (int i = 0; i < 2; i++) {
		fprintf(out, "%s\"%s\":", i ? "," : "", truth_direction[i]);
		params_print(&e->link[i].params, out);
	}
}

static void print_count(FILE *out, const char *name, struct link_count c)
{
	fprintf(out, "\"%s_packets\":%llu,\"%s_bytes\":%llu,", name,
		(ull)c.packets, name, (ull)c.bytes);
}

static void print_counters(const struct link *l, FILE *out)
{
	static const char *const name[LINK_ENDS] = {
		[LINK_LOST] = "lost",
		[LINK_QUEUE] = "dropped_queue",
		[LINK_CODEL] = "dropped_codel",
		[LINK_MEMORY] = "dropped_memory",
		[LINK_DEVICE] = "dropped_device",
	};
	const struct link_counters *c = &l->count;

	print_count(out, "in", c->in);
	print_count(out, "out", c->out);
	for (int i = 0; i < LINK_ENDS; i++)
		print_count(out, name[i], c->dropped[i]);
	print_count(out, "duplicated", c->duplicated);
	fprintf(out, "\"held_packets\":%llu,\"reordered_packets\":%llu",
		(ull)c->held, (ull)c->reordered);
	fprintf(out, ",\"other_in\":%llu,\"other_out\":%llu", (ull)c->other_in,
		(ull)c->other_out);
	fprintf(out, ",\"trace_opportunities\":%llu,\"trace_used\":%llu",
		(ull)c->opportunities, (ull)c->used);
}

static void print_queue(const struct link *l, FILE *out)
{
	fprintf(out, "\"queue_packets\":%llu,\"queue_bytes\":%llu",
		(ull)host_packets(&l->host), (ull)host_bytes(&l->host));
	fprintf(out, ",\"queue_ms\":%.3f,\"in_flight\":%zu",
		link_ms(l, host_bytes(&l->host)), l->line.n + !!l->sending);
}

/* The queue below the device, and what the host makes of it. */
static void print_firmware(const struct link *l, int64_t now, FILE *out)
{
	const struct radio *r = &l->radio;
	uint64_t bytes = firmware_bytes(&r->firmware);

	fprintf(out, "\"firmware_packets\":%llu,\"firmware_bytes\":%llu",
		(ull)r->firmware.queue.packets, (ull)bytes);
	fprintf(out, ",\"firmware_ms\":%.3f", link_ms(l, bytes));
	fprintf(out, ",\"estimate_bytes\":%.0f,\"estimate_bit_per_s\":%.0f",
		estimate_bytes(&r->estimate, now), r->estimate.rate * 8e9);
	fprintf(out, ",\"granted_bytes\":%llu,\"padded_bytes\":%llu",
		(ull)r->grants.granted, (ull)r->grants.padded);
	fprintf(out, ",\"gate\":\"%s\"",
		r->gate.fell ? "fell open" : r->gate.holds ? "holds" : "open");
}

static void print_limits(const struct link *l, FILE *out)
{
	const struct queue *q = &l->host.bulk;

	fprintf(out, ",\"queue_limit_bytes\":%llu,\"queue_limit_packets\":%llu",
		(ull)q->bytes_max, (ull)q->packets_max);
	fprintf(out, ",\"queue_top_bytes\":%llu,\"queue_top_packets\":%llu",
		(ull)q->bytes_top, (ull)q->packets_top);
	fprintf(out, ",\"rate_bit_per_s\":%llu", (ull)link_rate(l));
}

static void print_hist(const struct hist *h, FILE *out)
{
	fprintf(out,
		"{\"packets\":%llu,\"p50\":%lld,\"p99\":%lld,\"max\":%lld}",
		(ull)hist_count(h), (long long)hist_quantile(h, 0.5),
		(long long)hist_quantile(h, 0.99),
		(long long)hist_quantile(h, 1));
}

static void print_radio(const struct link *l, int64_t now, FILE *out)
{
	const struct radio *r = &l->radio;

	if (!r->is_on) {
		fputs("null", out);
		return;
	}
	fputc('{', out);
	print_firmware(l, now, out);
	fprintf(out, ",\"firmware_top_bytes\":%llu,\"grants\":%llu",
		(ull)r->firmware.queue.bytes_top, (ull)r->grants.given);
	fprintf(out, ",\"gate_falls\":%llu,\"host_us\":",
		(ull)r->gate.falls);
	print_hist(&r->host_us, out);
	fputs(",\"firmware_us\":", out);
	print_hist(&r->firmware_us, out);
	fputc('}', out);
}

static void print_direction(const struct emulator *e, int i, int64_t now,
			    FILE *out)
{
	const struct link *l = &e->link[i];

	fprintf(out, ",\"%s\":{\"params\":", truth_direction[i]);
	params_print(&l->params, out);
	fputs(",\"counters\":{", out);
	print_counters(l, out);
	fputs("},\"now\":{", out);
	print_queue(l, out);
	print_limits(l, out);
	fputs("},\"late_us\":", out);
	print_hist(&l->late, out);
	fputs(",\"radio\":", out);
	print_radio(l, now, out);
	fprintf(out, ",\"oversize_dropped\":%llu}", (ull)e->oversize[i]);
}

void truth_print(struct emulator *e, const char *state, FILE *out)
{
	int64_t now = emulator_settle(e);

	fprintf(out, "{\"type\":\"truth\",\"state\":\"%s\",\"elapsed_ms\":%.3f,",
		state, ms_since_start(e, now));
	truth_head(e, out);
	print_direction(e, 0, now, out);
	print_direction(e, 1, now, out);
	fputs("}\n", out);
}

int truth_write(struct emulator *e, const char *state, const char *path)
{
	char fresh[PATH_MAX];
	FILE *out;
	int ret = 0;

	if (snprintf(fresh, sizeof(fresh), "%s.new", path) >=
	    (int)sizeof(fresh))
		return -ENAMETOOLONG;
	out = fopen(fresh, "we");
	if (!out)
		return -errno;
	truth_print(e, state, out);
	if (ferror(out))
		ret = -EIO;
	if (fclose(out))
		ret = -errno;
	if (!ret && rename(fresh, path) < 0)
		ret = -errno;
	if (ret)
		unlink(fresh);
	return ret;
}

void truth_sample(struct emulator *e, FILE *out, int64_t now)
{
	for (int i = 0; i < 2; i++) {
		const struct link *l = &e->link[i];

		fprintf(out, "{\"t_ms\":%.3f,\"dir\":\"%s\",",
			ms_since_start(e, now), truth_direction[i]);
		print_queue(l, out);
		fprintf(out, ",\"in\":%llu,\"out\":%llu,\"lost\":%llu",
			(ull)l->count.in.packets, (ull)l->count.out.packets,
			(ull)l->count.dropped[LINK_LOST].packets);
		fprintf(out, ",\"dropped_queue\":%llu,\"dropped_codel\":%llu",
			(ull)l->count.dropped[LINK_QUEUE].packets,
			(ull)l->count.dropped[LINK_CODEL].packets);
		if (l->radio.is_on) {
			fputc(',', out);
			print_firmware(l, now, out);
		}
		fputs("}\n", out);
	}
}

void truth_drop(void *arg, int direction, const struct packet *p,
		enum link_end end, int64_t at)
{
	const struct emulator *e = arg;

	fprintf(e->drops, "{\"t_ms\":%.3f,\"dir\":\"%s\",\"n\":%llu",
		ms_since_start(e, at), truth_direction[direction],
		(ull)p->index);
	fprintf(e->drops, ",\"bytes\":%u,\"copy\":%s,\"why\":\"%s\"}\n",
		p->cost, p->copy ? "true" : "false", link_end_name[end]);
}
