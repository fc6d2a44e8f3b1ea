/* SPDX-License-Identifier: MIT */
/*
 * `tm3ctl --bpf`: redirects the connections of one command, or of one cgroup.
 *
 * A command takes this process' place, so that signals, terminal and exit status
 * are its own. Beside it a keeper holds the programs in the kernel until nobody
 * is left in the command's cgroup, and removes that. For a cgroup that was there
 * this process itself holds them, in the foreground.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group.h"
#include "listing.h"
#include "lp.h"
#include "options.h"
#include "programs.h"
#include "say.h"

enum { NO_SUCH_COMMAND = 127 };

static volatile sig_atomic_t asked_to_end;

static void end(int signal)
{
	(void)signal;
	asked_to_end = 1;
}

/* They arrive while somebody waits in ppoll(), and only then. */
static sigset_t catch_signals(void)
{
	struct sigaction action = { .sa_handler = end };
	sigset_t caught, before;

	sigemptyset(&caught);
	sigaddset(&caught, SIGINT);
	sigaddset(&caught, SIGTERM);
	sigaddset(&caught, SIGHUP);
	sigprocmask(SIG_BLOCK, &caught, &before);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	return before;
}

/* --- before --- */

/* @g: NULL for a cgroup that is yet to be made. */
static void check_lp(const struct options *o, const struct group *g)
{
	unsigned int port = ntohs(o->settings.local_port);
	uint64_t cgroup4, cgroup6;
	bool v4, v6;

	if (!lp_can_be_reached())
		die("there is nowhere to redirect to: loopback is down");
	v4 = lp_listens(AF_INET, o->settings.local_port, &cgroup4);
	v6 = lp_listens(AF_INET6, o->settings.local_port, &cgroup6);
	if (!v4)
		say("nobody listens on 127.0.0.1:%u: until lp does, connections are "
		    "refused", port);
	else if (!v6)
		say("lp takes no IPv6, such connections are refused; lp --redirect "
		    "%u --redirect [::1]:%u would", port, port);
	if (g && !o->nexcept &&
	    ((v4 && group_contains(g, cgroup4)) || (v6 && group_contains(g, cgroup6))))
		die("lp itself is in %s, its pipes would be turned back to it: name "
		    "its remote proxy by --except", g->path);
}

/* --- a cgroup --- */

static int hold(const struct options *o)
{
	struct programs programs;
	struct group group;
	sigset_t before = catch_signals();
	struct pollfd removals = { .events = POLLIN };

	if (group_open(&group, o->cgroup))
		return 1;
	check_lp(o, &group);
	if (programs_attach(&programs, o, group.fd, group.path))
		return 1;
	say("connections of %s to port %s go to lp, until this process ends",
	    group.path, o->ports);
	removals.fd = group_removals(&group);
	while (!asked_to_end && group_is_there(&group, removals.fd))
		ppoll(&removals, 1, NULL, &before);
	programs_detach(&programs);
	say(asked_to_end ? "off" : "off: the cgroup is gone");
	return 0;
}

/* --- a command --- */

/* Nothing of this process' that others would wait for the end of. */
static void go_apart(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	close(null);
	if (chdir("/"))
		return;
	prctl(PR_SET_NAME, "tm3bpf-keeper");
}

/*
 * Until nobody is there, or somebody else has cleared up: the kernel tells of an
 * end 10 ms late at times, and of none in a cgroup that is removed meanwhile.
 * Asked to end, it redirects no more but still waits to clear up.
 */
static void keep(struct programs *programs, const struct group *group,
		 const sigset_t *before)
{
	struct pollfd changes[] = {
		{ .fd = group_events(group), .events = POLLPRI },
		{ .fd = group_removals(group), .events = POLLIN },
	};
	bool held = true;

	while (group_is_there(group, changes[1].fd) &&
	       group_is_populated(changes[0].fd)) {
		ppoll(changes, 2, NULL, before);
		if (asked_to_end && held) {
			programs_detach(programs);
			held = false;
		}
	}
	if (held)
		programs_detach(programs);
	group_remove(group);
}

/*
 * A process that is nobody's child here, for the command knows of none. @entered
 * ends when the command is in its cgroup, or will never be. -1: there is none.
 */
static int start_keeper(struct programs *programs, const struct group *group,
			const int entered[2])
{
	sigset_t before;
	pid_t child = fork();
	char byte;
	int status;

	if (child < 0)
		return -1;
	if (child)
		return waitpid(child, &status, 0) == child && !status ? 0 : -1;
	child = fork();
	if (child > 0)
		programs_held_by(programs, child);
	if (child)
		_exit(child < 0);
	before = catch_signals();
	close(entered[1]);
	go_apart();
	while (read(entered[0], &byte, 1) < 0 && errno == EINTR)
		;
	keep(programs, group, &before);
	_exit(0);
}

static int run(const struct options *o)
{
	struct programs programs;
	struct group group;
	int entered[2], err;

	check_lp(o, NULL);
	if (group_make(&group))
		return 1;
	if (programs_attach(&programs, o, group.fd, group.path))
		goto remove;
	if (pipe2(entered, O_CLOEXEC) || start_keeper(&programs, &group, entered)) {
		say("no process can be started: %s", strerror(errno));
		goto remove;
	}
	/* From here on it is the keeper that clears up. */
	err = group_enter(&group);
	if (err) {
		say("%s cannot be entered: %s", group.path, strerror(-err));
		return 1;
	}
	execvp(*o->command, o->command);
	say("cannot run '%s': %s", *o->command, strerror(errno));
	return NO_SUCH_COMMAND;
remove:
	group_remove(&group);
	return 1;
}

int main(int argc, char **argv)
{
	static struct options o;

	options_parse(&o, argc, argv);
	if (geteuid())
		die("needs root");
	if (o.status)
		return listing_print() ? 1 : 0;
	return o.cgroup ? hold(&o) : run(&o);
}
