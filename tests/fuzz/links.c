/* SPDX-License-Identifier: MIT */
#include "links.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mux/base/sock.h"
#include "check.h"

enum { PATIENCE_MS = 2000 };

void link_init(struct link *l, int number)
{
	memset(l, 0, sizeof(*l));
	l->number = number;
	l->app[LP].fd = l->app[RP].fd = -1;
}

void link_fini(struct link *l)
{
	for (int side = 0; side < 2; side++) {
		if (l->app[side].fd >= 0)
			close(l->app[side].fd);
	}
}

void link_comes(struct link *l, int side, int fd)
{
	check(!l->app[side].came);
	l->app[side].fd = fd;
	l->app[side].came = true;
}

static uint8_t byte_at(int link, int side, size_t at)
{
	return (uint8_t)(link * 31 + side * 101 + at * 7 + (at >> 8) * 13);
}

static void write_some(struct link *l, int side, size_t n)
{
	struct app *app = &l->app[side];
	static uint8_t buf[40000];
	ssize_t sent;

	if (app->fd < 0 || app->shut)
		return;
	for (size_t i = 0; i < n; i++)
		buf[i] = byte_at(l->number, side, app->sent + i);
	sent = send(app->fd, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent > 0)
		app->sent += (size_t)sent;
	else if (errno != EAGAIN)
		app->saw_reset = app->at_end = true;
}

static void read_some(struct link *l, int side, size_t most)
{
	static uint8_t buf[65536];
	struct app *app = &l->app[side];
	ssize_t n;

	if (app->fd < 0 || app->at_end)
		return;
	n = recv(app->fd, buf, most, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		app->at_end = true;
		app->saw_reset |= n < 0;
		check(n || l->app[!side].shut);	/* a clean end was meant so */
		check(n || app->got == l->app[!side].sent);
		return;
	}
	check(app->got + (size_t)n <= l->app[!side].sent);
	for (ssize_t i = 0; i < n; i++)
		check(buf[i] == byte_at(l->number, !side, app->got + (size_t)i));
	app->got += (size_t)n;
}

static void shut(struct app *app)
{
	if (app->fd < 0 || app->shut)
		return;
	shutdown(app->fd, SHUT_WR);
	app->shut = true;
}

void link_play(struct link *l, int side, unsigned int what)
{
	struct app *app = &l->app[side];

	switch (what % 8) {
	case 0:
		write_some(l, side, 10);
		break;
	case 1:
	case 2:
		write_some(l, side, 40000);
		break;
	case 3:
	case 4:
		read_some(l, side, 30000);
		break;
	case 5:
	case 6:
		shut(app);
		break;
	case 7:
		if (app->fd < 0)
			return;
		sock_reset(app->fd);
		app->fd = -1;
		app->at_end = app->did_reset = true;
	}
}

void link_be_well(struct link *l)
{
	for (int side = 0; side < 2; side++) {
		read_some(l, side, 65536);
		shut(&l->app[side]);
	}
}

/* The sockets of applications may hold more than one read, and take their time. */
static void read_to_end(struct link *l, int side)
{
	struct app *app = &l->app[side];

	for (int i = 0; !app->at_end; i++) {
		size_t before = app->got;

		check(i < PATIENCE_MS);
		read_some(l, side, 65536);
		if (app->got == before && !app->at_end)
			poll(NULL, 0, 1);
		else
			i = 0;
	}
}

bool link_check(struct link *l)
{
	struct app *lp = &l->app[LP], *rp = &l->app[RP];
	const struct app *opener = &l->app[l->opener];
	bool reset = lp->did_reset || rp->did_reset;

	check(opener->came);
	check(l->app[!l->opener].came || opener->did_reset || opener->saw_reset);
	for (int side = 0; side < 2; side++) {
		if (l->app[side].came)
			read_to_end(l, side);
	}
	if (reset)
		return false;
	if (lp->saw_reset || rp->saw_reset)
		return true;
	check(lp->got == rp->sent && rp->got == lp->sent);
	return false;
}
