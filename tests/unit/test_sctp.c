/* SPDX-License-Identifier: MIT */
/*
 * Pipes over SCTP on a kernel that need not have it: the few calls that the
 * carrier makes are answered by the script of a test.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <linux/sctp.h>
#include <linux/sock_diag.h>

#include "mux/options/options.h"
#include "mux/pipe/carrier.h"
#include "mux/pipe/pipe.h"
#include "mux/wire/run.h"
#include "mux/wire/wire.h"
#include "mux/wire/wire_ext.h"

enum { SCRATCH = 256 * 1024, PIECES = 80, MOST = 200000,
       LETTERS = 64, MSS = 1452 };

static struct piece {		/* what a recvmsg() brings */
	const void *bytes;
	size_t len;
	int flags, err;
	uint32_t ppid;
} piece[PIECES];

static struct {
	unsigned int pieces, taken;
	struct { size_t len; struct sctp_sndinfo info; } letter[LETTERS];
	unsigned int letters, room;	/* the socket's, in messages */
	struct sctp_status status;
	struct sctp_assoc_stats stats;
	uint32_t queued;
} kernel;

static struct {
	unsigned int messages;
	uint16_t id[PIECES];
	uint32_t ppid[PIECES];
	size_t len[PIECES];
	uint64_t offset[PIECES];
	char broken[200], detail[200];
	int ended;
	bool over;
} seen;

static struct pipe_shared shared;
static struct settings settings;
static struct pipe p;

/* --- the kernel --- */

static void tell_ppid(struct msghdr *mh, uint32_t ppid)
{
	struct sctp_rcvinfo info = { .rcv_ppid = htonl(ppid) };
	struct cmsghdr *cm = CMSG_FIRSTHDR(mh);

	assert_true(mh->msg_controllen >= CMSG_SPACE(sizeof(info)));
	cm->cmsg_level = IPPROTO_SCTP;
	cm->cmsg_type = SCTP_RCVINFO;
	cm->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(cm), &info, sizeof(info));
}

ssize_t recvmsg(int fd, struct msghdr *mh, int flags)
{
	struct piece *now = &piece[kernel.taken];
	size_t room = mh->msg_iov[0].iov_len;

	(void)fd, (void)flags;
	if (kernel.taken == kernel.pieces) {
		errno = EAGAIN;
		return -1;
	}
	if (now->err) {
		kernel.taken++;
		errno = now->err;
		return -1;
	}
	tell_ppid(mh, now->ppid);
	if (now->len > room) {
		memcpy(mh->msg_iov[0].iov_base, now->bytes, room);
		now->bytes = (const uint8_t *)now->bytes + room;
		now->len -= room;
		mh->msg_flags = 0;
		return (ssize_t)room;
	}
	memcpy(mh->msg_iov[0].iov_base, now->bytes, now->len);
	mh->msg_flags = now->flags;
	kernel.taken++;
	return (ssize_t)now->len;
}

int sendmmsg(int fd, struct mmsghdr *mm, unsigned int n, int flags)
{
	unsigned int i;

	(void)fd, (void)flags;
	for (i = 0; i < n && kernel.room; i++, kernel.room--) {
		struct cmsghdr *cm = CMSG_FIRSTHDR(&mm[i].msg_hdr);

		assert_true(kernel.letters < LETTERS);
		assert_int_equal(cm->cmsg_type, SCTP_SNDINFO);
		memcpy(&kernel.letter[kernel.letters].info, CMSG_DATA(cm),
		       sizeof(struct sctp_sndinfo));
		kernel.letter[kernel.letters++].len =
			mm[i].msg_hdr.msg_iov[0].iov_len;
	}
	if (i)
		return (int)i;
	errno = EAGAIN;
	return -1;
}

int getsockopt(int fd, int level, int name, void *restrict value,
	       socklen_t *restrict len)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };

	(void)fd;
	if (level == SOL_SOCKET && name == SO_MEMINFO) {
		memory[SK_MEMINFO_WMEM_QUEUED] = kernel.queued;
		memcpy(value, memory, *len);
	} else if (name == SCTP_STATUS) {
		memcpy(value, &kernel.status, *len);
	} else {
		assert_int_equal(name, SCTP_GET_ASSOC_STATS);
		memcpy(value, &kernel.stats, *len);
	}
	return 0;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	(void)fd, (void)level, (void)name, (void)value, (void)len;
	return 0;
}

/* --- the session --- */

