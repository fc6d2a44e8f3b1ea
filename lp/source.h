/* SPDX-License-Identifier: MIT */
/*
 * Sockets from which answers leave as if from the server that an application sent to: each is bound
 * to the address and port of one. All who answer from the same place share one.
 * Nothing is read from them: what applications send is brought to tproxy.h's port.
 */
#ifndef TM3_SOURCE_H
#define TM3_SOURCE_H

#include <sys/socket.h>

struct source;
struct sources;

struct sources *sources_new(void);	/* NULL: no memory */
void sources_free(struct sources *all);	/* when none is in use; NULL is fine */

/*
 * NULL: there is none to have, and errno says why. EMFILE: a quarter of the descriptors is in
 * use for these, or all are.
 */
struct source *source_get(struct sources *all,
			  const struct sockaddr_storage *addr);
/* With the last user its socket is closed. NULL is fine. */
void source_put(struct source *s);
int source_fd(const struct source *s);

unsigned int sources_count(const struct sources *all);

#endif
