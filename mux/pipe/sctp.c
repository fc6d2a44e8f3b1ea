/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "sctp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* It wants what the above say. */
#include <linux/sctp.h>
#include <linux/sock_diag.h>

#include "../base/sock.h"
#include "../wire/wire_ext.h"
#include "carrier.h"
#include "pipe.h"

#ifndef SOL_SCTP
#define SOL_SCTP 132
#endif

enum {
	STREAMS = 256,		/* so that few connections share one */
	BUFFER = 4 << 20,	/* asked for; the system's limit decides */
	READS = 64,		/* messages, then others have a turn */
	SENT = 4096,		/* chunks whose sizes are known */

	/* As TCP's. The default is 1 s at least, which SACKs may take 200 ms of. */
	RTO_FIRST_MS = 1000, RTO_MIN_MS = 200, RTO_MAX_MS = 5000,
	SACK_DELAY_MS = 40,
	/* Who is silent is gone after about forty seconds, */
	HEARTBEAT_MS = 2000,
	/* or twenty with something under way. */
	ERRORS_MAX = 7,
};

/* The chunks that went out, by count; what is not kept here the kernel knows. */
struct sctp_sent {
	unsigned int streams;
	uint64_t chunks;	/* given to the socket */
	int64_t skew;		/* the kernel's count, less ours */
	uint64_t base;		/* sent once when the last SACK was seen */
	uint64_t sacks, heard;
	uint64_t bytes;
	uint32_t end[SENT];	/* bytes until behind chunk i */
};

static int set(int fd, int name, const void *value, socklen_t len)
{
	return setsockopt(fd, SOL_SCTP, name, value, len) < 0 ? -errno : 0;
}

void sctp_prepare(int fd)
{
	struct sctp_initmsg init = {
		.sinit_num_ostreams = STREAMS, .sinit_max_instreams = STREAMS,
	};
	struct sctp_rtoinfo rto = {
		.srto_initial = RTO_FIRST_MS, .srto_min = RTO_MIN_MS,
		.srto_max = RTO_MAX_MS,
	};
	struct sctp_sack_info sack = {
		.sack_delay = SACK_DELAY_MS, .sack_freq = 2,
	};
	struct sctp_paddrparams path = {
		.spp_hbinterval = HEARTBEAT_MS, .spp_pathmaxrxt = ERRORS_MAX,
		.spp_flags = SPP_HB_ENABLE,
	};
	struct sctp_assocparams assoc = { .sasoc_asocmaxrxt = ERRORS_MAX };
	int buffer = BUFFER;

	set(fd, SCTP_INITMSG, &init, sizeof(init));
	set(fd, SCTP_RTOINFO, &rto, sizeof(rto));
	set(fd, SCTP_DELAYED_SACK, &sack, sizeof(sack));
	set(fd, SCTP_PEER_ADDR_PARAMS, &path, sizeof(path));
	set(fd, SCTP_ASSOCINFO, &assoc, sizeof(assoc));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
}

/* --- what the kernel says --- */

static bool ask_status(const struct pipe *p, struct sctp_status *status)
{
	socklen_t len = sizeof(*status);

	memset(status, 0, sizeof(*status));
	return !getsockopt(p->fd, SOL_SCTP, SCTP_STATUS, status, &len) &&
	       status->sstat_fragmentation_point > WIRE_HEADER;
}

static bool ask_stats(const struct pipe *p, struct sctp_assoc_stats *stats)
{
	socklen_t len = sizeof(*stats);

	memset(stats, 0, sizeof(*stats));
	return !getsockopt(p->fd, SOL_SCTP, SCTP_GET_ASSOC_STATS, stats, &len);
}

/* Nothing given to the socket waits to be acknowledged. */
static bool is_empty(const struct pipe *p)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(memory);

	return !getsockopt(p->fd, SOL_SOCKET, SO_MEMINFO, memory, &len) &&
	       !memory[SK_MEMINFO_WMEM_QUEUED];
}

/*
 * Our count of chunks is the kernel's as long as no message was cut into other
 * pieces than foreseen (the path's packets became smaller). When nothing is left
 * both must be the same.
 */
