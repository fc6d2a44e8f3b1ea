/* SPDX-License-Identifier: MIT */
/* What whoever listens has to know beside the addresses. */
#ifndef TM3_PORTS_H
#define TM3_PORTS_H

#include "addr.h"
#include "handed.h"

struct ports {
	struct handed handed;
	/* An address that is none of this host's yet; "" if there is none. */
	char awaited[ADDR_TEXT];
};

#endif
