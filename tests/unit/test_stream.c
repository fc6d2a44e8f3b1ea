/* SPDX-License-Identifier: MIT */
/*
 * What the kernel says of a stream: it counts segments that are lost or arrived behind a gap, and
 * a message need not fill one. The kernel is this file.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cmocka.h>

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>

#include "mux/options/options.h"
#include "mux/pipe/carrier.h"
#include "mux/pipe/pipe.h"

enum { MSS = 1448, MESSAGE = 100 };

static struct {
	struct tcp_info tcp;
	int outq, unsent;	/* bytes */
} kernel;

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	(void)fd;
	assert_int_equal(level, IPPROTO_TCP);
	assert_int_equal(name, TCP_INFO);
	memcpy(value, &kernel.tcp, *len);
	return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;

	(void)fd;
	va_start(args, request);
	*va_arg(args, int *) = request == SIOCOUTQ ? kernel.outq : kernel.unsent;
	va_end(args);
	return 0;
}

/* So many small messages were written, each in a segment of its own; then it is looked. */
static void look(struct pipe *p, struct settings *settings, unsigned int messages)
{
	settings_init(settings);
	*p = (struct pipe){
		.settings = settings, .carrier = carrier_of(TRANSPORT_TCP),
		.tx_bytes = (uint64_t)messages * MESSAGE,
	};
	kernel.tcp.tcpi_snd_mss = MSS;
	p->carrier->look(p);
}

static void small_segments_are_no_more_than_was_written(void **state)
{
	struct settings settings;
	struct pipe p;

	(void)state;
	kernel.tcp = (struct tcp_info){
		.tcpi_unacked = 4, .tcpi_sacked = 3, .tcpi_lost = 1,
	};
	kernel.outq = 4 * MESSAGE;
	kernel.unsent = 0;
	look(&p, &settings, 4);
	assert_int_equal(pipe_outstanding(&p), 4 * MESSAGE);
	assert_int_equal(p.info.astray, 4 * MESSAGE);
	assert_int_equal(p.info.in_flight, 0);
	/* Those before them have arrived. */
	look(&p, &settings, 20);
	assert_int_equal(pipe_arrived(&p), 16 * MESSAGE);
}

static void what_was_not_sent_is_not_lost(void **state)
{
	struct settings settings;
	struct pipe p;

	(void)state;
	kernel.tcp = (struct tcp_info){
		.tcpi_unacked = 2, .tcpi_lost = 2, .tcpi_retrans = 1,
	};
	kernel.outq = 5 * MESSAGE;
	kernel.unsent = 3 * MESSAGE;
	look(&p, &settings, 5);
	assert_int_equal(p.info.unsent, 3 * MESSAGE);
	assert_int_equal(p.info.astray, 2 * MESSAGE);
	assert_int_equal(pipe_outstanding(&p), 5 * MESSAGE);
}

/* Between the two questions all was acknowledged. */
static void what_is_acknowledged_is_lost_no_more(void **state)
{
	struct settings settings;
	struct pipe p;

	(void)state;
	kernel.tcp = (struct tcp_info){ .tcpi_unacked = 1, .tcpi_lost = 1 };
	kernel.outq = kernel.unsent = 0;
	look(&p, &settings, 1);
	assert_int_equal(pipe_outstanding(&p), 0);
	assert_int_equal(pipe_arrived(&p), MESSAGE);
}

static void of_full_segments_those_in_flight_are_left(void **state)
{
	struct settings settings;
	struct pipe p;

	(void)state;
	kernel.tcp = (struct tcp_info){
		.tcpi_unacked = 10, .tcpi_sacked = 2, .tcpi_lost = 1,
	};
	kernel.outq = 10 * MSS;
	kernel.unsent = 0;
	look(&p, &settings, 1000);
	assert_int_equal(p.info.astray, 3 * MSS);
	assert_int_equal(p.info.in_flight, 7 * MSS);
	assert_int_equal(pipe_outstanding(&p), 10 * MSS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_segments_are_no_more_than_was_written),
		cmocka_unit_test(what_was_not_sent_is_not_lost),
		cmocka_unit_test(what_is_acknowledged_is_lost_no_more),
		cmocka_unit_test(of_full_segments_those_in_flight_are_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
