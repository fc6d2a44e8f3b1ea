/* SPDX-License-Identifier: MIT */
/*
 * The first message each way, before there is a session. The input chooses who is
 * tried: where RP's pipes come in, against local proxies from several addresses, or LP's
 * first pipe, against whoever listens there. Then it is a program: raw bytes or a HELLO or
 * WELCOME of any fields, in pieces; ends that close; rounds of the loop; time that goes by.
 *
 * Asserted of each pipe, as soon as all that was said was read: whoever said a sound HELLO was
 * let in with just these fields, and whoever said a WELCOME that begins a session was taken, with
 * every byte behind that message unread; who said anything else is closed; who says nothing is
 * closed when its time is up. No pipe is left behind, and LP comes to one end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lp/opening.h"
#include "mux/base/log.h"
#include "mux/base/incidents.h"
#include "mux/base/sock.h"
#include "mux/settings/incident.h"
#include "rp/access.h"
#include "rp/reception.h"
#include "apps.h"
#include "check.h"
#include "clock.h"
#include "framing.h"
#include "input.h"
#include "sockets.h"

enum {
	PIPES = 6,
	FULL = 4,		/* so many wait at RP at most */
	SAID_MAX = 8192,
	LONGEST = 4096,		/* that a first message may be */
	PATIENCE_S = 2,		/* LP's */
};

enum verdict { NOT_YET, SOUND, WRONG };

struct far_end {		/* of a pipe: the input speaks there */
	int fd;			/* -1: there is none */
	int64_t since;
	bool taken;		/* the other end knows it as what it said */
	bool may_go;		/* it waited too long, or too many did */
	uint8_t said[SAID_MAX];
	size_t len;
};

static struct scene {
	struct loop *loop;
	struct log log;
	struct far_end far[PIPES];
	uint8_t awaited;	/* WIRE_HELLO: RP is tried */

	struct reception reception;
	struct incidents incidents;
	struct access access;
	uint64_t dialled;	/* pipes of all far ends */

	struct transport_set transports;
	struct path_set paths;
	struct opening opening;
	unsigned int ends;	/* that it came to */
} here;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A busy kernel hands over later what is on its way. */
static void rounds_until(bool (*holds)(void))
{
	run_round(here.loop);
	for (int i = 0; !holds(); i++) {
		check(i < 100000);
		run_round(here.loop);
	}
}

/* --- what was said --- */

/* By its bytes alone how long the first message is; 0: it is not whole yet, -1: none. */
static long first_message(const struct far_end *far)
{
	struct framing framing = { 0 };
	size_t i;

	if (far->len < WIRE_HEADER)
		return 0;
	if (far->said[0] || far->said[1])
		return -1;
	for (i = 0; i < far->len && i < LONGEST; i++) {
		bool ends = framing_ends(&framing, far->said[i]);

		if (framing.broken)
			return -1;
		if (ends)
			return (long)i + 1;
	}
	return i < LONGEST && i + framing.of_body <= LONGEST ? 0 : -1;
}

static enum verdict judge(const struct far_end *far, struct wire_ext *said)
{
	long size = first_message(far);
	struct wire_msg msg;

	if (size <= 0)
		return size ? WRONG : NOT_YET;
	if (wire_read(far->said, (size_t)size, &msg) != size ||
	    wire_ext_get(&msg, here.awaited == WIRE_WELCOME, said) ||
	    said->type != here.awaited)
		return WRONG;
	return SOUND;
}

/* @conduit leads to @far, and has what was said behind the first message. */
static void check_taken(struct far_end *far, struct conduit conduit)
{
	size_t first = (size_t)first_message(far), len = far->len - first;
	uint8_t rest[SAID_MAX];

	check(!far->taken);
	far->taken = true;
	check(sock_unread(conduit.fd) == len);
	if (len)
		check(recv(conduit.fd, rest, sizeof(rest), 0) == (ssize_t)len &&
		      !memcmp(rest, far->said + first, len));
	conduit_close(conduit);
}

