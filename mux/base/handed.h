/* SPDX-License-Identifier: MIT */
/*
 * Listening sockets that a process was started with, as systemd's socket activation has
 * it: $LISTEN_FDS of them from descriptor 3 on, for $LISTEN_PID, by the names in
 * $LISTEN_FDNAMES.
 *
 * Whoever takes one gets a descriptor of its own, so that all can be offered once
 * more after a start that did not come to its end. The first ones are closed at last.
 */
#ifndef TM3_HANDED_H
#define TM3_HANDED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

enum { HANDED_MAX = 32, HANDED_NAME = 32 };

struct log;

struct handed_socket {
	int fd;
	char name[HANDED_NAME];	/* "" if there is none; a longer one is cut */
	struct sockaddr_storage addr;
	bool taken;
};

struct handed {
	struct handed_socket socket[HANDED_MAX];
	unsigned int n;
};

/*
 * Looks what there is, once: the variables are gone then. 0, or -1 with a reason in
 * @why, where one of them is no listening socket of TCP or MPTCP.
 */
int handed_init(struct handed *h, char *why, size_t why_len);
void handed_fini(struct handed *h);

/* All are there to be taken again. */
void handed_offer(struct handed *h);
/* A descriptor of @s, which is taken then, or -errno. */
int handed_take(struct handed_socket *s);

/* The first that nobody has taken, of this name, or at this address; or NULL. */
struct handed_socket *handed_named(struct handed *h, const char *name);
struct handed_socket *handed_at(struct handed *h,
				const struct sockaddr_storage *addr);
/*
 * A socket of the unit file that nobody accepts from would be silent for good: says so, and
 * @what it is that it is not. 0 or -EINVAL.
 */
int handed_all_taken(const struct handed *h, struct log *log, const char *what);

#endif
