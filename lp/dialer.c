/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "dialer.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "../mux/base/addr.h"
#include "../mux/base/plural.h"
#include "../mux/settings/limits.h"
#include "attempt.h"
#include "complaints.h"
#include "knock.h"
#include "opening.h"
#include "whereabouts.h"

enum { REASON_MAX = COMPLAINT_MAX };

_Static_assert(DIAL_MS == 5000, "the time is told in a line below");

enum dial_state {
	DIAL_IDLE,
	DIAL_LOOKING_UP,
	DIAL_OPENING,		/* a session of the extension */
	DIAL_CONNECTING,	/* for the baseline */
	DIAL_ASKING_AGAIN,	/* for the extension, with the baseline's pipes */
	DIAL_UP,
	DIAL_WAITING,
};

struct dialer {
	struct loop *loop;
	struct complaints complaints;
	struct whereabouts rp;
	struct dialer_options options;
	char peer[ENDPOINT_TEXT];	/* by the port that is tried last, */
	char extended_peer[ENDPOINT_TEXT];	/* and by the extension's */
	const struct dialer_ops *ops;
	void *owner;

	enum dial_state state;
	struct timer timer;	/* DIAL_MS, then LASTED_MS; or the backoff */
	struct answer at;	/* RP's addresses, */
	unsigned int next;	/* and the one to try next, */
	unsigned int turn;	/* by the path whose turn it is */
	struct sockaddr_storage answered;	/* the one that did last */
	struct knock knock;	/* at those behind the one that is tried */
	struct opening opening;
	struct attempt attempt;
	int fds[PIPES_MAX];	/* the baseline's pipes, in DIAL_ASKING_AGAIN */
	bool unheard;		/* nobody listened for the extension just now */
	char unextended[REASON_MAX];	/* why it was not had at this address, or "" */
	bool welcomed;		/* this RP speaks the extension */
	bool extended;		/* the session that is up is of it */

	unsigned int failures;	/* in a row */
	int64_t tried_at;	/* the last of them ended */
	int64_t up_since;
	bool brief;		/* the last session was lost at once */
};

static void try_address(struct dialer *d);
static void ask(struct dialer *d, enum dial_state state);

/* RP, with the port that is being tried, or that the pipes go to. */
static const char *peer_now(const struct dialer *d)
{
	bool extended = d->state == DIAL_OPENING ||
			d->state == DIAL_ASKING_AGAIN ||
			(d->state == DIAL_UP && d->extended);

	return extended ? d->extended_peer : d->peer;
}

static void say_up(struct dialer *d)
{
	complaints_up(&d->complaints, d->peer, d->attempt.pipes, d->unextended);
}

/* --- between two tries --- */

/*
 * Half of @ns to one and a half, so that LPs that lost RP at the same moment do
 * not dial at the same moment. RP resets the pipes of two behind one address
 * that do.
 */
static int64_t with_jitter(int64_t ns)
{
	uint16_t random = UINT16_MAX / 2;
	ssize_t got = getrandom(&random, sizeof(random), GRND_NONBLOCK);

	(void)got;	/* without it there is no jitter */
	return ns / 2 + ns * random / UINT16_MAX;
}

static void back_off(struct dialer *d)
{
	int64_t ms = BACKOFF_MIN_MS;
	unsigned int i;

	for (i = 0; i < d->failures && ms < BACKOFF_MAX_MS; i++)
		ms *= 2;
	if (ms > BACKOFF_MAX_MS)
		ms = BACKOFF_MAX_MS;
	d->failures++;
	d->tried_at = loop_clock();
	d->complaints.came_back = false;
	d->state = DIAL_WAITING;
	loop_timer_in(d->loop, &d->timer, with_jitter(ms * NS_PER_MS));
	d->ops->failed(d->owner);
}

/* --- one try --- */

static void take_turn(struct dialer *d, unsigned int turn)
{
	const struct path_set *set = d->options.paths;
	unsigned int number = path_set_turn(set, turn);

	d->turn = turn;
	d->next = 0;
	opening_go_by(&d->opening, number);
	d->attempt.path = d->knock.path = d->opening.attempt.path;
}

