/* SPDX-License-Identifier: MIT */
#include "voice.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "loopback.h"

enum {
	PERIOD = 1 << 16,	/* of the bytes, whatever the seed */
	SPOKEN = 20000, HEARD = 30000,	/* at once at most */
};

/* What @writer says from byte @at on: HEARD bytes at least. */
static const uint8_t *words_at(const struct voice *writer, size_t at)
{
	static uint8_t words[PERIOD + HEARD];

	if (!words[1])
		for (size_t i = 0; i < sizeof(words); i++)
			words[i] = (uint8_t)(i * 7 + (i >> 8) * 13);
	return words + (at + writer->seed * 251u) % PERIOD;
}

long voice_speak(struct voice *v, struct random *r, int fd)
{
	size_t n = random_range(r, 1, SPOKEN);
	ssize_t sent;

	if (n > v->to_send - v->sent)
		n = v->to_send - v->sent;
	if (!n)
		return 0;
	sent = send(fd, words_at(v, v->sent), n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < 0)
		return -errno;
	v->sent += (size_t)sent;
	return sent;
}

long voice_listen(struct voice *v, const struct voice *writer,
		  struct random *r, int fd)
{
	uint8_t buf[HEARD];
	size_t most = r ? random_range(r, 1, sizeof(buf)) : sizeof(buf);
	long n = read_some(fd, buf, most);

	if (n <= 0)
		return n;
	assert_true(v->got + (size_t)n <= writer->sent);
	assert_memory_equal(buf, words_at(writer, v->got), (size_t)n);
	v->got += (size_t)n;
	return n;
}
