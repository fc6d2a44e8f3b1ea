/* SPDX-License-Identifier: MIT */
/*
 * lp, the local proxy: what it is put together of.
 */
#include <errno.h>

#include "../mux/program/program.h"
#include "../tls/tls.h"
#include "make_key.h"
#include "options.h"
#include "past_keys.h"
#include "proxy.h"

struct lp {
	struct program program;
	int argc;
	char **argv;
	struct options options;
	struct past_keys past;
	struct proxy *proxy;
};

static struct lp *lp_of(struct program *p)
{
	return container_of(p, struct lp, program);
}

static int open(struct program *p)
{
	struct lp *lp = lp_of(p);

	lp->past.first = p->engine.layers;
	lp->proxy = proxy_new(&p->engine, &lp->options);
	if (lp->proxy)
		return proxy_listen_all(lp->proxy, &p->ports);
	log_error(&p->log, "there is no memory or no descriptor to start with");
	return -ENOMEM;
}

static int start(struct program *p)
{
	proxy_start(lp_of(p)->proxy);
	return 0;
}

static void stop(struct program *p)
{
	proxy_stop(lp_of(p)->proxy);
}

static void close(struct program *p)
{
	proxy_free(lp_of(p)->proxy);
	lp_of(p)->proxy = NULL;
}

static void print(struct program *p, FILE *out)
{
	proxy_print(lp_of(p)->proxy, out);
}

static void status(struct program *p, char *text, size_t len)
{
	proxy_status(lp_of(p)->proxy, text, len);
}

static int reload(struct program *p, struct changes *changes, char *why,
		  size_t why_len)
{
	struct lp *lp = lp_of(p);
	struct keys before = { 0 };
	struct layers *layers;
	int err = options_again(&lp->options, lp->argc, lp->argv, changes,
				&before, why, why_len);

	if (!before.n)
		return err;
	layers = past_keys_add(&lp->past, p->engine.layers, &before,
			       &lp->options.keys);
	if (!layers)
		log_warn(&p->log, "there is no memory for two keys: the session that there is goes on with the new one, too");
	proxy_take_layers(lp->proxy, layers ? layers : p->engine.layers);
	past_keys_keep(&lp->past, proxy_layers_in_use(lp->proxy),
		       &lp->options.keys);
	return 0;
}

static const struct program_ops ops = {
	.name = "lp",
	.layers_new = tls_layers_new,
	.keylog = tls_keylog,
	.open = open,
	.start = start,
	.stop = stop,
	.close = close,
	.print = print,
	.status = status,
	.reload = reload,
};

int main(int argc, char **argv)
{
	struct lp lp = { .argc = argc, .argv = argv };
	int status;

	if (make_key(argc, argv, &status))
		return status;
	if (options_parse(&lp.options, TLS_PIPE_MEMORY, argc, argv, &status))
		status = program_run(&lp.program, &ops, &lp.options.settings,
				     lp.options.keys.n ? &lp.options.keys : NULL,
				     lp.options.dial.pipes);
	past_keys_fini(&lp.past, lp.program.engine.layers);
	tls_layers_free(lp.past.first);
	options_fini(&lp.options);
	return status;
}
