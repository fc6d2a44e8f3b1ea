/* SPDX-License-Identifier: MIT */
#include "toy_layer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mux/base/list.h"

enum { MASK = 0x5a, IN_MAX = 4 * TOY_RECORD, OUT_MAX = 1 << 17, WORD = 2 };

struct toy {
	struct layer layer;
	struct toy_layers *from;
	bool accepted, said, shut;
	uint8_t in[IN_MAX];	/* as it came */
	size_t in_len;
	uint8_t plain[TOY_RECORD];	/* of one record, to be read */
	size_t plain_len, plain_at;
	uint8_t out[OUT_MAX];
};

static struct toy *toy_of(const struct layer *l)
{
	return container_of((struct layer *)(uintptr_t)l, struct toy, layer);
}

static void put_out(struct toy *t, const void *bytes, size_t len)
{
	if (!t->layer.out_len)
		t->layer.out = t->out;
	memcpy(t->out + (t->layer.out - t->out) + t->layer.out_len, bytes, len);
	t->layer.out_len += len;
}

/* As recv(), into in. */
static ssize_t more_in(struct toy *t, size_t most)
{
	ssize_t n = recv(t->layer.fd, t->in + t->in_len, most, 0);

	if (n > 0)
		t->in_len += (size_t)n;
	return n;
}

static void drop_in(struct toy *t, size_t n)
{
	t->in_len -= n;
	memmove(t->in, t->in + n, t->in_len);
}

/* The word is the first two letters of the name. */
static int shake(struct layer *l)
{
	struct toy *t = toy_of(l);
	ssize_t n;

	if (t->from->is_short)
		return -ENOMEM;
	if (!t->accepted && !t->said)
		put_out(t, t->from->name, WORD);
	t->said = true;
	n = t->in_len < WORD ? more_in(t, WORD - t->in_len) : 1;
	if (n < 0 && errno != EAGAIN)
		return -errno;
	if (!n)
		return -ECONNRESET;
	if (t->in_len < WORD)
		return -EAGAIN;
	if (memcmp(t->in, t->from->name, WORD))
		return -EACCES;
	drop_in(t, WORD);
	if (t->accepted)
		put_out(t, t->from->name, WORD);
	l->name = t->from->name;
	return 0;
}

/* 1: there is one; 0: not whole. */
static int next_record(struct toy *t)
{
	size_t len = t->in_len < TOY_OVERHEAD ? 0 :
		     (size_t)(t->in[0] << 8 | t->in[1]);

	if (t->in_len < TOY_OVERHEAD || t->in_len < TOY_OVERHEAD + len)
		return 0;
	for (size_t i = 0; i < len; i++)
		t->plain[i] = t->in[TOY_OVERHEAD + i] ^ MASK;
	t->shut |= !len;
	t->plain_len = len;
	t->plain_at = 0;
	drop_in(t, TOY_OVERHEAD + len);
	return 1;
}

static ssize_t read_toy(struct layer *l, void *buf, size_t len)
{
	struct toy *t = toy_of(l);
	size_t got = 0;
	ssize_t n = 1;

	while (got < len && !t->shut) {
		size_t some = t->plain_len - t->plain_at;

		if (some > len - got)
			some = len - got;
		memcpy((uint8_t *)buf + got, t->plain + t->plain_at, some);
		t->plain_at += some;
		got += some;
		if (t->plain_at < t->plain_len || next_record(t))
			continue;
		n = more_in(t, IN_MAX - t->in_len);
		if (n <= 0)
			break;
	}
	l->pending = t->plain_len - t->plain_at;
	if (got == len && !l->pending)
		l->pending = t->in_len;	/* perhaps */
	if (got || t->shut)
		return (ssize_t)got;
	if (!n)
		errno = ECONNRESET;
	return -1;
}

static int seal(struct layer *l, const void *buf, size_t len)
{
	struct toy *t = toy_of(l);
	const uint8_t *from = buf;
	uint8_t record[TOY_OVERHEAD + TOY_RECORD];

	while (len) {
		size_t n = len < TOY_RECORD ? len : TOY_RECORD;

		record[0] = (uint8_t)(n >> 8);
		record[1] = (uint8_t)n;
		for (size_t i = 0; i < n; i++)
			record[TOY_OVERHEAD + i] = from[i] ^ MASK;
		put_out(t, record, TOY_OVERHEAD + n);
		from += n;
		len -= n;
	}
	return 0;
}

static void wrote(struct layer *l, size_t n)
{
	l->out += n;
	l->out_len -= n;
}

static void shut(struct layer *l)
{
	put_out(toy_of(l), "\0", TOY_OVERHEAD);
}

static const char *why(const struct layer *l)
{
	(void)l;
	return "the words differ";
}

static void toy_free(struct layer *l)
{
	toy_of(l)->from->there--;
	free(toy_of(l));
}

static const struct layer_ops ops = {
	.shake = shake,
	.read = read_toy,
	.seal = seal,
	.wrote = wrote,
	.shut = shut,
	.why = why,
	.free = toy_free,
};

static struct layer *new_toy(struct layers *from, int fd, bool accepted)
{
	struct toy *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->from = container_of(from, struct toy_layers, layers);
	t->from->there++;
	t->accepted = accepted;
	t->layer = (struct layer){
		.ops = &ops, .fd = fd, .overhead = TOY_OVERHEAD,
		.record = TOY_RECORD,
	};
	return &t->layer;
}

void toy_layers_init(struct toy_layers *toys, const char *name)
{
	*toys = (struct toy_layers){ .layers.new = new_toy, .name = name };
}
