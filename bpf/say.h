/* SPDX-License-Identifier: MIT */
/*
 * What people are told: one line each, as tm3ctl's.
 */
#ifndef TM3_BPF_SAY_H
#define TM3_BPF_SAY_H

#define PRINTF __attribute__((format(printf, 1, 2)))

void say(const char *format, ...) PRINTF;	/* to standard error */
_Noreturn void die(const char *format, ...) PRINTF;	/* ends with 1 */
_Noreturn void wrong(const char *format, ...) PRINTF;	/* ends with 2 */

#endif
