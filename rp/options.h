/* SPDX-License-Identifier: MIT */
/*
 * The command line of rp: the engine's settings and its own.
 */
#ifndef TM3_RP_OPTIONS_H
#define TM3_RP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "../mux/options/key_file.h"
#include "../mux/options/words.h"
#include "../mux/settings/settings.h"
#include "access.h"
#include "permits.h"

struct options_listen {
	struct sockaddr_storage addr;
	socklen_t len;
};

struct changes;

struct options {
	struct settings settings;
	struct access access;
	struct permits permits;	/* where rp may listen for local proxies */
	bool encrypts;		/* this program can */
	struct keys keys;	/* of those who may come; none: no keys are asked for */
	unsigned int keys_gone;	/* so often some were no more, or other ones */
	struct keys gone;	/* these, the last time: their names alone */
	struct options_listen *listen;	/* at least one, unless there are keys */
	unsigned int listens;
	bool listen_given;	/* on the command line */
	/* Where the extension is spoken; maybe nowhere. */
	struct options_listen *extended;
	unsigned int extendeds;
	bool extended_given;	/* on the command line */
	bool extended_meant;	/* so rp does not go without */
	unsigned int pipes;
	unsigned int workers;	/* threads that have sessions; 1: the first alone */
	unsigned int max_sessions;
	unsigned int max_sessions_each;	/* of one address */
	unsigned int max_connects;	/* of a session, under way */
	unsigned int max_opens;		/* of a session, in a second */
	int64_t connect_timeout;	/* ns */
	struct words words;	/* all of it, as it was given */
};

/*
 * Returns whether to go on; else the program is to exit with @status. Call
 * options_fini() in either case. @encrypts: this program can.
 */
bool options_parse(struct options *o, bool encrypts, int argc, char **argv,
		   int *status);
void options_fini(struct options *o);

/*
 * Reads command line and files once more. What can change while sessions go on is
 * in @o then, where it was before, and @changes says what. Returns 0, or -1 with a
 * line in @why: then @o is as it was.
 *
 * An option that shall change on SIGHUP is named in rp_changing and copied or
 * moved in take(), both in options.c; who looks at @o each time has it at once,
 * others are told by server_reload().
 */
int options_again(struct options *o, int argc, char **argv,
		  struct changes *changes, char *why, size_t why_len);

#endif