/* --- RP --- */

/* NULL: who dialled it has hung up since. */
static struct far_end *leads_to(struct conduit conduit)
{
	struct sockaddr_in far, own;
	socklen_t len = sizeof(far);

	if (getpeername(conduit.fd, (struct sockaddr *)&far, &len))
		return NULL;
	for (int i = 0; i < PIPES; i++) {
		if (here.far[i].fd < 0)
			continue;
		check(!getsockname(here.far[i].fd, (struct sockaddr *)&own,
				   &len));
		if (own.sin_port == far.sin_port &&
		    own.sin_addr.s_addr == far.sin_addr.s_addr)
			return &here.far[i];
	}
	check(!"a pipe that nobody dialled");
	return NULL;
}

static void greeted(struct reception *r, const struct sockaddr_storage *peer,
		    const struct wire_hello *hello, struct conduit conduit)
{
	struct far_end *far = leads_to(conduit);
	struct wire_ext said;

	check(r == &here.reception && peer->ss_family == AF_INET);
	if (!far) {
		conduit_close(conduit);
		return;
	}
	check(judge(far, &said) == SOUND);
	check(hello->version == said.hello.version &&
	      hello->features == said.hello.features &&
	      hello->pipe == said.hello.pipe &&
	      hello->pipes == said.hello.pipes &&
	      hello->incarnation == said.hello.incarnation &&
	      !memcmp(hello->session, said.hello.session,
		      sizeof(hello->session)));
	check_taken(far, conduit);
}

static void open_rp(void)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	access_init(&here.access);
	reception_init(&here.reception, greeted, here.loop, &here.log,
		       &here.incidents, &here.access);
	here.reception.max = FULL;
	check(!entrances_open(&here.reception.entrances, TRANSPORT_TCP,
			      (struct sockaddr_storage *)&addr, sizeof(addr)));
}

static void close_rp(void)
{
	reception_close(&here.reception);
	check(!here.reception.waiting.n);
	access_fini(&here.access);
}

static bool all_have_come(void)
{
	return here.reception.waiting.numbers == here.dialled;
}

/* From one of four addresses. */
static void dial_rp(struct far_end *far, uint8_t from)
{
	struct sockaddr_in source = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK + from % 4u),
	};
	enum transport kind;
	const struct sockaddr_storage *to =
		entrances_address(&here.reception.entrances, 0, &kind);

	far->fd = socket(AF_INET, SOCK_STREAM, 0);
	check(far->fd >= 0);
	sock_nodelay(far->fd);	/* all that was said is to be there */
	check(!bind(far->fd, (struct sockaddr *)&source, sizeof(source)));
	check(!connect(far->fd, (const struct sockaddr *)to,
		       sizeof(struct sockaddr_in)));
	for (int i = 0; i < PIPES; i++)
		here.far[i].may_go |= &here.far[i] != far &&
				      here.reception.waiting.n >= FULL;
	here.dialled++;
	rounds_until(all_have_come);
}

/* --- LP --- */

static void welcomed(struct opening *o, const struct wire_hello *hello,
		     const struct wire_welcome *welcome, struct conduit conduit)
{
	struct wire_ext said;

	check(!here.ends++ && o == &here.opening && hello->pipes == 4);
	check(judge(&here.far[0], &said) == SOUND &&
	      said.welcome.status == WIRE_WELCOME_NEW);
	check(!memcmp(&said.welcome, welcome, sizeof(*welcome)));
	check_taken(&here.far[0], conduit);
}

static void declined(struct opening *o, enum opening_end end, const char *why)
{
	struct far_end *far = &here.far[0];
	struct wire_ext said;

	check(!here.ends++ && o == &here.opening && *why);
	check(!opening_is_heard(o));
	switch (judge(far, &said)) {
	case NOT_YET:
		check(end == OPENING_SILENT || end == OPENING_FAILED);
		break;
	case WRONG:
		check(end == OPENING_WRONG || far->may_go);
		break;
	case SOUND:
		check(said.welcome.status != WIRE_WELCOME_NEW || far->may_go ||
		      (end == OPENING_ONE_PATH && here.paths.n > 1));
		break;
	}
}

