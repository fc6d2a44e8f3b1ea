/* SPDX-License-Identifier: MIT */
/*
 * The greeting: which session a new pipe belongs to.
 *
 * In baseline a pipe says nothing about itself. Whoever accepted or dialled the
 * descriptors says which belong together, and a session starts when all of them
 * are there: greet_baseline().
 *
 * In the extension the first message of a pipe up is HELLO, which names the
 * session, and the first down is WELCOME. A struct greeting is a conduit on
 * which one of them is awaited; it reads no byte behind it. Where the conduit has
 * a layer its handshake comes first.
 *
 * RP, for each descriptor accepted on the extension's port:
 *
 *	greeting_await(), then from ops->came() with the HELLO, of that order:
 *	  s = greet_find()          the session that it names
 *	  s:     greet_join()       after a look at the address it came from
 *	  no s:  greet_objection(); WIRE_WELCOME_NEW and room for a session:
 *	         greet_new(), else greet_decline() with what it said, or with
 *	         WIRE_WELCOME_BUSY or _REFUSED
 *
 * LP, for each session:
 *
 *	one descriptor: greet_hello(), greeting_say(), then from ops->came()
 *	  status NEW:  greet_welcomed(), then as many more descriptors as
 *	               session_lacks() says, each to session_join(). When
 *	               role->lacks() tells that pipes were lost: the same
 *	  any other:   no session. Nothing of it is left behind
 *	from ops->failed(): CLOSED or SILENT tell that RP does not speak it
 *
 * Each new try of LP's for a first pipe is a new session with a new HELLO.
 */
#ifndef TM3_GREETING_H
#define TM3_GREETING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../pipe/conduit.h"
#include "../wire/wire_ext.h"

struct engine;
struct greeting;
struct loop;
struct session;
struct session_role;

/*
 * Makes a session of @n connected sockets, which it owns from here on (also
 * when it fails and returns NULL). @peer: as logs shall name the other end.
 */
struct session *greet_baseline(struct engine *engine,
			       const struct session_role *role, void *owner,
			       const char *peer, const int *fds,
			       unsigned int n);

/* --- the first message each way --- */

enum greeting_failure {
	GREETING_CLOSED,	/* the other end closed or reset it first */
	GREETING_SILENT,	/* it did not come in time */
	GREETING_WRONG,		/* what came is something else */
	GREETING_STRANGER,	/* its handshake failed: greeting_why() */
	GREETING_SHORT,		/* here memory was, whatever the other end did */
};

struct greeting_ops {
	/*
	 * It came: @said is a sound HELLO (greeting_await()) or WELCOME
	 * (greeting_say()). Take the descriptor, or free @g, now or later.
	 */
	void (*came)(struct greeting *g, const struct wire_ext *said);
	/* It will not come. Free @g, now or later. */
	void (*failed)(struct greeting *g, enum greeting_failure why);
	/*
	 * Something came: greeting_go_on() reads it, now or later. It is told once for all that
	 * came until then. NULL: it is read at once.
	 */
	void (*due)(struct greeting *g);
};

/*
 * RP awaits the HELLO of @conduit, LP says @hello on it and awaits the WELCOME;
 * for @patience ns, the handshake of its layer included. The conduit is the
 * greeting's from here on, also when NULL is returned for want of memory.
 */
struct greeting *greeting_await(struct loop *loop, struct conduit conduit,
				int64_t patience,
				const struct greeting_ops *ops, void *owner);
struct greeting *greeting_say(struct loop *loop, struct conduit conduit,
			      const struct wire_hello *hello, int64_t patience,
			      const struct greeting_ops *ops, void *owner);
/* Reads what came; came() or failed() may be called from within. */
void greeting_go_on(struct greeting *g);
void *greeting_owner(const struct greeting *g);
int greeting_fd(const struct greeting *g);
/* Why the handshake failed. */
const char *greeting_why(const struct greeting *g);
/* Whose key its handshake is with. NULL: with none, or that is not known yet. */
const char *greeting_key(const struct greeting *g);
/* Without a layer, or once its handshake is done. */
bool greeting_is_shaken(const struct greeting *g);
/* What came as far as it was read: @len bytes. */
const uint8_t *greeting_heard(const struct greeting *g, size_t *len);
/* Frees @g and returns its conduit. */
struct conduit greeting_take(struct greeting *g);
/* Frees @g and closes its conduit. */
void greeting_free(struct greeting *g);

/* --- RP --- */

/* The session that @hello names, or NULL. */
struct session *greet_find(struct engine *engine,
			   const struct wire_hello *hello);
/*
 * What @hello is to be answered with where there is no such session:
 * WIRE_WELCOME_NEW when one may begin, _UNKNOWN when it speaks of one that
 * began before, _REFUSED when its version, features or path do not do.
 */
enum wire_welcome_status greet_objection(const struct wire_hello *hello);
/*
 * Begins the session that @hello names, with @conduit as its first pipe, and says
 * WELCOME. NULL for want of memory; @conduit is closed then.
 */
struct session *greet_new(struct engine *engine,
			  const struct session_role *role, void *owner,
			  const char *peer, const struct wire_hello *hello,
			  struct conduit conduit);
/*
 * @conduit joins its session. False: it may not, by index, count or incarnation;
 * why was logged, and it is closed.
 */
bool greet_join(struct session *s, const struct wire_hello *hello,
		struct conduit conduit);
/*
 * The number of the path that the pipe of @hello is on. One that is none is 0 here, and
 * greet_join() objects to it.
 */
unsigned int greet_path(const struct session *s, const struct wire_hello *hello);
/* Says WELCOME with a @status that is neither NEW nor RESUMED, and closes @conduit. */
void greet_decline(struct conduit conduit, enum wire_welcome_status status);

/* --- LP --- */

/* The HELLO of a new session's first pipe. 0 or -errno. */
int greet_hello(struct wire_hello *hello, unsigned int pipes);
/*
 * @welcome, with status NEW, answered @hello on @conduit: begins the session. NULL
 * for want of memory, or when what RP says it speaks will not do; it is closed then.
 */
struct session *greet_welcomed(struct engine *engine,
			       const struct session_role *role, void *owner,
			       const char *peer,
			       const struct wire_hello *hello,
			       const struct wire_welcome *welcome,
			       struct conduit conduit);

#endif
