/* SPDX-License-Identifier: MIT */
#include "opening.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { REASON_MAX = 160 };

void opening_stop(struct opening *o)
{
	loop_timer_stop(o->loop, &o->deadline);
	attempt_stop(&o->attempt);
	if (o->greeting)
		greeting_free(o->greeting);
	o->greeting = NULL;
}

bool opening_is_heard(const struct opening *o)
{
	return o->greeting != NULL;
}

static void decline(struct opening *o, enum opening_end end, const char *why)
{
	opening_stop(o);
	o->ops->declined(o, end, why);
}

/* --- WELCOME --- */

static void welcome_came(struct greeting *g, const struct wire_ext *said)
{
	struct opening *o = greeting_owner(g);
	struct wire_welcome welcome = said->welcome;
	struct wire_hello hello = o->hello;
	struct conduit conduit;

	switch (welcome.status) {
	case WIRE_WELCOME_NEW:
		if (hello.features & ~welcome.features & WIRE_FEATURE_PATH) {
			decline(o, OPENING_ONE_PATH, "this rp, an older one, "
				"does not take several paths (--path)");
			break;
		}
		conduit = greeting_take(g);
		o->greeting = NULL;
		opening_stop(o);
		o->ops->welcomed(o, &hello, &welcome, conduit);
		break;
	case WIRE_WELCOME_REFUSED:
		decline(o, OPENING_DECLINED, "rp refused the extension");
		break;
	case WIRE_WELCOME_BUSY:
		decline(o, OPENING_BUSY, "rp has no room for another session");
		break;
	default:
		decline(o, OPENING_FAILED, "rp takes this session for another");
		break;
	}
}

static void no_welcome(struct greeting *g, enum greeting_failure why)
{
	struct opening *o = greeting_owner(g);
	char reason[REASON_MAX];

	switch (why) {
	case GREETING_SILENT:
		decline(o, OPENING_SILENT, "no answer to HELLO");
		break;
	case GREETING_CLOSED:
		decline(o, OPENING_FAILED, greeting_is_shaken(g) ?
			"the other end closed the first pipe" :
			"the other end closed the first pipe before it had shown a key: rp has to have one (--key-file), and to let this host in (--allow)");
		break;
	case GREETING_WRONG:
		decline(o, OPENING_WRONG, "the other end does not speak the "
			"extension");
		break;
	case GREETING_STRANGER:
		snprintf(reason, sizeof(reason), "%s", greeting_why(g));
		decline(o, OPENING_STRANGER, reason);
		break;
	case GREETING_SHORT:
		decline(o, OPENING_FAILED, strerror(ENOMEM));
		break;
	}
}

static const struct greeting_ops greeting_ops = {
	.came = welcome_came,
	.failed = no_welcome,
};

/* --- the pipe --- */

static void pipe_up(struct attempt *a, const int *fds, unsigned int n)
{
	struct opening *o = container_of(a, struct opening, attempt);
	struct conduit conduit;

	(void)n;
	loop_timer_stop(o->loop, &o->deadline);
	if (!conduit_open(&conduit, o->layers, fds[0], false))
		o->greeting = greeting_say(o->loop, conduit, &o->hello,
					   o->until - loop_clock(),
					   &greeting_ops, o);
	if (!o->greeting)
		decline(o, OPENING_FAILED, strerror(ENOMEM));
}

static void pipe_failed(struct attempt *a, const char *why)
{
	struct opening *o = container_of(a, struct opening, attempt);

	decline(o, a->err == ECONNREFUSED ? OPENING_UNHEARD : OPENING_FAILED,
		why);
}

static const struct attempt_ops attempt_ops = {
	.up = pipe_up,
	.failed = pipe_failed,
};

static void too_late(struct timer *t)
{
	decline(container_of(t, struct opening, deadline), OPENING_SILENT,
		"no answer in time");
}

/* One path is as good as none to rp. */
static void name_path(struct opening *o)
{
	const struct path_spec *path = &o->paths->path[o->path];

	if (o->paths->n > 1)
		o->hello.features |= WIRE_FEATURE_PATH;
	o->hello.pipe = (uint8_t)path_set_first(o->paths, o->path);
	o->hello.path = (uint8_t)o->path;
	o->hello.path_flags = path->backup ? WIRE_PATH_FLAG_BACKUP : 0;
	o->hello.path_cost = path->cost;
}

void opening_start(struct opening *o, const struct sockaddr_storage *addr,
		   int64_t patience)
{
	int err = greet_hello(&o->hello, o->pipes);

	if (o->listens)
		o->hello.features |= WIRE_FEATURE_LISTEN;
	if (o->paths->n)
		name_path(o);
	if (!err)
		err = loop_timer_in(o->loop, &o->deadline, patience);
	if (err) {
		decline(o, OPENING_FAILED, strerror(-err));
		return;
	}
	o->until = loop_clock() + patience;
	attempt_start(&o->attempt, addr);
}

void opening_init(struct opening *o, const struct opening_ops *ops,
		  struct loop *loop, const struct transport_set *transports,
		  const struct path_set *paths, unsigned int pipes)
{
	memset(o, 0, sizeof(*o));
	o->ops = ops;
	o->loop = loop;
	o->paths = paths;
	o->pipes = pipes;
	o->deadline.fire = too_late;
	attempt_init(&o->attempt, &attempt_ops, loop, transports, 1);
	opening_go_by(o, 0);
}

void opening_go_by(struct opening *o, unsigned int number)
{
	o->path = number;
	o->attempt.path = o->paths->n ? &o->paths->path[number] : NULL;
}
