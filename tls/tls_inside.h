/* SPDX-License-Identifier: MIT */
/* What the two files of this room share. */
#ifndef TM3_TLS_INSIDE_H
#define TM3_TLS_INSIDE_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "../mux/base/line_file.h"
#include "../mux/options/key_file.h"
#include "tls.h"

enum {
	/* What a stranger may say in all before it has shown a key. */
	UNKNOWN_MAX = 4096,
	/* In one read: several runs of a bulk, where they are there. */
	IN_SIZE = 256 * 1024,
	/* Less than a whole record is not worth a call. */
	READ_LEAST = 16 * 1024 + 256,
	/* What TLS has to say for itself, in one read: a new key now and then. */
	CHATTER_MAX = 32,
	/*
	 * Of answers, each a new key of ours of 27 bytes, that nothing of ours follows. A
	 * peer that asks after each so many records, as it may, is far from that.
	 */
	ANSWERS_MAX = 1024,
	/*
	 * So many records have the same key, and then there is another one. AES-GCM
	 * takes 2^24.5 of full length (RFC 8446, 5.5), and OpenSSL does not count.
	 */
	RECORDS_OF_A_KEY = 1 << 22,
	WHY_MAX = 160,
	/*
	 * What a layer takes of memory at most: its struct, READ_LEAST that were not taken
	 * yet, the records of a portion and what OpenSSL has, as test_tls_memory measures it. The
	 * other is for one that has only begun.
	 */
	LAYER_MEMORY = TLS_PIPE_MEMORY,
	LAYER_MEMORY_SHAKING = 80 * 1024,
};

struct tls {
	struct layers layers;
	const struct keys *keys;
	SSL_CTX *ctx;
	BIO_METHOD *memory;	/* see tls_memory_new() */
	struct key nobody;	/* that nobody has: for names that are unknown */
	unsigned int records_most;	/* RECORDS_OF_A_KEY; fewer in tests */
	bool keylog_on;
	struct line_file keylog;
	uint8_t in[IN_SIZE];	/* as it comes from a socket */
};

struct tls_layer {
	struct layer layer;
	struct tls *tls;
	SSL *ssl;
	const uint8_t *in;	/* that the SSL has not taken: in tls->in, */
	size_t in_len;
	uint8_t *left;		/* or here, of READ_LEAST, or NULL, */
	bool in_left;		/* where this is so */
	uint8_t *out;		/* records */
	size_t out_size, written;	/* so much of what is in it was written */
	size_t came;		/* before the handshake was done */
	unsigned int records;	/* of the present key, that were made */
	unsigned int chatter;	/* messages of TLS itself since a read began */
	bool speaks_tls;	/* the other end, as far as its first byte tells */
	bool shaken;		/* the handshake is done */
	bool reads;		/* what the SSL says meanwhile is an answer: */
	size_t answered;	/* so many bytes of out */
	bool asks_much;		/* and these were too many */
	bool is_short;		/* of memory: what fails then is not the other end's fault */
	bool shut;		/* the other end said that nothing more comes */
	int error;		/* or what is wrong with what came, an errno */
	char name[KEY_NAME_MAX + 1];	/* that the other end gave, or ours */
	char why[WHY_MAX];
};

struct layer *tls_layer_new(struct layers *from, int fd, bool accepted);
/*
 * BIOs in memory, a layer's own. Those of OpenSSL fill with zeros what they grow by
 * and what they give back: see decision 0017.
 */
BIO_METHOD *tls_memory_new(void);

/* What two ends that speak of the same thing say by ALPN. */
extern const unsigned char tls_alpn[6];

#endif
