/* SPDX-License-Identifier: MIT */
/*
 * Datagrams that are gathered, over loopback. sendmmsg() is the kernel's, unless a test wants
 * an error that loopback does not have.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/addr.h"
#include "mux/base/loop.h"
#include "mux/base/sock.h"
#include "mux/base/udp_in.h"
#include "mux/base/udp_out.h"

enum { PLACES = 2, HEARD = 256, SIZE = 1200, PATIENCE_MS = 30000 };

/* Who hears, in the order in which it came. */
struct place {
	int fd;
	struct sockaddr_storage addr;
	unsigned int n;
	uint8_t heard[HEARD];	/* the first byte of each, 0 where it is empty */
	size_t len[HEARD];
};

static struct {
	struct loop *loop;
	struct udp_out *out;
	int fd;			/* what all is sent by */
	struct udp_sender one, other;
	struct place place[PLACES];
	unsigned int calls;
	unsigned int unsent[2];	/* of one, of other */
	int err;		/* that was told last */
	unsigned int narrow;	/* how often the path took less */
	int bad, bad_err;	/* a datagram that begins so is not sent: -1 none */
	int late_err;		/* the next call tells this one of an earlier datagram */
	int discover[HEARD];	/* IP_MTU_DISCOVER when one that begins so was to go */
	size_t most;		/* that several at a time may have; 0: all */
	bool old;		/* the kernel is older than UDP_SEGMENT */
} here;

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (here.old && level == IPPROTO_UDP) {
		errno = ENOPROTOOPT;
		return -1;
	}
	return (int)syscall(SYS_getsockopt, fd, level, name, value, len);
}

static int error_of(const struct msghdr *mh)
{
	size_t i;

	if (here.most && mh->msg_controllen &&
	    mh->msg_iov[0].iov_len > here.most)
		return EINVAL;
	for (i = 0; i < mh->msg_iovlen; i++) {
		const struct iovec *part = &mh->msg_iov[i];

		if (here.bad >= 0 && part->iov_len &&
		    *(const uint8_t *)part->iov_base == here.bad)
			return here.bad_err;
	}
	return 0;
}

static void note_discover(int fd, const struct mmsghdr *msg, unsigned int n)
{
	unsigned int i;
	size_t part;

	for (i = 0; i < n; i++) {
		const struct msghdr *mh = &msg[i].msg_hdr;

		for (part = 0; part < mh->msg_iovlen; part++) {
			const uint8_t *first = mh->msg_iov[part].iov_base;
			int how;
			socklen_t len = sizeof(how);

			assert_int_equal(getsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER,
						    &how, &len), 0);
			if (mh->msg_iov[part].iov_len)
				here.discover[*first] = how;
		}
	}
}

/* As the kernel: it goes up to the first that cannot be sent, and tells why if that is the first. */
int sendmmsg(int fd, struct mmsghdr *msg, unsigned int n, int flags)
{
	unsigned int i;

	here.calls++;
	for (i = 0; here.old && i < n; i++)	/* it takes no notice of that */
		msg[i].msg_hdr.msg_controllen = 0;
	note_discover(fd, msg, n);
	if (here.late_err) {
		errno = here.late_err;
		here.late_err = 0;
		return -1;
	}
	for (i = 0; i < n && !error_of(&msg[i].msg_hdr); i++)
		;
	if (!i) {
		errno = error_of(&msg[0].msg_hdr);
		return -1;
	}
	return (int)syscall(SYS_sendmmsg, fd, msg, i, flags);
}

static void one_unsent(struct udp_sender *by, int err)
{
	assert_ptr_equal(by, &here.one);
	here.unsent[0]++;
	here.err = err;
}

static void other_unsent(struct udp_sender *by, int err)
{
	assert_ptr_equal(by, &here.other);
	here.unsent[1]++;
	here.err = err;
}

static void narrow(struct udp_sender *by)
{
	(void)by;
	here.narrow++;
}

static int bound(struct sockaddr_storage *addr)
{
	socklen_t len;
	int fd;

	assert_int_equal(addr_parse("127.0.0.1:0", NULL, 0, addr, &len), 0);
	fd = sock_bound_udp(addr);
	assert_true(fd >= 0);
	assert_int_equal(sock_address(fd, addr), 0);
	return fd;
}

