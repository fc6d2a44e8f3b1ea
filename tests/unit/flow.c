/* SPDX-License-Identifier: MIT */
#include "flow.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "loopback.h"

static uint8_t byte_at(size_t at)
{
	return (uint8_t)(at * 7 + (at >> 8) * 13 + (at >> 16));
}

void flow_push(struct flow *f)
{
	uint8_t buf[FLOW_CHUNK];
	size_t n = f->all - f->sent < FLOW_CHUNK ? f->all - f->sent : FLOW_CHUNK;
	ssize_t sent;

	for (size_t i = 0; i < n; i++)
		buf[i] = byte_at(f->sent + i);
	sent = n ? send(f->from, buf, n, MSG_NOSIGNAL) : 0;
	if (sent > 0)
		f->sent += (size_t)sent;
}

static bool pull(struct flow *f)
{
	static uint8_t buf[1 << 20];
	long n = read_some(f->to, buf, sizeof(buf));

	for (long i = 0; i < n; i++)
		assert_int_equal(buf[i], byte_at(f->got + (size_t)i));
	if (n > 0)
		f->got += (size_t)n;
	else
		assert_int_equal(n, -EAGAIN);
	return f->got == f->all;
}

bool flows(void *arg)
{
	struct flow *f = arg;

	flow_push(f);
	return pull(f);
}