static void failed(struct dialer *d, const char *why)
{
	loop_timer_stop(d->loop, &d->timer);
	if (d->next == d->at.count && d->at.count &&
	    d->turn + 1 < d->options.paths->n)
		take_turn(d, d->turn + 1);
	if (d->next < d->at.count) {
		try_address(d);
		return;
	}
	complaints_none(&d->complaints, peer_now(d), why);
	d->brief = false;
	back_off(d);
}

static void attempt_failed(struct attempt *a, const char *why)
{
	failed(container_of(a, struct dialer, attempt), why);
}

/* The address that is being tried. */
static struct sockaddr_storage *address(struct dialer *d)
{
	return &d->at.addr[d->next - 1];
}

static void is_up(struct dialer *d, bool extended)
{
	d->answered = *address(d);
	d->state = DIAL_UP;
	d->extended = extended;
	d->up_since = loop_clock();
	loop_timer_in(d->loop, &d->timer, LASTED_MS * NS_PER_MS);
}

/*
 * Log that the pipes are up, unless the last ones were lost within LASTED_MS.
 * Then wait until these have lasted, because a peer that accepts and closes would
 * otherwise cause two lines a try.
 */
static void begin_baseline(struct dialer *d, const int *fds)
{
	unsigned int n = d->options.pipes;
	int err;

	is_up(d, false);
	complaints_fallback(&d->complaints, d->peer, fds, n);
	err = d->ops->dialed(d->owner, fds, n);
	if (err)
		dialer_lost(d, strerror(-err));
	else if (!d->brief)
		say_up(d);
}

/*
 * RP may have been started between the two questions. It listens for the
 * extension first, so who finds it there can find the extension too.
 */
static void all_up(struct attempt *a, const int *fds, unsigned int n)
{
	struct dialer *d = container_of(a, struct dialer, attempt);

	if (!d->unheard) {
		begin_baseline(d, fds);
		return;
	}
	memcpy(d->fds, fds, n * sizeof(*fds));
	ask(d, DIAL_ASKING_AGAIN);
}

static const struct attempt_ops attempt_ops = {
	.up = all_up,
	.failed = attempt_failed,
};

static void try_baseline(struct dialer *d)
{
	addr_set_port(address(d), d->options.rp.port);
	d->state = DIAL_CONNECTING;
	loop_timer_in(d->loop, &d->timer, DIAL_MS * NS_PER_MS);
	attempt_start(&d->attempt, address(d));
}

/* --- the extension --- */

static bool is_silent(const struct knock *k)
{
	return !opening_is_heard(&container_of(k, const struct dialer,
					       knock)->opening);
}

/*
 * Who is there is tried now, and the silent one behind all others. One that refuses
 * is there, too, and may speak the baseline.
 */
static void somebody_is_there(struct knock *k,
			      const struct sockaddr_storage *who)
{
	struct dialer *d = container_of(k, struct dialer, knock);
	unsigned int i = who ? whereabouts_find(&d->at, who) : d->next;

	if (i < d->next || i >= d->at.count)
		return;
	opening_stop(&d->opening);
	whereabouts_move(&d->at, i, d->next);
	whereabouts_move(&d->at, --d->next, d->at.count - 1);
	try_address(d);
}

static const struct knock_ops knock_ops = {
	.is_silent = is_silent,
	.answered = somebody_is_there,
};

/* For the extension. */
static void ask(struct dialer *d, enum dial_state state)
{
	int64_t ms = d->options.extend == EXTEND_AUTO && !d->welcomed ?
		EXTEND_SILENT_MS : DIAL_MS;
	unsigned int i;

	loop_timer_stop(d->loop, &d->timer);
	for (i = d->next - 1; i < d->at.count; i++)
		addr_set_port(&d->at.addr[i], d->options.extended_port);
	d->state = state;
	if (state == DIAL_OPENING)
		knock_soon(&d->knock, &d->at.addr[d->next],
			   d->at.count - d->next);
	opening_start(&d->opening, address(d), ms * NS_PER_MS);
}

static void close_pipes(struct dialer *d)
{
	unsigned int i;

	for (i = 0; i < d->options.pipes; i++)
		close(d->fds[i]);
}

static bool falls_back(const struct dialer *d, enum opening_end end)
{
	return d->options.extend == EXTEND_AUTO && end != OPENING_BUSY &&
	       end != OPENING_ONE_PATH &&
	       (end == OPENING_DECLINED || end == OPENING_UNHEARD ||
		!d->welcomed);
}