static int set_up(void **state)
{
	struct sockaddr_storage any;
	int i;

	(void)state;
	memset(&here, 0, sizeof(here));
	here.bad = -1;
	here.loop = loop_new();
	here.out = udp_out_new(here.loop);
	assert_non_null(here.out);
	here.fd = bound(&any);
	for (i = 0; i < PLACES; i++)
		here.place[i].fd = bound(&here.place[i].addr);
	udp_sender_init(&here.one, one_unsent, narrow);
	udp_sender_init(&here.other, other_unsent, narrow);
	return 0;
}

static int tear_down(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < PLACES; i++)
		close(here.place[i].fd);
	close(here.fd);
	udp_out_free(here.out);
	loop_free(here.loop);
	return 0;
}

static void add_by(struct udp_sender *by, uint8_t byte, size_t len, int place)
{
	uint8_t buf[UDP_OUT_LARGEST];
	struct iovec parts[2] = {	/* as a head and its payload */
		{ buf, len / 3 },
		{ buf + len / 3, len - len / 3 },
	};

	memset(buf, byte, len);
	udp_out_add(here.out, by, here.fd, &here.place[place].addr, parts, 2);
}

static void add(uint8_t byte, size_t len)
{
	add_by(&here.one, byte, len, 0);
}

static void came(void *arg, struct sockaddr_storage *from, const uint8_t *buf,
		 size_t len)
{
	struct place *p = arg;
	size_t i;

	(void)from;
	assert_true(p->n < HEARD);
	for (i = 1; i < len && i < UDP_IN_SLOT; i++)
		assert_int_equal(buf[i], buf[0]);
	p->heard[p->n] = len ? buf[0] : 0;
	p->len[p->n++] = len;
}

/* @n are heard, and no more; the kernel may take its time on a busy machine. */
static struct place *hear(int place, unsigned int n)
{
	struct place *p = &here.place[place];
	struct pollfd fd = { .fd = p->fd, .events = POLLIN };

	while (p->n < n) {
		assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
		assert_int_equal(udp_in_read(p->fd, came, p), 0);
	}
	assert_int_equal(udp_in_read(p->fd, came, p), -EAGAIN);
	assert_int_equal(p->n, n);
	return p;
}

static void nothing_is_left(void)
{
	assert_int_equal(here.one.gathered, 0);
	assert_int_equal(here.other.gathered, 0);
}

static void burst_keeps_its_order(void **state)
{
	enum { MANY = 2 * UDP_OUT_MOST + 20 };
	struct place *p;
	unsigned int i;

	(void)state;
	for (i = 0; i < MANY; i++)
		add((uint8_t)i, 100);
	udp_out_flush(here.out);
	p = hear(0, MANY);
	for (i = 0; i < MANY; i++) {
		assert_int_equal(p->heard[i], i);
		assert_int_equal(p->len[i], 100);
	}
	assert_int_equal(here.calls, 3);
	nothing_is_left();
}

/* More bytes than are gathered at a time, and more than one packet may have. */
static void large_ones_go(void **state)
{
	enum { MANY = 40 };
	struct place *p;
	unsigned int i;

	(void)state;
	for (i = 0; i < MANY; i++)
		add((uint8_t)i, UDP_OUT_LARGEST);
	udp_out_flush(here.out);
	p = hear(0, MANY);
	for (i = 0; i < MANY; i++) {
		assert_int_equal(p->heard[i], i);
		assert_int_equal(p->len[i], UDP_OUT_LARGEST);
	}
	assert_int_equal(here.unsent[0], 0);
}

static void sizes_and_places_are_mixed(void **state)
{
	static const size_t size[] = { 5, 5, 3, 0, 3, 9, 0, 0, 7, 7, 7, 1 };
	enum { SIZES = sizeof(size) / sizeof(*size), ROUNDS = 5 };
	unsigned int i, n;
	int place;

	(void)state;
	for (i = 0; i < ROUNDS * SIZES; i++)
		add_by(i % 2 ? &here.one : &here.other, (uint8_t)(i + 1),
		       size[i % SIZES], (int)(i / 4 % PLACES));
	udp_out_flush(here.out);
	for (place = 0; place < PLACES; place++) {
		struct place *p = hear(place, ROUNDS * SIZES / 2 -
					      (place ? 2 : -2));
		unsigned int last[2] = { 0, 0 };

		for (n = 0; n < p->n; n++) {
			i = p->heard[n];
			if (!i)
				continue;	/* an empty one */
			assert_int_equal((i - 1) / 4 % PLACES, place);
			assert_int_equal(p->len[n], size[(i - 1) % SIZES]);
			assert_true(i > last[i % 2]);	/* of its sender */
			last[i % 2] = i;
		}
	}
	nothing_is_left();
}

