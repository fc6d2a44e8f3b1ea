/* SPDX-License-Identifier: MIT */
/*
 * Two sessions of the extension over pipes that keep no order. The kernel is the test: such a
 * pipe is a pair of SOCK_SEQPACKET sockets with the network between them, and what SCTP says
 * of a message (its PPID, its stream, whether it is unordered) goes in front of it. The
 * network delivers unordered messages as it likes, all others in the order of their
 * stream; and it cuts pipes, at one end first or at both. What one application reads is what
 * the other wrote.
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
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/sctp.h>

#include "ext_pair.h"
#include "loopback.h"
#include "random.h"
#include "voice.h"

enum {
	FDS = 4096, HOPS = 400, TRANSIT = 48, CONNS = 16, WORLDS = 6, BYTES = 300000,
	MSS = 1452, STREAMS = 16,
};

struct label {			/* what goes in front of a message */
	uint32_t ppid;
	uint16_t sid, flags;
};

/* --- the kernel --- */

static struct socket {
	bool on;		/* it is one of SCTP's */
	size_t at;		/* bytes that were read of what comes next */
	uint64_t chunks;	/* that were sent */
} sockets[FDS];

static bool is_sctp(int fd)
{
	return fd >= 0 && fd < FDS && sockets[fd].on;
}

static ssize_t send_letter(int fd, const struct label *label, const void *body,
			   size_t len)
{
	struct iovec iov[2] = { { (void *)label, sizeof(*label) },
				{ (void *)body, len } };
	struct msghdr mh = { .msg_iov = iov, .msg_iovlen = 2 };
	long n = syscall(SYS_sendmsg, fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return -1;
	sockets[fd].chunks += (len + MSS - 1) / MSS;
	return (ssize_t)len;
}

ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	struct label label = { 0 };

	if (is_sctp(fd))
		return send_letter(fd, &label, buf, len);
	return syscall(SYS_sendto, fd, buf, len, flags, NULL, 0);
}

int sendmmsg(int fd, struct mmsghdr *mm, unsigned int n, int flags)
{
	unsigned int i;

	(void)flags;
	assert_true(is_sctp(fd));
	for (i = 0; i < n; i++) {
		struct msghdr *mh = &mm[i].msg_hdr;
		struct sctp_sndinfo info;
		struct label label;

		memcpy(&info, CMSG_DATA(CMSG_FIRSTHDR(mh)), sizeof(info));
		label = (struct label){ info.snd_ppid, info.snd_sid,
					info.snd_flags };
		if (send_letter(fd, &label, mh->msg_iov->iov_base,
				mh->msg_iov->iov_len) < 0)
			break;
	}
	return i ? (int)i : -1;
}

static void tell(struct msghdr *mh, const struct label *label)
{
	struct sctp_rcvinfo info = { .rcv_ppid = label->ppid };
	struct cmsghdr *cm = CMSG_FIRSTHDR(mh);

	if (!cm)
		return;
	cm->cmsg_level = IPPROTO_SCTP;
	cm->cmsg_type = SCTP_RCVINFO;
	cm->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(cm), &info, sizeof(info));
}

ssize_t recvmsg(int fd, struct msghdr *mh, int flags)
{
	static uint8_t all[sizeof(struct label) + 2 * WIRE_LARGE_MAX];
	size_t room, left;
	struct label label;
	long n;

	if (!is_sctp(fd))
		return syscall(SYS_recvmsg, fd, mh, flags);
	n = syscall(SYS_recvfrom, fd, all, sizeof(all), MSG_PEEK | MSG_DONTWAIT,
		    NULL, NULL);
	if (n <= 0)
		return n;
	memcpy(&label, all, sizeof(label));
	left = (size_t)n - sizeof(label) - sockets[fd].at;
	room = mh->msg_iov->iov_len < left ? mh->msg_iov->iov_len : left;
	memcpy(mh->msg_iov->iov_base, all + sizeof(label) + sockets[fd].at, room);
	tell(mh, &label);
	mh->msg_flags = room == left ? MSG_EOR : 0;
	sockets[fd].at += room;
	if (room == left) {
		syscall(SYS_recvfrom, fd, all, sizeof(all), MSG_DONTWAIT, NULL, NULL);
		sockets[fd].at = 0;
	}
	return (ssize_t)room;
}

