/* SPDX-License-Identifier: MIT */
#include "voice.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "loopback.h"

static uint8_t byte_at(const struct voice *writer, size_t at)
{
	return (uint8_t)(writer->seed + at * 7 + (at >> 8) * 13);
}

long voice_speak(struct voice *v, struct random *r, int fd)
{
	uint8_t buf[20000];
	size_t n = random_range(r, 1, sizeof(buf));
	ssize_t sent;

	if (n > v->to_send - v->sent)
		n = v->to_send - v->sent;
	if (!n)
		return 0;
	for (size_t i = 0; i < n; i++)
		buf[i] = byte_at(v, v->sent + i);
	sent = send(fd, buf, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < 0)
		return -errno;
	v->sent += (size_t)sent;
	return sent;
}

long voice_listen(struct voice *v, const struct voice *writer,
		  struct random *r, int fd)
{
	uint8_t buf[30000];
	size_t most = r ? random_range(r, 1, sizeof(buf)) : sizeof(buf);
	long n = read_some(fd, buf, most);

	if (n <= 0)
		return n;
	assert_true(v->got + (size_t)n <= writer->sent);
	for (long i = 0; i < n; i++)
		assert_int_equal(buf[i], byte_at(writer, v->got + (size_t)i));
	v->got += (size_t)n;
	return n;
}
