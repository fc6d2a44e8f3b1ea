/* SPDX-License-Identifier: MIT */
#include "first_bytes.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum {
	TLS_HANDSHAKE = 22,
	TLS_MAJOR = 3,
	TLS_CLIENT_HELLO = 1,
	TLS_RANDOM = 32,
	TLS_SERVER_NAME = 0,	/* the extension, and a name's kind in it */
};

/* Bytes that are left, or were taken off such. Behind their end all is 0 and empty. */
struct span {
	const uint8_t *at;
	size_t len;
};

static bool take(struct span *r, size_t len, struct span *taken)
{
	if (len > r->len)
		return false;
	*taken = (struct span){ r->at, len };
	r->at += len;
	r->len -= len;
	return true;
}

static bool number(struct span *r, unsigned int bytes, size_t *n)
{
	struct span field;

	if (!take(r, bytes, &field))
		return false;
	for (*n = 0; field.len; field.at++, field.len--)
		*n = *n << 8 | *field.at;
	return true;
}

static bool skip(struct span *r, size_t len)
{
	struct span skipped;

	return take(r, len, &skipped);
}

/* A field behind its length, which takes so many @bytes. */
static bool skip_field(struct span *r, unsigned int bytes)
{
	size_t len;

	return number(r, bytes, &len) && skip(r, len);
}

static bool set_name(char name[HOST_MAX + 1], const uint8_t *text, size_t len)
{
	size_t i;

	if (!len || len > HOST_MAX)
		return false;
	for (i = 0; i < len; i++) {
		if (!isgraph(text[i]))
			return false;
		name[i] = (char)text[i];
	}
	name[len] = '\0';
	return true;
}

/* --- TLS --- */

/* Of the list in the extension the first one, and there is no other kind. */
static bool sni_name(struct span list, char name[HOST_MAX + 1])
{
	struct span text;
	size_t all, kind, len;

	return number(&list, 2, &all) && number(&list, 1, &kind) &&
	       kind == TLS_SERVER_NAME && number(&list, 2, &len) &&
	       take(&list, len, &text) && set_name(name, text.at, text.len);
}

static bool in_extensions(struct span r, char name[HOST_MAX + 1])
{
	size_t kind, len;
	struct span body;

	while (number(&r, 2, &kind) && number(&r, 2, &len) &&
	       take(&r, len, &body)) {
		if (kind == TLS_SERVER_NAME)
			return sni_name(body, name);
	}
	return false;
}

/* Lengths of the whole are not looked at: it may be cut behind the name. */
static bool tls_name(struct span r, char name[HOST_MAX + 1])
{
	size_t n;

	if (!number(&r, 1, &n) || n != TLS_HANDSHAKE || !number(&r, 1, &n) ||
	    n != TLS_MAJOR || !skip(&r, 1 + 2))
		return false;
	if (!number(&r, 1, &n) || n != TLS_CLIENT_HELLO || !skip(&r, 3))
		return false;
	return skip(&r, 2 + TLS_RANDOM) && skip_field(&r, 1) &&
	       skip_field(&r, 2) && skip_field(&r, 1) && skip(&r, 2) &&
	       in_extensions(r, name);
}

/* --- HTTP --- */

/* A line without its end, where that is there. */
static bool take_line(struct span *r, struct span *line)
{
	const uint8_t *end = r->len ? memchr(r->at, '\n', r->len) : NULL;

	if (!end)
		return false;
	take(r, (size_t)(end - r->at), line);
	skip(r, 1);
	line->len -= line->len && line->at[line->len - 1] == '\r';
	return true;
}

static bool is_request(const struct span *line)
{
	static const char version[] = " HTTP/1.1";
	size_t len = sizeof(version) - 1;

	return line->len > len && isupper(line->at[0]) &&
	       !memcmp(line->at + line->len - len, version, len);
}

static bool is_blank(uint8_t byte)
{
	return byte == ' ' || byte == '\t';
}

/* Without blanks, and without a port. */
static bool host_name(struct span value, char name[HOST_MAX + 1])
{
	const uint8_t *colon;

	while (value.len && is_blank(value.at[0]))
		skip(&value, 1);
	while (value.len && is_blank(value.at[value.len - 1]))
		value.len--;
	colon = value.len ? memchr(value.at, ':', value.len) : NULL;
	if (colon)
		value.len = (size_t)(colon - value.at);
	return set_name(name, value.at, value.len);
}

static bool http_name(struct span r, char name[HOST_MAX + 1])
{
	static const char host[] = "host:";
	size_t len = sizeof(host) - 1;
	struct span line;

	if (!take_line(&r, &line) || !is_request(&line))
		return false;
	while (take_line(&r, &line) && line.len) {
		if (line.len < len ||
		    strncasecmp((const char *)line.at, host, len))
			continue;
		skip(&line, len);
		return host_name(line, name);
	}
	return false;
}

bool first_bytes_name(const uint8_t *bytes, size_t len, char name[HOST_MAX + 1])
{
	struct span r = { bytes, len };

	return tls_name(r, name) || http_name(r, name);
}
