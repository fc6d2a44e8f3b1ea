/* SPDX-License-Identifier: MIT */
/*
 * rp, the remote proxy: what it is put together of.
 */
#include "../mux/base/halt.h"
#include "../mux/base/plural.h"
#include "../mux/program/program.h"
#include "../tls/tls.h"
#include "options.h"
#include "server.h"

struct rp {
	struct program program;
	int argc;
	char **argv;
	struct options options;
	struct server server;
};

static struct rp *rp_of(struct program *p)
{
	return container_of(p, struct rp, program);
}

static int open(struct program *p)
{
	struct rp *rp = rp_of(p);

	return server_open(&rp->server, &p->engine, &rp->options,
			   &p->ports);
}

static int start(struct program *p)
{
	return server_start(&rp_of(p)->server);
}

static void stop(struct program *p)
{
	server_stop(&rp_of(p)->server);
}

static void close(struct program *p)
{
	server_close(&rp_of(p)->server);
}

static void print(struct program *p, FILE *out)
{
	server_print(&rp_of(p)->server, out);
}

static void status(struct program *p, char *text, size_t len)
{
	unsigned int n = rp_of(p)->server.guests.n;

	snprintf(text, len, "%u session%s", n, plural(n));
}

static bool alive(struct program *p)
{
	return workers_are_alive(&rp_of(p)->server.guests.workers);
}

static int reload(struct program *p, struct changes *changes, char *why,
		  size_t why_len)
{
	struct rp *rp = rp_of(p);
	int err;

	halt_begin(p->engine.halt);
	err = options_again(&rp->options, rp->argc, rp->argv, changes, why,
			    why_len);
	if (!err)
		server_reload(&rp->server);
	halt_end(p->engine.halt);
	return err;
}

static const struct program_ops ops = {
	.name = "rp",
	.layers_new = tls_layers_new,
	.keylog = tls_keylog,
	.open = open,
	.start = start,
	.stop = stop,
	.close = close,
	.print = print,
	.status = status,
	.alive = alive,
	.reload = reload,
};

int main(int argc, char **argv)
{
	struct rp rp = { .argc = argc, .argv = argv };
	int status;

	if (options_parse(&rp.options, TLS_BUILT, argc, argv, &status))
		status = program_run(&rp.program, &ops, &rp.options.settings,
				     rp.options.keys.n ? &rp.options.keys : NULL,
				     rp.options.pipes);
	tls_layers_free(rp.program.engine.layers);
	options_fini(&rp.options);
	return status;
}