static const struct opening_ops opening_ops = { welcomed, declined };

static void check_hello(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	uint8_t buf[WIRE_MESSAGE_MAX];
	struct wire_msg msg;
	struct wire_ext ext;
	ssize_t n;

	check(poll(&ready, 1, 10000) == 1);
	n = recv(fd, buf, sizeof(buf), 0);
	check(n > 0 && wire_read(buf, (size_t)n, &msg) == n);
	check(wire_ext_get(&msg, 0, &ext) == WIRE_EXT_OK &&
	      ext.type == WIRE_HELLO && ext.hello.pipes == 4);
}

static bool is_heard(void)
{
	check(!here.ends);
	return opening_is_heard(&here.opening);
}

static void open_lp(uint8_t how)
{
	struct sockaddr_storage to;
	char why[128];

	check(!transport_set_parse(&here.transports, "tcp", why, sizeof(why)));
	if (how & 2) {
		here.paths.n = 2;
		here.paths.path[0].pipes = here.paths.path[1].pipes = 2;
	}
	opening_init(&here.opening, &opening_ops, here.loop, &here.transports,
		     &here.paths, 4);
	memset(&to, 0, sizeof(to));
	loopback_listener((struct sockaddr_in *)&to);
	opening_start(&here.opening, &to, PATIENCE_S * NS_PER_SEC);
	here.far[0].fd = take_connect();
	sock_nodelay(here.far[0].fd);
	here.far[0].since = loop_clock();
	rounds_until(is_heard);
	check_hello(here.far[0].fd);
}

/* --- the program --- */

static int64_t patience(void)
{
	return (here.awaited == WIRE_HELLO ? RECEPTION_PATIENCE_S : PATIENCE_S) *
	       NS_PER_SEC;
}

static void say(struct far_end *far, const uint8_t *bytes, size_t n)
{
	if (far->fd < 0 || far->taken || n > SAID_MAX - far->len)
		return;
	if (send(far->fd, bytes, n, MSG_NOSIGNAL) < 0)
		return;		/* it was closed before */
	memcpy(far->said + far->len, bytes, n);
	far->len += n;
}

static void say_raw(struct far_end *far, struct input *in)
{
	size_t n = input_take(in) % 64;

	n = n < in->left ? n : in->left;
	say(far, in->at, n);
	in->at += n;
	in->left -= n;
}

/* Of any fields, and cut after @most bytes. */
static void say_message(struct far_end *far, struct input *in, bool awaited)
{
	struct wire_ext what = { 0 };
	uint8_t buf[WIRE_MESSAGE_MAX];
	size_t len, most;

	if (awaited == (here.awaited == WIRE_HELLO)) {
		what.type = WIRE_HELLO;
		what.hello.version = input_take(in) % 3;
		what.hello.features = input_take(in);
		what.hello.session[0] = input_take(in);
		what.hello.pipe = input_take(in) % 5;
		what.hello.pipes = input_take(in) % 66;
		what.hello.incarnation = input_take(in);
	} else {
		what.type = WIRE_WELCOME;
		what.welcome.version = input_take(in) % 3;
		what.welcome.features = input_take(in) |
					(input_take(in) & 1u ? 0xff00u : 0);
		what.welcome.status = input_take(in) % 6;
		what.welcome.connections = input_take(in);
	}
	len = wire_ext_put(buf, &what);
	most = input_take(in);
	say(far, buf, most < len ? most : len);
	if (input_take(in) & 1)
		say(far, buf + (most < len ? most : len),
		    most < len ? len - most : 0);
}

