/* SPDX-License-Identifier: MIT */
/*
 * Sessions of the extension. There are none yet: RP refuses each, and LP takes
 * none.
 */
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "greeting.h"
#include "session.h"

struct session *greet_find(struct engine *engine, const struct wire_hello *hello)
{
	(void)engine;
	(void)hello;
	return NULL;
}

struct session *greet_new(struct engine *engine,
			  const struct session_role *role, void *owner,
			  const char *peer, const struct wire_hello *hello,
			  int fd)
{
	(void)engine;
	(void)role;
	(void)owner;
	(void)peer;
	(void)hello;
	greet_refuse(fd, WIRE_WELCOME_REFUSED);
	return NULL;
}

bool greet_join(struct session *s, const struct wire_hello *hello, int fd)
{
	(void)s;
	(void)hello;
	greet_refuse(fd, WIRE_WELCOME_REFUSED);
	return false;
}

struct session *greet_welcomed(struct engine *engine,
			       const struct session_role *role, void *owner,
			       const char *peer, const struct wire_hello *hello,
			       const struct wire_welcome *welcome, int fd)
{
	(void)engine;
	(void)role;
	(void)owner;
	(void)peer;
	(void)hello;
	(void)welcome;
	close(fd);
	return NULL;
}

struct conn *session_ask(struct session *s, const struct destination *to)
{
	(void)s;
	(void)to;
	return NULL;
}

bool session_is_extended(const struct session *s)
{
	(void)s;
	return false;
}

int session_join(struct session *s, int fd)
{
	(void)s;
	close(fd);
	return -EOPNOTSUPP;
}

unsigned int session_lacks(const struct session *s)
{
	(void)s;
	return 0;
}
