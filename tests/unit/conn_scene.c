/* SPDX-License-Identifier: MIT */
#include "conn_scene.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/wire/run.h"

uint8_t bulk[BULK];

static void on_ready(struct conn *c)
{
	((struct scene *)c->owner->self)->readies++;
}

static void on_idle(struct conn *c)
{
	((struct scene *)c->owner->self)->idles++;
}

static void on_queued(struct conn *c, size_t bytes)
{
	((struct scene *)c->owner->self)->queued += bytes;
}

static void on_released(struct conn *c, size_t queued, size_t held)
{
	((struct scene *)c->owner->self)->released += queued;
	((struct scene *)c->owner->self)->held_released += held;
}

static void on_conn_ended(struct conn *c)
{
	((struct scene *)c->owner->self)->overs++;
}

static void on_gone(struct conn *c)
{
	struct scene *scene = c->owner->self;

	scene->gones++;
	scene->end = c->end;
	scene->c = NULL;
	conn_free(c);
}

static const struct conn_ops ops = {
	.ready = on_ready,
	.idle = on_idle,
	.queued = on_queued,
	.released = on_released,
	.ended = on_conn_ended,
	.gone = on_gone,
};

int scene_setup(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	scene->loop = loop_new();
	slab_init(&scene->room, struct conn, slot, 2);
	conn_owner_init(&scene->owner, scene->loop, &scene->room, &ops,
			&conn_speech_baseline, scene);
	scene->c = conn_new(&scene->owner, ID);
	scene->app = -1;
	scene->framed = malloc(BULK);
	scene->got = malloc(BULK);
	scene->got_end = 1;
	*state = scene;
	return 0;
}

int scene_teardown(void **state)
{
	struct scene *scene = *state;

	if (scene->c)
		conn_free(scene->c);
	if (scene->app >= 0)
		close(scene->app);
	loop_free(scene->loop);
	free(scene->framed);
	free(scene->got);
	free(scene);
	return 0;
}

void scene_attach(struct scene *scene)
{
	int fd[2];

	app_pair(fd);
	scene->app = fd[0];
	assert_int_equal(conn_attach(scene->c, fd[1]), 0);
}

/* --- what it frames --- */

static void take_message(struct scene *scene, const struct wire_msg *msg,
			 size_t payload)
{
	assert_int_equal(msg->id, ID);
	assert_int_equal(msg->number, scene->number);
	assert_int_equal(scene->fin, 0);	/* nothing behind it */
	scene->number++;
	switch (msg->type) {
	case WIRE_SYN:
		scene->syns++;
		break;
	case WIRE_FIN:
		scene->fin = msg->body[0];
		break;
	case WIRE_DATA:
		assert_in_range(msg->body_len, 1, payload);
		assert_true(scene->framed_len + msg->body_len <= BULK);
		memcpy(scene->framed + scene->framed_len, msg->body,
		       msg->body_len);
		scene->framed_len += msg->body_len;
	}
}

void scene_frame(struct scene *scene, size_t budget, size_t payload)
{
	struct run_pool pool = { 0 };
	struct run *run = run_get(&pool);
	size_t before = scene->framed_len, at = 0;
	struct wire_msg msg;
	bool more = conn_frame(scene->c, run, budget, payload);
	uint32_t messages = 0;
	int n;

	assert_int_equal(more, scene->c->ready);
	assert_int_equal(run->id, ID);
	assert_int_equal(run->first, scene->number);
	assert_true(run->len <= run->size);
	while ((n = wire_read(run->buf + at, run->len - at, &msg)) > 0) {
		take_message(scene, &msg, payload);
		at += (size_t)n;
		messages++;
	}
	assert_int_equal(at, run->len);
	assert_int_equal(messages, run->messages);
	assert_in_range(messages, 0, RUN_MESSAGES);
	assert_in_range(scene->framed_len - before, 0, budget);
	run_put(&pool, run);
	run_pool_fini(&pool);
}

void scene_frame_all(struct scene *scene)
{
	run_round(scene->loop);
	while (scene->c && scene->c->ready)
		scene_frame(scene, RUN_SIZE, WIRE_PAYLOAD_MAX);
}

bool fin_is_framed(void *arg)
{
	struct scene *scene = arg;

	while (scene->c && scene->c->ready)
		scene_frame(scene, RUN_SIZE, WIRE_PAYLOAD_MAX);
	return scene->fin != 0;
}

static bool is_gone(void *arg)
{
	return ((struct scene *)arg)->gones > 0;
}

void assert_ended(struct scene *scene, enum conn_end end)
{
	assert_true(run_until(scene->loop, "gone()", is_gone, scene));
	assert_int_equal(scene->gones, 1);
	assert_int_equal(scene->overs, 1);
	assert_int_equal(scene->end, end);
	assert_int_equal(scene->readies, scene->idles);
}

/* --- what the application sees --- */

static bool app_reads(struct scene *scene)
{
	long n;

	do {
		n = read_some(scene->app, scene->got + scene->got_len,
			      BULK - scene->got_len);
		if (n > 0)
			scene->got_len += (size_t)n;
	} while (n > 0 && scene->got_len < BULK);
	if (n == 0 || (n < 0 && n != -EAGAIN))
		scene->got_end = n;
	return scene->got_end != 1;
}

static bool app_read_to_its_end(void *arg)
{
	return app_reads(arg);
}

bool app_read_all(void *arg)
{
	struct scene *scene = arg;

	app_reads(scene);
	return scene->got_len == BULK;
}

void assert_app_ends(struct scene *scene, long end)
{
	assert_true(run_until(scene->loop, "the application's end",
			      app_read_to_its_end, scene));
	assert_int_equal(scene->got_end, end);
}

void scene_deliver(struct scene *scene, size_t from, size_t to)
{
	while (from < to) {
		struct iovec iov[8];
		size_t len = 0;
		int n = 0;

		while (n < 8 && from < to) {
			size_t piece = to - from < WIRE_PAYLOAD_MAX ?
				to - from : WIRE_PAYLOAD_MAX;

			iov[n].iov_base = bulk + from;
			iov[n++].iov_len = piece;
			from += piece;
			len += piece;
		}
		conn_deliver(scene->c, iov, n, len);
	}
}
