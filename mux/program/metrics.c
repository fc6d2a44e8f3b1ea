/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "metrics.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/addr.h"
#include "../base/listener.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "../base/sock.h"
#include "../session/engine.h"
#include "../session/exposition.h"
#include "../settings/settings.h"

enum { WHY_MAX = 160, METHOD_MAX = 16, DISCARD = 4096 };
/* Of a path: for owner and group. */
enum { MODE = 0660 };

static const char text_type[] = "text/plain; version=0.0.4; charset=utf-8";

struct client {
	struct metrics *metrics;
	struct list member;
	struct watch watch;
	struct timer deadline;
	char request[METRICS_REQUEST];
	size_t got;
	char *answer;		/* NULL: the request is not there yet */
	size_t len, sent;
};

static struct loop *loop_of(const struct client *c)
{
	return c->metrics->engine->loop;
}

static void client_free(struct client *c)
{
	loop_timer_stop(loop_of(c), &c->deadline);
	loop_close(loop_of(c), &c->watch);
	list_del(&c->member);
	c->metrics->nclients--;
	free(c->answer);
	free(c);
}

static void too_late(struct timer *t)
{
	client_free(container_of(t, struct client, deadline));
}

/* --- answers --- */

static void put_answer(struct client *c, const char *status, const char *more,
		       const char *type, const char *body, size_t len)
{
	FILE *out = open_memstream(&c->answer, &c->len);

	if (!out)
		return;
	fprintf(out, "HTTP/1.1 %s\r\n%sContent-Type: %s\r\n"
		"Content-Length: %zu\r\nConnection: close\r\n\r\n", status,
		more, type, len);
	fwrite(body, 1, len, out);
	if (!fclose(out))
		return;
	free(c->answer);
	c->answer = NULL;
}

static void answer_error(struct client *c, const char *status, const char *more)
{
	char body[64];
	int len = snprintf(body, sizeof(body), "%s\n", status);

	put_answer(c, status, more, "text/plain", body, (size_t)len);
}

static void put_metrics(struct client *c)
{
	char *body = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&body, &len);

	if (!out)
		return;
	exposition_write(c->metrics->engine, c->metrics->program, out);
	if (!fclose(out))
		put_answer(c, "200 OK", "", text_type, body, len);
	free(body);
}

/* --- requests --- */

/* Can what is there become "GET /... HTTP/1.1"? Garbage is told so at once. */
static bool begins_well(const struct client *c)
{
	size_t i = 0;

	while (i < c->got && c->request[i] >= 'A' && c->request[i] <= 'Z')
		i++;
	return i <= METHOD_MAX &&
	       (i == c->got || (i && c->request[i] == ' '));
}

/* Both ends of a line that HTTP's readers take. */
static bool is_whole(const char *request)
{
	return strstr(request, "\r\n\r\n") || strstr(request, "\n\n");
}

/* @line ends with its version, which is cut off, and so is a query. */
static char *target_of(char *line)
{
	char *target = strchr(line, ' ');
	char *version = target ? strchr(target + 1, ' ') : NULL;

	if (!version || (strcmp(version + 1, "HTTP/1.1") &&
			 strcmp(version + 1, "HTTP/1.0")))
		return NULL;
	*version = '\0';
	*target++ = '\0';
	target[strcspn(target, "?")] = '\0';
	return *target == '/' ? target : NULL;
}

/* Does @line, a header with its name cut off, say that we were asked as loopback? */
static bool is_loopback(const char *line)
{
	struct sockaddr_storage addr;
	char host[ADDR_TEXT];
	socklen_t addr_len;
	size_t len;

	line += strspn(line, " \t");
	len = strcspn(line, "\r\n");
	while (len && (line[len - 1] == ' ' || line[len - 1] == '\t'))
		len--;
	if (len >= sizeof(host))
		return false;
	memcpy(host, line, len);
	host[len] = '\0';
	if (!strncasecmp(host, "localhost", 9) &&
	    (!host[9] || host[9] == ':'))
		return true;
	return !addr_parse(host, NULL, 0, &addr, &addr_len) &&
	       addr_is_loopback(&addr);
}

/*
 * A page that a browser on this host shows may have a name that leads to loopback (DNS
 * rebinding), and reads what we say then as its own. The browser tells us that name. A
 * path no page can reach; who sends no Host is no browser.
 */
static bool asks_a_stranger(const struct client *c)
{
	const char *line = c->request;

	if (c->metrics->path.path)
		return false;
	while ((line = strchr(line, '\n'))) {
		line++;
		if (!strncasecmp(line, "Host:", 5) && !is_loopback(line + 5))
			return true;
	}
	return false;
}

