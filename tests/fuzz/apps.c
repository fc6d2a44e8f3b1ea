/* SPDX-License-Identifier: MIT */
#include "apps.h"

#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mux/base/loop.h"
#include "mux/conn/conn.h"
#include "mux/session/session.h"
#include "check.h"
#include "sockets.h"

static void close_app(int *app)
{
	if (*app >= 0)
		close(*app);
	*app = -1;
}

void apps_init(struct apps *apps)
{
	for (int i = 0; i < APPS; i++)
		apps->fd[i] = -1;
}

void apps_fini(struct apps *apps)
{
	for (int i = 0; i < APPS; i++)
		close_app(&apps->fd[i]);
}

int *apps_place(struct apps *apps)
{
	for (int i = 0; i < APPS; i++) {
		if (apps->fd[i] < 0)
			return &apps->fd[i];
	}
	return NULL;
}

void apps_play(struct apps *apps, uint8_t what)
{
	int *app = &apps->fd[what % APPS];
	struct linger hard = { .l_onoff = 1 };
	static uint8_t buf[65536];

	if (*app < 0)
		return;
	switch (what / APPS % 6) {
	case 0:
		(void)!send(*app, buf, 10, MSG_DONTWAIT | MSG_NOSIGNAL);
		break;
	case 1:
		(void)!send(*app, buf, sizeof(buf),
			    MSG_DONTWAIT | MSG_NOSIGNAL);
		break;
	case 2:
		(void)!recv(*app, buf, sizeof(buf), MSG_DONTWAIT);
		break;
	case 3:
		shutdown(*app, SHUT_WR);
		break;
	case 4:
		setsockopt(*app, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
		close_app(app);
		break;
	case 5:
		close_app(app);
	}
}

void apps_serve(struct apps *apps, struct conn *c)
{
	int *app = apps_place(apps);
	int fd[2];

	if (!app || c->dst->port % 8 == 0) {
		conn_reset(c, CONN_END_REFUSED);
		return;
	}
	if (c->dst->port % 8 == 1) {
		fd[0] = begin_connect();
		*app = take_connect();
		conn_connecting(c, fd[0], NS_PER_SEC);
		return;
	}
	app_pair(false, fd);
	*app = fd[0];
	conn_attach(c, fd[1]);
}

void apps_open(struct apps *apps, struct session *s, uint16_t port)
{
	struct destination to =
		destination_ipv4((uint8_t[]){ 192, 0, 2, 1 }, port);
	int *app = apps_place(apps);
	int fd[2];

	if (!app)
		return;
	app_pair(false, fd);
	if (session_open(s, fd[1], &to, NULL))
		close(fd[1]);
	*app = fd[0];
}

struct stopper {
	struct task task;
	struct loop *loop;
};

static void stop_loop(struct task *t)
{
	loop_stop(container_of(t, struct stopper, task)->loop);
}

void run_round(struct loop *loop)
{
	struct stopper stopper = { .loop = loop };

	loop_task_init(&stopper.task, stop_loop);
	loop_after(loop, &stopper.task);
	loop_run(loop);
}
