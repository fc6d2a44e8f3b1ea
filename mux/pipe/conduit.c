/* SPDX-License-Identifier: MIT */
#include "conduit.h"

#include <errno.h>
#include <unistd.h>

int conduit_open(struct conduit *c, struct layers *layers, int fd,
		 bool accepted)
{
	*c = conduit_plain(fd);
	if (!layers)
		return 0;
	c->layer = layers->new(layers, fd, accepted);
	if (c->layer)
		return 0;
	close(fd);
	return -ENOMEM;
}

void conduit_close(struct conduit c)
{
	if (c.layer)
		c.layer->ops->free(c.layer);
	close(c.fd);
}

void conduit_move(struct conduit c, struct layers *layers)
{
	if (c.layer)
		c.layer->ops->move(c.layer, layers);
}

/* A handshake, a greeting, a last word: a socket takes so little whole, or is lost. */
static bool write_out(struct layer *l)
{
	while (l->out_len) {
		ssize_t n = send(l->fd, l->out, l->out_len, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		l->ops->wrote(l, (size_t)n);
	}
	return true;
}

int conduit_shake(struct conduit c)
{
	int err;

	if (!c.layer)
		return 0;
	err = c.layer->ops->shake(c.layer);
	if (!write_out(c.layer) && (!err || err == -EAGAIN))
		err = -EPIPE;
	return err;
}

ssize_t conduit_read(struct conduit c, void *buf, size_t len)
{
	return c.layer ? c.layer->ops->read(c.layer, buf, len) :
	       recv(c.fd, buf, len, 0);
}

bool conduit_say(struct conduit c, const void *buf, size_t len)
{
	if (!c.layer)
		return send(c.fd, buf, len, MSG_NOSIGNAL) == (ssize_t)len;
	return !c.layer->ops->seal(c.layer, buf, len) && write_out(c.layer);
}

void conduit_shut(struct conduit c)
{
	if (c.layer) {
		c.layer->ops->shut(c.layer);
		write_out(c.layer);
	}
	shutdown(c.fd, SHUT_WR);
}
