/* SPDX-License-Identifier: MIT */
/*
 * Pipes that are a stream of bytes: TCP, and MPTCP, which may be several of
 * them in one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "../base/sizes.h"
#include "../base/sock.h"
#include "carrier.h"
#include "pipe.h"

#ifndef SOL_MPTCP
#define SOL_MPTCP 284
#endif
#ifndef MPTCP_TCPINFO
#define MPTCP_TCPINFO 2
#endif

enum {
	SUBFLOWS = 8,
	WRITTEN_RUNS = 32,	/* in one call */
	TOGETHER_MAX = 16 * 1024,	/* bytes of runs in one record */
};

/* One alone may have been lost, and they come up to two minutes apart. */
enum { PROBES_UNANSWERED = 2 };

/* As in linux/mptcp.h, which is younger than some systems' headers. */
struct subflows {
	uint32_t size_of_head, n, size_of_kernels, size_of_one;
	struct tcp_info ti[SUBFLOWS];
};

/* --- options --- */

static int open_stream(struct pipe *p)
{
	const struct settings *settings = p->settings;

	sock_nodelay(p->fd);
	sock_watchful(p->fd);
	if (*settings->cc)
		setsockopt(p->fd, IPPROTO_TCP, TCP_CONGESTION, settings->cc,
			   (socklen_t)strlen(settings->cc));
	if (p->transport != TRANSPORT_TCP)
		return 0;
	if (settings->aggregate != AGGREGATE_OFF && settings->late)
		acks_enable(&p->acks, p->fd);
	return 0;
}

static void close_stream(struct pipe *p)
{
	(void)p;
}

static void set_lowat(struct pipe *p)
{
	int value = (int)p->allowance;

	/*
	 * The kernel wakes us below half of it; were it larger than the
	 * allowance, that could be before there is room. A little smaller
	 * is not worth a call.
	 */
	if (p->lowat <= p->allowance &&
	    p->allowance < p->lowat + p->lowat / 4)
		return;
	if (setsockopt(p->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value,
		       sizeof(value)))
		return;
	p->lowat = p->allowance;
	p->tells = true;
}

/* --- what the kernel says --- */

/*
 * What was delivered; but where the sender had nothing to send, what the window
 * allows: by the first alone the allowance would starve itself.
 */
static double rate_of(const struct tcp_info *ti)
{
	if (!ti->tcpi_delivery_rate_app_limited && ti->tcpi_delivery_rate)
		return (double)ti->tcpi_delivery_rate;
	return ti->tcpi_rtt ?
		1e6 * ti->tcpi_snd_cwnd * ti->tcpi_snd_mss / ti->tcpi_rtt : 0;
}

/* What arrived behind a gap, and what is taken for lost. */
static size_t astray(const struct tcp_info *ti)
{
	uint32_t gone = ti->tcpi_sacked + ti->tcpi_lost;

	return gone > ti->tcpi_retrans ?
		(size_t)(gone - ti->tcpi_retrans) * ti->tcpi_snd_mss : 0;
}

/* What is under way, as the window counts it. */
static size_t full_segments(const struct tcp_info *ti)
{
	size_t sent = (size_t)ti->tcpi_unacked * ti->tcpi_snd_mss;

	return size_less(sent, astray(ti));
}

/* What is bound late has a bound far below the socket's. */
static void look_at_space(struct pipe *p)
{
	if (!p->settings->late)
		p->info.space = sock_space(p->fd);
}

/* What is astray was counted in segments, which small messages do not fill. */
static void look_at_queues(struct pipe *p)
{
	size_t outstanding = sock_outstanding(p->fd), sent;

	look_at_space(p);
	if (!outstanding) {
		pipe_idles(p, false);
		p->info.unfilled = 0;
	}
	p->info.unsent = outstanding ? sock_unsent(p->fd) : 0;
	sent = outstanding - p->info.unsent;
	p->info.astray = size_least(p->info.astray, sent);
	p->info.in_flight = sent - p->info.astray;
	p->info.stuck = p->info.in_flight ? 0 : p->info.unsent;
}

/* An acknowledgement that takes longer is late. */
static double patience(const struct tcp_info *ti)
{
	return (ti->tcpi_rtt + 4.0 * ti->tcpi_rttvar) / 1e3;
}

