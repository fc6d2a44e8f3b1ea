/* SPDX-License-Identifier: MIT */
/*
 * One layer: an SSL over memory. What the socket has is read here and given to it;
 * the records that it makes are written by whoever has the conduit.
 */
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../mux/base/list.h"
#include "tls_inside.h"

enum {
	/* Of a record: header, the type that lies in it, and what proves it. */
	RECORD_MAX = 16384,
	RECORD_HEADER = 5,
	RECORD_TYPE = 1,
	RECORD_TAG = 16,
	RECORD_MORE = RECORD_HEADER + RECORD_TYPE + RECORD_TAG,
};

static struct tls_layer *layer_of(struct layer *l)
{
	return container_of(l, struct tls_layer, layer);
}

/* --- what the SSL sees as its socket --- */

static int memory_read(BIO *bio, char *buf, size_t len, size_t *got)
{
	struct tls_layer *t = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	*got = 0;
	if (t->chatter > CHATTER_MAX)
		return 0;	/* as where a socket failed */
	*got = len < t->in_len ? len : t->in_len;
	if (!*got) {
		BIO_set_retry_read(bio);
		return 0;
	}
	memcpy(buf, t->in, *got);
	t->in += *got;
	t->in_len -= *got;
	return 1;
}

static int memory_write(BIO *bio, const char *buf, size_t len, size_t *took)
{
	struct tls_layer *t = BIO_get_data(bio);
	size_t used = t->written + t->layer.out_len;
	uint8_t *more;

	BIO_clear_retry_flags(bio);
	*took = 0;
	if (t->reads && t->answered + len > ANSWERS_MAX) {
		t->asks_much = true;
		return 0;	/* as where a socket failed */
	}
	if (used + len > t->out_size) {
		more = realloc(t->out, used + len);
		if (!more) {
			t->is_short = true;
			return 0;
		}
		t->out = more;
		t->out_size = used + len;
	}
	if (t->reads)
		t->answered += len;
	memcpy(t->out + used, buf, len);
	t->layer.out = t->out + t->written;
	t->layer.out_len += len;
	*took = len;
	return 1;
}

static long memory_ctrl(BIO *bio, int what, long number, void *where)
{
	(void)bio, (void)number, (void)where;
	return what == BIO_CTRL_FLUSH;
}

static int memory_create(BIO *bio)
{
	BIO_set_init(bio, 1);
	return 1;
}

BIO_METHOD *tls_memory_new(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() |
					  BIO_TYPE_SOURCE_SINK, "layer");

	if (!method)
		return NULL;
	BIO_meth_set_read_ex(method, memory_read);
	BIO_meth_set_write_ex(method, memory_write);
	BIO_meth_set_ctrl(method, memory_ctrl);
	BIO_meth_set_create(method, memory_create);
	return method;
}

static void wrote(struct layer *l, size_t n)
{
	struct tls_layer *t = layer_of(l);

	t->written += n;
	l->out += n;
	l->out_len -= n;
	if (!l->out_len)
		t->written = t->answered = 0;
}

/*
 * Up to @most bytes; the SSL has taken all of before. How many, 0 at the end, or
 * -errno.
 */
static ssize_t take_in(struct tls_layer *t, size_t most)
{
	ssize_t n = recv(t->layer.fd, t->tls->in, most < IN_SIZE ? most : IN_SIZE,
			 0);

	if (n < 0)
		return -errno;
	t->in = t->tls->in;
	t->in_len = (size_t)n;
	t->in_left = false;
	return n;
}

/*
 * The next layer that reads needs tls->in. Something is left where all that was asked for was
 * read: no more came than that and a record need (read_tls()). What cannot be kept is lost: what
 * the next layer reads there must not be taken for it.
 */
static int keep_left(struct tls_layer *t)
{
	if (!t->in_len || t->in_left)
		return 0;
	if (!t->left)
		t->left = malloc(READ_LEAST);
	if (!t->left || t->in_len > READ_LEAST) {
		t->is_short = true;
		t->in_len = 0;
		return -ENOMEM;
	}
	memcpy(t->left, t->in, t->in_len);
	t->in = t->left;
	t->in_left = true;
	return 0;
}

/*
 * Why OpenSSL failed: the first of its reasons. Where one of them is memory, that is behind
 * the others.
 */
static unsigned long cause(struct tls_layer *t)
{
	unsigned long first = ERR_peek_error(), code;

	while ((code = ERR_get_error()))
		if (ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE)
			t->is_short = true;
	return first;
}

static const char *reason(unsigned long cause)
{
	const char *text = ERR_reason_error_string(cause);

	return text ? text : "no reason is known";
}

/* --- the handshake --- */

static int short_of_memory(struct tls_layer *t)
{
	snprintf(t->why, sizeof(t->why), "no memory is left for its handshake");
	return -ENOMEM;
}