/* All that was sent has been acknowledged. */
int getsockopt(int fd, int level, int name, void *restrict value,
	       socklen_t *restrict len)
{
	struct sctp_status status = {
		.sstat_fragmentation_point = MSS, .sstat_outstrms = STREAMS,
		.sstat_primary = { .spinfo_cwnd = 100 * MSS, .spinfo_srtt = 5 },
	};
	struct sctp_assoc_stats stats = { 0 };
	int protocol = IPPROTO_SCTP;

	if (!is_sctp(fd) || (level == SOL_SOCKET && name != SO_PROTOCOL))
		return (int)syscall(SYS_getsockopt, fd, level, name, value, len);
	stats.sas_oodchunks = sockets[fd].chunks;
	stats.sas_isacks = sockets[fd].chunks;
	if (level == SOL_SOCKET)
		memcpy(value, &protocol, *len);
	else if (name == SCTP_STATUS)
		memcpy(value, &status, *len);
	else
		memcpy(value, &stats, *len);
	return 0;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	if (is_sctp(fd) && level != SOL_SOCKET)
		return 0;
	return (int)syscall(SYS_setsockopt, fd, level, name, value, len);
}

static void sctp_pair(int fd[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0,
				    fd), 0);
	for (int i = 0; i < 2; i++) {
		assert_true(fd[i] < FDS);
		sockets[fd[i]] = (struct socket){ .on = true };
	}
}

/* The number of a descriptor may be that of an application's next. */
int close(int fd)
{
	if (is_sctp(fd))
		sockets[fd].on = false;
	return (int)syscall(SYS_close, fd);
}

/* --- the network --- */

struct letter {
	size_t len;		/* with its label */
	uint8_t bytes[sizeof(struct label) + WIRE_LARGE_MAX];
};

struct hop {			/* in the middle of a pipe: LP's side and RP's */
	int fd[2];		/* -1: cut */
	struct letter *letter[2];	/* on the way from that side */
	unsigned int n[2];
	bool carried[2];	/* anything, so far */
};

struct world {
	struct pair pair;
	struct random *r;
	struct hop hop[HOPS];
	unsigned int hops, cuts, pipes;
	uint64_t overtaken;
	bool mixed;
};

static void add_hop(struct pair *pair, int fd[2])
{
	struct world *w = pair->network;
	struct hop *h = &w->hop[w->hops];
	int lp[2], rp[2];

	if (w->mixed && w->pipes++ % 2) {
		tcp_pair(fd);
		return;
	}
	assert_true(w->hops++ < HOPS);
	sctp_pair(lp);
	sctp_pair(rp);
	fd[0] = rp[0];
	fd[1] = lp[0];
	*h = (struct hop){ .fd = { lp[1], rp[1] } };
	for (int i = 0; i < 2; i++) {
		sockets[h->fd[i]].on = false;	/* read as it is */
		h->letter[i] = malloc(TRANSIT * sizeof(struct letter));
	}
}

static void cut(struct hop *h, int side)
{
	if (h->fd[side] >= 0)
		close(h->fd[side]);
	h->fd[side] = -1;
}

static struct label label_of(const struct letter *l)
{
	struct label label;

	memcpy(&label, l->bytes, sizeof(label));
	return label;
}

/* Which of them comes: none that is in order before one of its stream. */
static unsigned int choose(struct world *w, const struct hop *h, int side)
{
	unsigned int i = random_below(w->r, h->n[side]), j;
	struct label label = label_of(&h->letter[side][i]);

	for (j = 0; !(label.flags & SCTP_UNORDERED) && j < i; j++) {
		struct label other = label_of(&h->letter[side][j]);

		if (!(other.flags & SCTP_UNORDERED) && other.sid == label.sid)
			return j;
	}
	return i;
}

static void deliver(struct world *w, struct hop *h, int side)
{
	unsigned int i = choose(w, h, side);
	struct letter *l = &h->letter[side][i];

	if (syscall(SYS_sendto, h->fd[!side], l->bytes, l->len,
		    MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0) < 0)
		return;
	/* WELCOME is the first that comes: LP takes no other. */
	if (side && !h->carried[side])
		assert_int_equal(i, 0);
	w->overtaken += i;
	h->carried[side] = true;
	memmove(l, l + 1, (--h->n[side] - i) * sizeof(*l));
}

