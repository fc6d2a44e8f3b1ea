/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "inbox.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void wake(struct inbox *in)
{
	const uint64_t one = 1;
	ssize_t wrote = write(in->watch.fd, &one, sizeof(one));

	(void)wrote;	/* cannot fail before 2^64 calls wait */
}

void inbox_post(struct inbox *in, struct errand *e)
{
	bool first;

	pthread_mutex_lock(&in->lock);
	first = list_empty(&in->errands);
	list_add_tail(&in->errands, &e->node);
	pthread_mutex_unlock(&in->lock);
	if (first)
		wake(in);
}

/* What is posted meanwhile waits for its turn, as other events of the loop do. */
void inbox_read(struct inbox *in)
{
	struct list now;

	list_init(&now);
	pthread_mutex_lock(&in->lock);
	while (!list_empty(&in->errands))
		list_move_tail(&now, in->errands.next);
	pthread_mutex_unlock(&in->lock);
	while (!list_empty(&now)) {
		struct errand *e = list_first(&now, struct errand, node);

		list_del(&e->node);
		e->run(e);
	}
}

/* What is posted after the count was read wakes the loop again. */
static void readable(struct watch *w, uint32_t events)
{
	uint64_t count;
	ssize_t got = read(w->fd, &count, sizeof(count));

	(void)events;
	(void)got;	/* nothing there: somebody has done the errands already */
	inbox_read(container_of(w, struct inbox, watch));
}

int inbox_open(struct inbox *in, struct loop *loop)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), err;

	if (fd < 0)
		return -errno;
	in->loop = loop;
	in->watch.ready = readable;
	err = loop_watch(loop, &in->watch, fd, EPOLLIN);
	if (err) {
		close(fd);
		in->loop = NULL;
		return err;
	}
	pthread_mutex_init(&in->lock, NULL);
	list_init(&in->errands);
	return 0;
}

void inbox_close(struct inbox *in)
{
	if (!in->loop)
		return;
	loop_close(in->loop, &in->watch);
	pthread_mutex_destroy(&in->lock);
	in->loop = NULL;
}
