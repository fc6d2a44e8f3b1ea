/* SPDX-License-Identifier: MIT */
/*
 * lp's command line.
 */
#ifndef TM3_LP_OPTIONS_H
#define TM3_LP_OPTIONS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "../mux/options/key_file.h"
#include "../mux/options/words.h"
#include "../mux/settings/settings.h"
#include "dialer.h"
#include "path_option.h"
#include "path_rule.h"
#include "rule.h"

enum { REDIRECT_PORT = 6003, SOCKS_PORT = 1080 };
enum { CONTROL_PATH_MAX = 108 };	/* as the kernel has it */

struct way_in {
	bool on;
	struct sockaddr_storage addr;
	socklen_t len;
};

struct changes;

struct options {
	struct settings settings;
	struct dialer_options dial;	/* RP, and how it is reached */
	size_t layer_memory;		/* of an encrypted pipe; 0: not in this build */
	struct keys keys;		/* the one that is shown; or none */
	bool names_here;		/* looked up by lp, not by rp */
	bool late_reply;		/* of SOCKS5: when rp has answered */
	bool extend_given;		/* on the command line */
	bool running;			/* it is read once more */
	struct way_in *redirects;
	unsigned int nredirects;
	bool redirects_given;	/* on the command line */
	struct way_in *tproxies;	/* off unless given */
	unsigned int ntproxies;
	struct way_in socks;
	struct rule *rules;	/* of --forward */
	unsigned int nrules;
	struct path_rules path_rules;	/* of --rule */
	char absent[ABSENT_TEXT];	/* which paths are not there yet, */
	unsigned int nabsent;		/* so many */
	struct rule *remotes;	/* of --remote-forward, where addr is rp's */
	unsigned int nremotes;
	char control[CONTROL_PATH_MAX];	/* where paths are controlled, "" nowhere */
	struct words words;	/* all of it, as it was given */
};

/* Ends what is said of an option that needs the extension. */
#define UNSPOKEN_EXTENSION "the extension, and it is not spoken here (--extend, or no EXTPORT)"

/*
 * Returns whether to go on; else the program is to exit with @status. Call
 * options_fini() in either case. @layer_memory: what the
 * encryption of one pipe may take; 0: this program cannot encrypt.
 */
bool options_parse(struct options *o, size_t layer_memory, int argc,
		   char **argv, int *status);
void options_fini(struct options *o);

/*
 * Reads command line and files once more. What can change while sessions go on is
 * in @o then, where it was before, and @changes says what. Returns 0, or -1 with a
 * line in @why: then @o is as it was. An option that shall change on SIGHUP is named
 * in lp_changing and copied in take(), both in options.c.
 *
 * Another key in the same file is taken, too: the one before is in @before then, which is
 * empty and the caller's.
 */
int options_again(struct options *o, int argc, char **argv,
		  struct changes *changes, struct keys *before, char *why,
		  size_t why_len);

#endif
