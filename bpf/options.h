/* SPDX-License-Identifier: MIT */
/*
 * The command line of tm3bpf, which is what stands behind `tm3ctl --bpf`.
 */
#ifndef TM3_BPF_OPTIONS_H
#define TM3_BPF_OPTIONS_H

#include <stdbool.h>

#include "redirect.h"

enum { EXCEPT_MAX = 256 };

struct options {
	struct settings settings;
	char ports[WORDS_MAX];		/* as asked for */
	struct prefix except[EXCEPT_MAX];
	unsigned int nexcept;		/* named by --except */
	const char *cgroup;		/* or NULL: one of its own */
	char **command;			/* or NULL: none */
	bool status;			/* what is asked for is only that */
};

/* Of a wrong line it says in one line what is wrong, and ends with 2. */
void options_parse(struct options *o, int argc, char **argv);

#endif