static bool take(struct pipe *pipe, const struct wire_msg *msg, uint64_t offset)
{
	seen.id[seen.messages] = msg->id;
	seen.ppid[seen.messages] = pipe->ppid;
	seen.len[seen.messages] = msg->body_len;
	seen.offset[seen.messages++] = offset;
	return true;
}

static void broken(struct pipe *pipe, const char *what, const char *detail)
{
	(void)pipe;
	strcpy(seen.broken, what);
	strcpy(seen.detail, detail);
}

static void ended(struct pipe *pipe, int err)
{
	(void)pipe;
	seen.over = true;
	seen.ended = err;
}

static const struct pipe_ops ops = {
	.message = take, .broken = broken, .ended = ended,
};

static int set_up(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	memset(&seen, 0, sizeof(seen));
	memset(&p, 0, sizeof(p));
	settings_init(&settings);
	shared.scratch = malloc(SCRATCH);
	shared.scratch_size = SCRATCH;
	p.partial = malloc(WIRE_MESSAGE_MAX);
	if (!shared.scratch || !p.partial)
		return -1;
	p.ops = &ops;
	p.shared = &shared;
	p.settings = &settings;
	p.transport = TRANSPORT_SCTP;
	p.carrier = &carrier_sctp;
	p.fd = p.watch.fd = -1;
	kernel.status.sstat_fragmentation_point = MSS;
	kernel.status.sstat_outstrms = 16;
	kernel.status.sstat_primary.spinfo_cwnd = 10 * MSS;
	kernel.status.sstat_primary.spinfo_srtt = 50;
	kernel.room = LETTERS;
	if (carrier_sctp.open(&p))
		return -1;
	carrier_sctp.look(&p);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	carrier_sctp.close(&p);
	free(p.partial);
	free(shared.scratch);
	return 0;
}

/* --- in --- */

static uint8_t bytes[3 * WIRE_MESSAGE_MAX];

/* A data message of connection @id in @bytes; its length. */
static size_t message(uint8_t *at, uint16_t id, size_t payload)
{
	memset(at + WIRE_HEADER, 'x', payload);
	return wire_put_data(at, id, 1, payload) + payload;
}

/* Nobody needs what was read before. The bytes, or as many as were asked for. */
static size_t reads(struct pipe *pipe)
{
	pipe->shared->scratch_used = 0;
	return carrier_sctp.read(pipe, MOST);
}

static void comes(const void *data, size_t len, int flags)
{
	piece[kernel.pieces++] = (struct piece){ data, len, flags, 0, 0 };
}

static void each_letter_is_a_message(void **state)
{
	static uint8_t second[64];
	size_t a = message(bytes, 7, 100), b = message(second, 9, 1);

	(void)state;
	comes(bytes, a, MSG_EOR);
	comes(second, b, MSG_EOR);
	reads(&p);
	assert_int_equal(seen.messages, 2);
	assert_int_equal(seen.id[0], 7);
	assert_int_equal(seen.id[1], 9);
	assert_int_equal(seen.len[0], 100);
	assert_int_equal(seen.offset[1], a);
	assert_int_equal(p.rx_bytes, a + b);
	assert_int_equal(p.rx_messages, 2);
}

/* Every way to cut a message in three, with the end of a read in between. */
static void a_message_may_come_in_parts(void **state)
{
	size_t len = message(bytes, 3, 40), cut, again;

	(void)state;
	for (cut = 1; cut < len - 1; cut++) {
		for (again = cut + 1; again < len; again++) {
			memset(&seen, 0, sizeof(seen));
			kernel.pieces = kernel.taken = 0;
			comes(bytes, cut, 0);
			comes(bytes + cut, again - cut, 0);
			reads(&p);
			assert_int_equal(seen.messages, 0);
			assert_int_equal(p.partial_len, again);
			comes(bytes + again, len - again, MSG_EOR);
			comes(bytes, len, MSG_EOR);
			reads(&p);
			assert_int_equal(seen.messages, 2);
			assert_int_equal(seen.len[0], 40);
			assert_int_equal(p.partial_len, 0);
			assert_int_equal(seen.offset[1] - seen.offset[0], len);
		}
	}
	assert_false(seen.over);
	assert_string_equal(seen.broken, "");
}

/* Of one that comes in parts the first tells; and what has none has 0. */
static void each_letter_has_its_ppid(void **state)
{
	size_t len = message(bytes, 3, 40);
	unsigned int i;

	(void)state;
	comes(bytes, 20, 0);
	comes(bytes + 20, len - 20, MSG_EOR);
	comes(bytes, len, MSG_EOR);
	comes(bytes, len, MSG_EOR);
	for (i = 0; i < 3; i++)
		piece[i].ppid = (uint32_t[]){ 0x01020304, 9, UINT32_MAX }[i];
	reads(&p);
	assert_int_equal(seen.messages, 3);
	assert_int_equal(seen.ppid[0], 0x01020304);
	assert_int_equal(seen.ppid[1], UINT32_MAX);
	assert_int_equal(seen.ppid[2], 0);
}