static uint64_t sent_once(struct pipe *p, const struct sctp_assoc_stats *stats,
			  const struct sctp_status *status)
{
	struct sctp_sent *s = p->sctp;
	int64_t kernels = (int64_t)(stats->sas_ouodchunks +
				    stats->sas_oodchunks);
	int64_t ahead = kernels - s->skew - (int64_t)s->chunks;

	if (ahead > 0 || (ahead < 0 && !status->sstat_unackdata && is_empty(p)))
		s->skew += ahead;
	return (uint64_t)(kernels - s->skew);
}

/* Bytes from behind chunk @first to behind chunk @last, as far as known. */
static size_t bytes_between(const struct sctp_sent *s, uint64_t first,
			    uint64_t last)
{
	uint64_t oldest = s->chunks < SENT ? 0 : s->chunks - SENT + 1;

	if (first < oldest)
		first = oldest;
	if (last <= first)
		return 0;
	return s->end[last % SENT] - s->end[first % SENT];
}

/*
 * What is not acknowledged is told as of the last SACK. Chunks that were sent
 * since it was seen are in flight too, unless the socket is empty; what was sent between
 * it and the look that saw it, a few at most, is not counted.
 */
static void look_at_chunks(struct pipe *p, const struct sctp_assoc_stats *stats,
			   const struct sctp_status *status)
{
	struct sctp_sent *s = p->sctp;
	uint64_t sent = sent_once(p, stats, status);
	uint64_t under_way;

	if (stats->sas_isacks != s->sacks) {
		s->sacks = stats->sas_isacks;
		s->base = sent;
	}
	if (sent != s->base && !status->sstat_unackdata && is_empty(p))
		s->base = sent;
	under_way = status->sstat_unackdata + (sent - s->base);
	if (under_way > sent)
		under_way = sent;
	p->info.unsent = bytes_between(s, sent, s->chunks);
	p->info.in_flight = bytes_between(s, sent - under_way, sent);
	p->info.stuck = p->info.in_flight ? 0 : p->info.unsent;
}

static void look_sctp(struct pipe *p)
{
	struct sctp_status status;
	struct sctp_assoc_stats stats;
	struct pipe_info *info = &p->info;

	if (!ask_status(p, &status) || !ask_stats(p, &stats))
		return;
	look_at_chunks(p, &stats, &status);
	info->mss = status.sstat_fragmentation_point;
	info->cwnd = status.sstat_primary.spinfo_cwnd / info->mss;
	info->rtt_ms = status.sstat_primary.spinfo_srtt;
	/* Smoothed, and by whole clock ticks: below one it is 0. */
	if (!info->rttmin_ms || info->rtt_ms < info->rttmin_ms)
		info->rttmin_ms = info->rtt_ms;
	info->rate = status.sstat_primary.spinfo_cwnd /
		(info->rtt_ms > 1 ? info->rtt_ms : 1) * 1e3;
	info->retransmits = (uint32_t)stats.sas_rtxchunks;
	info->segments = stats.sas_ouodchunks + stats.sas_oodchunks +
		stats.sas_rtxchunks;
	if (!info->unsent && !info->in_flight && is_empty(p))
		pipe_idles(p, true);
}

/* To a socket that was accepted while its association ended nobody may ever say so. */
static bool is_gone(const struct pipe *p)
{
	struct sctp_status status = { 0 };
	socklen_t len = sizeof(status);

	return getsockopt(p->fd, SOL_SCTP, SCTP_STATUS, &status, &len) < 0 &&
	       errno == EINVAL;
}

/* Zero-window probes are answered by SACKs too: whoever is there is heard. */
static bool is_unheard(struct pipe *p, int64_t now, int64_t limit)
{
	struct sctp_sent *s = p->sctp;

	if (is_gone(p) && !p->end_error)
		p->end_error = -ENOTCONN;
	look_sctp(p);
	if (!p->info.in_flight) {
		p->waiting_since = 0;
		return false;
	}
	if (!p->waiting_since || s->sacks != s->heard) {
		s->heard = s->sacks;
		p->waiting_since = now;
	}
	return now - p->waiting_since >= limit;
}

/* --- out --- */

struct letter {
	struct iovec iov;
	uint32_t counted;	/* messages that it counts as: 1 or 0 */
	union {
		char buf[CMSG_SPACE(sizeof(struct sctp_sndinfo))];
		struct cmsghdr align;
	} control;
};

