/* SPDX-License-Identifier: MIT */
/* linkem: a link between two network namespaces, in user space. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"
#include "command.h"
#include "control.h"
#include "emulator.h"
#include "frame.h"
#include "netns.h"
#include "options.h"
#include "truth.h"

enum { EXIT_OK, EXIT_FAILED, EXIT_WRONG };
enum { SIGNALS = CONTROL_CLIENTS + 1 };	/* in the control's epoll */

struct program {
	struct options options;
	struct emulator emulator;
	struct control control;
	int signals;
};

__attribute__((format(printf, 2, 3)))
static int complain(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("linkem: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return status;
}

/* --- files --- */

static int open_file(FILE **file, const char *name, const char *path)
{
	if (!path)
		return EXIT_OK;
	*file = fopen(path, "we");
	if (!*file)
		return complain(EXIT_WRONG, "--%s: %s: %s", name, path,
				strerror(errno));
	return EXIT_OK;
}

static int open_files(struct program *p)
{
	const struct options *o = &p->options;
	struct emulator *e = &p->emulator;

	for (int i = 0; i < 2; i++) {
		int ret = o->pcap[i] ? pcap_open(&e->pcap[i], o->pcap[i],
						 o->snaplen)
				     : 0;

		if (ret)
			return complain(EXIT_WRONG, "--pcap-%c: %s: %s",
					'a' + i, o->pcap[i], strerror(-ret));
	}
	if (open_file(&e->samples, "samples", o->samples) ||
	    open_file(&e->drops, "drops", o->drops))
		return EXIT_WRONG;
	return EXIT_OK;
}

static void close_files(struct emulator *e)
{
	pcap_close(&e->pcap[0]);
	pcap_close(&e->pcap[1]);
	if (e->samples)
		fclose(e->samples);
	if (e->drops)
		fclose(e->drops);
}

/* --- the ends --- */

static int open_end(struct program *p, int i, int home)
{
	const struct tap_spec *spec = &p->options.end[i];
	char why[256];
	int ret, netns = netns_open(spec->netns);

	if (netns < 0)
		return complain(EXIT_WRONG, "--%c: %s: %s", 'a' + i,
				spec->netns, strerror(-netns));
	ret = tap_open(&p->emulator.tap[i], spec, netns, home, why,
		       sizeof(why));
	close(netns);
	if (ret == -EBUSY || ret == -EEXIST)
		return complain(EXIT_WRONG,
				"--%c-dev: %s: already there in %s", 'a' + i,
				spec->dev, spec->netns);
	if (ret == -EINVAL)
		return complain(EXIT_WRONG, "--%c: %s: %s", 'a' + i,
				spec->netns, why);
	if (ret)
		return complain(EXIT_FAILED, "%s in %s: %s%s", spec->dev,
				spec->netns, why,
				ret == -EPERM ? " (needs root)" : "");
	return EXIT_OK;
}

static int open_ends(struct program *p)
{
	int home = netns_open("self");
	int status;

	if (home < 0)
		return complain(EXIT_FAILED, "own namespace: %s",
				strerror(-home));
	status = open_end(p, 0, home);
	if (!status)
		status = open_end(p, 1, home);
	close(home);
	return status;
}

/* --- the process --- */

static int take_core(struct program *p)
{
	const struct options *o = &p->options;
	cpu_set_t set;

	p->emulator.cpu = o->cpu;
	if (o->cpu < 0)
		return EXIT_OK;
	CPU_ZERO(&set);
	CPU_SET((size_t)o->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		return complain(EXIT_WRONG, "--cpu: %d: %s", o->cpu,
				strerror(errno));
	return EXIT_OK;
}

static int take_priority(struct program *p)
{
	const struct options *o = &p->options;
	struct sched_param param = { .sched_priority = o->fifo };
	bool automatic = o->fifo == FIFO_AUTO;

	/* Who never sleeps must not keep everybody else from a core. */
	if (o->fifo == FIFO_OFF || (automatic && o->spin))
		return EXIT_OK;
	if (automatic)
		param.sched_priority = 1;
	if (sched_setscheduler(0, SCHED_FIFO, &param) == 0)
		p->emulator.fifo = param.sched_priority;
	else if (!automatic)
		return complain(EXIT_FAILED, "--fifo: %d: %s", o->fifo,
				strerror(errno));
	return EXIT_OK;
}

static int take_place(struct program *p)
{
	pid_t parent = getppid();

	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	if (p->options.with_parent) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			return complain(EXIT_FAILED, "the parent is gone");
	}
	return take_core(p) ? EXIT_WRONG : take_priority(p);
}

static int open_signals(struct program *p)
{
	struct epoll_event event = { .events = EPOLLIN,
				     .data.u32 = SIGNALS };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	p->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (p->signals < 0 || epoll_ctl(p->control.epoll, EPOLL_CTL_ADD,
					p->signals, &event) < 0)
		return complain(EXIT_FAILED, "signals: %s", strerror(errno));
	return EXIT_OK;
}

static int write_truth(struct program *p, const char *state, int status)
{
	const char *path = p->options.truth;
	int ret = path ? truth_write(&p->emulator, state, path) : 0;

	if (ret)
		return complain(status, "--truth: %s: %s", path,
				strerror(-ret));
	return EXIT_OK;
}

static void handle(void *arg)
{
	struct program *p = arg;
	struct signalfd_siginfo info;

	while (read(p->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGUSR1)
			write_truth(p, "running", EXIT_FAILED);
		else
			p->emulator.stop = true;
	}
	control_handle(&p->control);
}

/* --- the run --- */

static void say_fell_open(void *arg, int direction)
{
	(void)arg;
	fprintf(stderr,
		"linkem: %s: packets wait and the radio tells nothing: its gate is open until it does\n",
		truth_direction[direction]);
}

static void start(struct program *p)
{
	struct options *o = &p->options;
	struct emulator *e = &p->emulator;
	size_t frame_max = o->end[0].mtu + FRAME_HEADER + 4;

	pool_init(&e->pool, frame_max, (size_t)o->memory_mb << 20);
	e->seed = o->seed;
	e->spin = o->spin;
	e->coalesce = o->spin ? 0 : (int64_t)o->coalesce_us * 1000;
	e->started = clock_now();
	e->started_wall = clock_read(CLOCK_REALTIME);
	e->sample_every = (int64_t)(o->samples_ms * (double)NS_PER_MS);
	e->next_sample = e->started;
	for (int i = 0; i < 2; i++) {
		link_init(&e->link[i], i, o->seed, o->end[i].mtu, &e->pool,
			  &o->params[i], e->started);
		params_init(&o->params[i]);
		e->link[i].watch.arg = e;
		e->link[i].watch.fell_open = say_fell_open;
		if (e->drops)
			e->link[i].watch.drop = truth_drop;
	}
}

static void say_ready(struct emulator *e)
{
	fputs("{\"type\":\"ready\",", stdout);
	truth_head(e, stdout);
	fputc(',', stdout);
	truth_params(e, stdout);
	fputs("}\n", stdout);
	fflush(stdout);
	fprintf(stderr, "linkem: ready: %s in %s, %s in %s\n", e->tap[0].dev,
		e->tap[0].netns, e->tap[1].dev, e->tap[1].netns);
}

static int run(struct program *p)
{
	struct emulator *e = &p->emulator;
	const struct emulator_watch watch = { p->control.epoll, handle, p };
	int status, ret;

	start(p);
	status = write_truth(p, "running", EXIT_WRONG);
	if (!status) {
		say_ready(e);
		ret = emulator_run(e, &watch);
		if (ret)
			status = complain(EXIT_FAILED, "%s",
					  *e->failed ? e->failed
						     : strerror(-ret));
		ret = write_truth(p, "ended", EXIT_FAILED);
		if (!status)
			status = ret;
	}
	link_fini(&e->link[0]);
	link_fini(&e->link[1]);
	pool_fini(&e->pool);
	return status;
}

static int set_up_and_run(struct program *p)
{
	int status = open_files(p);
	char why[256];

	if (!status)
		status = open_ends(p);
	if (!status)
		status = take_place(p);
	if (status)
		return status;
	p->control.answer = command_answer;
	p->control.arg = &p->emulator;
	if (control_open(&p->control, p->options.control, why, sizeof(why)))
		return complain(EXIT_WRONG, "--control: %s: %s",
				p->options.control ? p->options.control : "-",
				why);
	status = open_signals(p);
	if (!status)
		status = run(p);
	control_close(&p->control);
	return status;
}

int main(int argc, char **argv)
{
	static struct program p;
	enum options_result result = options_parse(&p.options, argc, argv);
	int status = EXIT_OK;

	p.emulator.tap[0].fd = p.emulator.tap[0].rtnl = -1;
	p.emulator.tap[1].fd = p.emulator.tap[1].rtnl = -1;
	if (result == OPTIONS_RUN)
		status = set_up_and_run(&p);
	else if (result == OPTIONS_WRONG)
		status = EXIT_WRONG;
	tap_close(&p.emulator.tap[0]);
	tap_close(&p.emulator.tap[1]);
	close_files(&p.emulator);
	options_fini(&p.options);
	return status;
}
