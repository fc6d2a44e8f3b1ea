/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "udp_out.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "list.h"
#include "path_mtu.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

/* What one packet of IPv6 may carry, less headers: the kernel cuts such a one up. */
enum { SEGMENTED_MAX = 65535 - 40 - 8 };

struct item {
	struct udp_sender *by;	/* NULL: it went, or could not */
	int fd;
	uint32_t at, len;	/* in buf */
	struct sockaddr_storage to;
	socklen_t to_len;	/* 0: its socket is connected */
	bool whole;		/* it must not be fragmented */
};

struct udp_out {
	struct loop *loop;
	struct task late;	/* flushes what nobody has */
	bool asked, segments;	/* does the kernel send several at a time? */
	unsigned int n;
	size_t used;
	struct item item[UDP_OUT_MOST];
	uint8_t buf[UDP_OUT_BYTES + UDP_OUT_LARGEST];
};

/* What goes in one call. */
struct burst {
	unsigned int n;		/* messages, */
	struct mmsghdr msg[UDP_OUT_MOST];
	unsigned int items[UDP_OUT_MOST];	/* and of how many datagrams each is */
	struct iovec iov[UDP_OUT_MOST];
	union {
		struct cmsghdr head;	/* for its alignment */
		uint8_t bytes[CMSG_SPACE(sizeof(uint16_t)) +
			      CMSG_SPACE(sizeof(struct in6_pktinfo))];
	} control[UDP_OUT_MOST];
};

void udp_sender_init(struct udp_sender *by,
		     void (*unsent)(struct udp_sender *by, int err),
		     void (*narrow)(struct udp_sender *by))
{
	*by = (struct udp_sender){
		.segment_most = UINT16_MAX, .unsent = unsent, .narrow = narrow,
	};
}

/* --- in --- */

static void late(struct task *t)
{
	udp_out_flush(container_of(t, struct udp_out, late));
}

struct udp_out *udp_out_new(struct loop *loop)
{
	struct udp_out *out = malloc(sizeof(*out));

	if (!out)
		return NULL;
	out->loop = loop;
	loop_task_init(&out->late, late);
	out->asked = out->segments = false;
	out->n = 0;
	out->used = 0;
	return out;
}

void udp_out_free(struct udp_out *out)
{
	if (out)
		loop_task_stop(&out->late);
	free(out);
}

void udp_out_add(struct udp_out *out, struct udp_sender *by, int fd,
		 const struct sockaddr_storage *to, const struct iovec *parts,
		 int n)
{
	struct item *item = &out->item[out->n++];
	int i;

	item->by = by;
	item->fd = fd;
	item->at = (uint32_t)out->used;
	item->to_len = to ? addr_size(to) : 0;
	item->whole = by->whole;
	if (to)
		memcpy(&item->to, to, item->to_len);
	for (i = 0; i < n; i++) {
		if (parts[i].iov_len)
			memcpy(out->buf + out->used, parts[i].iov_base,
			       parts[i].iov_len);
		out->used += parts[i].iov_len;
	}
	item->len = (uint32_t)out->used - item->at;
	by->gathered++;
	if (out->n == UDP_OUT_MOST || out->used > UDP_OUT_BYTES)
		udp_out_flush(out);
	else
		loop_after(out->loop, &out->late);
}

/* --- out --- */

static void take_off(struct item *item)
{
	item->by->gathered--;
	item->by = NULL;
}

static bool same_place(const struct item *a, const struct item *b)
{
	return a->to_len == b->to_len && !memcmp(&a->to, &b->to, a->to_len);
}

/*
 * How many of the @n datagrams from @own on may go as one message: all of them have the size
 * of the first, but for the last, which may be shorter.
 */
static unsigned int alike(struct item *const *own, unsigned int n)
{
	uint32_t size = own[0]->len, bytes = size;
	unsigned int i;

	if (!size || size > own[0]->by->segment_most)
		return 1;
	for (i = 1; i < n; i++) {
		bytes += own[i]->len;
		if (!own[i]->len || own[i]->len > size ||
		    bytes > SEGMENTED_MAX || !same_place(own[i], own[0]))
			return i;
		if (own[i]->len < size)
			return i + 1;
	}
	return n;
}

/* Behind what is said with message @i already. */
static void say(struct burst *b, unsigned int i, int level, int type,
		const void *what, size_t len)
{
	struct msghdr *mh = &b->msg[i].msg_hdr;
	uint8_t *bytes = b->control[i].bytes + mh->msg_controllen;
	struct cmsghdr *cm = (void *)bytes;

	memset(bytes, 0, CMSG_SPACE(len));
	cm->cmsg_level = level;
	cm->cmsg_type = type;
	cm->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(cm), what, len);
	mh->msg_control = b->control[i].bytes;
	mh->msg_controllen += CMSG_SPACE(len);
}

static void say_size(struct burst *b, unsigned int i, uint32_t len)
{
	uint16_t size = (uint16_t)len;

	say(b, i, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size));
}

