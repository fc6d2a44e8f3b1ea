/* SPDX-License-Identifier: MIT */
#include "ext_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "loopback.h"

struct writing {
	int fd;
	const uint8_t *bytes;
	size_t left;
};

static bool is_written(void *arg)
{
	struct writing *w = arg;
	ssize_t n = send(w->fd, w->bytes, w->left, MSG_NOSIGNAL);

	if (n > 0) {
		w->bytes += n;
		w->left -= (size_t)n;
	}
	return !w->left;
}

void pair_write(struct pair *pair, int fd, const uint8_t *bytes, size_t len)
{
	struct writing w = { fd, bytes, len };

	assert_true(run_until(pair->engine.loop, "what is written", is_written,
			      &w));
}

struct sending {
	const struct extended *rp;
	uint64_t until;
};

static bool is_sent(void *arg)
{
	const struct sending *sending = arg;

	return sending->rp->sent >= sending->until;
}

void pair_send(struct pair *pair, const uint8_t *bytes, size_t len)
{
	const struct extended *rp = pair->rp->ext;
	struct sending sending = { rp, rp->sent + len };

	pair_write(pair, pair->conn[0].server, bytes, len);
	assert_true(run_until(pair->engine.loop, "what is sent", is_sent,
			      &sending));
}