static void fall_back(struct dialer *d, enum opening_end end, const char *why)
{
	char reason[REASON_MAX];

	if (d->options.paths->n < 2) {
		snprintf(d->unextended, sizeof(d->unextended), "port %u: %s",
			 d->options.extended_port, why);
		d->unheard = end == OPENING_UNHEARD;
		try_baseline(d);
		return;
	}
	snprintf(reason, sizeof(reason), "%s; and in the baseline there are not several paths (--path), since rp tells pipes by their address",
		 why);
	failed(d, reason);
}

static void declined(struct opening *o, enum opening_end end, const char *why)
{
	struct dialer *d = container_of(o, struct dialer, opening);

	knock_stop(&d->knock);
	if (d->state == DIAL_ASKING_AGAIN) {
		begin_baseline(d, d->fds);
	} else if (falls_back(d, end)) {
		fall_back(d, end, why);
	} else {
		failed(d, why);
	}
}

/* What is welcomed, but not to all that version 1 is, does not speak it. */
static void welcomed(struct opening *o, const struct wire_hello *hello,
		     const struct wire_welcome *welcome,
		     struct conduit conduit)
{
	struct dialer *d = container_of(o, struct dialer, opening);
	enum dial_state asked = d->state;
	int err;

	knock_stop(&d->knock);
	is_up(d, true);
	err = d->ops->welcomed(d->owner, hello, welcome, conduit, address(d));
	if (err) {
		loop_timer_stop(d->loop, &d->timer);
		d->state = asked;
		declined(o, OPENING_WRONG, strerror(-err));
		return;
	}
	if (asked == DIAL_ASKING_AGAIN)
		close_pipes(d);
	d->welcomed = true;
	complaints_forget(&d->complaints);
}

static const struct opening_ops opening_ops = {
	.welcomed = welcomed,
	.declined = declined,
};

static void try_address(struct dialer *d)
{
	d->next++;
	d->unheard = false;
	d->unextended[0] = '\0';
	if (d->options.extend == EXTEND_NEVER)
		try_baseline(d);
	else
		ask(d, DIAL_OPENING);
}

static void found(struct whereabouts *w, const struct answer *answer)
{
	struct dialer *d = container_of(w, struct dialer, rp);
	unsigned int i;

	d->at = *answer;
	take_turn(d, 0);
	i = whereabouts_find(&d->at, &d->answered);
	if (i < d->at.count)
		whereabouts_move(&d->at, i, 0);
	if (answer->error)
		failed(d, resolver_error_text(answer->error));
	else
		try_address(d);
}

static void look_up(struct dialer *d)
{
	int err;

	d->state = DIAL_LOOKING_UP;
	err = whereabouts_ask(&d->rp);
	if (err) {
		d->at.count = d->next = 0;
		failed(d, strerror(-err));
	}
}

static void time_came(struct timer *t)
{
	struct dialer *d = container_of(t, struct dialer, timer);

	if (d->state == DIAL_CONNECTING) {
		attempt_give_up(&d->attempt, "no answer within 5 s");
	} else if (d->state == DIAL_WAITING) {
		look_up(d);
	} else if (d->state == DIAL_UP) {
		d->failures = 0;
		if (d->brief && !d->extended)
			say_up(d);
		d->brief = d->complaints.came_back = false;
	}
}

/* --- from outside --- */

void dialer_start(struct dialer *d)
{
	look_up(d);
}

void dialer_lost(struct dialer *d, const char *why)
{
	d->brief = d->timer.slot != 0;
	loop_timer_stop(d->loop, &d->timer);
	complaints_lost(&d->complaints, peer_now(d), why);
	back_off(d);
}

void dialer_begin_anew(struct dialer *d, const char *why)
{
	if (d->timer.slot) {
		dialer_lost(d, why);
		return;
	}
	d->brief = false;
	complaints_anew(&d->complaints, peer_now(d), why);
	look_up(d);
}

void dialer_roam(struct dialer *d)
{
	if (d->state != DIAL_WAITING ||
	    loop_clock() - d->tried_at < BACKOFF_MIN_MS * NS_PER_MS)
		return;
	loop_timer_stop(d->loop, &d->timer);
	d->failures = 0;
	look_up(d);
}