static void take_info(struct pipe_info *info, const struct tcp_info *ti)
{
	info->astray = astray(ti);
	info->rtt_ms = ti->tcpi_rtt / 1e3;
	info->rttmin_ms = ti->tcpi_min_rtt / 1e3;
	info->patience_ms = patience(ti);
	info->unheard_ms = ti->tcpi_last_ack_recv;
	info->cwnd = ti->tcpi_snd_cwnd;
	info->mss = ti->tcpi_snd_mss;
	info->retransmits = ti->tcpi_total_retrans;
	info->timed_out = ti->tcpi_retransmits > 0;
	info->segments = ti->tcpi_data_segs_out;
	info->rate = rate_of(ti);
}

static bool ask_tcp(struct pipe *p, struct tcp_info *ti)
{
	return sock_tcp_info(p->fd, ti, sizeof(*ti)) && ti->tcpi_snd_mss;
}

/* As of this answer; what another one says may be of later. */
static bool has_all_acked(const struct tcp_info *ti)
{
	return !ti->tcpi_unacked && !ti->tcpi_notsent_bytes;
}

static void look_tcp(struct pipe *p)
{
	struct tcp_info ti;

	if (!ask_tcp(p, &ti))
		return;
	take_info(&p->info, &ti);
	if (!has_all_acked(&ti)) {
		look_at_queues(p);
		p->info.unfilled = size_less(full_segments(&ti),
					     p->info.in_flight);
		return;
	}
	p->info.unsent = p->info.in_flight = p->info.stuck = 0;
	p->info.unfilled = 0;
	look_at_space(p);
	pipe_idles(p, true);
}

/* --- MPTCP: the sum of its subflows --- */

/* How many there are, in @ti; 0 when it is plain TCP by now. */
static unsigned int ask_subflows(struct pipe *p, struct tcp_info *ti)
{
	struct subflows all = {
		.size_of_head = offsetof(struct subflows, ti),
		.size_of_one = sizeof(all.ti[0]),
	};
	socklen_t len = sizeof(all);
	unsigned int n;

	if (getsockopt(p->fd, SOL_MPTCP, MPTCP_TCPINFO, &all, &len) < 0)
		return 0;
	n = all.n < SUBFLOWS ? all.n : SUBFLOWS;
	memcpy(ti, all.ti, n * sizeof(*ti));
	return n;
}

static void add_subflow(struct pipe_info *info, const struct tcp_info *ti)
{
	info->astray += astray(ti);
	info->cwnd += ti->tcpi_snd_cwnd;
	info->retransmits += ti->tcpi_total_retrans;
	info->timed_out |= ti->tcpi_retransmits > 0;
	info->segments += ti->tcpi_data_segs_out;
	info->rate += rate_of(ti);
	if (patience(ti) > info->patience_ms)
		info->patience_ms = patience(ti);
	if (ti->tcpi_last_ack_recv < info->unheard_ms)
		info->unheard_ms = ti->tcpi_last_ack_recv;
	if (ti->tcpi_min_rtt && ti->tcpi_min_rtt / 1e3 < info->rttmin_ms) {
		info->rttmin_ms = ti->tcpi_min_rtt / 1e3;
		info->rtt_ms = ti->tcpi_rtt / 1e3;
	}
}

/*
 * What a subflow has taken and not sent counts as sent to the socket as a
 * whole; so every look asks the subflows.
 */
static void look_mptcp(struct pipe *p)
{
	struct tcp_info ti[SUBFLOWS];
	unsigned int n = ask_subflows(p, ti);
	size_t waiting = 0, full = 0;
	bool all_acked = true;
	unsigned int i;

	p->info.subflows = n;
	if (!n) {
		look_tcp(p);
		return;
	}
	if (!ti[0].tcpi_snd_mss)
		return;
	take_info(&p->info, &ti[0]);
	for (i = 0; i < n; i++) {
		if (i)
			add_subflow(&p->info, &ti[i]);
		waiting += ti[i].tcpi_notsent_bytes;
		full += full_segments(&ti[i]);
		all_acked &= has_all_acked(&ti[i]);
	}
	look_at_queues(p);
	if (all_acked && !pipe_outstanding(p))
		pipe_idles(p, true);
	if (waiting > p->info.in_flight)
		waiting = p->info.in_flight;
	p->info.in_flight -= waiting;
	p->info.unsent += waiting;
	p->info.stuck = p->info.in_flight ? 0 : p->info.unsent;
	p->info.unfilled = size_less(full, p->info.in_flight);
}

