/* SPDX-License-Identifier: MIT */
#include "path_pair.h"

#include <stdint.h>
#include <string.h>

#include "ext_write.h"

int path_pair_setup(void **state)
{
	struct pair *pair;

	pair_setup_paths(state);
	pair = *state;
	pair->settings.paths.path[SPARE].cost = COST;
	return 0;
}

struct path *path_of(struct session *s, unsigned int number)
{
	return &s->paths.path[number];
}

void path_pair_carry(struct pair *pair, size_t len)
{
	static uint8_t bytes[LOT];
	struct pair_conn *pc = &pair->conn[0];

	memset(bytes, 'x', len);
	pair_write(pair, pc->client, bytes, len);
	pair_expect(pair, pc->server, bytes, len);
	pair_write(pair, pc->server, bytes, len);
	pair_expect(pair, pc->client, bytes, len);
}
