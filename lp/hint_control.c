/* SPDX-License-Identifier: MIT */
#include "hint_control.h"

#include <errno.h>
#include <string.h>

#include "../mux/base/addr.h"
#include "../mux/conn/conn.h"
#include "../mux/options/values.h"
#include "../mux/session/session.h"
#include "../mux/wire/wire_ext.h"
#include "ways_in.h"

enum { URGENCY_MAX = UINT8_MAX };

/* --- which connection --- */

/* Its application knows that it is there as soon as the kernel does. */
static struct conn *from(struct session *s, const struct sockaddr_storage *at,
			 const struct ways_in *ways_in)
{
	struct conn *c = session_conn_from(s, at);

	if (c)
		return c;
	ways_in_look(ways_in);
	return session_conn_from(s, at);
}

static struct conn *find(struct session *s, const char *name,
			 const struct ways_in *ways_in, FILE *out)
{
	struct sockaddr_storage at;
	struct conn *c = NULL;
	socklen_t len;
	uint64_t id;

	if (!value_whole(name, 1, WIRE_ID_MAX, &id)) {
		c = session_conn(s, (uint16_t)id);
	} else if (strchr(name, ':') && !addr_parse(name, NULL, 0, &at, &len)) {
		c = from(s, &at, ways_in);
	} else {
		fprintf(out, "error: '%s' is neither ADDRESS:PORT nor an id from 1 to %d\n",
			name, WIRE_ID_MAX);
		return NULL;
	}
	if (!c)
		fprintf(out, "error: there is no connection %s\n", name);
	return c;
}

/* --- what is said of it --- */

static bool set_size(struct hint *hint, const char *value, FILE *out)
{
	size_t bytes;

	if (!value_bytes(value, &bytes) && bytes <= WIRE_HINT_MOST) {
		hint->bytes = bytes;
		return true;
	}
	fprintf(out, "error: size=%s: it is no number of bytes up to %llu\n",
		value, (unsigned long long)WIRE_HINT_MOST);
	return false;
}

static bool set_urgency(struct hint *hint, const char *value, FILE *out)
{
	uint64_t urgency;

	if (!value_whole(value, 0, URGENCY_MAX, &urgency)) {
		hint->urgency = (uint8_t)urgency;
		return true;
	}
	fprintf(out, "error: urgency=%s: it is no number from 0 to %d\n", value,
		URGENCY_MAX);
	return false;
}

static bool add_path(uint8_t *bits, const struct path_set *paths,
		     const char *name, FILE *out)
{
	unsigned int i = path_set_number(paths, name, strlen(name));

	if (i == paths->n) {
		fprintf(out, "error: there is no path %s\n", name);
		return false;
	}
	*bits |= (uint8_t)(1u << i);
	return true;
}

static bool set_paths(struct hint *hint, const struct path_set *paths,
		      char *names, FILE *out)
{
	uint8_t bits = hint->paths & WIRE_HINT_COPIES;
	char *name;

	if (!strcmp(names, "any")) {
		hint->paths = bits;
		return true;
	}
	if (!*names) {
		fputs("error: paths=: no path is named; any path is 'any'\n", out);
		return false;
	}
	while ((name = strsep(&names, ","))) {
		if (!add_path(&bits, paths, name, out))
			return false;
	}
	hint->paths = bits;
	return true;
}

static bool set_copies(struct hint *hint, const char *value, FILE *out)
{
	bool on = !strcmp(value, "on");

	if (!on && strcmp(value, "off")) {
		fprintf(out, "error: copies=%s: it is on or off\n", value);
		return false;
	}
	hint->paths &= WIRE_HINT_PATHS;
	if (on)
		hint->paths |= WIRE_HINT_COPIES;
	return true;
}

/* --- the command --- */

static bool set(struct hint *hint, const struct path_set *paths, char *word,
		FILE *out)
{
	char *value = strchr(word, '=');

	if (value)
		*value++ = '\0';
	if (value && !strcmp(word, "size"))
		return set_size(hint, value, out);
	if (value && !strcmp(word, "urgency"))
		return set_urgency(hint, value, out);
	if (value && !strcmp(word, "paths"))
		return set_paths(hint, paths, value, out);
	if (value && !strcmp(word, "copies"))
		return set_copies(hint, value, out);
	fprintf(out, "error: '%s' is none of size=BYTES, urgency=0-%d, paths=NAME,...|any and copies=on|off\n",
		word, URGENCY_MAX);
	return false;
}

static void say(struct session *s, struct conn *c, const char *name,
		const struct hint *hint, FILE *out)
{
	switch (session_hint(s, c, hint)) {
	case 0:
		session_steer(s, c, hint);
		fputs("ok\n", out);
		break;
	case -EPROTONOSUPPORT:
		fputs("error: rp does not understand hints\n", out);
		break;
	case -ENOMEM:
		fputs("error: lp has no memory for it\n", out);
		break;
	default:
		fprintf(out, "error: nothing more comes on connection %s\n",
			name);
	}
}

void hint_control_do(struct session *s, const struct path_set *paths,
		     const struct ways_in *ways_in, char **word, unsigned int n,
		     FILE *out)
{
	struct hint hint;
	struct conn *c;
	unsigned int i;

	if (n < 2) {
		fputs("error: hint: a connection is to be named, and what is known of it: size=BYTES, urgency=0-255, paths=NAME,...|any or copies=on|off\n", out);
		return;
	}
	if (!s) {
		fputs("error: there is no session with rp\n", out);
		return;
	}
	c = find(s, word[0], ways_in, out);
	if (!c)
		return;
	hint = session_hinted(c);
	for (i = 1; i < n; i++) {
		if (!set(&hint, paths, word[i], out))
			return;
	}
	say(s, c, word[0], &hint, out);
}