/* From one side to the other. One that ended there is so here, some time. */
static void carry(struct world *w, struct hop *h, int side)
{
	struct letter *l = &h->letter[side][h->n[side]];
	long n;

	if (h->fd[side] < 0)
		return;
	if (h->fd[!side] < 0) {
		if (random_below(w->r, 20) == 0)
			cut(h, side);
		return;
	}
	if (h->n[side] < TRANSIT) {
		n = syscall(SYS_recvfrom, h->fd[side], l->bytes,
			    sizeof(l->bytes), MSG_DONTWAIT, NULL, NULL);
		if (n > 0) {
			l->len = (size_t)n;
			h->n[side]++;
		} else if (n == 0 || errno != EAGAIN) {
			cut(h, side);
			return;
		}
	}
	if (h->n[side] && random_below(w->r, 3))
		deliver(w, h, side);
}

static void be_network(struct pair *pair)
{
	struct world *w = pair->network;

	for (unsigned int i = 0; i < w->hops; i++) {
		for (int times = 0; times < 12; times++) {
			carry(w, &w->hop[i], 0);
			carry(w, &w->hop[i], 1);
		}
	}
}

/* Of a mixed set those of TCP, which carry as long as there is one. */
static void maybe_cut_tcp(struct world *w)
{
	struct session *lp = w->pair.lp;
	struct pipe *p = lp->pipes[random_below(w->r, lp->npipes)];

	if (!w->mixed || random_below(w->r, 8) || !p || is_sctp(p->fd) ||
	    w->hops > HOPS - 20)
		return;
	w->cuts++;
	pair_kill(&w->pair, p->index);
}

/* Not while it greets: RP that closes a pipe then would mean something by it. */
static void maybe_cut_one(struct world *w)
{
	struct hop *h = &w->hop[random_below(w->r, w->hops)];

	if (w->hops > HOPS - 20 || random_below(w->r, 12) || h->fd[0] < 0 ||
	    h->fd[1] < 0 || !h->carried[0] || !h->carried[1])
		return;
	w->cuts++;
	cut(h, (int)random_below(w->r, 2));
}

/* --- applications --- */

struct app {
	int fd;
	struct voice voice;
	bool shut, at_end;
};

static struct app apps[CONNS][2];	/* client, server */

static void speak(struct world *w, struct app *a)
{
	long n = voice_speak(&a->voice, w->r, a->fd);

	assert_true(n >= 0 || n == -EAGAIN);
	if (a->voice.sent == a->voice.to_send && !a->shut)
		a->shut = !shutdown(a->fd, SHUT_WR);
}

static void listen_to(struct app *a, const struct app *writer)
{
	long n;

	if (a->at_end)
		return;
	n = voice_listen(&a->voice, &writer->voice, NULL, a->fd);
	assert_true(n >= 0 || n == -EAGAIN);
	a->at_end = !n;
}

static bool play(struct world *w, int i)
{
	bool over = true;

	for (int side = 0; side < 2; side++) {
		struct app *a = &apps[i][side];

		a->fd = side ? w->pair.conn[i].server : w->pair.conn[i].client;
		if (a->fd >= 0) {
			speak(w, a);
			listen_to(a, &apps[i][!side]);
		}
		over &= a->at_end && a->shut;
	}
	return over;
}

static void script(struct world *w)
{
	memset(apps, 0, sizeof(apps));
	for (int i = 0; i < 2 * CONNS; i++) {
		struct app *a = &apps[i / 2][i % 2];

		a->voice.seed = (uint8_t)random_next(w->r);
		a->voice.to_send = random_below(w->r, BYTES);
	}
}

/* --- what must hold --- */

static void begin(struct world *w, struct random *r, bool mixed)
{
	memset(w, 0, sizeof(*w));
	w->r = r;
	w->mixed = mixed;
	pair_init(&w->pair);
	w->pair.connect = add_hop;
	w->pair.carry = be_network;
	w->pair.network = w;
	w->pair.redials = true;
	script(w);
	pair_start(&w->pair, random_range(r, 2, 6));
}

