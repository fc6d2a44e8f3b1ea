/* SPDX-License-Identifier: MIT */
/*
 * Sessions of the extension: how they begin, and how pipes come to RP and go.
 */
#define _GNU_SOURCE
#include "extended.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../base/log.h"
#include "../conn/conn.h"
#include "flow_queue.h"

/* --- connections --- */

static struct conn *open_conn(struct session *s)
{
	struct conn *c = ids_open(s);

	if (c)
		windows_begin(s, c->channel);
	return c;
}

static bool can_name(const struct destination *to)
{
	return to->kind != DESTINATION_NONE && destination_is_sound(to);
}

static void conn_ended(struct session *s, struct conn *c)
{
	struct channel *ch = c->channel;

	if (!ch)
		return;
	conn_waits_in_vain(c, &ch->order);
	windows_end(s, c);
	channel_detach(ch);
	ids_settle(s->ext, ch);
}

static void queued(struct session *s, struct conn *c, size_t bytes)
{
	(void)c;
	s->in.queued += bytes;
	inbound_charge(s, (int64_t)bytes);
	windows_queued(s);
}

/* Or is it another's by now? */
static bool has_channel(const struct conn *c)
{
	return c->channel && c->channel->conn == c;
}

/* What is out of order is the channel's, so it is never released here. */
static void released(struct session *s, struct conn *c, size_t bytes,
		     size_t early)
{
	(void)early;
	s->in.queued -= bytes;
	inbound_charge(s, -(int64_t)bytes);
	windows_taken(s, c);
}

static size_t early(const struct conn *c)
{
	return has_channel(c) ? reorder_bytes(&c->channel->order) : 0;
}

static void let_early_go(struct session *s, struct conn *c)
{
	if (has_channel(c))
		arrivals_let_go(s, c->channel);
}


/* --- pipes come --- */

struct pipe *extended_enter(struct session *s, const struct wire_hello *hello,
			    struct conduit conduit)
{
	struct extended *x = s->ext;
	struct leg *leg = &x->leg[hello->pipe];
	struct pipe *p;

	if (!x->lp)
		leg->path = (uint8_t)greet_path(s, hello);
	p = session_take_pipe(s, conduit, hello->pipe, leg->path);
	if (!p)
		return NULL;
	ways_enter(x, p, hello);
	p->prompt = s->engine->settings->thin == THIN_COPY;
	leg->known = true;
	leg->incarnation = hello->incarnation;
	tally_init(&leg->tally);
	leg->told = 0;
	leg->last = (struct last){ .what = LAST_ANY };
	leg->pong_due = leg->ping_due = leg->pinged = false;
	leg->heard = 0;
	leg->suspect_since = 0;
	leg->progress_at = loop_now(s->engine->loop);
	tails_enter(leg);
	reinjecting_enter(leg);
	kept_init(&leg->kept, hello->incarnation);
	if (x->lp)
		roaming_note(leg, conduit.fd);
	x->alone_since = 0;
	loop_timer_stop(s->engine->loop, &x->alone_timer);
	loop_after(s->engine->loop, &s->out.pump);
	return p;
}

/* Nothing may overtake it: LP takes nothing before. False: no memory. */
static bool welcome(struct session *s, struct pipe *p,
		    enum wire_welcome_status status)
{
	struct wire_ext what = {
		.type = WIRE_WELCOME, .welcome = s->ext->welcome,
	};

	what.welcome.status = (uint8_t)status;
	p->in_order = true;
	return control_say(s, p, &what);
}

/* --- pipes go --- */

int64_t session_alone_since(const struct session *s)
{
	return s->ext ? s->ext->alone_since : 0;
}

bool session_is_alone(const struct session *s)
{
	int64_t since = session_alone_since(s);

	return since && loop_now(s->engine->loop) - since >
	       ALONE_SECONDS * NS_PER_SEC;
}

static void alone_too_long(struct timer *t)
{
	struct extended *x = container_of(t, struct extended, alone_timer);

	if (x->welcome.wait_s)
		session_fail(x->s, "it had no pipe for %u s",
			     x->welcome.wait_s);
	else
		session_fail(x->s, "it has no pipe left, and is not kept without");
}

static void be_alone(struct extended *x)
{
	struct loop *loop = x->s->engine->loop;

	x->alone_since = loop_now(loop);
	loop_timer_in(loop, &x->alone_timer,
		      (int64_t)x->welcome.wait_s * NS_PER_SEC);
}

static void let_go(struct session *s, struct pipe *p)
{
	struct extended *x = s->ext;

	session_lose_pipe(s, p);
	keeping_pipe_ended(x, &x->leg[p->index]);
	hints_pipe_ended(s, &x->leg[p->index]);
	x->lost_at = loop_now(s->engine->loop);
	/* An ACK may have been lost with it. */
	x->ack_due = x->ack_all = true;
	if (!s->paths.npipes) {
		be_alone(x);
		ways_alone(x);
	}
	loop_after(s->engine->loop, &s->out.pump);
}

