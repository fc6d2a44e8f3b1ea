/* SPDX-License-Identifier: MIT */
/*
 * Layers of TLS 1.3 for a process that has keys. rp takes whoever shows one of
 * its keys; lp shows the only one that it has, and takes nobody who has not got
 * it, too.
 *
 * A build without OpenSSL has the same names: TLS_BUILT tells. TLS_PIPE_MEMORY is
 * what the layer of one pipe may take.
 */
#ifndef TM3_TLS_H
#define TM3_TLS_H

#include <stddef.h>

#include "../mux/pipe/conduit.h"

struct keys;
struct log;

/*
 * @keys stay the caller's, who may change them: a handshake takes those that there
 * are. NULL: why was logged.
 */
#ifdef TM3_TLS
enum { TLS_BUILT = 1, TLS_PIPE_MEMORY = 132 * 1024 };
struct layers *tls_layers_new(const struct keys *keys, struct log *log);
/*
 * Before the first handshake of @layers, which may be NULL. Whoever has the file @path
 * ("" for none) can read all that goes over the pipes. 0, or -errno after that was logged.
 */
int tls_keylog(struct layers *layers, const char *path, struct log *log);
void tls_layers_free(struct layers *layers);
#else
enum { TLS_BUILT = 0, TLS_PIPE_MEMORY = 0 };
static inline struct layers *tls_layers_new(const struct keys *keys,
					    struct log *log)
{
	(void)keys, (void)log;
	return NULL;
}
static inline int tls_keylog(struct layers *layers, const char *path,
			     struct log *log)
{
	(void)layers, (void)path, (void)log;
	return 0;
}
static inline void tls_layers_free(struct layers *layers)
{
	(void)layers;
}
#endif

#endif
