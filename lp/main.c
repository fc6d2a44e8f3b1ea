/* SPDX-License-Identifier: MIT */
/*
 * lp, the local proxy: what it is put together of.
 */
#include <errno.h>

#include "../mux/program/program.h"
#include "../tls/tls.h"
#include "make_key.h"
#include "options.h"
#include "proxy.h"

struct lp {
	struct program program;
	int argc;
	char **argv;
	struct options options;
	struct proxy *proxy;
};

static struct lp *lp_of(struct program *p)
{
	return container_of(p, struct lp, program);
}

static int prepare(struct program *p)
{
	const struct options *o = &lp_of(p)->options;

	if (!o->keys.n)
		return 0;
	p->engine.layers = tls_layers_new(&o->keys, &p->log);
	return p->engine.layers ? 0 : -ENOMEM;
}

static int open_files(struct program *p)
{
	return tls_keylog(p->engine.layers, lp_of(p)->options.settings.keylog,
			  &p->log);
}

static int open(struct program *p)
{
	struct lp *lp = lp_of(p);

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

	return options_again(&lp->options, lp->argc, lp->argv, changes, why,
			     why_len);
}

static const struct program_ops ops = {
	.name = "lp",
	.prepare = prepare,
	.open = open,
	.open_files = open_files,
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
				     lp.options.dial.pipes);
	tls_layers_free(lp.program.engine.layers);
	options_fini(&lp.options);
	return status;
}
