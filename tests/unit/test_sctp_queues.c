/* SPDX-License-Identifier: MIT */
/* What the kernel tells of a pipe over SCTP: chunks, which become bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mux/pipe/carrier.h"
#include "mux/wire/wire.h"
#include "sctp_kernel.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCTP_TEST(chunks_become_bytes),
		SCTP_TEST(the_window_is_in_segments),
		SCTP_TEST(counts_that_drift_are_set_right),
		SCTP_TEST(old_sizes_are_forgotten),
		SCTP_TEST(a_message_is_one_chunk),
		SCTP_TEST(who_sends_no_sack_is_unheard),
	};

	return cmocka_run_group_tests_name("sctp queues", tests, NULL, NULL);
}
