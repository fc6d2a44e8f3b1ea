/* SPDX-License-Identifier: MIT */
#include "backlog.h"

#include <errno.h>
#include <stdlib.h>

int backlog_add(struct backlog **b, const struct iovec *iov, int n, size_t skip)
{
	int err = 0;
	int i;

	if (!*b)
		*b = calloc(1, sizeof(**b));
	if (!*b)
		return -ENOMEM;
	for (i = 0; i < n && !err; i++) {
		if (skip >= iov[i].iov_len) {
			skip -= iov[i].iov_len;
			continue;
		}
		err = bytes_append(&(*b)->bytes,
				   (const char *)iov[i].iov_base + skip,
				   iov[i].iov_len - skip);
		skip = 0;
	}
	return err;
}

void backlog_release(struct backlog **b)
{
	if (!*b || (*b)->bytes.len || (*b)->full_at)
		return;
	free(*b);
	*b = NULL;
}

void backlog_free(struct backlog **b)
{
	if (*b)
		bytes_clear(&(*b)->bytes);
	free(*b);
	*b = NULL;
}
