/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "steering.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../mux/base/addr.h"
#include "../mux/base/log.h"
#include "../mux/base/sock.h"
#include "../mux/conn/address.h"
#include "first_bytes.h"
#include "owner.h"

enum { FIRST_MAX = 8192 };	/* bytes that are looked at */

/* Whose it is is found out when a rule asks. */
struct client {
	struct steering *st;
	int fd;
	const struct destination *to;
	bool asked;
	int err;		/* why the owner is not known */
	struct owner owner;
};

/* --- whose it is --- */

static const char *why(int err)
{
	if (err == -ENOENT)
		return "it is no process of this host and network namespace";
	if (err == -EOVERFLOW)
		return "lp's user namespace has not its user";
	return err == -ESRCH ? "/proc shows none" : strerror(-err);
}

static void say_user(struct steering *st, int err)
{
	if (!st->said_user)
		log_warn(st->log, "--rule: a client's user and program are not known, and meet no rule: %s (said once)",
			 why(err));
	st->said_user = true;
}

static void say_program(struct steering *st, int err)
{
	if (!st->said_program)
		log_warn(st->log, "--rule: a client's program is not known, and meets no rule: a process of its user cannot be looked at: %s (said once)",
			 why(err));
	st->said_program = true;
}

/* As its socket has it: what was redirected thinks that it reached @to. */
static int find(const struct client *c, struct owner *owner)
{
	struct sockaddr_storage from = { 0 }, to;
	socklen_t len = sizeof(from);
	int err;

	if (getpeername(c->fd, (struct sockaddr *)&from, &len))
		return -errno;
	err = sock_address(c->fd, &to);
	if (!err)
		err = owner_find(c->st->diag, &from, &to, owner);
	if (err != -ENOENT || c->to->kind == DESTINATION_NAME)
		return err;
	to = destination_address(c->to);
	addr_unmap(&from);
	return owner_find(c->st->diag, &from, &to, owner);
}

static bool is_known(struct client *c)
{
	if (!c->asked)
		c->err = find(c, &c->owner);
	c->asked = true;
	if (c->err)
		say_user(c->st, c->err);
	return !c->err;
}

static bool is_of_user(void *client, uid_t user)
{
	struct client *c = client;

	return is_known(c) && c->owner.user == user;
}

static bool is_of_program(void *client, const char *program)
{
	struct client *c = client;
	int is;

	if (!is_known(c))
		return false;
	is = owner_runs(&c->owner, program);
	if (is < 0)
		say_program(c->st, is);
	return is > 0;
}

/* --- which paths --- */

static uint8_t paths_for(struct steering *st, int fd,
			 const struct destination *to, const char *name)
{
	struct client client = { .st = st, .fd = fd, .to = to };
	const struct path_facts facts = {
		.to = to, .name = name, .client = &client,
		.is_of_user = is_of_user, .is_of_program = is_of_program,
	};

	return path_rules_paths(st->rules, &facts);
}

struct bounds steering_bounds(struct steering *st, int fd,
			      const struct destination *to, const char *name)
{
	if (!name && to->kind == DESTINATION_NAME)
		name = (const char *)to->bytes;
	return (struct bounds){
		.paths = paths_for(st, fd, to, name),
		.by_first_bytes = !name && path_rules_ask_names(st->rules),
	};
}

uint8_t steering_by_first_bytes(struct steering *st, int fd,
				const struct destination *to)
{
	uint8_t bytes[FIRST_MAX];
	char name[HOST_MAX + 1];
	ssize_t len = recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	bool known = len > 0 && first_bytes_name(bytes, (size_t)len, name);

	return paths_for(st, fd, to, known ? name : NULL);
}

/* --- from start to end --- */

void steering_open(struct steering *st, const struct path_rules *rules,
		   bool paths, struct log *log)
{
	*st = (struct steering){
		.rules = rules, .log = log,
		.diag = paths ? owner_open() : -EBADF,
	};
}

void steering_announce(const struct steering *st)
{
	if (path_rules_ask_users(st->rules) && !owner_knows_users())
		log_warn(st->log, "--rule: lp is in a user namespace without all users of this host (PrivateUsers=yes of systemd): clients of users that it lacks meet no rule with user, and clients outside of it none with program");
	if (path_rules_ask_programs(st->rules) && !owner_sees_processes())
		log_warn(st->log, "--rule: /proc does not show lp the processes of other users (ProtectProc=invisible of systemd): their clients meet no rule with program");
}

void steering_close(struct steering *st)
{
	if (st->diag >= 0)
		close(st->diag);
	st->diag = -EBADF;
}
