/* SPDX-License-Identifier: MIT */
/*
 * The seam for policies of paths: where a session has several, which of them carries the next
 * bytes.
 *
 * A policy may leave out paths altogether (uses), order those that could send (pick), and keep a
 * connection's next bytes off a path although it could send them (takes): then they wait for
 * another one. What a policy does not say is decided as if all pipes were on one path. Each is one
 * small file, named in the list at the end of path_policy.c.
 *
 * It also decides what is sent again, copies and datagrams, but for takes: these do not wait.
 *
 * A connection may be bound to some paths (conn->paths). A policy chooses among these alone; where
 * it would use none of them, they are used nevertheless.
 *
 * No sockets, no clock.
 */
#ifndef TM3_PATH_POLICY_H
#define TM3_PATH_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conn;
struct path;
struct path_choice;
struct paths;
struct pipe;

/* What goes over a path although another one carries it. */
enum path_twice {
	PATH_TWICE_NEVER,
	PATH_TWICE_ALL,		/* everything, and ahead of what is new */
	PATH_TWICE_LAST,	/* what connections sent last, once there is nothing new */
};

struct path_policy {
	const char *name, *summary;
	const char *argument;	/* what stands behind its name and a colon; or NULL */
	/* May it carry anything now? NULL: any path may. */
	bool (*uses)(const struct path_choice *choice, const struct path *path);
	/* The best of @n (at least one) that could send. NULL: the pipes' policy picks. */
	const struct path *(*pick)(const struct path_choice *choice,
				   const struct path *const *able,
				   unsigned int n);
	/* May it carry the next bytes of @c? NULL: any path may. */
	bool (*takes)(const struct path_choice *choice, const struct path *path,
		      const struct conn *c);
	/* @path was given so many new bytes of @c, counted in its tx_bytes. Or NULL. */
	void (*sent)(struct path_choice *choice, const struct path *path,
		     struct conn *c, size_t bytes);
	/*
	 * Shall @path carry as well what @arrives_at that time on another one? NULL: yes, as
	 * @twice says.
	 */
	bool (*repeats)(const struct path_choice *choice,
			const struct path *path, int64_t arrives_at);
	/*
	 * Connections' bytes are cut into chunks: does @path take those of @c from the end? NULL:
	 * nothing is cut.
	 */
	bool (*from_end)(const struct path_choice *choice,
			 const struct path *path, const struct conn *c);
	unsigned int paths;	/* it knows what to do with so many, and no more; 0: any */
	enum path_twice twice;
	bool by_message;	/* it is asked again after each message */
	bool by_size;		/* it asks how much connections have left */
};

/* What is decided by. */
struct path_choice {
	const struct path_policy *policy;
	unsigned int number;	/* one: of the path */
	double share;		/* split: of the first path, 0 to 1 */
	unsigned int turn;	/* rr: the next one's place, the nearest is 0 */
	/* Of the decision under way: */
	const struct paths *paths;	/* NULL: there is one */
	int64_t now;
	bool bound;	/* a connection is bound to some paths, or was */
};

/* May @path carry what is bound to the paths @bits? 0: it is bound to none. */
bool path_choice_uses(const struct path_choice *choice, const struct path *path,
		      uint8_t bits);

/* Of those that @able pipes are on: the one to be used. NULL: any of them. */
const struct path *path_choice_pick(const struct path_choice *choice,
				    struct pipe *const *able, unsigned int n);

bool path_choice_takes(const struct path_choice *choice, const struct pipe *p,
		       const struct conn *c);
void path_choice_sent(struct path_choice *choice, const struct pipe *p,
		      struct conn *c, size_t bytes);

/*
 * Bytes of all connections that go before the last one that @c has left, as conn_policy.ahead
 * says. @choice: a scheduler's.
 */
uint64_t path_ahead(const struct path_choice *choice, const struct conn *c);

/* Not what is bound to one path: there is nobody for the other end. */
bool path_choice_cuts(const struct path_choice *choice, const struct conn *c);
bool path_choice_from_end(const struct path_choice *choice, const struct pipe *p,
			  const struct conn *c);
bool path_choice_repeats(const struct path_choice *choice, const struct path *path,
			 int64_t arrives_at);

/* To pick the one with the least round trip without a queue. */
const struct path *path_nearest(const struct path_choice *choice,
				const struct path *const *able, unsigned int n);

/*
 * Would a message of @c on @path, behind what that holds, arrive no later than all that @c has
 * left, and what goes before that, arrives over the nearer paths? @trips: delays are as long as
 * so many round trips. It may be @late by so many seconds.
 */
bool path_is_in_time(const struct path_choice *choice, const struct path *path,
		     const struct conn *c, double trips, double late);

/* A NULL-terminated list, the default first; and by name, or NULL. */
extern const struct path_policy *const path_policies[];
const struct path_policy *path_policy_named(const char *name);

extern const struct path_policy path_soonest, path_minrtt, path_rr, path_ecf,
	path_txdelay, path_one, path_split, path_copies, path_dems_b, path_dems_s,
	path_dems_f;

#endif
