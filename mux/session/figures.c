/* SPDX-License-Identifier: MIT */
#include "figures.h"

#include <inttypes.h>
#include <string.h>

#include "../path/aggregate.h"
#include "../pipe/pipe.h"
#include "queues.h"
#include "stats.h"

#define FIELD(type, field) \
	offsetof(struct type, field), sizeof(((struct type *)NULL)->field)
#define NOW(type, name, field, help) \
	{ name, help, false, false, FIELD(type, field) }
#define EVER(type, name, field, help) \
	{ name, help, true, false, FIELD(type, field) }
#define FRACTION(type, name, field, help) \
	{ name, help, false, true, FIELD(type, field) }
#define END { NULL, NULL, false, false, 0, 0 }

const struct figure pipe_figures[] = {
	FRACTION(pipe, "rtt_ms", info.rtt_ms, "Smoothed round trip."),
	FRACTION(pipe, "rttmin_ms", info.rttmin_ms, "Smallest round trip."),
	NOW(pipe, "cwnd", info.cwnd, "Congestion window, in segments."),
	NOW(pipe, "mss", info.mss, "A segment, in bytes."),
	NOW(pipe, "unsent", info.unsent,
	    "Bytes in the socket that were not sent yet."),
	NOW(pipe, "in_flight", info.in_flight,
	    "Bytes sent and not acknowledged."),
	NOW(pipe, "allowance", allowance,
	    "Bytes that late binding lets it have unsent."),
	EVER(pipe, "tx_bytes", tx_bytes,
	     "Bytes given to pipes, headers included."),
	EVER(pipe, "rx_bytes", rx_bytes,
	     "Bytes that came by pipes, headers included."),
	EVER(pipe, "tx_messages", tx_messages, "Messages given to pipes."),
	EVER(pipe, "rx_messages", rx_messages, "Messages that came by pipes."),
	EVER(pipe, "tx_acks", tx_acks,
	     "The extension's ACKs among the messages given to pipes."),
	EVER(pipe, "tx_ack_bytes", tx_ack_bytes, "Bytes of these ACKs."),
	EVER(pipe, "tx_copies", tx_copies,
	     "Copies among them, of messages overdue on another pipe."),
	EVER(pipe, "retransmits", info.retransmits,
	     "Segments (SCTP: chunks) that were sent again."),
	EVER(pipe, "segments", info.segments,
	     "Segments (SCTP: chunks) with data that were sent."),
	END,
};

const struct figure aggregate_figures[] = {
	EVER(aggregate, "rounds", rounds, "Measurements of the path."),
	EVER(aggregate, "refusals", waits,
	     "Times that the limit of what pipes hold together was in the way."),
	EVER(aggregate, "yields", yields,
	     "Times that this limit gave way to others' queues."),
	END,
};

