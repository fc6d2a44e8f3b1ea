/* SPDX-License-Identifier: MIT */
/*
 * Layers of TLS, RP's and LP's, and a conduit of each: joined back to back.
 */
#ifndef TM3_TEST_TLS_PAIR_H
#define TM3_TEST_TLS_PAIR_H

#include "mux/base/log.h"
#include "mux/options/key_file.h"
#include "mux/pipe/conduit.h"

struct tls_pair {
	struct log log;
	struct keys rp_keys, lp_keys;
	struct layers *rp_layers, *lp_layers;
	struct conduit rp, lp;
	int rp_err, lp_err;	/* of their handshakes; the caller's */
};

/* @pair->rp_keys are set; all else is set here. 0 or -1. */
int tls_pair_init(struct tls_pair *pair);
void tls_pair_fini(struct tls_pair *pair);
/* LP shows the key @shown. The handshake is to come. */
void tls_pair_join(struct tls_pair *pair, struct key *shown);

#endif