/* The session waits for another one in its place. */
static void part_with(struct session *s, struct pipe *p)
{
	let_go(s, p);
	joining_soon(ways_of(s->ext, p->index));
	if (s->ext->alone_since && s->role->alone)
		s->role->alone(s);
}

static void end_with(struct session *s, enum wire_goodbye_reason reason,
		     const char *why)
{
	if (!session_is_up(s))
		return;
	s->counts.protocol++;
	s->ext->goodbye = (uint8_t)reason;
	session_stop(s, why);
}

enum { LEFT_TEXT = 32 };

/* When one goes. */
static const char *what_is_left(const struct session *s, char text[LEFT_TEXT])
{
	unsigned int n = s->paths.npipes - 1;

	snprintf(text, LEFT_TEXT, "%u pipe%s left", n, n == 1 ? " is" : "s are");
	return text;
}

/* What it broke by was said already. */
void extended_pipe_ended(struct session *s, struct pipe *p, bool broke,
			 const char *why)
{
	char left[LEFT_TEXT];

	if (broke) {
		end_with(s, WIRE_GOODBYE_PROTOCOL, why);
		return;
	}
	if (session_notes(s, INCIDENT_CHURN))
		log_info(s->engine->log, "session %u: %s; %s", s->number, why,
			 what_is_left(s, left));
	part_with(s, p);
}

void extended_pipe_erred(struct session *s, struct pipe *p, const char *why)
{
	char left[LEFT_TEXT];

	if (session_notes(s, INCIDENT_PROTOCOL))
		log_warn(s->engine->log, "session %u: %s; %s", s->number, why,
			 what_is_left(s, left));
	part_with(s, p);
}

void extended_condemn(struct session *s, enum wire_goodbye_reason reason,
		      const char *fmt, ...)
{
	char why[sizeof(s->why)];
	va_list args;

	if (!session_is_up(s))
		return;
	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	if (session_notes(s, INCIDENT_PROTOCOL))
		log_warn(s->engine->log, "session %u: %s: session ended",
			 s->number, why);
	end_with(s, reason, why);
}

/* --- RP: pipes join --- */

struct session *greet_find(struct engine *engine, const struct wire_hello *hello)
{
	struct list *pos, *tmp;

	list_each(pos, tmp, &engine->extended) {
		struct extended *x = list_entry(pos, struct extended, member);

		if (!x->lp && session_is_up(x->s) &&
		    !memcmp(x->hello.session, hello->session,
			    sizeof(hello->session)))
			return x->s;
	}
	return NULL;
}

static const char *objection(struct session *s, const struct wire_hello *hello)
{
	switch (admission_enter(&s->ext->admission, hello)) {
	case ADMISSION_COUNT:
		return "its count of pipes is not the session's";
	case ADMISSION_OLD:
		return "its incarnation is not above the last of its index";
	case ADMISSION_PATH:
		return "the number of its path is none of 0 to 6";
	case ADMISSION_OK:
		break;
	}
	return NULL;
}

unsigned int greet_path(const struct session *s, const struct wire_hello *hello)
{
	return ways_are_several(s->ext) && hello->path < PATHS_MAX ?
	       hello->path : 0;
}

bool greet_join(struct session *s, const struct wire_hello *hello,
		struct conduit conduit)
{
	const char *why = objection(s, hello);
	struct pipe *p;

	if (why) {
		if (session_notes(s, INCIDENT_JOIN))
			log_warn(s->engine->log, "session %u: pipe %u may not join: %s",
				 s->number, hello->pipe, why);
		conduit_close(conduit);
		return false;
	}
	if (s->pipes[hello->pipe])
		let_go(s, s->pipes[hello->pipe]);
	p = extended_enter(s, hello, conduit);
	if (!p)
		return false;
	if (welcome(s, p, WIRE_WELCOME_RESUMED))
		return true;
	let_go(s, p);
	return false;
}

/* --- sessions begin and end --- */

/*
 * A mapping of its own, as the baseline's table has: most of it is the ids', and takes nothing
 * until they are used.
 */
