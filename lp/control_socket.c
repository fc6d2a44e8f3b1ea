/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "control_socket.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../mux/base/listener.h"
#include "../mux/base/log.h"
#include "../mux/base/loop.h"

enum { WHY_MAX = 160, MODE = 0600 };

struct client {
	struct control_socket *socket;
	struct list member;
	struct watch watch;
	char line[CONTROL_LINE];
	size_t got;
};

static void client_free(struct client *c)
{
	loop_close(c->socket->loop, &c->watch);
	list_del(&c->member);
	c->socket->nclients--;
	free(c);
}

/* False: it does not read, or has no more to say. An answer is far smaller than what a socket takes. */
static bool tell(const struct client *c, const char *text, size_t len)
{
	return send(c->watch.fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT) ==
	       (ssize_t)len;
}

static bool reject_line(const struct client *c)
{
	char text[80];
	int len = snprintf(text, sizeof(text), "error: a command is a line of at most %d characters\n",
			   CONTROL_LINE - 1);

	tell(c, text, (size_t)len);
	return false;
}

/* It may be half of another command, so it is not done. */
static void reject_half(const struct client *c)
{
	static const char text[] = "error: a command is a line, and the last one has no end\n";

	if (c->got)
		tell(c, text, sizeof(text) - 1);
}

static bool answer(const struct client *c, char *line)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	bool told = false;

	if (!out)
		return false;
	path_control_do(c->socket->control, line, out);
	if (!fclose(out))
		told = tell(c, text, len);
	free(text);
	return told;
}

/* One at a time: false if there is no whole line. */
static bool take_line(struct client *c, char line[CONTROL_LINE])
{
	char *end = memchr(c->line, '\n', c->got);
	size_t len = end ? (size_t)(end - c->line) : 0;

	if (!end)
		return false;
	memcpy(line, c->line, len);
	line[len] = '\0';
	c->got -= len + 1;
	memmove(c->line, end + 1, c->got);
	return true;
}

/* Bytes that no text has. */
static bool is_garbage(const struct client *c)
{
	size_t i = 0;

	while (i < c->got && (c->line[i] == '\n' || c->line[i] == '\r' ||
			      c->line[i] == '\t' ||
			      (c->line[i] >= ' ' && c->line[i] != 0x7f)))
		i++;
	return i < c->got;
}

static bool read_some(struct client *c)
{
	ssize_t n = recv(c->watch.fd, c->line + c->got,
			 sizeof(c->line) - c->got, MSG_DONTWAIT);
	char line[CONTROL_LINE];

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (!n) {
		reject_half(c);
		return false;
	}
	c->got += (size_t)n;
	if (is_garbage(c))
		return reject_line(c);
	while (take_line(c, line)) {
		list_move_tail(&c->socket->clients, &c->member);
		if (!answer(c, line))
			return false;
	}
	return c->got < sizeof(c->line) || reject_line(c);
}

static void client_ready(struct watch *w, uint32_t events)
{
	struct client *c = container_of(w, struct client, watch);

	(void)events;
	if (!read_some(c))
		client_free(c);
}

static void accepted(struct listener *l, int fd,
		     const struct sockaddr_storage *peer)
{
	struct control_socket *cs = listener_owner(l);
	struct client *c = calloc(1, sizeof(*c));

	(void)peer;
	if (!c) {
		close(fd);
		return;
	}
	if (cs->nclients == CONTROL_CLIENTS)
		client_free(list_first(&cs->clients, struct client, member));
	c->socket = cs;
	c->watch.fd = -1;
	c->watch.ready = client_ready;
	list_add_tail(&cs->clients, &c->member);
	cs->nclients++;
	if (!loop_watch(cs->loop, &c->watch, fd, EPOLLIN))
		return;
	close(fd);
	client_free(c);
}

int control_socket_open(struct control_socket *cs, struct loop *loop,
			struct log *log, struct path_control *control,
			const char *path, const char *user)
{
	char why[WHY_MAX] = "";
	int fd, err;

	*cs = (struct control_socket){ .loop = loop, .control = control };
	list_init(&cs->clients);
	if (!*path)
		return 0;
	fd = unix_listen(&cs->path, path, MODE, why, sizeof(why));
	if (fd >= 0) {
		err = unix_give(&cs->path, user);
		if (err)
			log_warn(log, "--control: %s stays root's: %s", path,
				 strerror(-err));
		cs->listener = listener_adopt(loop, log, fd, accepted, cs);
		if (cs->listener)
			return 0;
		fd = -errno;
	}
	log_error(log, "--control: cannot listen on %s: %s", path,
		  *why ? why : strerror(-fd));
	return fd;
}

void control_socket_close(struct control_socket *cs)
{
	if (!cs->loop)
		return;
	while (!list_empty(&cs->clients))
		client_free(list_first(&cs->clients, struct client, member));
	if (cs->path.path)
		unix_unlink(&cs->path);
	cs->path.path = NULL;
	listener_free(cs->listener);
	cs->listener = NULL;
}