/* @count: its own, or 0. */
static void address(const struct pipe *p, const struct run *run,
		    uint32_t count, struct letter *l, struct msghdr *mh)
{
	bool any_order = run->heard && !p->in_order;
	struct sctp_sndinfo info = {
		.snd_sid = p->in_order ? 0 :
			(uint16_t)(run->id % p->sctp->streams),
		.snd_flags = any_order ? SCTP_UNORDERED : 0,
		.snd_ppid = htonl(count),
	};
	struct cmsghdr *cm;

	*mh = (struct msghdr){
		.msg_iov = &l->iov, .msg_iovlen = 1,
		.msg_control = l->control.buf,
		.msg_controllen = sizeof(l->control.buf),
	};
	cm = CMSG_FIRSTHDR(mh);
	cm->cmsg_level = IPPROTO_SCTP;
	cm->cmsg_type = SCTP_SNDINFO;
	cm->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(cm), &info, sizeof(info));
}

static void note_sent(struct pipe *p, size_t len)
{
	struct sctp_sent *s = p->sctp;
	size_t left = len;

	p->tx_bytes += len;
	while (left) {
		size_t part = left < p->info.mss ? left : p->info.mss;

		s->bytes += part;
		s->end[++s->chunks % SENT] = (uint32_t)s->bytes;
		left -= part;
	}
}

/* The messages of @run that are left, each one of the socket's. */
static int write_messages(struct pipe *p, struct run *run)
{
	struct letter letter[RUN_MESSAGES];
	struct mmsghdr mm[RUN_MESSAGES];
	uint32_t count = run->count;
	unsigned int n = 0, i;
	size_t at = run->sent;
	int done, len;

	while (at < run->len && n < RUN_MESSAGES) {
		struct wire_msg msg;

		len = wire_read_up_to(run->buf + at, run->len - at,
				      WIRE_LARGE_MAX, &msg);
		letter[n].iov.iov_base = run->buf + at;
		letter[n].iov.iov_len = (size_t)len;
		letter[n].counted = run->count && wire_ext_counts(&msg);
		address(p, run, letter[n].counted ? count : 0, &letter[n],
			&mm[n].msg_hdr);
		count += letter[n].counted;
		at += (size_t)len;
		n++;
	}
	done = sendmmsg(p->fd, mm, n, MSG_NOSIGNAL);
	for (i = 0; done > 0 && i < (unsigned int)done; i++) {
		pipe_wrote(p, run, letter[i].iov.iov_len);
		run->count += letter[i].counted;
		note_sent(p, letter[i].iov.iov_len);
	}
	return done < 0 ? -errno : 0;
}

/* It goes on later. */
static bool passes(int err)
{
	return err == -EAGAIN || err == -EINTR || sock_is_shortage(-err);
}

static int write_sctp(struct pipe *p, struct run *run)
{
	while (run->sent < run->len) {
		int err = write_messages(p, run);

		if (err && !passes(err) && !p->end_error)
			p->end_error = err;
		if (err)
			return err == -EINTR ? -EAGAIN : err;
	}
	return 0;
}

/* --- in --- */

/*
 * A whole user message in @buf: one message, no more and no less. False: stop
 * reading.
 */
static bool take_letter(struct pipe *p, const uint8_t *buf, size_t len)
{
	uint64_t offset = p->rx_bytes - len;
	struct wire_msg msg;
	char what[80];
	int n = wire_read_up_to(buf, len, pipe_largest(p->shared), &msg);

	if (n > 0 && (size_t)n == len)
		return pipe_give(p, &msg, offset);
	if (n < 0) {
		pipe_break(p, &msg, offset);
		return false;
	}
	if (n)
		snprintf(what, sizeof(what), "a message of %d bytes in %zu bytes of SCTP",
			 n, len);
	else
		snprintf(what, sizeof(what), "no whole message in %zu bytes of SCTP",
			 len);
	pipe_tear(p, what, offset);
	return false;
}

/* A notification, which only shut_sctp() asks for: has it closed? */
static bool has_closed(const uint8_t *buf, size_t len)
{
	struct sctp_assoc_change change;

	if (len < sizeof(change))
		return false;
	memcpy(&change, buf, sizeof(change));
	return change.sac_type == SCTP_ASSOC_CHANGE &&
	       (change.sac_state == SCTP_SHUTDOWN_COMP ||
		change.sac_state == SCTP_COMM_LOST);
}

