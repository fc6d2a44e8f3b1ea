/* SPDX-License-Identifier: MIT */
/*
 * A model in virtual time takes three times as long under sanitizers, and finds
 * the same figures: all of its cases are held to their bounds by the program in
 * build/unit/whole, which is built without. With sanitizers, which look for what
 * no figure shows, one case of so many is run, or each for so much less time.
 */
#ifndef TM3_TEST_PART_H
#define TM3_TEST_PART_H

enum {
/* Prime to what tables are nested by: it does not come by one value again and again. */
#ifdef __SANITIZE_ADDRESS__
	ONE_IN = 13,
#else
	ONE_IN = 1,
#endif
};

#endif