static bool is_closed(const struct far_end *far)
{
	char byte;
	ssize_t n = recv(far->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return !n || (n < 0 && errno != EAGAIN);
}

static bool has_ended(const struct far_end *far)
{
	return loop_clock() - far->since >= patience();
}

/* What the other end made of all that was said on a pipe is right. One that may go need not. */
static bool is_settled(const struct far_end *far)
{
	struct wire_ext said;
	bool closed = is_closed(far);

	switch (judge(far, &said)) {
	case NOT_YET:
		return closed ? far->may_go : !has_ended(far);
	case WRONG:
		return closed;
	default:
		if (here.awaited == WIRE_HELLO)
			return far->taken || (far->may_go && closed);
		return here.ends == 1;
	}
}

static bool all_settled(void)
{
	unsigned int waiting = 0;

	for (int i = 0; i < PIPES; i++) {
		const struct far_end *far = &here.far[i];

		if (far->fd < 0)
			continue;
		if (!is_settled(far))
			return false;
		waiting += !far->taken && !is_closed(far);
	}
	return here.awaited == WIRE_WELCOME ||
	       here.reception.waiting.n == waiting;
}

static void settle(void)
{
	rounds_until(all_settled);
}

static void hang_up(struct far_end *far)
{
	if (far->fd >= 0)
		sock_reset(far->fd);
	far->fd = -1;
	far->len = 0;
	far->taken = far->may_go = false;
}

/* All that was said has been read. */
static void wait_for(int64_t ns)
{
	struct wire_ext said;

	clock_advance(ns);
	for (int i = 0; i < PIPES; i++) {
		struct far_end *far = &here.far[i];

		far->may_go |= has_ended(far) && judge(far, &said) == NOT_YET;
	}
	run_round(here.loop);
}

static void step(struct input *in)
{
	uint8_t what = input_take(in);
	struct far_end *far = &here.far[here.awaited == WIRE_HELLO ?
					what / 8 % PIPES : 0];

	switch (what % 8) {
	case 0:
		if (here.awaited == WIRE_HELLO && far->fd < 0) {
			dial_rp(far, input_take(in));
			far->since = loop_clock();
		}
		break;
	case 1:
	case 2:
		say_raw(far, in);
		break;
	case 3:
		say_message(far, in, false);
		break;
	case 4:
	case 5:
		say_message(far, in, true);
		break;
	case 6:
		settle();
		wait_for(input_take(in) * 20 * NS_PER_MS);
		break;
	default:
		if (here.awaited == WIRE_HELLO)
			hang_up(far);
		else if (far->fd >= 0)
			far->may_go |= !shutdown(far->fd, SHUT_WR);
		break;
	}
	if (what & 128)
		settle();
}

static void begin(uint8_t how)
{
	memset(&here, 0, sizeof(here));
	for (int i = 0; i < PIPES; i++)
		here.far[i].fd = -1;
	here.awaited = how & 1 ? WIRE_HELLO : WIRE_WELCOME;
	here.loop = loop_new();
	check(here.loop != NULL);
	log_init(&here.log, "fuzz", LOG_ERROR);
	incidents_init(&here.incidents, here.loop, &here.log, incident_kinds);
	if (here.awaited == WIRE_HELLO)
		open_rp();
	else
		open_lp(how);
}

static void finish(void)
{
	settle();
	wait_for(patience());
	settle();
	if (here.awaited == WIRE_HELLO) {
		check(!here.reception.waiting.n);
		close_rp();
	} else {
		check(here.ends == 1);
		opening_stop(&here.opening);
	}
	for (int i = 0; i < PIPES; i++)
		hang_up(&here.far[i]);
	incidents_fini(&here.incidents);
	log_fini(&here.log);
	loop_free(here.loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };

	descriptors_begin();
	clock_begin();
	begin(input_take(&in));
	while (in.left)
		step(&in);
	finish();
	clock_end();
	descriptors_end();
	return 0;
}