static void allow_mptcp(struct pipe *p)
{
	(void)p;	/* its TCP_NOTSENT_LOWAT does not see the subflows */
}

/* --- out and in --- */

/* The last segment of a write is sent as it is, unless @more follows. */
static void note_sent(struct pipe *p, size_t bytes, bool more)
{
	size_t last = p->info.mss ? bytes % p->info.mss : 0;

	p->tx_bytes += bytes;
	if (last && !more)
		p->info.unfilled += p->info.mss - last;
}

/* @more: of the same run, at once. Its end is what an acknowledgement is asked for. */
static ssize_t write_some(struct pipe *p, const void *buf, size_t len, bool more)
{
	struct ack_asked what = { .held = p->asking_held,
				  .len = p->asking_len,
				  .clean = p->asking_clear,
				  .schedule = !p->asking_clear,
				  .again = p->info.retransmits,
				  .behind = p->info.astray > 0 };

	if (more || !p->asking)
		return send(p->fd, buf, len, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
	p->asking = false;
	return acks_send(&p->acks, p->fd, buf, len, p->tx_bytes, &what);
}

/*
 * So many bytes of small runs go in one record. It is no larger than a segment: else the first of
 * them would wait for what the last ones need.
 */
static size_t most_together(const struct pipe *p)
{
	size_t segment = size_less(p->info.mss, p->layer->overhead);

	return size_least(segment, size_least(p->layer->record, TOGETHER_MAX));
}

/* Makes one record of @run and of those behind it that fit in. */
static int seal_together(struct pipe *p, const struct run *run, size_t most)
{
	uint8_t together[TOGETHER_MAX];

	for (; run && p->sealed_len + run->len <= most; run = run->next) {
		memcpy(together + p->sealed_len, run->buf, run->len);
		p->sealed_len += run->len;
		p->sealed++;
	}
	return p->layer->ops->seal(p->layer, together, p->sealed_len);
}

/* Makes records of the next portion of @run. */
static int seal_portion(struct pipe *p, const struct run *run)
{
	size_t full = LAYER_PORTION - LAYER_PORTION % p->layer->record;
	size_t from = p->sealed_len, len = size_least(run->len - from, full);

	p->sealed = 1;
	p->sealed_len += len;
	return p->layer->ops->seal(p->layer, run->buf + from, len);
}

static int seal(struct pipe *p, const struct run *run)
{
	size_t most = most_together(p);
	int err;

	if (!p->sealed && run->next && run->len + run->next->len <= most)
		err = seal_together(p, run, most);
	else
		err = seal_portion(p, run);
	if (!err)
		return 0;
	/* Some records of the run may be there: none must go. */
	shutdown(p->fd, SHUT_RDWR);
	p->sealed = 0;
	p->sealed_len = 0;
	return err;
}

/*
 * So many bytes of records of the first runs were written: until all are, they count as if they
 * were of the runs themselves, all but the last byte of each.
 */
static void note_sealed(struct pipe *p, size_t bytes)
{
	struct run *run = p->queue;
	unsigned int i;

	for (i = 0; i < p->sealed; i++, run = run->next) {
		size_t part = size_least(bytes, run->len - 1 - run->sent);

		pipe_wrote(p, run, part);
		bytes -= part;
	}
}

/* @more: of the same run are no records yet. */
static int write_records(struct pipe *p, bool more)
{
	struct layer *l = p->layer;

	while (l->out_len) {
		ssize_t n = write_some(p, l->out, l->out_len, more);

		if (n < 0)
			return errno == EINTR ? -EAGAIN : -errno;
		l->ops->wrote(l, (size_t)n);
		note_sent(p, (size_t)n, more);
		note_sealed(p, (size_t)n);
	}
	return 0;
}

/* Records that are not written stay in the layer, and their runs count as written when they are. */
static int write_sealed(struct pipe *p, struct run *run)
{
	int err = p->sealed ? 0 : seal(p, run);

	while (!err) {
		bool more = p->sealed_len < run->len;

		err = write_records(p, more);
		if (!more)
			break;
		if (!err)
			err = seal(p, run);
	}
	if (err)
		return err;
	for (; p->sealed; p->sealed--, run = run->next)
		pipe_wrote(p, run, run->len - run->sent);
	p->sealed_len = 0;
	return 0;
}

/* @run and those behind it in one call. */
static ssize_t write_runs(struct pipe *p, const struct run *run)
{
	struct iovec iov[WRITTEN_RUNS];
	struct msghdr mh = { .msg_iov = iov };

	for (; run && mh.msg_iovlen < WRITTEN_RUNS; run = run->next)
		iov[mh.msg_iovlen++] = (struct iovec){
			.iov_base = (void *)(uintptr_t)(run->buf + run->sent),
			.iov_len = run->len - run->sent,
		};
	return sendmsg(p->fd, &mh, MSG_NOSIGNAL);
}

static void note_written(struct pipe *p, struct run *run, size_t bytes)
{
	for (; bytes; run = run->next) {
		size_t part = size_least(bytes, run->len - run->sent);

		pipe_wrote(p, run, part);
		bytes -= part;
	}
}

static int write_stream(struct pipe *p, struct run *run)
{
	if (p->layer)
		return write_sealed(p, run);
	while (run->sent < run->len) {
		ssize_t n = run->next ? write_runs(p, run) :
			write_some(p, run->buf + run->sent, run->len - run->sent, false);

		if (n < 0)
			return errno == EINTR ? -EAGAIN : -errno;
		note_written(p, run, (size_t)n);
		note_sent(p, (size_t)n, false);
	}
	return 0;
}

/* Gives out the whole messages in @buf; keeps what is left. */
static void give_messages(struct pipe *p, const uint8_t *buf, size_t len)
{
	uint64_t offset = p->rx_bytes - len;
	struct wire_msg msg;
	size_t at = 0;
	int n;

	while ((n = wire_read_up_to(buf + at, len - at, pipe_largest(p->shared),
				    &msg)) > 0) {
		if (!pipe_give(p, &msg, offset + at))
			return;
		at += (size_t)n;
	}
	if (n < 0) {
		pipe_break(p, &msg, offset + at);
		return;
	}
	if (!partial_set(&p->partial, buf + at, len - at,
			 pipe_largest(p->shared)))
		pipe_end(p, -ENOMEM);
}

/*
 * One read into the shared buffer, behind what was left of the last one. A
 * pipe that was paused on the way keeps nothing back: what was read is given out.
 */
static size_t read_stream(struct pipe *p, size_t most)
{
	uint8_t *buf = p->shared->scratch + p->shared->scratch_used;
	size_t had = partial_copy(&p->partial, buf);
	ssize_t n;

	n = conduit_read((struct conduit){ p->fd, p->layer }, buf + had, most);
	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			pipe_end(p, -errno);
		return 0;
	}
	if (!n) {
		pipe_end(p, 0);
		return 0;
	}
	p->rx_bytes += (uint64_t)n;
	p->shared->scratch_used += had + (size_t)n;
	give_messages(p, buf, had + (size_t)n);
	return (size_t)n;
}

