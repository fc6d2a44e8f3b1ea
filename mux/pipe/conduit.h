/* SPDX-License-Identifier: MIT */
/*
 * A connected socket, and the layer that may lie between it and who uses it: one
 * that encrypts. Without a layer, which is the plain case, bytes go as they are.
 * A greeting reads the first message of a pipe through it, and hands both on to
 * the pipe.
 *
 * What layers are made of the engine does not know. A layer reads its socket
 * itself; what it has to send it leaves as records in out, for whoever has the
 * conduit to write. Records are made only when all before them are written: so no
 * more than a portion of a run, or one record of small ones, is ever made ahead of the socket. A
 * layer may also have something to say for itself, a little: that waits in out for the next run.
 */
#ifndef TM3_CONDUIT_H
#define TM3_CONDUIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

struct keys;
struct layer;
struct layers;

/* So many bytes of a run, which are whole records, are made into records at once. */
enum { LAYER_PORTION = 64 * 1024 };

struct layer_ops {
	/*
	 * The handshake, as far as what came allows. 0: it is done; -EAGAIN:
	 * more has to come; any other: it failed, and why() says how; -ENOMEM:
	 * which is not the other end's fault. There may be something to write in
	 * each case.
	 */
	int (*shake)(struct layer *l);
	/*
	 * As recv(): what was sent to us, and -1 with EAGAIN in errno when there
	 * is no whole record. An end that the other side did not announce is
	 * ECONNRESET; ENOMEM: what came is lost; what breaks the layer's rules is EBADMSG, and why() says
	 * how. An answer may be left in out; it need not go before the next run.
	 */
	ssize_t (*read)(struct layer *l, void *buf, size_t len);
	/* Makes records of all of @buf, behind those in out. 0 or -errno. */
	int (*seal)(struct layer *l, const void *buf, size_t len);
	/* The first @n bytes of out were written. */
	void (*wrote)(struct layer *l, size_t n);
	/* Says in out that nothing more comes. */
	void (*shut)(struct layer *l);
	/* Why the handshake, or reading with EBADMSG, failed, for a log. */
	const char *(*why)(const struct layer *l);
	/* It is another thread's from now on, whose layers are @to. */
	void (*move)(struct layer *l, struct layers *to);
	void (*free)(struct layer *l);
};

struct layer {
	const struct layer_ops *ops;
	int fd;			/* not its own */
	const char *name;	/* whose key it is, when the handshake is done */
	const char *tried;	/* the same while it goes on; NULL: not known yet */
	size_t overhead;	/* of a record, in bytes */
	size_t record;		/* the most that one has, without it */
	size_t memory;		/* that the layer takes at most */
	const uint8_t *out;	/* records that are to be written */
	size_t out_len;
	/* More may be read although the socket has nothing, so many bytes. */
	size_t pending;
};

/* Where a thread has its layers from. */
struct layers {
	/* @accepted: not we have connected @fd. NULL for want of memory. */
	struct layer *(*new)(struct layers *from, int fd, bool accepted);
	/*
	 * The same for another thread or with other keys, to be given back to put_beside().
	 * Layers that have shaken hands can be moved there. NULL for want of memory.
	 */
	struct layers *(*beside)(struct layers *from);
	void (*put_beside)(struct layers *layers);
	/* Handshakes to come take these, which stay the caller's. */
	void (*take)(struct layers *layers, const struct keys *keys);
	/* What one takes of memory at most before its handshake is done. */
	size_t memory_shaking;
};

struct conduit {
	int fd;
	struct layer *layer;	/* or NULL */
};

static inline struct conduit conduit_plain(int fd)
{
	return (struct conduit){ .fd = fd };
}

/*
 * Of @fd, with a layer from @layers unless that is NULL. Returns 0 or -ENOMEM;
 * then @fd is closed.
 */
int conduit_open(struct conduit *c, struct layers *layers, int fd,
		 bool accepted);
/* Also resets it, where that is what closing @fd does. */
void conduit_close(struct conduit c);
/* It is another thread's from now on, which has @layers. */
void conduit_move(struct conduit c, struct layers *layers);

/* As layer_ops.shake(), and what there is to say is said. 0 where there is no layer. */
int conduit_shake(struct conduit c);
/* As recv(). */
ssize_t conduit_read(struct conduit c, void *buf, size_t len);
/* Writes all of @buf to a socket that was just made. False: it does not take it. */
bool conduit_say(struct conduit c, const void *buf, size_t len);
/* No more from this end. */
void conduit_shut(struct conduit c);

/* The bytes that @len become in the socket, but for what a layer says itself now and then. */
static inline size_t layer_len(const struct layer *l, size_t len)
{
	return !l || !len ? len :
	       len + ((len - 1) / l->record + 1) * l->overhead;
}

/* No more than @most, and such that whole ones fill a record. */
static inline size_t layer_piece(const struct layer *l, size_t most)
{
	return l ? l->record / ((l->record + most - 1) / most) : most;
}

#endif
