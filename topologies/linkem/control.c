/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "control.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../mux/base/reject.h"

enum { LISTENER = CONTROL_CLIENTS };	/* else the client's number */
enum { OWNER_ALONE = 0600 };

static int watch(struct control *c, int fd, uint32_t what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = what };

	return epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* --- opening --- */

/* A name without a file: it is gone with whoever had it. */
static int bind_name(const char *name, char *why, size_t why_len)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t n = strlen(name);
	int fd;

	if (n >= sizeof(address.sun_path))
		return reject(why, why_len, "%s", strerror(ENAMETOOLONG));
	memcpy(address.sun_path + 1, name + 1, n - 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return reject(why, why_len, "%s", strerror(errno));
	if (bind(fd, (struct sockaddr *)&address,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) == 0)
		return fd;
	reject(why, why_len, "%s", strerror(errno));
	close(fd);
	return -1;
}

static int listen_at(struct control *c, const char *path, char *why,
		     size_t why_len)
{
	if (*path == '@')
		c->listener = bind_name(path, why, why_len);
	else
		c->listener = unix_listen(&c->path, path, OWNER_ALONE, why,
					  why_len);
	if (c->listener < 0)
		return -1;
	/* In a crowd nobody waits in vain. */
	if (listen(c->listener, SOMAXCONN) < 0 ||
	    watch(c, c->listener, LISTENER))
		return reject(why, why_len, "%s", strerror(errno));
	return 0;
}

int control_open(struct control *c, const char *path, char *why,
		 size_t why_len)
{
	c->listener = -1;
	c->path.path = NULL;
	for (int i = 0; i < CONTROL_CLIENTS; i++)
		c->client[i].fd = -1;
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll < 0)
		return reject(why, why_len, "%s", strerror(errno));
	if (!path || listen_at(c, path, why, why_len) == 0)
		return 0;
	control_close(c);
	return -1;
}

static void drop(struct control_client *client)
{
	close(client->fd);
	client->fd = -1;
}

void control_close(struct control *c)
{
	for (int i = 0; i < CONTROL_CLIENTS; i++)
		if (c->client[i].fd >= 0)
			drop(&c->client[i]);
	if (c->path.path)
		unix_unlink(&c->path);
	if (c->listener >= 0)
		close(c->listener);
	if (c->epoll >= 0)
		close(c->epoll);
	c->listener = -1;
	c->epoll = -1;
	c->path.path = NULL;
}

/* --- talking --- */

static void welcome(struct control *c)
{
	int fd = accept4(c->listener, NULL, NULL,
			 SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return;
	for (uint32_t i = 0; i < CONTROL_CLIENTS; i++) {
		if (c->client[i].fd >= 0)
			continue;
		if (watch(c, fd, i) < 0)
			break;
		c->client[i].fd = fd;
		c->client[i].n = 0;
		return;
	}
	close(fd);
}

static int reply(struct control *c, struct control_client *client, char *line)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	ssize_t sent;

	if (!out)
		return -ENOMEM;
	c->answer(c->arg, line, out);
	fclose(out);
	sent = send(client->fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	free(text);
	return sent == (ssize_t)len ? 0 : -EPIPE;
}

/* Answers whole lines and keeps the rest. */
static int answer_lines(struct control *c, struct control_client *client)
{
	char *line = client->line;
	char *end;

	while ((end = memchr(line, '\n',
			     client->n - (size_t)(line - client->line)))) {
		*end = '\0';
		if (reply(c, client, line) < 0)
			return -EPIPE;
		line = end + 1;
	}
	client->n -= (size_t)(line - client->line);
	memmove(client->line, line, client->n);
	return client->n < sizeof(client->line) ? 0 : -EMSGSIZE;
}

static void listen_to(struct control *c, struct control_client *client)
{
	ssize_t n = recv(client->fd, client->line + client->n,
			 sizeof(client->line) - client->n, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drop(client);
		return;
	}
	client->n += (size_t)n;
	if (answer_lines(c, client) < 0)
		drop(client);
}

void control_handle(struct control *c)
{
	struct epoll_event event[CONTROL_CLIENTS + 1];
	int n = epoll_wait(c->epoll, event, CONTROL_CLIENTS + 1, 0);

	for (int i = 0; i < n; i++) {
		uint32_t what = event[i].data.u32;

		if (what == LISTENER)
			welcome(c);
		else if (what < LISTENER && c->client[what].fd >= 0)
			listen_to(c, &c->client[what]);
	}
}
