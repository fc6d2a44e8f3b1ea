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
#include "rule.h"

enum { REDIRECT_PORT = 6003, SOCKS_PORT = 1080 };

struct way_in {
	bool on;
	struct sockaddr_storage addr;
	socklen_t len;
};

struct changes;

struct options {
	struct settings settings;
	struct dialer_options dial;	/* RP, and how it is reached */
	bool encrypts;			/* this program can */
	struct keys keys;		/* the one that is shown; or none */
	bool names_here;		/* looked up by lp, not by rp */
	bool late_reply;		/* of SOCKS5: when rp has answered */
	bool extend_given;		/* on the command line */
	struct way_in *redirects;
	unsigned int nredirects;
	bool redirects_given;	/* on the command line */
	struct way_in *tproxies;	/* off unless given */
	unsigned int ntproxies;
	struct way_in socks;
	struct rule *rules;	/* of --forward */
	unsigned int nrules;
	struct rule *remotes;	/* of --remote-forward, where addr is rp's */
	unsigned int nremotes;
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
 * line in @why: then @o is as it was. An option that shall change on SIGHUP is named
 * in lp_changing and copied in take(), both in options.c.
 */
int options_again(struct options *o, int argc, char **argv,
		  struct changes *changes, char *why, size_t why_len);

#endif