const struct figure counts_figures[] = {
	EVER(stats_counts, "duplicates", duplicates,
	     "Messages that had come before."),
	EVER(stats_counts, "late", late,
	     "Messages for a connection that had ended."),
	EVER(stats_counts, "early_dropped", early_dropped,
	     "Early data beyond its limit."),
	EVER(stats_counts, "reorder_limit", reorder_limit,
	     "Connections reset because too much was out of order."),
	EVER(stats_counts, "gap_limit", gap_limit,
	     "Connections reset because a message was missing for too long."),
	EVER(stats_counts, "queue_limit", queue_limit,
	     "Connections reset because too much was in order and not taken."),
	EVER(stats_counts, "pauses", pauses, "Times the pipes paused."),
	EVER(stats_counts, "protocol", protocol, "Malformed messages."),
	EVER(stats_counts, "unrecorded", unrecorded,
	     "Connections that ended without a record of --stats."),
	EVER(stats_counts, "dropped", dropped,
	     "Messages of the extension that were stepped over."),
	EVER(stats_counts, "stale", stale,
	     "Of these, those that came too late to tell anything."),
	EVER(stats_counts, "again", again,
	     "Messages that were sent again on another pipe."),
	EVER(stats_counts, "again_bytes", again_bytes,
	     "Bytes of these, headers included."),
	EVER(stats_counts, "copies", copies,
	     "Messages sent a second time because they were overdue."),
	EVER(stats_counts, "hints_sent", hints_sent,
	     "HINTs sent, of connections' bytes that the other end sends."),
	EVER(stats_counts, "hints_received", hints_received,
	     "HINTs that came and were heeded."),
	EVER(stats_counts, "hints_dropped", hints_dropped,
	     "HINTs dropped: for no connection, of too many bytes, or late, as behind a copy of its OPEN."),
	EVER(stats_counts, "reinjected", reinjected,
	     "Messages that --path-policy or --reinject sent a second time."),
	EVER(stats_counts, "reinjected_bytes", reinjected_bytes,
	     "Bytes of these, headers included."),
	EVER(stats_counts, "too_big", too_big,
	     "Times that LP was told what the path of a flow takes."),
	EVER(stats_counts, "datagrams_sent", datagrams.sent,
	     "Datagrams of flows given to pipes."),
	EVER(stats_counts, "datagrams_received", datagrams.received,
	     "Datagrams of flows that came by pipes."),
	EVER(stats_counts, "datagrams_stale", datagrams.stale,
	     "Datagrams dropped because they had waited too long."),
	EVER(stats_counts, "datagrams_crowded", datagrams.crowded,
	     "Datagrams dropped because too many waited."),
	EVER(stats_counts, "datagrams_large", datagrams.large,
	     "Datagrams dropped because no message holds them."),
	EVER(stats_counts, "datagrams_stray", datagrams.stray,
	     "Datagrams dropped because they were of no flow."),
	EVER(stats_counts, "datagrams_denied", datagrams.denied,
	     "Datagrams dropped by a rule."),
	EVER(stats_counts, "datagrams_narrow", datagrams.narrow,
	     "Datagrams dropped because a path takes less in one packet."),
	EVER(stats_counts, "datagrams_unsent", datagrams.unsent,
	     "Datagrams that a UDP socket did not take, or without an address."),
	END,
};

_Static_assert(sizeof(pipe_figures) / sizeof(*pipe_figures) <= FIGURES_MAX &&
	       sizeof(counts_figures) / sizeof(*counts_figures) <= FIGURES_MAX,
	       "there is room for the sum of each");

const struct figure queues_figures[] = {
	NOW(queues, "connections", connections, "Connections and flows."),
	NOW(queues, "connecting", connecting, "That are not connected yet."),
	NOW(queues, "missing", missing, "That wait for a missing message."),
	NOW(queues, "taking", taking,
	    "Whose application or server takes no more now."),
	NOW(queues, "credit", credit,
	    "With bytes that the other end takes none of now."),
	NOW(queues, "sending", sending, "With bytes whose turn is to come."),
	NOW(queues, "ending", ending, "That have ended for the pipes."),
	NOW(queues, "idle", idle, "That wait for nothing of these."),
	NOW(queues, "flows", flows, "Of them, flows of datagrams."),
	NOW(queues, "queued", queued, "Bytes in order and not taken."),
	NOW(queues, "early", early, "Bytes that came before their turn."),
	NOW(queues, "kept", kept,
	    "Bytes kept until the other end has acknowledged them."),
	END,
};

static uint64_t whole(const struct figure *f, const void *of)
{
	const char *field = (const char *)of + f->offset;
	uint64_t large;
	uint32_t small;

	if (f->size == sizeof(small)) {
		memcpy(&small, field, sizeof(small));
		return small;
	}
	memcpy(&large, field, sizeof(large));
	return large;
}

void figure_print(const struct figure *f, const void *of, FILE *out)
{
	double fraction;

	if (!f->fraction) {
		fprintf(out, "%" PRIu64, whole(f, of));
		return;
	}
	memcpy(&fraction, (const char *)of + f->offset, sizeof(fraction));
	fprintf(out, "%.3f", fraction);
}

void sums_add(uint64_t sum[FIGURES_MAX], const struct figure *figures,
	      const void *of)
{
	unsigned int i;

	for (i = 0; figures[i].name; i++) {
		if (figures[i].counts)
			sum[i] += whole(&figures[i], of);
	}
}