static void the_longest_message_has_room(void **state)
{
	size_t len = message(bytes, 1, WIRE_PAYLOAD_MAX);
	int i;

	(void)state;
	/* More than the buffer holds: what is left comes with the next read. */
	for (i = 0; i < 70; i++)
		comes(bytes, len, MSG_EOR);
	assert_int_equal(reads(&p), MOST);
	assert_in_range(seen.messages, 50, 64);
	assert_in_range(reads(&p), 6 * len, 20 * len);
	assert_int_equal(seen.messages, 70);
}

static void assert_broken(size_t len, int flags, const char *what)
{
	memset(&seen, 0, sizeof(seen));
	kernel.pieces = kernel.taken = 0;
	p.partial_len = 0;
	comes(bytes, len, flags);
	reads(&p);
	assert_non_null(strstr(seen.broken, what));
	assert_non_null(strstr(seen.detail, "length: "));
	assert_int_equal(seen.messages, 0);
}

static void what_is_no_message_breaks_the_pipe(void **state)
{
	size_t len;

	(void)state;
	len = message(bytes, 1, 100);
	assert_broken(1, MSG_EOR, "no whole message in 1 bytes");
	assert_broken(WIRE_HEADER, MSG_EOR, "no whole message in 8 bytes");
	assert_broken(len - 1, MSG_EOR, "no whole message in 107 bytes");
	assert_broken(len + 1, MSG_EOR, "of 108 bytes in 109 bytes of SCTP");
	/* Two in one. */
	message(bytes + len, 1, 100);
	assert_broken(2 * len, MSG_EOR, "of 108 bytes in 216 bytes of SCTP");
	memset(bytes, 0, sizeof(bytes));
	assert_broken(200, MSG_EOR, "impossible length 0");
	/* Longer than any, whether or not its end is there. */
	assert_broken(WIRE_MESSAGE_MAX + 1, MSG_EOR, "more than any message");
	assert_broken(sizeof(bytes), MSG_EOR, "more than any message");
	assert_broken(WIRE_MESSAGE_MAX + 1, 0, "more than any message");
}

static void ends_are_told(void **state)
{
	(void)state;
	comes(bytes, message(bytes, 1, 5), MSG_EOR);
	comes(bytes, 0, 0);
	reads(&p);
	assert_int_equal(seen.messages, 1);
	assert_true(seen.over);
	assert_int_equal(seen.ended, 0);
	piece[kernel.pieces++].err = ECONNRESET;
	reads(&p);
	assert_int_equal(seen.ended, -ECONNRESET);
}

static void a_shutdown_is_told_by_notification(void **state)
{
	struct sctp_assoc_change change = {
		.sac_type = SCTP_ASSOC_CHANGE, .sac_state = SCTP_RESTART,
		.sac_length = sizeof(change),
	};
	struct sctp_assoc_change over = change;

	(void)state;
	over.sac_state = SCTP_SHUTDOWN_COMP;
	comes(&change, sizeof(change), MSG_NOTIFICATION | MSG_EOR);
	comes(bytes, message(bytes, 1, 5), MSG_EOR);
	reads(&p);
	assert_false(seen.over);
	assert_int_equal(seen.messages, 1);
	assert_int_equal(p.rx_bytes, 13);
	comes(&over, sizeof(over), MSG_NOTIFICATION | MSG_EOR);
	reads(&p);
	assert_true(seen.over);
	assert_int_equal(seen.ended, 0);
}

/* --- out --- */

static struct run *make_run(uint16_t id, unsigned int n, size_t payload,
			    bool heard)
{
	static struct run_pool pool;
	struct run *run = run_get(&pool);

	assert_non_null(run);
	run->id = id;
	run->heard = heard;
	while (n--) {
		run->len += message(run->buf + run->len, id, payload);
		run->messages++;
	}
	return run;
}

