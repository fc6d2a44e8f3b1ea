/* SPDX-License-Identifier: MIT */
/* What the parts of the model share: ends.c, ends_talk.c and ends_run.c. */
#ifndef TM3_TEST_ENDS_INSIDE_H
#define TM3_TEST_ENDS_INSIDE_H

#include "ends.h"

#include "mux/conn/reorder.h"
#include "mux/extension/admission.h"
#include "mux/extension/credit.h"
#include "mux/extension/kept.h"
#include "mux/extension/tally.h"
#include "mux/extension/use.h"
#include "random.h"

enum { LP, RP, ENDS };
enum { PIPES = 2, IDS = 2, FLIGHT = 24, WIRES = 6, CHUNK = 5 };
enum { WINDOW_BYTES = 40, DATA_BYTES = 9, EARLY_BYTES = 30, EARLY_ALL = 50 };

/* In the order of enum use_kind from OPEN on. */
enum message_kind {
	HELLO, WELCOME, ACK, WINDOW, OPEN, SYNACK, DATA, NO_MORE, RESET,
};

struct message {
	enum message_kind kind;
	uint8_t id;
	uint32_t number;
	uint32_t bytes;		/* DATA */
	uint32_t window;	/* OPEN */
	uint64_t offset;	/* SYNACK, WINDOW */
	uint64_t serial;	/* the model's, not on the wire */
	uint64_t count;		/* on its pipe; 0: does not count */
	bool ordered;		/* overtakes no other such one */
	struct {
		bool there;
		uint32_t incarnation;
		uint64_t received;
	} acked[PIPES];
};

struct item {
	struct kept_item kept;
	struct message msg;
};

struct flight {			/* under way in one direction */
	struct message msg[FLIGHT];
	int count;
};

struct wire {			/* one incarnation of a pipe */
	int index;
	uint32_t incarnation;
	bool open[ENDS];
	struct flight flight[ENDS];	/* by the end that sent it */
};

struct leg {			/* a pipe at one end */
	struct wire *wire;	/* NULL: it has none now */
	bool welcomed;
	bool greeted;		/* RP: WELCOME is known to have come */
	struct kept kept;
	struct tally tally;
};

struct id {
	struct use use;
	struct reorder order;
	struct credit_out out;
	struct credit_in in;
	struct message chunk[CHUNK];	/* cut, and from front to back not sent yet */
	int front, back;
	uint64_t early_sent;	/* in this use */
	uint64_t early_due;	/* at RP: in this use, before SYNACK was sent */
	uint64_t serial_sent, serial_due;
};

struct end {
	struct leg leg[PIPES];
	struct id id[IDS];
	struct kept_item *again, **again_end;
	bool ack_due;
};

struct ends {
	struct random r;
	enum wrong_rule wrong;
	bool unordered;
	struct wire wire[WIRES];
	struct end end[ENDS];
	struct admission admission;	/* at RP */
	struct early early;		/* at LP */
	uint64_t early_held;		/* at RP, of uses not answered */
	uint32_t dialled[PIPES];
	struct item *spare;
	struct ends_result result;
};

static inline enum use_kind ends_kind(enum message_kind kind)
{
	return (enum use_kind)(kind - OPEN);
}

static inline void ends_forget_credit(struct id *id)
{
	id->out = (struct credit_out){ 0 };
	id->in = (struct credit_in){ 0 };
}

void items_put(struct ends *m, struct kept_item *list);
/* On any pipe; without one it waits with what goes again. */
void ends_send_any(struct ends *m, int end, const struct message *msg);
void ends_act(struct ends *m, int end);
void ends_respond(struct ends *m, int end, int n);
void ends_send_ack(struct ends *m, int end);
void ends_send_again(struct ends *m, int end);
void ends_send_copy(struct ends *m, int end);
/* One message of the chunk of id @n. False: it has none. */
bool ends_send_part(struct ends *m, int end, int n);
void ends_close(struct ends *m, int end, struct leg *leg);
void ends_dial(struct ends *m, int index);
bool ends_parse(struct ends *m, struct wire *wire, int end);

#endif