static void take_request(struct client *c)
{
	bool stranger = asks_a_stranger(c);
	char *target;

	c->request[strcspn(c->request, "\r\n")] = '\0';
	target = target_of(c->request);
	if (!target)
		answer_error(c, "400 Bad Request", "");
	else if (strcmp(c->request, "GET"))
		answer_error(c, "405 Method Not Allowed", "Allow: GET\r\n");
	else if (stranger)
		answer_error(c, "403 Forbidden", "");
	else if (strcmp(target, "/metrics"))
		answer_error(c, "404 Not Found", "");
	else
		put_metrics(c);
}

/* Returns false when there is nothing to wait for any more. */
static bool read_request(struct client *c)
{
	ssize_t n = recv(c->watch.fd, c->request + c->got,
			 sizeof(c->request) - 1 - c->got, 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (!n)
		return false;
	c->got += (size_t)n;
	c->request[c->got] = '\0';
	if (!begins_well(c) || strlen(c->request) < c->got)
		answer_error(c, "400 Bad Request", "");
	else if (is_whole(c->request))
		take_request(c);
	else if (c->got < sizeof(c->request) - 1)
		return true;
	else
		answer_error(c, "400 Bad Request", "");
	return c->answer;
}

/* Behind the answer: a close() with unread bytes would destroy it on its way. */
static bool wait_for_end(struct client *c)
{
	char dropped[DISCARD];
	ssize_t n = recv(c->watch.fd, dropped, sizeof(dropped), 0);

	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static bool write_answer(struct client *c)
{
	ssize_t n = send(c->watch.fd, c->answer + c->sent, c->len - c->sent,
			 MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	c->sent += (size_t)n;
	if (c->sent == c->len)
		shutdown(c->watch.fd, SHUT_WR);
	return true;
}

static bool go_on(struct client *c)
{
	if (c->answer && c->sent == c->len)
		return wait_for_end(c);
	if (!c->answer && (!read_request(c)))
		return false;
	return !c->answer || write_answer(c);
}

static void client_ready(struct watch *w, uint32_t events)
{
	struct client *c = container_of(w, struct client, watch);

	(void)events;
	if (go_on(c))
		loop_want(loop_of(c), w, c->answer && c->sent < c->len ?
			  EPOLLOUT : EPOLLIN);
	else
		client_free(c);
}

static void accepted(struct listener *l, int fd,
		     const struct sockaddr_storage *peer)
{
	struct metrics *m = listener_owner(l);
	struct client *c;

	(void)peer;
	if (m->nclients == METRICS_CLIENTS)
		client_free(list_first(&m->clients, struct client, member));
	c = calloc(1, sizeof(*c));
	if (!c) {
		close(fd);
		return;
	}
	c->metrics = m;
	c->watch.fd = -1;
	c->watch.ready = client_ready;
	c->deadline.fire = too_late;
	list_add_tail(&m->clients, &c->member);
	m->nclients++;
	if (!loop_watch(loop_of(c), &c->watch, fd, EPOLLIN)) {
		if (!loop_timer_in(loop_of(c), &c->deadline,
				   METRICS_SECONDS * NS_PER_SEC))
			return;
	} else {
		close(fd);
	}
	client_free(c);
}

/* --- where --- */

static int listen_on_path(struct metrics *m, const char *path, char *why)
{
	const struct settings *settings = m->engine->settings;
	int fd = unix_listen(&m->path, path, MODE, why, WHY_MAX);
	int err = fd >= 0 ? unix_give(&m->path, settings->user) : 0;

	if (err)
		log_warn(m->engine->log, "--metrics: %s stays root's: %s", path,
			 strerror(-err));
	return fd;
}

static int listen_on_address(const char *text, char *why)
{
	struct sockaddr_storage addr;
	int fd;

	if (metrics_address(text, &addr))
		return -EINVAL;
	fd = sock_tcp(addr.ss_family);
	if (fd >= 0)
		fd = sock_listen(fd, &addr, addr_size(&addr));
	if (fd < 0)
		snprintf(why, WHY_MAX, "%s", strerror(-fd));
	return fd;
}

int metrics_open(struct metrics *m, struct engine *engine, const char *program)
{
	const char *where = engine->settings->metrics;
	char why[WHY_MAX] = "";
	int fd;

	memset(m, 0, sizeof(*m));
	m->engine = engine;
	m->program = program;
	list_init(&m->clients);
	if (!*where)
		return 0;
	fd = strchr(where, '/') ? listen_on_path(m, where, why) :
	     listen_on_address(where, why);
	if (fd >= 0) {
		m->listener = listener_adopt(engine->loop, engine->log, fd,
					     accepted, m);
		if (m->listener)
			return 0;
		fd = -errno;
	}
	log_error(engine->log, "--metrics: cannot listen on %s: %s", where,
		  *why ? why : strerror(-fd));
	return fd;
}

void metrics_close(struct metrics *m)
{
	if (!m->engine)
		return;
	while (!list_empty(&m->clients))
		client_free(list_first(&m->clients, struct client, member));
	if (m->path.path)
		unix_unlink(&m->path);
	m->path.path = NULL;
	listener_free(m->listener);
	m->listener = NULL;
}
