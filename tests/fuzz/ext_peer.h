/* SPDX-License-Identifier: MIT */
/*
 * The peer of a session of the extension: it hears what the session says, and
 * checks it, and says what the input wants. It is LP where the session is RP's.
 */
#ifndef TM3_FUZZ_EXT_PEER_H
#define TM3_FUZZ_EXT_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mux/wire/wire_ext.h"
#include "framing.h"
#include "input.h"

enum {
	PIPES = 3,
	IDS = 8,		/* of each half, whose numbers are followed */
	NUMBERS = 512,
};

/* The peer's end of a pipe. */
struct far_end {
	int fd;
	bool joining;		/* LP's HELLO is awaited on it */
	uint32_t incarnation;
	struct hearing hearing;
	uint64_t heard;		/* messages that count, of the session's */
	/* What went into it, counted byte by byte: at least what counts. */
	uint64_t said;
	struct framing framing;
	size_t owed;		/* zeros, of a message that was cut */
};

struct followed {		/* of an id, what the session said of it */
	uint32_t hash[NUMBERS];	/* 0: not heard */
	uint8_t kind[NUMBERS];	/* enum use_kind */
	uint16_t len[NUMBERS];	/* of the body */
	uint64_t granted;	/* by the peer, at most; early limits apart */
	uint32_t next;		/* number of the peer's next message */
};

struct ext_peer {
	bool hears_rp;		/* what it hears is downlink */
	struct wire_hello hello;	/* that began the session */
	unsigned int npipes;
	struct far_end far[PIPES];
	struct followed id[2 * IDS];	/* LP's, then RP's */
	bool large;		/* both ends have feature LARGE */
	bool said_raw;		/* so nobody knows what it granted */
};

/* NULL: it is not followed. */
static inline struct followed *followed_id(struct ext_peer *peer, uint16_t id)
{
	bool of_rp = id > WIRE_ID_LP_MAX;
	unsigned int i = of_rp ? id - WIRE_ID_LP_MAX - 1u : id;

	return i < IDS ? &peer->id[i + (of_rp ? IDS : 0)] : NULL;
}

void far_begin(struct far_end *far, int fd, uint32_t incarnation);
void far_close(struct far_end *far);

/* What the session wrote to a pipe. */
void peer_hears(struct ext_peer *peer, struct far_end *far);
/* All that was heard of its ids, in their order. */
void peer_checks(const struct ext_peer *peer);

/* What the input says: bytes, a message of a connection, one of the session. */
void peer_says_raw(struct ext_peer *peer, struct far_end *far,
		   struct input *in);
void peer_says_numbered(struct ext_peer *peer, struct far_end *far,
			struct input *in);
void peer_says_control(struct ext_peer *peer, struct far_end *far,
		       struct input *in);

/* Writes to a pipe as much as it takes, and counts messages on the way. */
void far_send(struct far_end *far, const uint8_t *buf, size_t n);
/* All but the last @owed bytes, which are zeros, and go ahead of what is sent next. */
void far_send_cut(struct far_end *far, const uint8_t *buf, size_t n, size_t owed);

#endif
