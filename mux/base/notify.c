/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { TEXT_MAX = 512 };

/* "/path", or "@name" of an abstract one. 0 or -errno. */
static int address_of(struct sockaddr_un *un, socklen_t *len, const char *path)
{
	size_t n = strlen(path);

	if ((*path != '/' && *path != '@') || n < 2 ||
	    n >= sizeof(un->sun_path))
		return -EINVAL;
	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, path, n);
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	if (*path == '@')
		un->sun_path[0] = '\0';
	else
		(*len)++;
	return 0;
}

static int reach(const char *path)
{
	struct sockaddr_un un;
	socklen_t len;
	int fd, err = address_of(&un, &len, path);

	if (err)
		return err;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&un, len))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* Half of what is allowed, so that one sign may come late. 0: none is wanted. */
static int64_t watchdog_interval(void)
{
	const char *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");

	if (!usec || (pid && strtol(pid, NULL, 10) != getpid()))
		return 0;
	return strtoll(usec, NULL, 10) * NS_PER_US / 2;
}

/* False: it found no room, or nobody is there any more. */
static bool say(struct notify *n, const char *text)
{
	return n->fd < 0 ||
	       send(n->fd, text, strlen(text), MSG_NOSIGNAL) >= 0;
}

static void say_status(struct notify *n)
{
	char status[NOTIFY_STATUS], text[TEXT_MAX];

	n->describe(n, status, sizeof(status));
	if (!strcmp(status, n->status))
		return;
	snprintf(text, sizeof(text), "STATUS=%s", status);
	if (say(n, text))
		strcpy(n->status, status);
}

static void set_timer(struct notify *n)
{
	int64_t in = NS_PER_SEC;

	if (n->watchdog && n->watchdog < in)
		in = n->watchdog;
	if (n->fd >= 0)
		loop_timer_in(n->loop, &n->timer, in);
}

static void tick(struct timer *t)
{
	struct notify *n = container_of(t, struct notify, timer);
	int64_t now = loop_clock();
	bool alive = n->watchdog && n->alive(n);

	if (n->ready_due && say(n, "READY=1"))
		n->ready_due = false;
	/* Where the next tick would be too late, now is the time. */
	if (alive && now + NS_PER_SEC > n->alive_at + n->watchdog &&
	    say(n, "WATCHDOG=1"))
		n->alive_at = now;
	say_status(n);
	set_timer(n);
}

int notify_open(struct notify *n, struct loop *loop,
		void (*describe)(struct notify *n, char *text, size_t len),
		bool (*alive)(struct notify *n))
{
	const char *path = getenv("NOTIFY_SOCKET");

	memset(n, 0, sizeof(*n));
	n->loop = loop;
	n->describe = describe;
	n->alive = alive;
	n->timer.fire = tick;
	n->fd = path && *path ? reach(path) : -ENOENT;
	if (n->fd >= 0)
		n->watchdog = watchdog_interval();
	return !path || !*path || n->fd >= 0 ? 0 : n->fd;
}

void notify_close(struct notify *n)
{
	loop_timer_stop(n->loop, &n->timer);
	if (n->fd >= 0)
		close(n->fd);
	n->fd = -1;
}

void notify_later(struct notify *n, const char *status, unsigned int ms)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text), "STATUS=%s\nEXTEND_TIMEOUT_USEC=%u000",
		 status, ms);
	say(n, text);
}

void notify_ready(struct notify *n)
{
	n->ready_due = !say(n, "READY=1");
	loop_timer_stop(n->loop, &n->timer);
	tick(&n->timer);
}

/* The time tells the manager which READY=1 is the answer to it. */
void notify_reloading(struct notify *n)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
		 loop_clock() / NS_PER_US);
	say(n, text);
}

void notify_stopping(struct notify *n)
{
	say(n, "STOPPING=1");
}