static void streams_go_by_connection(void **state)
{
	struct run *run = make_run(35, 3, 100, true);
	unsigned int i;

	(void)state;
	assert_int_equal(carrier_sctp.write(&p, run), 0);
	assert_int_equal(run->sent, run->len);
	assert_int_equal(kernel.letters, 3);
	for (i = 0; i < 3; i++) {
		assert_int_equal(kernel.letter[i].len, 108);
		assert_int_equal(kernel.letter[i].info.snd_sid, 35 % 16);
		assert_int_equal(kernel.letter[i].info.snd_flags,
				 SCTP_UNORDERED);
		assert_int_equal(kernel.letter[i].info.snd_ppid, 0);
	}
	assert_int_equal(p.tx_bytes, run->len);
	free(run);
}

/* Until the other end was heard data must not come before the SYN. */
static void a_connection_begins_in_order(void **state)
{
	struct run *run = make_run(5, 2, 10, false);

	(void)state;
	assert_int_equal(carrier_sctp.write(&p, run), 0);
	assert_int_equal(kernel.letter[0].info.snd_flags, 0);
	assert_int_equal(kernel.letter[1].info.snd_flags, 0);
	free(run);
}

/* An ACK, which does not count, and a WINDOW, which does, in front of data. */
static struct run *make_control_run(void)
{
	struct wire_ext ack = { .type = WIRE_ACK };
	struct wire_ext window = { .type = WIRE_WINDOW, .window.id = 1 };
	struct run *run = make_run(0, 0, 0, true);

	run->len += wire_ext_put(run->buf, &ack);
	run->len += wire_ext_put(run->buf + run->len, &window);
	run->len += message(run->buf + run->len, 7, 10);
	run->messages = 3;
	run->uncounted = 1;
	run->count = 0xfffffff0;
	return run;
}

static uint32_t ppid_sent(unsigned int i)
{
	return ntohl(kernel.letter[i].info.snd_ppid);
}

/* Also where the socket takes a run in parts. */
static void a_run_s_count_goes_with_what_counts(void **state)
{
	unsigned int room;

	(void)state;
	for (room = 1; room <= 3; room++) {
		struct run *run = make_control_run();

		kernel.letters = 0;
		kernel.room = room;
		carrier_sctp.write(&p, run);
		kernel.room = 3;
		carrier_sctp.write(&p, run);
		assert_int_equal(kernel.letters, 3);
		assert_int_equal(ppid_sent(0), 0);
		assert_int_equal(ppid_sent(1), 0xfffffff0);
		assert_int_equal(ppid_sent(2), 0xfffffff1);
		free(run);
	}
}

/* Until WELCOME is known to have come nothing may overtake it. */
static void a_pipe_may_be_in_order(void **state)
{
	struct run *run = make_run(35, 2, 100, true);
	unsigned int i;

	(void)state;
	p.in_order = true;
	assert_int_equal(carrier_sctp.write(&p, run), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(kernel.letter[i].info.snd_sid, 0);
		assert_int_equal(kernel.letter[i].info.snd_flags, 0);
	}
	free(run);
}

static void a_full_socket_takes_whole_messages(void **state)
{
	struct run *run = make_run(5, 4, 10, true);

	(void)state;
	kernel.room = 3;
	assert_int_equal(carrier_sctp.write(&p, run), -EAGAIN);
	assert_int_equal(run->sent, 3 * 18);
	assert_int_equal(p.tx_bytes, 3 * 18);
	kernel.room = 1;
	assert_int_equal(carrier_sctp.write(&p, run), 0);
	assert_int_equal(kernel.letters, 4);
	free(run);
}

/* --- what the kernel tells --- */

static void send_messages(unsigned int n)
{
	struct run *run = make_run(1, n, 92, true);

	kernel.room = n;
	kernel.letters = 0;
	assert_int_equal(carrier_sctp.write(&p, run), 0);
	kernel.queued += n;
	free(run);
}

/* So many were sent for the first time in all; a SACK leaves @unacked of them. */
static void assert_queues(uint64_t sent, int unacked, size_t unsent,
			  size_t in_flight)
{
	kernel.stats.sas_ouodchunks = sent;
	if (unacked >= 0) {
		kernel.stats.sas_isacks++;
		kernel.status.sstat_unackdata = (uint16_t)unacked;
	}
	carrier_sctp.look_at_queues(&p);
	assert_int_equal(p.info.unsent, unsent);
	assert_int_equal(p.info.in_flight, in_flight);
}

static void chunks_become_bytes(void **state)
{
	(void)state;
	assert_queues(0, -1, 0, 0);
	send_messages(10);
	assert_queues(0, -1, 1000, 0);
	assert_int_equal(p.info.stuck, 1000);
	assert_queues(4, -1, 600, 400);
	assert_int_equal(p.info.stuck, 0);
	/* Two of the four are acknowledged, and two more leave by that. */
	assert_queues(6, 2, 400, 200);
	assert_queues(8, -1, 200, 400);
	assert_queues(10, -1, 0, 600);
	assert_queues(10, 0, 0, 0);
	/* The SACK was of before the last were sent; then all is. */
	send_messages(2);
	assert_queues(12, -1, 0, 200);
	kernel.queued = 0;
	assert_queues(12, -1, 0, 0);
}

