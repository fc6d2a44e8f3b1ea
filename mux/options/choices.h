/* SPDX-License-Identifier: MIT */
/*
 * The options whose value is one of a list of names, which is told with what is wrong.
 */
#ifndef TM3_CHOICES_H
#define TM3_CHOICES_H

#include <stddef.h>

struct settings;

/* Setters, as options.c has one for each option: 0, or -1 with a line in @why. */
int choices_set_pipe_policy(struct settings *s, const char *value, char *why,
			    size_t why_len);
int choices_set_conn_policy(struct settings *s, const char *value, char *why,
			    size_t why_len);
int choices_set_path_policy(struct settings *s, const char *value, char *why,
			    size_t why_len);
int choices_set_aggregate(struct settings *s, const char *value, char *why,
			  size_t why_len);
int choices_set_sizes(struct settings *s, const char *value, char *why,
		      size_t why_len);
int choices_set_reinject(struct settings *s, const char *value, char *why,
			 size_t why_len);
int choices_set_thin(struct settings *s, const char *value, char *why,
		     size_t why_len);

#endif