/* Whatever is wrong with one, and wherever it stands among the others. */
static void one_that_cannot_be_sent_goes_alone(void **state)
{
	static const int errs[] = { EAGAIN, ENOBUFS, EMSGSIZE, EPERM, EINVAL };
	static const size_t sizes[] = { SIZE, 10 };
	unsigned int e, i, bad, n;

	(void)state;
	for (e = 0; e < sizeof(errs) / sizeof(*errs); e++) {
		for (bad = 0; bad < 12; bad++) {
			struct place *p = &here.place[0];

			p->n = here.place[1].n = 0;
			here.unsent[0] = here.unsent[1] = 0;
			here.bad = (int)bad;
			here.bad_err = errs[e];
			for (i = 0; i < 12; i++) {
				add((uint8_t)i, sizes[bad % 2]);
				add_by(&here.other, (uint8_t)(i + 100), 8, 1);
			}
			udp_out_flush(here.out);
			assert_int_equal(here.unsent[0], 1);
			assert_int_equal(here.unsent[1], 0);
			assert_int_equal(here.err, errs[e]);
			hear(0, 11);
			for (i = 0, n = 0; n < 11; i++) {
				if (i != bad)
					assert_int_equal(p->heard[n++], i);
			}
			hear(1, 12);
			nothing_is_left();
		}
	}
}

/* Port 0 is nowhere, says the kernel itself. */
static void one_to_nowhere_goes_alone(void **state)
{
	uint16_t port = addr_port(&here.place[1].addr);
	unsigned int i;

	(void)state;
	for (i = 0; i < 9; i++) {
		addr_set_port(&here.place[1].addr, i == 4 ? 0 : port);
		add_by(&here.one, (uint8_t)i, SIZE, i == 4 || i == 7);
	}
	udp_out_flush(here.out);
	assert_int_equal(here.unsent[0], 1);
	assert_int_equal(here.err, EINVAL);
	hear(0, 7);
	assert_int_equal(here.place[0].heard[3], 3);
	assert_int_equal(here.place[0].heard[4], 5);
	hear(1, 1);
	assert_int_equal(here.place[1].heard[0], 7);
}

static void send_ten(size_t size)
{
	unsigned int i;

	here.calls = 0;
	here.place[0].n = 0;
	for (i = 0; i < 10; i++)
		add((uint8_t)i, size);
	udp_out_flush(here.out);
	hear(0, 10);
	for (i = 0; i < 10; i++)
		assert_int_equal(here.place[0].heard[i], i);
	assert_int_equal(here.unsent[0], 0);
}

/* The error is of a datagram that left before, as ICMP tells it: nothing is lost by it. */
static void path_is_narrow_for_an_earlier_one(void **state)
{
	(void)state;
	here.late_err = EMSGSIZE;
	send_ten(SIZE);
	assert_int_equal(here.narrow, 1);
	assert_int_equal(here.calls, 2);
	assert_int_equal(here.one.segment_most, UINT16_MAX);
	here.late_err = EMSGSIZE;
	here.narrow = 0;
	add(1, SIZE);
	udp_out_flush(here.out);
	hear(0, 11);
	assert_int_equal(here.narrow, 1);
	assert_int_equal(here.unsent[0], 0);
}

static void path_is_too_narrow(void **state)
{
	(void)state;
	here.bad = 7;
	here.bad_err = EMSGSIZE;
	add(7, SIZE);
	add(8, 10);
	udp_out_flush(here.out);
	assert_int_equal(here.narrow, 1);
	assert_int_equal(here.unsent[0], 1);
	assert_int_equal(here.err, EMSGSIZE);
	assert_int_equal(hear(0, 1)->heard[0], 8);
}

/* Each as it was to go, in their order, and the socket's setting follows. */
static void some_must_not_be_fragmented(void **state)
{
	static const bool whole[] = { 0, 0, 1, 1, 1, 0, 1, 0, 0, 1 };
	enum { N = sizeof(whole) / sizeof(*whole) };
	unsigned int i;

	(void)state;
	for (i = 0; i < N; i++) {
		here.one.whole = whole[i];
		add((uint8_t)(i + 1), 100);
	}
	udp_out_flush(here.out);
	assert_int_equal(here.calls, 6);
	for (i = 0; i < N; i++) {
		assert_int_equal(hear(0, N)->heard[i], i + 1);
		assert_int_equal(here.discover[i + 1], whole[i] ?
				 IP_PMTUDISC_DO : IP_PMTUDISC_WANT);
	}
}