static void live(struct world *w)
{
	int64_t deadline = loop_clock() + 120 * NS_PER_SEC;
	bool over = false;

	for (int i = 0; i < CONNS; i++)
		pair_open(&w->pair, i);
	while (!over) {
		assert_true(loop_clock() < deadline);
		over = true;
		for (int i = 0; i < CONNS; i++)
			over &= play(w, i);
		be_network(&w->pair);
		maybe_cut_one(w);
		maybe_cut_tcp(w);
		run_round(w->pair.engine.loop);
		assert_non_null(w->pair.lp);
		assert_non_null(w->pair.rp);
	}
	for (int i = 0; i < 2 * CONNS; i++)
		assert_int_equal(apps[i / 2][i % 2].voice.got,
				 apps[i / 2][!(i % 2)].voice.to_send);
}

static void finish(struct world *w)
{
	while (w->hops) {
		struct hop *h = &w->hop[--w->hops];

		for (int side = 0; side < 2; side++) {
			cut(h, side);
			free(h->letter[side]);
		}
	}
	w->pair.redials = false;
	session_stop(w->pair.lp, "the test is over");
	session_stop(w->pair.rp, "the test is over");
	pair_end(&w->pair);
	memset(sockets, 0, sizeof(sockets));
}

static void bytes_arrive_over(const char *name, bool mixed)
{
	static struct world w;
	uint64_t again = 0, overtaken = 0;
	unsigned int cuts = 0;
	struct random r;

	random_begin(&r, name);
	for (int which = 0; which < WORLDS; which++) {
		begin(&w, &r, mixed);
		live(&w);
		pair_at_rest(&w.pair);
		again += w.pair.lp->counts.again + w.pair.rp->counts.again;
		cuts += w.cuts;
		overtaken += w.overtaken;
		finish(&w);
	}
	print_message("%u cuts, %llu messages sent again, %llu overtaken\n",
		      cuts, (unsigned long long)again,
		      (unsigned long long)overtaken);
	/* Or it was no test. */
	assert_true(cuts > 10 && again > 20 && overtaken > 1000);
}

static void over_sctp(void **state)
{
	(void)state;
	bytes_arrive_over(__func__, false);
}

static void over_a_mixed_set(void **state)
{
	(void)state;
	bytes_arrive_over(__func__, true);
}

/* --- the greeting --- */

static enum { NOTHING, CAME, WRONG } heard;

static void came(struct greeting *g, const struct wire_ext *said)
{
	assert_int_equal(said->hello.pipes, 3);
	heard = CAME;
	greeting_free(g);
}

static void failed(struct greeting *g, enum greeting_failure why)
{
	assert_int_equal(why, GREETING_WRONG);
	heard = WRONG;
	greeting_free(g);
}

static bool was_heard(void *arg)
{
	(void)arg;
	return heard;
}

/* HELLO in two letters, cut behind @first bytes and with @more behind it. */
static void hear_hello(struct loop *loop, size_t first, size_t more)
{
	static const struct greeting_ops ops = { .came = came, .failed = failed };
	struct wire_ext hello = { .type = WIRE_HELLO };
	uint8_t buf[2 * WIRE_MESSAGE_MAX] = { 0 };
	size_t len;
	int fd[2];

	assert_int_equal(greet_hello(&hello.hello, 3), 0);
	len = wire_ext_put(buf, &hello) + more;
	sctp_pair(fd);
	heard = NOTHING;
	assert_non_null(greeting_await(loop, conduit_plain(fd[0]), NS_PER_SEC,
				       &ops, NULL));
	send(fd[1], buf, first < len ? first : len, 0);
	if (first < len)
		send(fd[1], buf + first, len - first, 0);
	assert_true(run_until(loop, "HELLO", was_heard, NULL));
	close(fd[1]);
}

static void a_hello_is_one_letter(void **state)
{
	struct loop *loop = loop_new();
	size_t cut;

	(void)state;
	assert_non_null(loop);
	hear_hello(loop, 1000, 0);
	assert_int_equal(heard, CAME);
	for (cut = 1; cut < 40; cut++) {
		hear_hello(loop, cut, 0);
		assert_int_equal(heard, WRONG);
	}
	hear_hello(loop, 1000, 1);
	assert_int_equal(heard, WRONG);
	loop_free(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hello_is_one_letter),
		cmocka_unit_test(over_sctp),
		cmocka_unit_test(over_a_mixed_set),
	};

	return cmocka_run_group_tests_name("extended over sctp", tests, NULL,
					   NULL);
}