/* 0: both ends know that the other one has the key. */
static int finish(struct tls_layer *t)
{
	const unsigned char *chosen;
	unsigned int len;

	SSL_get0_alpn_selected(t->ssl, &chosen, &len);
	if (!SSL_session_reused(t->ssl) || !*t->name) {
		snprintf(t->why, sizeof(t->why), "it did not show a key");
		return -EACCES;
	}
	if (len + 1 != sizeof(tls_alpn) || memcmp(chosen, tls_alpn + 1, len)) {
		snprintf(t->why, sizeof(t->why), "it does not speak of TM3 (ALPN)");
		return -EACCES;
	}
	t->layer.name = t->name;
	t->shaken = true;
	return 0;
}

static int broke_off(struct tls_layer *t)
{
	unsigned long why = cause(t);
	int code = ERR_GET_REASON(why);

	if (t->is_short)
		return short_of_memory(t);
	if (SSL_is_server(t->ssl) && t->came && !t->speaks_tls)
		snprintf(t->why, sizeof(t->why), "it does not speak TLS, as an lp without a key does not (--key-file)");
	else if (SSL_is_server(t->ssl) && code == SSL_R_BINDER_DOES_NOT_VERIFY)
		snprintf(t->why, sizeof(t->why), *t->name ?
			 "its key is not the one of %s here" :
			 "it gave a name that no key here has%s", t->name);
	else if (code == SSL_R_TLSV1_ALERT_DECRYPT_ERROR ||
		 code == SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER)
		snprintf(t->why, sizeof(t->why), "rp has not got this key of %s",
			 t->name);
	else
		snprintf(t->why, sizeof(t->why), "TLS with a key did not come about: %s",
			 reason(why));
	return -EACCES;
}

static int shake(struct layer *l)
{
	struct tls_layer *t = layer_of(l);
	ssize_t n;
	int ok;

	while (!t->shaken) {
		if (t->is_short)
			return short_of_memory(t);
		ERR_clear_error();
		ok = SSL_do_handshake(t->ssl);
		if (ok == 1)
			return keep_left(t) ? short_of_memory(t) : finish(t);
		if (SSL_get_error(t->ssl, ok) != SSL_ERROR_WANT_READ)
			return broke_off(t);
		if (t->came == UNKNOWN_MAX) {
			snprintf(t->why, sizeof(t->why),
				 "it said %d bytes without showing a key",
				 UNKNOWN_MAX);
			return -EMSGSIZE;
		}
		n = take_in(t, UNKNOWN_MAX - t->came);
		if (n <= 0)
			return n == -EAGAIN || n == -EINTR ? -EAGAIN :
			       -ECONNRESET;
		if (!t->came)
			t->speaks_tls = t->in[0] == SSL3_RT_HANDSHAKE;
		t->came += (size_t)n;
	}
	return 0;
}

static const char *why(const struct layer *l)
{
	return layer_of((struct layer *)(uintptr_t)l)->why;
}

/* --- in --- */

static void note_breach(struct tls_layer *t)
{
	unsigned long why = cause(t);

	t->error = t->is_short ? ENOMEM : EBADMSG;
	if (t->chatter > CHATTER_MAX)
		snprintf(t->why, sizeof(t->why), "the other end says nothing but new keys");
	else if (t->asks_much)
		snprintf(t->why, sizeof(t->why), "the other end asks for ever more new keys");
	else
		snprintf(t->why, sizeof(t->why), "what came is no record of its key: %s",
			 reason(why));
}

/*
 * OpenSSL keeps its answer to a request for a new key until it next writes, or until it
 * reads another message of TLS: so reading may leave records in out.
 */
static int read_record(struct tls_layer *t, uint8_t *buf, size_t len, size_t *n)
{
	int ok;

	ERR_clear_error();
	t->reads = true;
	ok = SSL_read_ex(t->ssl, buf, len, n);
	t->reads = false;
	return ok ? SSL_ERROR_NONE : SSL_get_error(t->ssl, ok);
}

/* Of records that are opened, or that the SSL may take: of a part it may have the beginning. */
static size_t pending(const struct tls_layer *t)
{
	return (size_t)SSL_pending(t->ssl) + t->in_len;
}

/* As much as there is of @len. False: there is no whole record more, or none ever. */
static bool open_records(struct tls_layer *t, uint8_t *buf, size_t len,
			 size_t *got)
{
	size_t n;
	int err;

	while (*got < len) {
		if (!pending(t))
			return false;
		err = read_record(t, buf + *got, len - *got, &n);
		if (err == SSL_ERROR_NONE) {
			*got += n;
			continue;
		}
		if (err == SSL_ERROR_ZERO_RETURN)
			t->shut = true;
		else if (err != SSL_ERROR_WANT_READ)
			note_breach(t);
		return false;
	}
	return true;
}

/* An end of the socket that was not said by TLS may be anybody's. */
static void note_end(struct tls_layer *t, ssize_t n)
{
	if (!n)
		t->error = ECONNRESET;
	else if (n != -EAGAIN && n != -EINTR)
		t->error = (int)-n;
}

