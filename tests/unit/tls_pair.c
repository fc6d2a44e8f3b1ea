/* SPDX-License-Identifier: MIT */
#include "tls_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "loopback.h"
#include "mux/base/sock.h"
#include "tls/tls.h"

int tls_pair_init(struct tls_pair *pair)
{
	*pair = (struct tls_pair){ .rp_keys = pair->rp_keys };
	log_init(&pair->log, "test", LOG_ERROR);
	pair->rp_layers = tls_layers_new(&pair->rp_keys, &pair->log);
	pair->lp_layers = tls_layers_new(&pair->lp_keys, &pair->log);
	return pair->rp_layers && pair->lp_layers ? 0 : -1;
}

void tls_pair_fini(struct tls_pair *pair)
{
	if (pair->rp.layer)
		conduit_close(pair->rp);
	if (pair->lp.layer)
		conduit_close(pair->lp);
	tls_layers_free(pair->rp_layers);
	tls_layers_free(pair->lp_layers);
}

void tls_pair_join(struct tls_pair *pair, struct key *shown)
{
	int fd[2];

	pair->lp_keys = (struct keys){ shown, 1 };
	tcp_pair(fd);
	sock_nodelay(fd[0]);
	sock_nodelay(fd[1]);
	assert_int_equal(conduit_open(&pair->rp, pair->rp_layers, fd[0], true), 0);
	assert_int_equal(conduit_open(&pair->lp, pair->lp_layers, fd[1], false),
			 0);
}
