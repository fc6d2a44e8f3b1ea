/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "acks.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "../base/loop.h"

#ifndef SO_EE_ORIGIN_TIMESTAMPING
#define SO_EE_ORIGIN_TIMESTAMPING 4
#endif

/* Since Linux 6.2: numbers count from what was written, not acknowledged. */
enum { OPT_ID_TCP = 1 << 16 };

enum { CONTROL_SIZE = 512 };

int acks_enable(struct acks *a, int fd)
{
	int flags = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_ID |
		SOF_TIMESTAMPING_OPT_TSONLY;
	int with_tcp = flags | OPT_ID_TCP;

	memset(a, 0, sizeof(*a));
	if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &with_tcp,
		       sizeof(with_tcp)) < 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags,
		       sizeof(flags)) < 0)
		return -errno;
	a->on = true;
	return 0;
}

/* The stamps' clock, which may be set, less the loop's, which may not. */
static int64_t clock_offset(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * NS_PER_SEC + ts.tv_nsec - loop_clock();
}

static void thin_out(struct acks *a)
{
	unsigned int i, left = (a->count + 1) / 2;

	for (i = 1; i < left; i++)
		a->asked[(a->first + i) % ACKS_MAX] =
			a->asked[(a->first + 2 * i) % ACKS_MAX];
	a->count = left;
}

ssize_t acks_send(struct acks *a, int fd, const void *buf, size_t len,
		  uint64_t offset, const struct ack_asked *what)
{
	union {
		char buf[CMSG_SPACE(sizeof(uint32_t))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1,
			     .msg_control = control.buf,
			     .msg_controllen = sizeof(control.buf) };
	struct cmsghdr *cm = CMSG_FIRSTHDR(&mh);
	uint32_t flags = SOF_TIMESTAMPING_TX_ACK |
		(what->schedule ? SOF_TIMESTAMPING_TX_SCHED : 0);
	int64_t now = loop_clock();
	struct ack_asked *new;
	ssize_t n;

	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SO_TIMESTAMPING;
	cm->cmsg_len = CMSG_LEN(sizeof(flags));
	memcpy(CMSG_DATA(cm), &flags, sizeof(flags));
	n = sendmsg(fd, &mh, MSG_NOSIGNAL);
	if (n <= 0)
		return n;
	if (a->count == ACKS_MAX)
		thin_out(a);
	new = &a->asked[(a->first + a->count++) % ACKS_MAX];
	*new = *what;
	new->last = (uint32_t)(offset + (uint64_t)n - 1);
	new->sent_at = new->left_at = now;
	return n;
}

/*
 * Where the stamps' clock was set between a stamp and its reading, the time that comes of it is
 * wrong by as much: mostly before the message was sent, or in the future, for which rounds would
 * wait. A step of less than a round trip is not seen here.
 */
static bool is_possible(const struct ack_asked *asked, int64_t at)
{
	return at >= asked->sent_at && at <= loop_clock();
}

static struct ack_asked *asked_for(struct acks *a, uint32_t last)
{
	unsigned int i;

	for (i = 0; i < a->count; i++) {
		struct ack_asked *asked = &a->asked[(a->first + i) % ACKS_MAX];

		if (asked->last == last)
			return asked;
	}
	return NULL;
}

/*
 * It left only now: what it waited in its socket says nothing of the path. That
 * it left once more, being sent again, is told too, and does not count.
 */
static enum acks_news has_left(struct acks *a, uint32_t last, int64_t at,
			       struct ack_asked *what)
{
	struct ack_asked *asked = asked_for(a, last);

	if (!asked || asked->clean || !is_possible(asked, at))
		return ACKS_OTHER;
	asked->left_at = at;
	asked->clean = true;
	*what = *asked;
	return ACKS_LEFT;
}

void acks_met(struct acks *a, const struct ack_asked *what, size_t in_flight)
{
	struct ack_asked *asked = asked_for(a, what->last);

	if (asked)
		asked->in_flight = in_flight;
}

/* Those before it were told of by stamps that were lost, or joined to it. */
static bool find(struct acks *a, uint32_t last, struct ack_asked *what)
{
	while (a->count) {
		const struct ack_asked *first = &a->asked[a->first];

		if ((int32_t)(first->last - last) > 0)
			return false;
		*what = *first;
		a->first = (a->first + 1) % ACKS_MAX;
		a->count--;
		if (what->last == last)
			return true;
	}
	return false;
}

static int64_t stamp_time(const struct cmsghdr *cm)
{
	struct scm_timestamping stamp;

	memcpy(&stamp, CMSG_DATA(cm), sizeof(stamp));
	return stamp.ts[0].tv_sec * NS_PER_SEC + stamp.ts[0].tv_nsec -
		clock_offset();
}

enum acks_news acks_next(struct acks *a, int fd, struct ack_asked *what,
			 int64_t *at)
{
	union {
		char buf[CONTROL_SIZE];
		struct cmsghdr align;
	} control;
	struct msghdr mh = { .msg_control = control.buf,
			     .msg_controllen = sizeof(control.buf) };
	struct sock_extended_err ee = { 0 };
	struct cmsghdr *cm;

	if (recvmsg(fd, &mh, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
		return ACKS_NO_MORE;
	*at = 0;
	for (cm = CMSG_FIRSTHDR(&mh); cm; cm = CMSG_NXTHDR(&mh, cm)) {
		if (cm->cmsg_level == SOL_SOCKET &&
		    cm->cmsg_type == SO_TIMESTAMPING)
			*at = stamp_time(cm);
		else if (cm->cmsg_len >= CMSG_LEN(sizeof(ee)))
			memcpy(&ee, CMSG_DATA(cm), sizeof(ee));
	}
	if (!*at || ee.ee_origin != SO_EE_ORIGIN_TIMESTAMPING)
		return ACKS_OTHER;
	if (ee.ee_info == SCM_TSTAMP_SCHED)
		return has_left(a, ee.ee_data, *at, what);
	if (ee.ee_info != SCM_TSTAMP_ACK || !find(a, ee.ee_data, what))
		return ACKS_OTHER;
	if (!is_possible(what, *at)) {
		what->clean = false;
		*at = loop_clock();
	}
	return ACKS_ACKED;
}