/*
 * What of ours waits for an answer? A peer with a closed window is asked by probes,
 * ever more rarely; those that fail on this host already follow twice a second. So
 * their number tells no time.
 */
static bool is_asked(const struct pipe *p, const struct tcp_info *ti)
{
	return sock_outstanding(p->fd) &&
	       (ti->tcpi_unacked || ti->tcpi_probes >= PROBES_UNANSWERED);
}

static bool is_unheard(struct pipe *p, int64_t now, int64_t limit)
{
	struct tcp_info ti;
	int64_t since;

	if (!ask_tcp(p, &ti) || !is_asked(p, &ti)) {
		p->waiting_since = 0;
		return false;
	}
	if (!p->waiting_since)
		p->waiting_since = now;
	since = now - ti.tcpi_last_ack_recv * NS_PER_MS;
	if (since < p->waiting_since)
		since = p->waiting_since;
	return now - since >= limit;
}

static void shut_stream(struct pipe *p)
{
	conduit_shut((struct conduit){ p->fd, p->layer });
}

const struct carrier carrier_stream = {
	.open = open_stream,
	.close = close_stream,
	.look_at_queues = look_at_queues,
	.look = look_tcp,
	.allow = set_lowat,
	.write = write_stream,
	.gathers = true,
	.read = read_stream,
	.is_unheard = is_unheard,
	.shut = shut_stream,
};

const struct carrier carrier_mptcp = {
	.open = open_stream,
	.close = close_stream,
	.look_at_queues = look_mptcp,
	.look = look_mptcp,
	.allow = allow_mptcp,
	.write = write_stream,
	.gathers = true,
	.read = read_stream,
	.is_unheard = is_unheard,
	.shut = shut_stream,
};
