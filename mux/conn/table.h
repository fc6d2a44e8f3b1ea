/* SPDX-License-Identifier: MIT */
/*
 * Whose message is this? The table of a session's connection ids.
 *
 * Ids are used again, and pipes let messages of the old owner of an id arrive
 * after those of the new. So a closed id remembers its former owner for
 * REST_SECONDS: numbers from the one the former expected next on belong to it,
 * lower ones to a successor. A SYN for an id whose owner is still
 * there detaches that owner, which finishes by the same rule.
 *
 * Two things are known better than by that rule. On most pipes messages keep
 * their order, so once the successor was heard on such a pipe, all that follows
 * on it is the successor's. And when all messages up to the former's FIN have come,
 * nothing of it can be under way.
 *
 * No sockets, no clock.
 */
#ifndef TM3_TABLE_H
#define TM3_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/list.h"
#include "../wire/wire.h"

struct conn;
struct table;

enum table_verdict {
	TABLE_CONN,	/* it belongs to route->conn */
	TABLE_LATE,	/* to one that has ended: drop it */
	TABLE_NEW,	/* to nobody yet: table_add() a connection for it */
};

struct table_route {
	enum table_verdict verdict;
	struct conn *conn;
	/* TABLE_LATE: that one, if its socket is still being closed. */
	struct conn *closing;
	/* A detached connection that must make place: abort it. */
	struct conn *evicted;
};

struct table *table_new(void);
void table_free(struct table *t);

/* For a pipe on which messages overtake each other: it tells nothing. */
enum { TABLE_NO_ORDER = 64 };

/*
 * Route a message that came on pipe @pipe. @accepts: this end may get SYNs, so
 * unknown ids are TABLE_NEW; else they are TABLE_LATE.
 */
struct table_route table_route(struct table *t, const struct wire_msg *msg,
			       unsigned int pipe, bool accepts, int64_t now);

/*
 * What table_route() would say if a message with that head came on @pipe;
 * nothing changes for being asked. A SYN for an id whose owner is still there
 * counts as the owner's.
 */
struct table_route table_foresee(const struct table *t,
				 const struct wire_head *head,
				 unsigned int pipe, bool accepts);

void table_add(struct table *t, struct conn *c);

/*
 * @c has ended. @complete: its FIN was delivered, so nothing of it can still be
 * under way, and its id needs no rest on that account.
 */
void table_remove(struct table *t, struct conn *c, bool complete, int64_t now);

/* @c had ended before, and is not there any more. */
void table_gone(struct table *t, const struct conn *c);

/* Is there no connection with this id? One that is detached does not count. */
bool table_is_free(const struct table *t, uint16_t id);

/*
 * For the end that gives out ids: the next one that is neither in use nor
 * resting, walking the whole range; 0 when there is none.
 */
uint16_t table_next_id(struct table *t, int64_t now);

/* It walks from @id on (1 to WIRE_ID_LP_MAX). To be called before it does. */
void table_begin_at(struct table *t, uint16_t id);

/* Was @id ever given out? */
bool table_gave(const struct table *t, uint16_t id);

bool table_has_id(const struct table *t);

/*
 * When the oldest memory of a former owner expires; 0 for none. table_expire()
 * forgets what has expired; a detached connection whose time is up without its
 * FIN is returned: abort it, and call again.
 */
int64_t table_expiry(const struct table *t);
struct conn *table_expire(struct table *t, int64_t now);

unsigned int table_conns(const struct table *t);
unsigned int table_formers(const struct table *t);

#endif