static void the_window_is_in_segments(void **state)
{
	(void)state;
	kernel.stats.sas_rtxchunks = 3;
	kernel.stats.sas_oodchunks = 100;
	send_messages(10);
	carrier_sctp.look(&p);
	assert_int_equal(p.info.cwnd, 10);
	assert_int_equal(p.info.mss, MSS);
	assert_true(p.info.rtt_ms == 50 && p.info.rttmin_ms == 50);
	assert_true(p.info.rate > 0.99 * 10 * MSS / 0.05);
	assert_int_equal(p.info.retransmits, 3);
	assert_int_equal(p.info.segments, 103);
	kernel.status.sstat_primary.spinfo_srtt = 80;
	carrier_sctp.look(&p);
	assert_true(p.info.rtt_ms == 80 && p.info.rttmin_ms == 50);
}

/* Messages that were cut into more pieces, or fewer, than foreseen. */
static void counts_that_drift_are_set_right(void **state)
{
	(void)state;
	send_messages(10);
	assert_queues(13, -1, 0, 1000);
	assert_queues(13, 3, 0, 300);
	kernel.queued = 0;
	assert_queues(13, 0, 0, 0);
	send_messages(10);
	assert_queues(20, -1, 300, 700);
	assert_queues(20, 5, 300, 500);
	/* All left and acknowledged, in fewer pieces. */
	kernel.queued = 0;
	assert_queues(20, 0, 0, 0);
	send_messages(1);
	assert_queues(20, -1, 100, 0);
}

static void old_sizes_are_forgotten(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 1000; i++)
		send_messages(10);
	assert_queues(0, -1, 4095 * 100, 0);
	assert_queues(9990, -1, 1000, 4085 * 100);
	assert_queues(9990, 20, 1000, 2000);
}

static void a_message_is_one_chunk(void **state)
{
	(void)state;
	p.allowance = 1 << 20;
	assert_int_equal(pipe_payload(&p), MSS - WIRE_HEADER);
	settings.late = false;
	assert_int_equal(pipe_payload(&p), MSS - WIRE_HEADER);
	p.info.mss = 65484;
	assert_int_equal(pipe_payload(&p), WIRE_PAYLOAD_MAX);
}

static void who_sends_no_sack_is_unheard(void **state)
{
	(void)state;
	assert_false(carrier_sctp.is_unheard(&p, 1, 20));
	send_messages(5);
	kernel.stats.sas_ouodchunks = 5;
	assert_false(carrier_sctp.is_unheard(&p, 100, 20));
	assert_false(carrier_sctp.is_unheard(&p, 119, 20));
	/* Answers without room are answers. */
	kernel.stats.sas_isacks++;
	kernel.status.sstat_unackdata = 5;
	assert_false(carrier_sctp.is_unheard(&p, 125, 20));
	assert_false(carrier_sctp.is_unheard(&p, 144, 20));
	assert_true(carrier_sctp.is_unheard(&p, 145, 20));
}

#define SCTP_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCTP_TEST(each_letter_is_a_message),
		SCTP_TEST(a_message_may_come_in_parts),
		SCTP_TEST(each_letter_has_its_ppid),
		SCTP_TEST(the_longest_message_has_room),
		SCTP_TEST(what_is_no_message_breaks_the_pipe),
		SCTP_TEST(ends_are_told),
		SCTP_TEST(a_shutdown_is_told_by_notification),
		SCTP_TEST(streams_go_by_connection),
		SCTP_TEST(a_connection_begins_in_order),
		SCTP_TEST(a_run_s_count_goes_with_what_counts),
		SCTP_TEST(a_pipe_may_be_in_order),
		SCTP_TEST(a_full_socket_takes_whole_messages),
		SCTP_TEST(chunks_become_bytes),
		SCTP_TEST(the_window_is_in_segments),
		SCTP_TEST(counts_that_drift_are_set_right),
		SCTP_TEST(old_sizes_are_forgotten),
		SCTP_TEST(a_message_is_one_chunk),
		SCTP_TEST(who_sends_no_sack_is_unheard),
	};

	return cmocka_run_group_tests_name("sctp", tests, NULL, NULL);
}