static void say_source(struct burst *b, unsigned int i,
		       const struct sockaddr_storage *source)
{
	const struct sockaddr_in6 *in6 = (const void *)source;
	const struct sockaddr_in *in = (const void *)source;
	struct in6_pktinfo info6 = { 0 };
	struct in_pktinfo info = { 0 };

	if (source->ss_family == AF_INET6) {
		info6.ipi6_addr = in6->sin6_addr;
		info6.ipi6_ifindex = in6->sin6_scope_id;
		say(b, i, IPPROTO_IPV6, IPV6_PKTINFO, &info6, sizeof(info6));
	} else {
		info.ipi_spec_dst = in->sin_addr;
		say(b, i, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	}
}

/* The first @alone of them go one by one. */
static void make(struct udp_out *out, struct burst *b,
		 struct item *const *own, unsigned int n, unsigned int alone)
{
	unsigned int at = 0, i;

	for (b->n = 0; at < n; b->n++) {
		struct item *first = own[at];
		unsigned int items = at < alone ? 1 : alike(own + at, n - at);

		for (i = at; i < at + items; i++)
			b->iov[i] = (struct iovec){ out->buf + own[i]->at,
						    own[i]->len };
		b->items[b->n] = items;
		b->msg[b->n].msg_hdr = (struct msghdr){
			.msg_name = first->to_len ? &first->to : NULL,
			.msg_namelen = first->to_len,
			.msg_iov = &b->iov[at],
			.msg_iovlen = items,
		};
		if (items > 1)
			say_size(b, b->n, first->len);
		if (first->by->source)
			say_source(b, b->n, first->by->source);
		at += items;
	}
}

/* Such an error may have come by ICMP, for what was sent before. It is told once. */
static bool is_of_peer(int err)
{
	return err == ECONNREFUSED || err == EHOSTUNREACH || err == ENETUNREACH;
}

/*
 * Several were not sent at a time: because their size is more than the path takes in one
 * packet, because the device or the kernel does not know how, or because of one of them.
 */
static void learn(struct udp_sender *by, uint32_t size, int err)
{
	if (err == EINVAL || err == EMSGSIZE)
		by->segment_most = (uint16_t)(size - 1);
	else if (err == EIO)
		by->segment_most = 0;
}

/*
 * A kernel before Linux 4.18 does not reject UDP_SEGMENT with a message: it takes no notice,
 * and all would leave as one datagram. So it is asked for the option itself.
 */
static bool knows_segments(struct udp_out *out, int fd)
{
	int value;
	socklen_t len = sizeof(value);

	if (!out->asked)
		out->segments = !getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT,
					    &value, &len);
	out->asked = true;
	return out->segments;
}

/*
 * An error behind a message that was sent is not told by sendmmsg(), so what is left is tried
 * again. If it was one that came by ICMP, it is gone: another packet will bring the next.
 * EMSGSIZE may be such a one, about a datagram that was sent before, so the one that it
 * was told for is tried once more.
 */
static void send_alike(struct udp_out *out, struct item *const *own,
		       unsigned int n)
{
	struct udp_sender *by = own[0]->by;
	unsigned int at = 0, alone = 0, i, items;
	const struct item *again = NULL;
	struct burst b;
	int sent;

	if (n > 1 && !knows_segments(out, own[0]->fd))
		alone = n;
	while (at < n) {
		make(out, &b, own + at, n - at, alone > at ? alone - at : 0);
		sent = sendmmsg(own[at]->fd, b.msg, b.n, MSG_NOSIGNAL);
		if (sent < 0 && errno == EMSGSIZE && again != own[at]) {
			again = own[at];
			by->narrow(by);
		} else if (sent < 0 && b.items[0] > 1 && !is_of_peer(errno)) {
			learn(by, own[at]->len, errno);
			alone = at + b.items[0];
		} else if (sent < 0) {
			take_off(own[at++]);
			by->unsent(by, errno);
		}
		for (i = 0; (int)i < sent; i++) {
			for (items = b.items[i]; items; items--)
				take_off(own[at++]);
		}
	}
}

/* Those that follow each other, and may be fragmented or may not, go together. */
static void send_own(struct udp_out *out, struct udp_sender *by,
		     struct item *const *own, unsigned int n)
{
	unsigned int at, end;
	bool whole;

	for (at = 0; at < n; at = end) {
		whole = own[at]->whole;
		for (end = at + 1; end < n && own[end]->whole == whole; end++)
			;
		if (by->forbids != whole)
			path_mtu_forbid_fragments(own[at]->fd, whole);
		by->forbids = whole;
		send_alike(out, own + at, end - at);
	}
}

/* Those of item @i's sender; none of them is before it. */
static void send_of(struct udp_out *out, unsigned int i)
{
	struct udp_sender *by = out->item[i].by;
	struct item *own[UDP_OUT_MOST];
	unsigned int n = 0;

	for (; n < by->gathered; i++) {
		if (out->item[i].by == by)
			own[n++] = &out->item[i];
	}
	send_own(out, by, own, n);
}

void udp_out_flush(struct udp_out *out)
{
	unsigned int i;

	loop_task_stop(&out->late);
	for (i = 0; i < out->n; i++) {
		if (out->item[i].by)
			send_of(out, i);
	}
	out->n = 0;
	out->used = 0;
}

static unsigned int first_of(const struct udp_out *out,
			     const struct udp_sender *by)
{
	unsigned int i = 0;

	while (out->item[i].by != by)
		i++;
	return i;
}

void udp_out_flush_of(struct udp_out *out, struct udp_sender *by)
{
	if (by->gathered)
		send_of(out, first_of(out, by));
}
