/* SPDX-License-Identifier: MIT */
/*
 * The two applications of a connection that goes through a session, one at LP's end and
 * one at RP's, of which the input says what they do. What one writes is known from
 * the connection's number, the side, and how much it wrote before.
 */
#ifndef TM3_FUZZ_LINKS_H
#define TM3_FUZZ_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LP, RP };

struct app {
	int fd;
	bool came, shut, at_end, saw_reset;
	bool did_reset;
	size_t sent, got;
};

struct link {
	int number;
	int opener;		/* LP or RP */
	struct app app[2];
};

void link_init(struct link *l, int number);
void link_fini(struct link *l);

/* The application at @side has the socket @fd. */
void link_comes(struct link *l, int side, int fd);

/* One of the two, @side, writes, reads, ends or resets, as @what says. */
void link_play(struct link *l, int side, unsigned int what);

/* Both read what there is and write no more. */
void link_be_well(struct link *l);

/*
 * All has come to rest. Whoever came is at an end, and has what it should have.
 * Was one reset that did not do it itself?
 */
bool link_check(struct link *l);

#endif
