/* SPDX-License-Identifier: MIT */
/*
 * What was sent on one incarnation of a pipe and is not acknowledged by the
 * peer: the sender's side of what ACK tells. Each item stands for one message
 * or several in a row that count. It is kept until an ACK of this incarnation
 * covers its last message, or until the pipe ends; then whoever owns the
 * items sends them again on another pipe. The kernel's acknowledgement has no
 * part in this: what it acknowledged may lie unread in a closed buffer.
 *
 * The same messages may be kept for several pipes at once: such items are twins. What the
 * peer has by one of them it needs by no other, and as long as one is kept for a pipe the others
 * may go with theirs.
 *
 * The owner embeds struct kept_item in what it keeps, and gets it back.
 */
#ifndef TM3_KEPT_H
#define TM3_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/list.h"

struct kept_item {
	struct kept_item *next, *prev;	/* @prev: while it is kept */
	struct list twins;	/* all of them, this one too */
	bool there;		/* the peer has it by another pipe */
	uint64_t last;		/* count of its last message on this pipe */
	size_t bytes;		/* of memory */
};

struct kept {
	struct kept_item *first, *last;	/* the oldest, and the youngest */
	uint32_t incarnation;
	uint64_t sent;		/* messages that count */
	uint64_t received;	/* of them, as the last ACK says */
	size_t bytes;
};

enum kept_verdict {
	KEPT_OK,
	KEPT_OTHER,		/* another incarnation: ignore it, count it */
	KEPT_BEYOND,		/* what was never sent: the session ends */
};

void kept_init(struct kept *kept, uint32_t incarnation);

/* @messages that count were written to the pipe, all of them in @item. */
void kept_add(struct kept *kept, struct kept_item *item, uint32_t messages,
	      size_t bytes);

/*
 * What an ACK says of this pipe. The items that it covers are @freed, in their
 * order; NULL if none. An ACK that is overtaken by a later one frees nothing.
 */
enum kept_verdict kept_ack(struct kept *kept, uint32_t incarnation,
			   uint64_t received, struct kept_item **freed);

/* The pipe has ended: all items that are left, in their order. */
struct kept_item *kept_end(struct kept *kept);

/* @item, just added for another pipe, has the messages of @of. */
void kept_twin(struct kept_item *item, struct kept_item *of);
/* The peer has the messages of @item, which is kept no more. */
void kept_arrived(struct kept_item *item);
/*
 * Its pipe has ended: must it go again? Not if the peer has it, or a twin stands for it. It is no
 * twin of any from here on.
 */
bool kept_goes_again(struct kept_item *item);

#endif
