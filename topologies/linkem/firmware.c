/* SPDX-License-Identifier: MIT */
#include "firmware.h"

bool firmware_is_full(const struct firmware *f)
{
	return firmware_bytes(f) >= f->room;
}

void firmware_push(struct firmware *f, struct packet *p)
{
	queue_push(&f->queue, p);
}

uint64_t firmware_bytes(const struct firmware *f)
{
	return f->queue.bytes - f->head_sent;
}

struct packet *firmware_send(struct firmware *f, uint64_t *bytes)
{
	struct packet *head = f->queue.head;
	uint32_t left;

	if (!head || !*bytes)
		return NULL;
	left = head->cost - f->head_sent;
	if (*bytes < left) {
		f->head_sent += (uint32_t)*bytes;
		*bytes = 0;
		return NULL;
	}
	*bytes -= left;
	f->head_sent = 0;
	return queue_pop(&f->queue);
}
