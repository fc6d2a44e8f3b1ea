/* SPDX-License-Identifier: MIT */
#include "framing.h"

#include <string.h>
#include <sys/socket.h>

#include "check.h"

static bool is_of_session(const struct framing *f)
{
	return !f->head[0] && !f->head[1];
}

static void begin_body(struct framing *f)
{
	unsigned int largest = f->large && !is_of_session(f) ? 16392 : 4104;
	unsigned int length = f->head[6] | (unsigned int)f->head[7] << 8;

	f->of_head = 0;
	f->has_type = false;
	if (length == 0xFFFF)
		f->of_body = 6;
	else if (length == 0xFFFE)
		f->of_body = 1;
	else if (length > 8 && length <= largest)
		f->of_body = length - 8;
	else
		f->broken = true;
}

static bool is_data(const struct framing *f)
{
	return (f->head[6] | f->head[7] << 8) <= 16392;
}

/* As plainly as the framing can be read. */
bool framing_ends(struct framing *f, uint8_t byte)
{
	if (f->broken)
		return false;
	if (!f->of_body) {
		f->head[f->of_head++] = byte;
		if (f->of_head == WIRE_HEADER)
			begin_body(f);
		return false;
	}
	if (!f->has_type && is_data(f) && is_of_session(f)) {
		f->type = byte;
		f->has_type = true;
	}
	return --f->of_body == 0;
}

void hearing_read(struct hearing *h, int fd,
		  void (*heard)(void *owner, const struct wire_msg *msg),
		  void *owner)
{
	size_t largest = h->large ? WIRE_LARGE_MAX : WIRE_MESSAGE_MAX;
	struct wire_msg msg;
	size_t at = 0;
	ssize_t got;
	int n;

	if (fd < 0)
		return;
	got = recv(fd, h->buf + h->len, sizeof(h->buf) - h->len, MSG_DONTWAIT);
	if (got <= 0)
		return;
	h->len += (size_t)got;
	while ((n = wire_read_up_to(h->buf + at, h->len - at, largest,
				    &msg)) > 0) {
		heard(owner, &msg);
		at += (size_t)n;
	}
	check(n == 0);
	h->len -= at;
	memmove(h->buf, h->buf + at, h->len);
}