static uint32_t ppid_of(struct msghdr *mh)
{
	struct cmsghdr *cm = CMSG_FIRSTHDR(mh);
	struct sctp_rcvinfo info;

	if (!cm || cm->cmsg_level != IPPROTO_SCTP ||
	    cm->cmsg_type != SCTP_RCVINFO ||
	    cm->cmsg_len < CMSG_LEN(sizeof(info)))
		return 0;
	memcpy(&info, CMSG_DATA(cm), sizeof(info));
	return ntohl(info.rcv_ppid);
}

/*
 * One user message, or a part of it, behind what came of it before; @buf has
 * room for the longest and a byte. 1: go on, 0: that was all, -1: the end.
 */
static int read_letter(struct pipe *p, uint8_t *buf, size_t *used)
{
	union {
		char buf[CMSG_SPACE(sizeof(struct sctp_rcvinfo))];
		struct cmsghdr align;
	} control;
	size_t had = p->partial.len, most = pipe_largest(p->shared);
	struct iovec iov = { buf + had, most + 1 - had };
	struct msghdr mh = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t n = recvmsg(p->fd, &mh, 0);
	size_t len = had + (size_t)n;

	*used = 0;
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		if (!p->end_error)
			return 0;
		pipe_end(p, p->end_error);
		return -1;
	}
	if (n <= 0) {
		pipe_end(p, n ? -errno : 0);
		return -1;
	}
	if (mh.msg_flags & MSG_NOTIFICATION) {
		if (!has_closed(buf + had, (size_t)n))
			return 1;
		pipe_end(p, 0);
		return -1;
	}
	partial_copy(&p->partial, buf);
	p->rx_bytes += (uint64_t)n;
	if (!had)
		p->ppid = ppid_of(&mh);
	if (len > most) {
		pipe_tear(p, "more than any message has in one of SCTP's",
			  p->rx_bytes - len);
		return -1;
	}
	if (!partial_set(&p->partial, buf, mh.msg_flags & MSG_EOR ? 0 : len,
			 most)) {
		pipe_end(p, -ENOMEM);
		return -1;
	}
	if (p->partial.len)
		return 1;
	*used = len;
	return take_letter(p, buf, len) ? 1 : -1;
}

/* There is no order between what comes first and what is left: @most says little. */
static size_t read_sctp(struct pipe *p, size_t most)
{
	struct pipe_shared *shared = p->shared;
	uint64_t before = p->rx_bytes;
	size_t used = 0;
	unsigned int i;
	int more = 1;

	for (i = 0; i < READS && more > 0; i++) {
		if (shared->scratch_size - shared->scratch_used <=
		    pipe_largest(shared))
			break;
		more = read_letter(p, shared->scratch + shared->scratch_used,
				   &used);
		shared->scratch_used += used;
	}
	return more > 0 ? most : (size_t)(p->rx_bytes - before);
}

/* --- life --- */

/* Without SCTP_RECVRCVINFO no message of the extension would have a count. */
static int open_sctp(struct pipe *p)
{
	struct sctp_status status;
	int on = 1, err;

	err = set(p->fd, SCTP_RECVRCVINFO, &on, sizeof(on));
	if (err)
		return err;
	p->sctp = calloc(1, sizeof(*p->sctp));
	if (!p->sctp)
		return -ENOMEM;
	p->sctp->streams = 1;
	if (ask_status(p, &status) && status.sstat_outstrms)
		p->sctp->streams = status.sstat_outstrms;
	set(p->fd, SCTP_NODELAY, &on, sizeof(on));
	return 0;
}

static void close_sctp(struct pipe *p)
{
	free(p->sctp);
	p->sctp = NULL;
}

/*
 * SCTP knows no half-close: the other end's kernel sends what it still has and
 * closes too. At this end no read returns 0 then: the notification tells.
 */
static void shut_sctp(struct pipe *p)
{
	struct sctp_event event = {
		.se_type = SCTP_ASSOC_CHANGE, .se_on = 1,
	};

	set(p->fd, SCTP_EVENT, &event, sizeof(event));
	shutdown(p->fd, SHUT_WR);
}

/* There is no such mark for SCTP. */
static void allow_sctp(struct pipe *p)
{
	(void)p;
}

const struct carrier carrier_sctp = {
	.open = open_sctp,
	.close = close_sctp,
	.look_at_queues = look_sctp,
	.look = look_sctp,
	.allow = allow_sctp,
	.write = write_sctp,
	.read = read_sctp,
	.is_unheard = is_unheard,
	.shut = shut_sctp,
};
