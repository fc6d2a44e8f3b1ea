/* SPDX-License-Identifier: MIT */
/* Messages of a pipe over SCTP, in and out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>

#include "mux/pipe/carrier.h"
#include "mux/wire/wire.h"
#include "mux/wire/wire_ext.h"
#include "sctp_kernel.h"

/* --- in --- */

static uint8_t bytes[3 * WIRE_MESSAGE_MAX];

/* Nobody needs what was read before. The bytes, or as many as were asked for. */
static size_t reads(struct pipe *pipe)
{
	pipe->shared->scratch_used = 0;
	return carrier_sctp.read(pipe, MOST);
}

static void comes(const void *data, size_t len, int flags)
{
	kernel.piece[kernel.pieces++] = (struct piece){ data, len, flags, 0, 0 };
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
			assert_int_equal(p.partial.len, again);
			comes(bytes + again, len - again, MSG_EOR);
			comes(bytes, len, MSG_EOR);
			reads(&p);
			assert_int_equal(seen.messages, 2);
			assert_int_equal(seen.len[0], 40);
			assert_int_equal(p.partial.len, 0);
			assert_int_equal(seen.offset[1] - seen.offset[0], len);
		}
	}
	assert_false(seen.ended);
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
		kernel.piece[i].ppid = (uint32_t[]){ 0x01020304, 9, UINT32_MAX }[i];
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
	p.partial.len = 0;
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

/* Its session agreed to large messages, and its memory is what one needs. */
static void has_large_ones(void)
{
	struct pipe_shared *shared = p.shared;

	shared->large = true;
	free(shared->scratch);
	shared->scratch_size = WIRE_LARGE_MAX + 1;
	shared->scratch = malloc(shared->scratch_size);
	assert_non_null(shared->scratch);
}

static void a_large_message_may_come_in_parts(void **state)
{
	static const size_t cuts[] = { 1, 8, 700, 4104, 4105, WIRE_LARGE_MAX - 1 };
	static uint8_t large[WIRE_LARGE_MAX + 1];
	size_t len = message(large, 3, WIRE_LARGE_PAYLOAD);
	unsigned int i;

	(void)state;
	has_large_ones();
	for (i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
		kernel.pieces = kernel.taken = 0;
		comes(large, cuts[i], 0);
		reads(&p);
		assert_int_equal(p.partial.len, cuts[i]);
		comes(large + cuts[i], len - cuts[i], MSG_EOR);
		comes(large, len, MSG_EOR);
		reads(&p);
		reads(&p);
		assert_int_equal(seen.messages, 2 * (i + 1));
		assert_int_equal(seen.len[seen.messages - 1], WIRE_LARGE_PAYLOAD);
		assert_int_equal(p.partial.len, 0);
	}
	assert_string_equal(seen.broken, "");
	/* All of it lies there, and its end does not come. */
	kernel.pieces = kernel.taken = 0;
	comes(large, len, 0);
	comes(large, 1, MSG_EOR);
	reads(&p);
	assert_int_equal(p.partial.len, len);
	reads(&p);
	assert_non_null(strstr(seen.broken, "more than any message"));
}

/* Whatever wrote it, it is one of SCTP's messages, and all of them fit in a call. */
static void large_messages_of_a_run_are_a_letter_each(void **state)
{
	struct run *run = make_run(35, 4, WIRE_LARGE_PAYLOAD, true);

	(void)state;
	assert_int_equal(carrier_sctp.write(&p, run), 0);
	assert_int_equal(kernel.letters, 4);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(kernel.letter[i].len, WIRE_LARGE_MAX);
	assert_int_equal(run->sent, run->len);
	free(run);
}

static void ends_are_told(void **state)
{
	(void)state;
	comes(bytes, message(bytes, 1, 5), MSG_EOR);
	comes(bytes, 0, 0);
	reads(&p);
	assert_int_equal(seen.messages, 1);
	assert_true(seen.ended);
	assert_int_equal(seen.end_error, 0);
	kernel.piece[kernel.pieces++].err = ECONNRESET;
	reads(&p);
	assert_int_equal(seen.end_error, -ECONNRESET);
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
	assert_false(seen.ended);
	assert_int_equal(seen.messages, 1);
	assert_int_equal(p.rx_bytes, 13);
	comes(&over, sizeof(over), MSG_NOTIFICATION | MSG_EOR);
	reads(&p);
	assert_true(seen.ended);
	assert_int_equal(seen.end_error, 0);
}

/* --- out --- */

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

/* What came before is read first. */
static void an_end_that_a_write_was_told_is_told(void **state)
{
	struct run *run = make_run(2, 1, 10, true);

	(void)state;
	kernel.room = 0;
	kernel.send_err = ENOBUFS;
	assert_int_equal(carrier_sctp.write(&p, run), -ENOBUFS);
	reads(&p);
	assert_false(seen.ended);
	kernel.send_err = ECONNRESET;
	assert_int_equal(carrier_sctp.write(&p, run), -ECONNRESET);
	kernel.send_err = EPIPE;
	assert_int_equal(carrier_sctp.write(&p, run), -EPIPE);
	comes(bytes, message(bytes, 1, 5), MSG_EOR);
	reads(&p);
	assert_int_equal(seen.messages, 1);
	assert_true(seen.ended);
	assert_int_equal(seen.end_error, -ECONNRESET);
	free(run);
}

/* What came before is read first here, too. */
static void an_end_that_nobody_was_told_is_found(void **state)
{
	(void)state;
	assert_false(carrier_sctp.is_unheard(&p, 1, NS_PER_SEC));
	reads(&p);
	assert_false(seen.ended);
	kernel.gone = true;
	comes(bytes, message(bytes, 1, 5), MSG_EOR);
	assert_false(carrier_sctp.is_unheard(&p, 2, NS_PER_SEC));
	reads(&p);
	assert_int_equal(seen.messages, 1);
	assert_true(seen.ended);
	assert_int_equal(seen.end_error, -ENOTCONN);
}

/* Or the other end would be blamed for messages without a count. */
static void without_what_tells_counts_there_is_no_pipe(void **state)
{
	(void)state;
	carrier_sctp.close(&p);
	kernel.refuses = SCTP_NODELAY;
	assert_int_equal(carrier_sctp.open(&p), 0);
	carrier_sctp.close(&p);
	kernel.refuses = SCTP_RECVRCVINFO;
	assert_int_equal(carrier_sctp.open(&p), -ENOMEM);
	assert_null(p.sctp);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCTP_TEST(each_letter_is_a_message),
		SCTP_TEST(a_message_may_come_in_parts),
		SCTP_TEST(each_letter_has_its_ppid),
		SCTP_TEST(a_large_message_may_come_in_parts),
		SCTP_TEST(large_messages_of_a_run_are_a_letter_each),
		SCTP_TEST(the_longest_message_has_room),
		SCTP_TEST(what_is_no_message_breaks_the_pipe),
		SCTP_TEST(ends_are_told),
		SCTP_TEST(a_shutdown_is_told_by_notification),
		SCTP_TEST(streams_go_by_connection),
		SCTP_TEST(a_connection_begins_in_order),
		SCTP_TEST(a_run_s_count_goes_with_what_counts),
		SCTP_TEST(a_pipe_may_be_in_order),
		SCTP_TEST(an_end_that_a_write_was_told_is_told),
		SCTP_TEST(an_end_that_nobody_was_told_is_found),
		SCTP_TEST(without_what_tells_counts_there_is_no_pipe),
		SCTP_TEST(a_full_socket_takes_whole_messages),
	};

	return cmocka_run_group_tests_name("sctp", tests, NULL, NULL);
}
