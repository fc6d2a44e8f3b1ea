/* SPDX-License-Identifier: MIT */
/*
 * What all handshakes of a process have in common: TLS 1.3 alone, keys by their
 * names, and nothing that makes a later handshake shorter than the first.
 */
#include "tls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "../mux/base/list.h"
#include "../mux/base/log.h"
#include "tls_inside.h"

/* Both of SHA-256, as is every key. */
static const char suites[] =
	"TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
static const unsigned char suite_of_keys[] = { 0x13, 0x01 };

const unsigned char tls_alpn[6] = { 5, 't', 'm', '3', '/', '1' };

/* --- keys --- */

static SSL_SESSION *session_of(SSL *ssl, const struct key *key)
{
	SSL_SESSION *session = SSL_SESSION_new();

	if (session &&
	    SSL_SESSION_set1_master_key(session, key->secret, key->len) &&
	    SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, suite_of_keys)) &&
	    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

/*
 * Who gives a name that is unknown is told what one with a wrong key is told: so
 * names cannot be found out.
 */
static int find_session(SSL *ssl, const unsigned char *identity,
			size_t len, SSL_SESSION **session)
{
	struct tls_layer *t = SSL_get_app_data(ssl);
	const struct key *key = keys_find(t->tls->keys, (const char *)identity,
					  len);

	if (key) {
		memcpy(t->name, key->name, sizeof(t->name));
		t->layer.tried = t->name;
	}
	*session = session_of(ssl, key ? key : &t->tls->nobody);
	return *session != NULL;
}

static int use_session(SSL *ssl, const EVP_MD *md, const unsigned char **identity,
		       size_t *len, SSL_SESSION **session)
{
	struct tls_layer *t = SSL_get_app_data(ssl);
	const struct key *key = &t->tls->keys->key[0];

	(void)md;	/* there is one alone */
	memcpy(t->name, key->name, sizeof(t->name));
	*identity = (const unsigned char *)t->name;
	*len = strlen(t->name);
	*session = session_of(ssl, key);
	return *session != NULL;
}

static int choose_alpn(SSL *ssl, const unsigned char **chosen,
		       unsigned char *chosen_len, const unsigned char *offered,
		       unsigned int offered_len, void *arg)
{
	unsigned int i;

	(void)ssl;
	(void)arg;
	for (i = 0; i < offered_len; i += 1U + offered[i]) {
		if (offered_len - i < sizeof(tls_alpn) ||
		    memcmp(offered + i, tls_alpn, sizeof(tls_alpn)))
			continue;
		*chosen = offered + i + 1;
		*chosen_len = offered[i];
		return SSL_TLSEXT_ERR_OK;
	}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void log_keys(const SSL *ssl, const char *line)
{
	struct tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

	fprintf(tls->keylog.line, "%s\n", line);
	line_file_end_line(&tls->keylog);
	line_file_flush(&tls->keylog);
}

/* --- what all have in common --- */

/*
 * A certificate would have to be verified, and there is nothing to verify it
 * with: so one never does.
 */
static SSL_CTX *make_ctx(struct tls *tls)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());

	if (!ctx)
		return NULL;
	SSL_CTX_set_app_data(ctx, tls);
	if (!SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) ||
	    !SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) ||
	    !SSL_CTX_set_ciphersuites(ctx, suites) ||
	    !SSL_CTX_set_num_tickets(ctx, 0) ||
	    SSL_CTX_set_alpn_protos(ctx, tls_alpn, sizeof(tls_alpn))) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION |
			    SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_psk_find_session_callback(ctx, find_session);
	SSL_CTX_set_psk_use_session_callback(ctx, use_session);
	SSL_CTX_set_alpn_select_cb(ctx, choose_alpn, NULL);
	return ctx;
}

int tls_keylog(struct layers *layers, const char *path, struct log *log)
{
	struct tls *tls;
	int err;

	if (!layers || !*path)
		return 0;
	tls = container_of(layers, struct tls, layers);
	err = line_file_open(&tls->keylog, path);
	if (err) {
		log_error(log, "--keylog: cannot write %s: %s", path,
			  strerror(-err));
		return err;
	}
	tls->keylog_on = true;
	SSL_CTX_set_keylog_callback(tls->ctx, log_keys);
	log_warn(log, "--keylog: whoever can read %s can read all that goes over the pipes",
		 path);
	return 0;
}

/* A handshake is the first thread's; what others share with it does not change. */
static struct layers *beside(struct layers *from)
{
	const struct tls *first = container_of(from, struct tls, layers);
	struct tls *tls = malloc(sizeof(*tls));

	if (!tls)
		return NULL;
	*tls = *first;
	return &tls->layers;
}

static void put_beside(struct layers *layers)
{
	free(container_of(layers, struct tls, layers));
}

static void take(struct layers *layers, const struct keys *keys)
{
	container_of(layers, struct tls, layers)->keys = keys;
}

/* What this system's openssl.cnf says is for other programs. */
struct layers *tls_layers_new(const struct keys *keys, struct log *log)
{
	struct tls *tls = calloc(1, sizeof(*tls));

	if (!tls)
		goto no_memory;
	tls->layers.new = tls_layer_new;
	tls->layers.beside = beside;
	tls->layers.put_beside = put_beside;
	tls->layers.take = take;
	tls->layers.memory_shaking = LAYER_MEMORY_SHAKING;
	tls->keys = keys;
	tls->nobody.len = KEY_MADE;
	tls->records_most = RECORDS_OF_A_KEY;
	if (!OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) ||
	    getrandom(tls->nobody.secret, KEY_MADE, 0) != KEY_MADE)
		goto no_memory;
	tls->ctx = make_ctx(tls);
	tls->memory = tls_memory_new();
	if (tls->ctx && tls->memory)
		return &tls->layers;

no_memory:
	log_error(log, "TLS cannot be started");
	if (tls)
		tls_layers_free(&tls->layers);
	return NULL;
}

void tls_layers_free(struct layers *layers)
{
	struct tls *tls;

	if (!layers)
		return;
	tls = container_of(layers, struct tls, layers);
	SSL_CTX_free(tls->ctx);
	BIO_meth_free(tls->memory);
	if (tls->keylog_on)
		line_file_close(&tls->keylog);
	free(tls);
}