void dialer_take_layers(struct dialer *d, struct layers *layers)
{
	d->opening.layers = layers;
	if (d->state != DIAL_WAITING && d->state != DIAL_OPENING)
		return;
	/* What was said of the layers before says nothing of these. */
	complaints_forget(&d->complaints);
	d->failures = 0;
	if (d->state == DIAL_WAITING) {
		loop_timer_stop(d->loop, &d->timer);
		look_up(d);
	} else {
		knock_stop(&d->knock);
		opening_stop(&d->opening);
		ask(d, DIAL_OPENING);
	}
}

struct dialer *dialer_new(struct loop *loop, struct log *log,
			  const struct dialer_options *options,
			  const struct dialer_ops *ops, void *owner)
{
	struct dialer *d = calloc(1, sizeof(*d));
	struct endpoint extended;

	if (!d)
		return NULL;
	d->options = *options;
	if (whereabouts_init(&d->rp, loop, d->options.rp.host, found)) {
		free(d);
		return NULL;
	}
	d->loop = loop;
	if (options->extend == EXTEND_ALWAYS)
		d->options.rp.port = options->extended_port;
	endpoint_text(&d->options.rp, d->peer);
	extended = d->options.rp;
	extended.port = options->extended_port;
	endpoint_text(&extended, d->extended_peer);
	complaints_init(&d->complaints, log);
	opening_init(&d->opening, &opening_ops, loop, options->transports,
		     options->paths, options->pipes);
	d->opening.layers = options->layers;
	d->opening.listens = options->listens;
	attempt_init(&d->attempt, &attempt_ops, loop, options->transports,
		     options->pipes);
	d->ops = ops;
	d->owner = owner;
	d->timer.fire = time_came;
	knock_init(&d->knock, &knock_ops, loop, options->transports);
	return d;
}

void dialer_free(struct dialer *d)
{
	if (!d)
		return;
	loop_timer_stop(d->loop, &d->timer);
	if (d->state == DIAL_ASKING_AGAIN)
		close_pipes(d);
	knock_stop(&d->knock);
	opening_stop(&d->opening);
	attempt_stop(&d->attempt);
	whereabouts_fini(&d->rp);
	free(d);
}

const char *dialer_peer(const struct dialer *d)
{
	return d->peer;
}

bool dialer_goes_to(const struct dialer *d,
		    const struct sockaddr_storage *addr)
{
	unsigned int i;

	if (addr_port(addr) != d->options.rp.port &&
	    (d->options.extend == EXTEND_NEVER ||
	     addr_port(addr) != d->options.extended_port))
		return false;
	for (i = 0; i < d->at.count; i++)
		if (addr_same_host(&d->at.addr[i], addr))
			return true;
	return false;
}

bool dialer_came_back(struct dialer *d)
{
	bool is_pipe = d->state == DIAL_CONNECTING ||
		       d->state == DIAL_OPENING ||
		       d->state == DIAL_ASKING_AGAIN ||
		       (d->state == DIAL_UP && d->timer.slot);

	d->complaints.came_back |= is_pipe;
	return is_pipe;
}

void dialer_print(const struct dialer *d, FILE *out)
{
	int64_t now = loop_clock();

	switch (d->state) {
	case DIAL_IDLE:
		break;
	case DIAL_LOOKING_UP:
		fprintf(out, "dialer: looking %s up\n", d->options.rp.host);
		break;
	case DIAL_OPENING:
	case DIAL_ASKING_AGAIN:
		fprintf(out, "dialer: asking %s for the extension\n",
			peer_now(d));
		break;
	case DIAL_CONNECTING:
		fprintf(out, "dialer: connecting to %s, %u of %u pipes up\n",
			d->peer, d->attempt.up, d->attempt.pipes);
		break;
	case DIAL_UP:
		fprintf(out, "dialer: %s with %s, %u pipe%s, for %.1f s\n",
			d->extended ? "the extension" : "the baseline",
			peer_now(d), d->attempt.pipes,
			plural(d->attempt.pipes),
			(double)(now - d->up_since) / NS_PER_SEC);
		break;
	case DIAL_WAITING:
		fprintf(out, "dialer: try %u at %s in %.1f s; last: %s\n",
			d->failures + 1, d->peer,
			(double)(d->timer.at - now) / NS_PER_SEC,
			d->complaints.told);
		break;
	}
}
