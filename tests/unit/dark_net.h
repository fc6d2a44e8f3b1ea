/* SPDX-License-Identifier: MIT */
/* A network between the two ends of a pair, whose pipes may go dark: nobody is told. */
#ifndef TM3_TEST_DARK_NET_H
#define TM3_TEST_DARK_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ext_pair.h"

enum { HOPS = 16 };

#define MS NS_PER_MS

struct hop {			/* in the middle of a pipe: */
	int fd[2];		/* LP's side and RP's */
	bool dark;		/* it carries nothing, and says nothing of it */
};

struct network {
	struct hop hop[HOPS];
	int hops;
	size_t written, read;	/* by the client, by the server */
	int lost;		/* the pipe that a test chose */
	double rtt_ms;		/* while the clock stands but for the test */
	int last[2];		/* behind what was sent before, through the same kernel */
};

extern struct network net;

/* For cmocka. */
int net_setup(void **state);
int net_setup_paths(void **state);
int net_teardown(void **state);

void net_be_dark(bool dark);
/* The network, and who reads at the server. */
void net_carry_on(struct pair *pair);
void net_until(struct pair *pair, const char *what,
	       bool (*is)(struct pair *pair));
bool net_nothing_is_kept(struct pair *pair);
/* A connection is open, and nothing is kept. */
void net_begin(struct pair *pair);
unsigned int net_dialled_again(const struct pair *pair);
struct leg *net_leg(struct pair *pair, int i);

/* --- the clock stands but for the test --- */

/* As begin. No copies of tails: they go by the acknowledgements of the kernel, whose
 * clock is another one. */
void net_begin_halted(struct pair *pair);
void net_come_and_go(struct pair *pair);
void net_live(struct pair *pair, int64_t ns);
/* Messages of a byte: each pipe that may take something has two of them, or more. */
void net_say_words(struct pair *pair);

#define NET_TEST(f) cmocka_unit_test_setup_teardown(f, net_setup, net_teardown)
#define NET_PATHS_TEST(f) \
	cmocka_unit_test_setup_teardown(f, net_setup_paths, net_teardown)

#endif
