/* SPDX-License-Identifier: MIT */
/*
 * What --rule is told: "port 443 user NAME name *.example.net paths wifi,lte". Of all rules the
 * first that a connection meets in full says over which paths its bytes may go; who meets none
 * may use all.
 *
 * Only text and what is known of a connection; who finds that out is steering.h.
 */
#ifndef TM3_PATH_RULE_H
#define TM3_PATH_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../mux/base/cidr.h"
#include "../mux/settings/path_set.h"
#include "../mux/wire/destination.h"
#include "endpoint.h"

enum {
	PROGRAM_MAX = 255,
	NAMES_MAX = PATHS_MAX * (PATH_NAME_MAX + 1),
};

struct path_rule {
	bool has_port, has_network, has_name, has_user, has_program;
	uint16_t port, port_end;	/* from, to */
	struct cidr network;
	char name[HOST_MAX + 1];	/* may begin with "*." */
	uid_t user;
	char program[PROGRAM_MAX + 1];	/* a file's name; with a slash, all of its path */
	char path_names[NAMES_MAX + 1];
	uint8_t paths;			/* bits, once they are known: path_rules_fit() */
};

struct path_rules {
	struct path_rule *rule;
	unsigned int n;
};

/* What is known of a connection. What is not, meets no criterion. */
struct path_facts {
	const struct destination *to;
	const char *name;		/* NULL: not known */
	void *client;			/* whose socket it is, for these: */
	bool (*is_of_user)(void *client, uid_t user);
	bool (*is_of_program)(void *client, const char *program);
};

/* Adds one. 0, or -1 with a line in @why. */
int path_rules_add(struct path_rules *rules, const char *text, char *why,
		   size_t why_len);
/* Finds the paths that they name among @set. 0, or -1 with a line in @why. */
int path_rules_fit(struct path_rules *rules, const struct path_set *set,
		   char *why, size_t why_len);
void path_rules_fini(struct path_rules *rules);

/* The paths that a connection may use: bits; 0: any. */
uint8_t path_rules_paths(const struct path_rules *rules,
			 const struct path_facts *facts);
/* Does any of them ask for a name, a program, a user? For a program its user is needed, too. */
bool path_rules_ask_names(const struct path_rules *rules);
bool path_rules_ask_programs(const struct path_rules *rules);
bool path_rules_ask_users(const struct path_rules *rules);

#endif