/* What is larger than a packet may be is cut up only if it is sent alone. */
static void what_does_not_go_several_at_a_time_goes_one_by_one(void **state)
{
	(void)state;
	here.most = 1000;
	send_ten(SIZE);
	assert_int_equal(here.calls, 2);	/* tried, and then all in one call */
	send_ten(SIZE + 100);
	assert_int_equal(here.calls, 1);	/* it is known */
	send_ten(900);
	assert_int_equal(here.calls, 1);
	assert_int_equal(here.one.segment_most, SIZE - 1);
}

/* The kernel's own no: without checksums it does not cut up what is several. */
static void kernel_that_does_not_take_several(void **state)
{
	int yes = 1;

	(void)state;
	assert_int_equal(setsockopt(here.fd, SOL_SOCKET, SO_NO_CHECK, &yes,
				    sizeof(yes)), 0);
	send_ten(SIZE);
	assert_int_equal(here.calls, 2);
	send_ten(SIZE);
	assert_int_equal(here.calls, 1);
}

/* It would send all that is said to be several as one. */
static void kernel_that_has_not_heard_of_several(void **state)
{
	(void)state;
	here.old = true;
	send_ten(100);
	assert_int_equal(here.calls, 1);
	send_ten(SIZE);
	assert_int_equal(here.calls, 1);
}

static void one_sender_does_not_wait(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 10; i++) {
		add_by(&here.one, (uint8_t)i, 50, 0);
		add_by(&here.other, (uint8_t)i, 50, 1);
	}
	udp_out_flush_of(here.out, &here.other);
	assert_int_equal(here.other.gathered, 0);
	hear(1, 10);
	hear(0, 0);
	udp_out_flush_of(here.out, &here.other);	/* there is nothing */
	memset(&here.other, 0xff, sizeof(here.other));	/* it may be gone */
	udp_out_flush(here.out);
	hear(0, 10);
	hear(1, 10);
	assert_int_equal(here.one.gathered, 0);
}

static void heard_from(const char *host, int fd)
{
	struct sockaddr_storage from = { 0 };
	socklen_t len = sizeof(from);
	char text[ADDR_TEXT];
	uint8_t byte;

	assert_int_equal(recvfrom(fd, &byte, 1, MSG_TRUNC, (void *)&from, &len), SIZE);
	assert_string_equal(addr_host(&from, text), host);
}

/* Beside the size of several at a time, and of one alone; and of a sender that does not say. */
static void one_leaves_from_the_address_that_it_says(void **state)
{
	struct sockaddr_storage source;
	socklen_t len;
	int fd = here.place[0].fd;

	(void)state;
	assert_int_equal(addr_parse("127.0.0.5", NULL, 0, &source, &len), 0);
	here.one.source = &source;
	for (uint8_t i = 1; i <= 3; i++)
		add(i, SIZE);
	udp_out_flush(here.out);
	add(4, SIZE);
	add_by(&here.other, 5, SIZE, 0);
	udp_out_flush(here.out);
	for (int i = 1; i <= 4; i++)
		heard_from("127.0.0.5", fd);
	heard_from("127.0.0.1", fd);
	assert_int_equal(here.unsent[0] + here.unsent[1], 0);
}

static void stop(struct task *t)
{
	(void)t;
	loop_stop(here.loop);
}

static void nobody_flushes(void **state)
{
	struct task end;

	(void)state;
	add(1, 1);
	loop_task_init(&end, stop);
	loop_after(here.loop, &end);
	assert_int_equal(loop_run(here.loop), 0);
	hear(0, 1);
	nothing_is_left();
}

#define OUT_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OUT_TEST(burst_keeps_its_order),
		OUT_TEST(large_ones_go),
		OUT_TEST(sizes_and_places_are_mixed),
		OUT_TEST(one_that_cannot_be_sent_goes_alone),
		OUT_TEST(one_to_nowhere_goes_alone),
		OUT_TEST(path_is_narrow_for_an_earlier_one),
		OUT_TEST(path_is_too_narrow),
		OUT_TEST(some_must_not_be_fragmented),
		OUT_TEST(what_does_not_go_several_at_a_time_goes_one_by_one),
		OUT_TEST(kernel_that_does_not_take_several),
		OUT_TEST(kernel_that_has_not_heard_of_several),
		OUT_TEST(one_sender_does_not_wait),
		OUT_TEST(one_leaves_from_the_address_that_it_says),
		OUT_TEST(nobody_flushes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
