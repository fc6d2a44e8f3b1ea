/* SPDX-License-Identifier: MIT */
/*
 * The last step of the way in: messages that are due reach their connection's
 * socket, those of one read together.
 */
#ifndef TM3_DELIVERY_H
#define TM3_DELIVERY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct conn;
struct reorder;
struct reorder_early;
struct session;

enum { DELIVERY_IOV = 64 };

/*
 * Messages in order for one connection, gathered from one read so that they
 * reach its socket in one call. The bytes lie in the read buffer or in early
 * messages, which are released after the call.
 */
struct delivery {
	struct conn *conn;
	int n;
	size_t len;
	struct iovec iov[DELIVERY_IOV];
	struct reorder_early *early;
};

/* Of these @c's, which is no connection of others' where it is NULL. */
static inline size_t delivery_gathered(const struct delivery *d,
				       const struct conn *c)
{
	return d->conn == c ? d->len : 0;
}

/*
 * The next bytes are @c's: what was gathered for another one, or as much as may be, is
 * delivered.
 */
void delivery_turn(struct session *s, struct conn *c);
/* @len bytes at @body are due; they stay where they are until the flush. */
void delivery_add(struct session *s, struct conn *c, const uint8_t *body,
		  size_t len);
/* @early is released with the next flush, when nothing points to it any more. */
void delivery_keep(struct session *s, struct reorder_early *early);
void delivery_flush(struct session *s);

/* @early of @c, just taken from @q, had to wait until now. */
void delivery_waited(struct session *s, struct conn *c, const struct reorder *q,
		     const struct reorder_early *early);

#endif