/* A peer may say more and more of it without a byte for anybody: that is to end. */
static void note_chatter(int sent, int version, int type, const void *message,
			 size_t len, SSL *ssl, void *arg)
{
	struct tls_layer *t = SSL_get_app_data(ssl);

	(void)version, (void)message, (void)len, (void)arg;
	if (!sent && type == SSL3_RT_HANDSHAKE && t->shaken)
		t->chatter++;
}

/*
 * No more comes out of the socket in one call than @len bytes need: records may be
 * large and have hardly a byte in them, and others have their turns.
 */
static ssize_t read_tls(struct layer *l, void *buf, size_t len)
{
	struct tls_layer *t = layer_of(l);
	bool drained = t->shut || t->error;
	size_t got = 0, taken = 0, most;
	ssize_t n;

	t->chatter = 0;
	while (!open_records(t, buf, len, &got)) {
		if (drained || t->shut || t->error ||
		    taken >= len + READ_LEAST)
			break;
		most = len - got + RECORD_MORE;
		if (most < READ_LEAST)
			most = READ_LEAST;
		n = take_in(t, most);
		if (n <= 0) {
			note_end(t, n);
			break;
		}
		taken += (size_t)n;
		drained = (size_t)n < most && n < IN_SIZE;
	}
	if (!t->shut && !t->error && keep_left(t))
		t->error = ENOMEM;
	if (t->shut || t->error)
		t->in_len = 0;	/* nobody hears of it */
	/* What is left may be no whole record: then it is looked at in vain, once. */
	l->pending = got == len && pending(t) ? pending(t) :
					t->shut || t->error;
	if (got || t->shut)
		return (ssize_t)got;
	errno = t->error ? t->error : EAGAIN;
	return -1;
}

/* --- out --- */

/*
 * A KeyUpdate of our own, and what we make is of another key from then on. The other end
 * looks after its direction itself.
 */
static bool change_key(struct tls_layer *t)
{
	if (!SSL_key_update(t->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) ||
	    SSL_do_handshake(t->ssl) != 1)
		return false;
	t->records = 0;
	return true;
}

static int unsealed(struct tls_layer *t)
{
	cause(t);
	return t->is_short ? -ENOMEM : -EPROTO;
}

static int seal(struct layer *l, const void *buf, size_t len)
{
	struct tls_layer *t = layer_of(l);
	size_t n;

	ERR_clear_error();
	if (t->records >= t->tls->records_most && !change_key(t))
		return unsealed(t);
	if (!SSL_write_ex(t->ssl, buf, len, &n) || n != len)
		return unsealed(t);
	t->records += (unsigned int)((len + RECORD_MAX - 1) / RECORD_MAX);
	return 0;
}

static void shut(struct layer *l)
{
	struct tls_layer *t = layer_of(l);

	if (!t->shaken || t->error)
		return;
	ERR_clear_error();
	SSL_shutdown(t->ssl);
}

/* --- life --- */

static void layer_free(struct layer *l)
{
	struct tls_layer *t = layer_of(l);

	SSL_free(t->ssl);
	free(t->left);
	free(t->out);
	free(t);
}

/* After each read what is left of it is in t->left: see keep_left(). */
static void move(struct layer *l, struct layers *to)
{
	layer_of(l)->tls = container_of(to, struct tls, layers);
}

static const struct layer_ops ops = {
	.shake = shake,
	.read = read_tls,
	.seal = seal,
	.wrote = wrote,
	.shut = shut,
	.why = why,
	.move = move,
	.free = layer_free,
};

static int make_ssl(struct tls_layer *t, bool accepted)
{
	BIO *bio = BIO_new(t->tls->memory);

	t->ssl = SSL_new(t->tls->ctx);
	if (!t->ssl || !bio) {
		SSL_free(t->ssl);
		BIO_free(bio);
		return -ENOMEM;
	}
	BIO_set_data(bio, t);
	SSL_set_bio(t->ssl, bio, bio);
	SSL_set_app_data(t->ssl, t);
	SSL_set_msg_callback(t->ssl, note_chatter);
	if (!accepted) {
		SSL_set_connect_state(t->ssl);
		return 0;
	}
	SSL_set_accept_state(t->ssl);
	/* A server that would verify certificates takes no key without it. */
	if (SSL_set_session_id_context(t->ssl, tls_alpn + 1,
				       sizeof(tls_alpn) - 1))
		return 0;
	SSL_free(t->ssl);
	return -ENOMEM;
}

struct layer *tls_layer_new(struct layers *from, int fd, bool accepted)
{
	struct tls_layer *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->tls = container_of(from, struct tls, layers);
	t->layer = (struct layer){
		.ops = &ops, .fd = fd, .overhead = RECORD_MORE,
		.record = RECORD_MAX, .memory = LAYER_MEMORY,
	};
	if (!make_ssl(t, accepted))
		return &t->layer;
	free(t);
	return NULL;
}
