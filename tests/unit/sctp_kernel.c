/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "sctp_kernel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <linux/sock_diag.h>

#include "mux/options/options.h"
#include "mux/pipe/carrier.h"
#include "mux/wire/wire.h"

struct sctp_kernel kernel;
struct sctp_seen seen;
struct settings settings;
struct pipe p;

static struct pipe_shared shared;

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
	struct piece *now = &kernel.piece[kernel.taken];
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
	errno = kernel.send_err ? kernel.send_err : EAGAIN;
	return -1;
}

int getsockopt(int fd, int level, int name, void *restrict value,
	       socklen_t *restrict len)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };

	(void)fd;
	if (kernel.gone) {
		errno = EINVAL;
		return -1;
	}
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
	(void)fd, (void)level, (void)value, (void)len;
	if (!kernel.refuses || name != kernel.refuses)
		return 0;
	errno = ENOMEM;
	return -1;
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
	seen.ended = true;
	seen.end_error = err;
}

static const struct pipe_ops ops = {
	.message = take, .broken = broken, .ended = ended,
};

int sctp_set_up(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	memset(&seen, 0, sizeof(seen));
	memset(&p, 0, sizeof(p));
	settings_init(&settings);
	shared.scratch = malloc(SCRATCH);
	shared.scratch_size = SCRATCH;
	shared.large = false;
	if (!shared.scratch)
		return -1;
	p.ops = &ops;
	p.shared = &shared;
	p.settings = &settings;
	p.transport = TRANSPORT_SCTP;
	p.carrier = &carrier_sctp;
	p.fd = p.watch.fd = -1;
	loop_task_init(&p.unpolled, NULL);
	loop_task_init(&p.owed.task, NULL);
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

int sctp_tear_down(void **state)
{
	(void)state;
	carrier_sctp.close(&p);
	partial_fini(&p.partial);
	free(shared.scratch);
	return 0;
}

/* --- messages --- */

size_t message(uint8_t *at, uint16_t id, size_t payload)
{
	memset(at + WIRE_HEADER, 'x', payload);
	return wire_put_data(at, id, 1, payload) + payload;
}

struct run *make_run(uint16_t id, unsigned int n, size_t payload,
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
