/* SPDX-License-Identifier: MIT */
#ifndef LINKEM_VERSION_H
#define LINKEM_VERSION_H

#define LINKEM_VERSION "1.0"

enum { TRUTH_FORMAT = 1 };	/* of what is written as JSON */

#endif
