/* SPDX-License-Identifier: MIT */
#include "http_size.h"

#include <string.h>

#include "../wire/wire_ext.h"

static const char version[] = "http/1.";

enum { CODE_AT = sizeof(version) + 1 };	/* behind a digit and a space */

static void begin_answer(struct http_size *h)
{
	*h = (struct http_size){ .state = HTTP_STATUS };
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* --- lines --- */

static bool is_status(const char *line, size_t len)
{
	return len >= CODE_AT + 3 && !memcmp(line, version, CODE_AT - 2) &&
	       is_digit(line[CODE_AT - 2]) && line[CODE_AT - 1] == ' ' &&
	       is_digit(line[CODE_AT]) && is_digit(line[CODE_AT + 1]) &&
	       is_digit(line[CODE_AT + 2]);
}

static void take_status(struct http_size *h)
{
	const char *code = h->line + CODE_AT;

	if (!is_status(h->line, h->len)) {
		h->state = HTTP_NONE;
		return;
	}
	h->status = (uint16_t)(100 * (code[0] - '0') + 10 * (code[1] - '0') +
			       (code[2] - '0'));
	h->state = HTTP_FIELDS;
}

/* Behind the name and the colon, or NULL: it is another field. */
static const char *field(const struct http_size *h, const char *name)
{
	size_t len = strlen(name);

	return h->len > len && !memcmp(h->line, name, len) &&
	       h->line[len] == ':' ? h->line + len + 1 : NULL;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* A number and nothing else. A line that was not kept whole has more behind it. */
static bool number(const char *at, const char *end, uint64_t *value)
{
	*value = 0;
	while (at < end && is_blank(*at))
		at++;
	while (end > at && is_blank(end[-1]))
		end--;
	if (at == end)
		return false;
	for (; at < end; at++) {
		if (!is_digit(*at) || *value > WIRE_HINT_MOST)
			return false;
		*value = 10 * *value + (uint64_t)(*at - '0');
	}
	return *value <= WIRE_HINT_MOST;
}

static void take_length(struct http_size *h, const char *text)
{
	uint64_t left = 0;

	if (h->len == HTTP_LINE || !number(text, h->line + h->len, &left) ||
	    (h->sized && left != h->left))
		h->wrong = true;
	h->sized = true;
	h->left = left;
}

static bool has_no_body(const struct http_size *h)
{
	return h->status < 200 || h->status == 204 || h->status == 304;
}

static void end_head(struct http_size *h)
{
	if (h->status == 101)
		h->state = HTTP_NONE;
	else if (has_no_body(h))
		begin_answer(h);
	else if (h->chunked)
		h->state = HTTP_CHUNK_SIZE;
	else if (!h->sized || h->wrong)
		h->state = HTTP_NONE;
	else if (h->left)
		h->state = HTTP_BODY;
	else
		begin_answer(h);
}

static void take_field(struct http_size *h)
{
	const char *text;

	if (!h->len) {
		end_head(h);
		return;
	}
	text = field(h, "content-length");
	if (text)
		take_length(h, text);
	else if (field(h, "transfer-encoding"))
		h->chunked = true;
}

/* What stands behind the size, and a semicolon, says nothing of it. */
static void take_chunk_size(struct http_size *h)
{
	unsigned int i = 0;

	h->left = 0;
	for (; i < h->len && hex_digit(h->line[i]) >= 0; i++) {
		if (h->left > WIRE_HINT_MOST >> 4) {
			h->state = HTTP_NONE;
			return;
		}
		h->left = h->left << 4 | (unsigned int)hex_digit(h->line[i]);
	}
	if (!i || (i < h->len && h->line[i] != ';' && !is_blank(h->line[i]))) {
		h->state = HTTP_NONE;
		return;
	}
	h->state = h->left ? HTTP_CHUNK : HTTP_TRAILER;
	h->left += h->left ? 2 : 0;	/* and the end of its line */
	h->head = 0;
}

static void take_line(struct http_size *h)
{
	if (h->len && h->line[h->len - 1] == '\r')
		h->len--;
	if (h->state == HTTP_STATUS)
		take_status(h);
	else if (h->state == HTTP_FIELDS)
		take_field(h);
	else if (h->state == HTTP_CHUNK_SIZE)
		take_chunk_size(h);
	else if (!h->len)
		begin_answer(h);
	h->len = 0;
}

/* What is no HTTP is mostly known by its first byte. */
static bool may_be_status(const struct http_size *h)
{
	size_t len = h->len < sizeof(version) - 1 ? h->len :
						     sizeof(version) - 1;

	return !memcmp(h->line, version, len);
}

static char small(uint8_t byte)
{
	return (char)(byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte);
}

static void take_byte(struct http_size *h, uint8_t byte)
{
	if (++h->head > HTTP_HEAD_MAX) {
		h->state = HTTP_NONE;
		return;
	}
	if (byte == '\n') {
		take_line(h);
		return;
	}
	if (h->len < HTTP_LINE)
		h->line[h->len++] = small(byte);
	if (h->state == HTTP_STATUS && !may_be_status(h))
		h->state = HTTP_NONE;
}

/* --- bodies --- */

static bool is_counted(const struct http_size *h)
{
	return h->state == HTTP_BODY || h->state == HTTP_CHUNK;
}

static size_t take_counted(struct http_size *h, size_t len)
{
	size_t part = len < h->left ? len : (size_t)h->left;

	h->left -= part;
	if (h->left)
		return part;
	if (h->state == HTTP_BODY) {
		begin_answer(h);
		h->behind = true;
	} else {
		h->state = HTTP_CHUNK_SIZE;
	}
	return part;
}

void http_size_feed(struct http_size *h, const uint8_t *bytes, size_t len)
{
	size_t at = 0;

	while (at < len && h->state != HTTP_NONE) {
		if (is_counted(h))
			at += take_counted(h, len - at);
		else
			take_byte(h, bytes[at++]);
	}
}

uint64_t http_size_left(const struct http_size *h)
{
	return h->state == HTTP_BODY ? h->left : 0;
}

const char *http_size_fault(const struct http_size *h, bool ended)
{
	if (h->state == HTTP_NONE && h->wrong)
		return "its Content-Length is no number, or two of them";
	if (h->state == HTTP_NONE && h->status == 0 && h->behind)
		return "more bytes came than its Content-Length said";
	if (ended && is_counted(h))
		return "less bytes came than it said of its size, unless it answers HEAD";
	return NULL;
}
