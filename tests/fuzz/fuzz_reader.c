/* SPDX-License-Identifier: MIT */
/*
 * The reader told whatever there is: pipes that can be read or cannot, heads of
 * any connection and number, reads that bring all, little or nothing,
 * connections whose numbers move, stand, or are nobody's.
 *
 * Asserted: it names only pipes that can be read, and asks for bytes that a read
 * can bring; what is named in a round is read, one pipe at least; and a
 * round in which nothing new comes ends.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "mux/session/reader.h"
#include "check.h"

enum { IDS = 4, READS_MAX = 100000 };

struct input {
	const uint8_t *at;
	size_t left;
};

struct scene {
	struct input in;
	struct reader reader;
	unsigned int pipes;
	size_t unread[PIPES_MAX];
	uint32_t expected[IDS];
	bool nobody[IDS];
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t take(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

static bool expects(void *arg, unsigned int pipe, const struct wire_head *head,
		    uint32_t *number)
{
	struct scene *scene = arg;

	check(pipe < scene->pipes);
	*number = scene->expected[head->id % IDS];
	return head->id && !scene->nobody[head->id % IDS];
}

static size_t unread(void *arg, unsigned int pipe)
{
	struct scene *scene = arg;

	check(pipe < scene->pipes);
	return scene->unread[pipe];
}

static uint64_t came(void *arg, uint64_t pipes)
{
	struct scene *scene = arg;
	uint64_t found = 0;
	unsigned int i;

	for (i = 0; i < scene->pipes; i++) {
		if (pipes >> i & 1 && scene->unread[i])
			found |= UINT64_C(1) << i;
	}
	return found;
}

static const struct reader_ops ops = {
	.expects = expects,
	.unread = unread,
	.came = came,
};

/* What is next then: a header if one was asked for, else nobody knows, or one. */
static void read_pipe(struct scene *scene, unsigned int pipe, size_t most)
{
	size_t *left = &scene->unread[pipe];
	size_t got = *left < most ? *left : most;
	uint8_t how = take(&scene->in);
	struct wire_head head = {
		.id = how % (IDS + 1),
		.number = scene->expected[how % IDS] + take(&scene->in) - 8,
		.size = WIRE_HEADER + 1 + (size_t)how * 16,
	};
	bool known = (how & 0x80 && got) ||
		(most <= WIRE_HEADER && got == most);

	*left -= got;
	if (how & 0x40)
		scene->expected[how % IDS] += how;
	reader_was_read(&scene->reader, pipe, most, got, known ? &head : NULL,
			known ? WIRE_HEADER : how % WIRE_HEADER);
}

static void run_round(struct scene *scene)
{
	size_t most, named = 0;
	unsigned int i;
	int pipe, reads = 0;

	reader_begin(&scene->reader);
	for (i = 0; i < scene->pipes; i++) {
		if (!scene->unread[i])
			continue;
		reader_ready(&scene->reader, i);
		named++;
	}
	while ((pipe = reader_next(&scene->reader, &most)) >= 0) {
		check((unsigned int)pipe < scene->pipes);
		check(scene->reader.unread >> pipe & 1);
		check(most && most <= READER_MAX);
		read_pipe(scene, (unsigned int)pipe, most);
		check(++reads < READS_MAX);
	}
	reader_end(&scene->reader);
	check(!named || reads);
}

static void step(struct scene *scene)
{
	uint8_t op = take(&scene->in);
	unsigned int pipe = take(&scene->in) % scene->pipes;
	unsigned int id = op >> 4 & (IDS - 1);

	switch (op & 7) {
	case 0:
		scene->expected[id] += take(&scene->in);
		break;
	case 1:
		scene->nobody[id] = !scene->nobody[id];
		break;
	case 2:
		reader_add(&scene->reader, pipe, op & 0x80);
		break;
	case 3:
	case 4:
		run_round(scene);
		break;
	default:
		scene->unread[pipe] += (size_t)take(&scene->in) << (op >> 4);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scene scene = { .in = { data, size } };
	unsigned int i;

	reader_init(&scene.reader, &ops, &scene);
	scene.pipes = 1 + take(&scene.in) % PIPES_MAX;
	for (i = 0; i < scene.pipes; i++)
		reader_add(&scene.reader, i, true);
	while (scene.in.left)
		step(&scene);
	return 0;
}
