/* SPDX-License-Identifier: MIT */
/*
 * A kernel that need not have SCTP: the few calls that the carrier makes are answered by the
 * script of a test. One pipe, and what it says to its session.
 *
 * It takes the place of recvmsg(), sendmmsg(), getsockopt() and setsockopt(), so it is linked
 * into test_sctp* alone.
 */
#ifndef TM3_TEST_SCTP_KERNEL_H
#define TM3_TEST_SCTP_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <linux/sctp.h>

#include "mux/pipe/pipe.h"
#include "mux/settings/settings.h"
#include "mux/wire/run.h"

enum { SCRATCH = 256 * 1024, PIECES = 80, MOST = 200000,
       LETTERS = 64, MSS = 1452 };

struct piece {			/* what a recvmsg() brings */
	const void *bytes;
	size_t len;
	int flags, err;
	uint32_t ppid;
};

struct sctp_kernel {
	struct piece piece[PIECES];
	unsigned int pieces, taken;
	struct { size_t len; struct sctp_sndinfo info; } letter[LETTERS];
	unsigned int letters, room;	/* the socket's, in messages */
	int send_err;			/* for who sends without room; 0: EAGAIN */
	int refuses;			/* this option, for want of memory */
	bool gone;			/* the association is, and who asks of it is told */
	struct sctp_status status;
	struct sctp_assoc_stats stats;
	uint32_t queued;
};

struct sctp_seen {		/* by the session */
	unsigned int messages;
	uint16_t id[PIECES];
	uint32_t ppid[PIECES];
	size_t len[PIECES];
	uint64_t offset[PIECES];
	char broken[200], detail[200];
	int end_error;
	bool ended;
};

extern struct sctp_kernel kernel;
extern struct sctp_seen seen;
extern struct settings settings;
extern struct pipe p;

/* For cmocka. */
int sctp_set_up(void **state);
int sctp_tear_down(void **state);

/* A data message of connection @id at @at; its length. */
size_t message(uint8_t *at, uint16_t id, size_t payload);

/* A run of @n of them. */
struct run *make_run(uint16_t id, unsigned int n, size_t payload, bool heard);

#define SCTP_TEST(f) \
	cmocka_unit_test_setup_teardown(f, sctp_set_up, sctp_tear_down)

#endif
