/* SPDX-License-Identifier: MIT */
#include "linkem_bed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void note_loss(void *arg, int direction, const struct packet *p,
		      enum link_end end, int64_t at)
{
	struct bed *bed = arg;

	(void)direction;
	(void)at;
	if (end == LINK_LOST && p->index < OUT_MAX)
		bed->lost[p->index] = true;
}

static void note_fall(void *arg, int direction)
{
	struct bed *bed = arg;

	(void)direction;
	bed->fell_open++;
}

static struct params params_of(const char *words)
{
	struct params p;
	char why[256] = "";

	params_init(&p);
	if (params_set(&p, words, why, sizeof(why)) ||
	    params_check(&p, why, sizeof(why)))
		fail_msg("%s: %s", words, why);
	return p;
}

struct bed *bed_new(const char *words, uint64_t seed)
{
	struct bed *bed = calloc(1, sizeof(*bed));
	struct params params = params_of(words);

	assert_non_null(bed);
	pool_init(&bed->pool, FULL, 64 << 20);
	link_init(&bed->link, 0, seed, MTU, &bed->pool, &params, 0);
	bed->link.watch.drop = note_loss;
	bed->link.watch.fell_open = note_fall;
	bed->link.watch.arg = bed;
	return bed;
}

void bed_free(struct bed *bed)
{
	link_fini(&bed->link);
	assert_int_equal(bed->pool.in_use, 0);
	pool_fini(&bed->pool);
	free(bed);
}

void bed_collect(struct bed *bed, int64_t now)
{
	struct packet *p;

	link_run(&bed->link, now);
	while ((p = link_exit(&bed->link, now))) {
		if (p->numbered)
			bed->out[bed->n++] = (struct out){
				p->index, p->due, p->entered, p->passed,
				p->len, p->copy, p->held };
		link_done(&bed->link, p, true, p->due);
	}
}

void bed_play_until(struct bed *bed, int64_t until)
{
	while (link_next(&bed->link) <= until)
		bed_collect(bed, link_next(&bed->link));
	bed->now = until;
	bed_collect(bed, until);
}

void bed_play_out(struct bed *bed)
{
	while (link_next(&bed->link) != NEVER)
		bed_play_until(bed, link_next(&bed->link));
}

enum { HEADERS = FRAME_HEADER + 28 };	/* of the shortest frames here */

/* Nobody looks at the link meanwhile. */
static void enter_unseen(struct bed *bed, int64_t at, uint32_t frame_len,
			 int type, int dscp)
{
	struct packet *p = pool_get(&bed->pool);

	assert_non_null(p);
	memset(p->data, 0, HEADERS);
	p->data[12] = (uint8_t)(type >> 8);
	p->data[13] = (uint8_t)type;
	p->data[FRAME_HEADER + 1] = (uint8_t)(dscp << 2);
	p->len = frame_len;
	link_enter(&bed->link, p, at);
}

static void enter(struct bed *bed, int64_t at, uint32_t frame_len, int type,
		  int dscp)
{
	bed_play_until(bed, at);
	enter_unseen(bed, at, frame_len, type, dscp);
}

void bed_ip(struct bed *bed, int64_t at, uint32_t frame_len)
{
	enter(bed, at, frame_len, 0x0800, 0);
}

void bed_arp(struct bed *bed, int64_t at)
{
	enter(bed, at, 42, 0x0806, 0);
}

void bed_dscp(struct bed *bed, int64_t at, uint32_t frame_len, int dscp)
{
	enter(bed, at, frame_len, 0x0800, dscp);
}

struct bed *bed_played_often(const char *words, uint64_t seed)
{
	struct bed *bed = bed_new(words, seed);

	for (int i = 0; i < 3000; i++)
		bed_ip(bed, i * NS_PER_MS, FULL);
	bed_play_out(bed);
	return bed;
}

struct bed *bed_played_seldom(const char *words, uint64_t seed)
{
	struct bed *bed = bed_new(words, seed);

	for (int i = 0; i < 3000; i++) {
		enter_unseen(bed, i * NS_PER_MS, FULL, 0x0800, 0);
		if (i % 100 == 99)
			bed_collect(bed, i * NS_PER_MS);
	}
	bed_play_out(bed);
	return bed;
}

void bed_assert_alike(const struct bed *a, const struct bed *b)
{
	assert_int_equal(a->n, b->n);
	for (int i = 0; i < a->n; i++) {
		assert_int_equal(a->out[i].index, b->out[i].index);
		assert_true(a->out[i].at == b->out[i].at);
	}
}

void bed_configure(struct bed *bed, const char *words)
{
	struct params fresh;
	char why[256] = "";

	assert_int_equal(params_copy(&fresh, &bed->link.params), 0);
	if (params_set(&fresh, words, why, sizeof(why)) ||
	    params_check(&fresh, why, sizeof(why)))
		fail_msg("%s: %s", words, why);
	link_configure(&bed->link, &fresh, bed->now);
}

void bed_assert_conserved(const struct bed *bed)
{
	const struct link *l = &bed->link;
	uint64_t gone = l->count.out.packets + host_packets(&l->host) +
			l->radio.firmware.queue.packets + l->line.n +
			(l->sending != NULL);

	for (int i = 0; i < LINK_ENDS; i++)
		gone += l->count.dropped[i].packets;
	assert_int_equal(l->count.in.packets + l->count.duplicated.packets,
			 gone);
}

int bed_out_of_order(const struct bed *bed)
{
	uint64_t highest = 0;
	int n = 0;

	for (int i = 0; i < bed->n; i++) {
		n += bed->out[i].index < highest;
		if (bed->out[i].index > highest)
			highest = bed->out[i].index;
	}
	return n;
}

static struct bed *with_file(const char *key, const char *lines,
			     const char *more)
{
	char path[] = "/tmp/tm3-trace-XXXXXX";
	char words[256];
	struct bed *bed;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, lines, strlen(lines)), strlen(lines));
	close(fd);
	snprintf(words, sizeof(words), "%s=%s %s", key, path, more);
	bed = bed_new(words, 1);
	unlink(path);
	return bed;
}

struct bed *bed_new_traced(const char *lines, const char *more)
{
	return with_file("trace", lines, more);
}

struct bed *bed_new_delayed(const char *lines, const char *more)
{
	return with_file("delay_trace", lines, more);
}
