/* SPDX-License-Identifier: MIT */
/*
 * "lp --make-key [NAME]": prints a line for the files of keys of lp and rp.
 */
#ifndef TM3_LP_MAKE_KEY_H
#define TM3_LP_MAKE_KEY_H

#include <stdbool.h>

/* Is that what the command line says? Then the program exits with @status. */
bool make_key(int argc, char **argv, int *status);

#endif