static int init(struct session *s)
{
	struct extended *x = mmap(NULL, sizeof(*x), PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (x == MAP_FAILED)
		return -ENOMEM;
	s->ext = x;
	x->s = s;
	x->layers = s->engine->layers;
	ways_init(x);
	joining_init(x);
	x->alone_timer.fire = alone_too_long;
	ids_init(x);
	list_init(&x->member);
	windows_init(x);
	hints_init(x);
	flows_init(x);
	suspects_init(x);
	tails_init(x);
	reinjecting_init(x);
	keeping_init(x);
	twins_init(x);
	control_init(x);
	return 0;
}

/* A WELCOME that comes from now on is for nobody. */
static void farewell(struct session *s)
{
	joining_stop(s->ext);
	control_farewell(s);
}

static void fini(struct session *s)
{
	struct extended *x = s->ext;

	if (!x)
		return;
	joining_stop(x);
	windows_stop(x);
	suspects_stop(x);
	tails_stop(x);
	reinjecting_stop(x);
	control_stop(x);
	keeping_fini(x);
	loop_timer_stop(s->engine->loop, &x->alone_timer);
	hints_fini(x);
	ids_fini(x);
	list_del(&x->member);
	munmap(x, sizeof(*x));
}

static struct session *begin(struct engine *engine,
			     const struct session_role *role, void *owner,
			     const char *peer, const struct wire_hello *hello,
			     const struct wire_welcome *said)
{
	struct session *s = session_new(engine, &dialect_extended, role, owner,
					peer);

	if (!s)
		return NULL;
	s->ext->hello = *hello;
	s->ext->welcome = *said;
	s->ext->welcome.features = admission_features(said->features,
						      hello->features);
	s->shared.large = s->ext->welcome.features & WIRE_FEATURE_LARGE;
	s->ext->pool.limit.conn = said->conn_early;
	s->ext->pool.limit.all = said->session_early;
	s->ext->pool_of_rp.limit = s->ext->pool.limit;
	list_add_tail(&engine->extended, &s->ext->member);
	return s;
}

unsigned int extended_places(const struct session *s)
{
	unsigned int own = s->engine->settings->max_conns;
	unsigned int said = s->ext->welcome.connections;

	return own < said ? own : said;
}

/* To @hello, which has all of version 1. */
static struct wire_welcome our_welcome(const struct settings *settings,
				       const struct session_role *role,
				       const struct wire_hello *hello)
{
	uint32_t own = WIRE_FEATURES_VERSION_1 | WIRE_FEATURE_HINT |
		       WIRE_FEATURE_PATH | WIRE_FEATURE_LARGE |
		       (settings->udp ? WIRE_FEATURES_FLOWS : 0) |
		       (role->listen ? WIRE_FEATURE_LISTEN : 0);
	unsigned int conns = settings->max_conns;

	return (struct wire_welcome){
		.version = WIRE_EXT_VERSION,
		.features = admission_features(hello->features, own),
		.connections = (uint16_t)(conns < WIRE_ID_LP_MAX ?
					  conns : WIRE_ID_LP_MAX),
		.conn_early = EARLY_CONN,
		.session_early = EARLY_SESSION,
		.wait_s = (uint16_t)settings->resume_s,
		.reorder_limit = REORDER_MAX_SESSION,
	};
}

struct session *greet_new(struct engine *engine,
			  const struct session_role *role, void *owner,
			  const char *peer, const struct wire_hello *hello,
			  struct conduit conduit)
{
	struct wire_welcome said = our_welcome(engine->settings, role, hello);
	struct session *s;
	struct pipe *p;

	s = begin(engine, role, owner, peer, hello, &said);
	if (!s || objection(s, hello)) {
		conduit_close(conduit);
		goto free_session;
	}
	p = extended_enter(s, hello, conduit);
	if (!p || !welcome(s, p, WIRE_WELCOME_NEW))
		goto free_session;
	session_start(s);
	return s;

free_session:
	if (s)
		session_free(s);
	return NULL;
}

struct session *greet_welcomed(struct engine *engine,
			       const struct session_role *role, void *owner,
			       const char *peer,
			       const struct wire_hello *hello,
			       const struct wire_welcome *said,
			       struct conduit conduit)
{
	struct session *s = NULL;

	if (said->status != WIRE_WELCOME_NEW ||
	    !admission_features(said->features, hello->features))
		goto close_conduit;
	s = begin(engine, role, owner, peer, hello, said);
	if (!s)
		goto close_conduit;
	s->ext->lp = true;
	ids_are_of_lp(s->ext);
	ways_begin(s->ext, hello);
	if (!extended_enter(s, hello, conduit)) {
		session_free(s);
		return NULL;
	}
	session_start(s);
	return s;

close_conduit:
	conduit_close(conduit);
	return NULL;
}

bool session_is_extended(const struct session *s)
{
	return s->ext != NULL;
}

const struct layers *session_layers(const struct session *s)
{
	return s->ext ? s->ext->layers : NULL;
}

static void look(struct session *s, struct view *view)
{
	keeping_look(s, view);
	flow_queues_look(s, view);
}

const struct dialect dialect_extended = {
	.init = init,
	.fini = fini,
	.speech = &channel_speech,
	.message = arrivals_message,
	.expects = arrivals_expects,
	.pipe_ended = extended_pipe_ended,
	.can_name = can_name,
	.open = open_conn,
	.has_id = ids_has_one,
	.ids = ids_known,
	.conn_ended = conn_ended,
	.conn_gone = reverse_gone,
	.queued = queued,
	.released = released,
	.early = early,
	.let_go = let_early_go,
	.shed_datagrams = flow_queues_shed,
	.shed = arrivals_shed,
	.give_up = ids_give_up,
	.delivered = windows_taken,
	.control = control_send,
	.look_kept = look,
	.sends_again = keeping_sends_again,
	.copies_tail = tails_copy,
	.copies_twin = twins_copy,
	.repeats = reinjecting_copy,
	.datagrams = flow_queues_frame,
	.frame = cutting_frame,
	.keep = keeping_add,
	.farewell = farewell,
};
