/* SPDX-License-Identifier: MIT */
#include "print.h"

#include <stdio.h>

void print_hex(const char *name, const uint8_t *bytes, size_t n)
{
	printf(", \"%s\": \"", name);
	for (size_t i = 0; i < n; i++)
		printf("%02x", bytes[i]);
	printf("\"");
}

static void print_number(const char *name, uint64_t value)
{
	printf(", \"%s\": %llu", name, (unsigned long long)value);
}

static void print_address(const struct destination *m)
{
	print_number("kind", m->kind);
	print_hex("address", m->bytes, m->len);
	print_number("port", m->port);
}

static void print_open(const struct wire_ext *ext)
{
	print_number("number", ext->number);
	print_number("connection", ext->open.id);
	print_number("protocol", ext->open.protocol);
	print_address(&ext->open.to);
	print_number("window", ext->open.window);
}

static void print_hello(const struct wire_hello *m)
{
	print_number("version", m->version);
	print_number("features", m->features);
	print_hex("session", m->session, sizeof(m->session));
	print_number("pipe", m->pipe);
	print_number("pipes", m->pipes);
	print_number("incarnation", m->incarnation);
	print_number("path", m->path);
	print_number("path_flags", m->path_flags);
	print_number("path_cost", m->path_cost);
	print_number("reorder_limit", m->reorder_limit);
}

static void print_welcome(const struct wire_welcome *m)
{
	print_number("version", m->version);
	print_number("features", m->features);
	print_number("status", m->status);
	print_number("connections", m->connections);
	print_number("conn_early", m->conn_early);
	print_number("session_early", m->session_early);
	print_number("wait_s", m->wait_s);
	print_number("reorder_limit", m->reorder_limit);
}

static void print_synack(const struct wire_ext *ext)
{
	print_number("number", ext->number);
	print_number("connection", ext->synack.id);
	print_number("result", ext->synack.result);
	print_number("offset", ext->synack.offset);
}

static void print_ping(const struct wire_ext *ext)
{
	print_number("token", ext->ping.token);
	print_number("sent_us", ext->ping.sent_us);
	if (ext->type == WIRE_PONG)
		print_number("received_us", ext->ping.received_us);
}

static void print_hint(const struct wire_hint *m)
{
	print_number("connection", m->id);
	print_number("priority", m->priority);
	print_number("remaining", m->remaining);
	print_number("paths", m->paths);
}

static void print_ack(const struct wire_ack *m)
{
	print_number("time_us", m->time_us);
	print_number("reorder_bytes", m->reorder_bytes);
	printf(", \"acked\": [");
	for (int i = 0; i < m->pipes; i++)
		printf("%s{\"pipe\": %u, \"incarnation\": %u, "
		       "\"received\": %llu}",
		       i ? ", " : "", m->pipe[i].pipe, m->pipe[i].incarnation,
		       (unsigned long long)m->pipe[i].received);
	printf("]");
}

static void print_datagram(const struct wire_datagram *m)
{
	print_number("connection", m->id);
	print_address(&m->at);
	print_hex("payload", m->payload, m->payload_len);
}

static void print_path(const struct wire_path *m)
{
	print_number("path", m->path);
	print_number("state", m->state);
	print_number("cost", m->cost);
	print_number("serial", m->serial);
}

static void print_too_big(const struct wire_too_big *m)
{
	print_number("connection", m->id);
	print_number("mtu", m->mtu);
}

static void print_listen(const struct wire_listen *m)
{
	print_number("listener", m->listener);
	print_number("protocol", m->protocol);
	print_address(&m->at);
}

static void print_listening(const struct wire_listening *m)
{
	print_number("listener", m->listener);
	print_number("result", m->result);
	print_number("port", m->port);
}

void print_ext(const struct wire_ext *ext)
{
	printf("\"fields\": {\"type\": \"%s\"", wire_ext_name(ext->type));
	switch (ext->type) {
	case WIRE_HELLO:
		print_hello(&ext->hello);
		break;
	case WIRE_WELCOME:
		print_welcome(&ext->welcome);
		break;
	case WIRE_SYNACK:
		print_synack(ext);
		break;
	case WIRE_WINDOW:
		print_number("connection", ext->window.id);
		print_number("offset", ext->window.offset);
		break;
	case WIRE_PING:
	case WIRE_PONG:
		print_ping(ext);
		break;
	case WIRE_GOODBYE:
		print_number("reason", ext->goodbye.reason);
		break;
	case WIRE_HINT:
		print_hint(&ext->hint);
		break;
	case WIRE_ACK:
		print_ack(&ext->ack);
		break;
	case WIRE_OPEN:
		print_open(ext);
		break;
	case WIRE_DATAGRAM:
		print_datagram(&ext->datagram);
		break;
	case WIRE_LISTEN:
		print_listen(&ext->listen);
		break;
	case WIRE_LISTENING:
		print_listening(&ext->listening);
		break;
	case WIRE_PATH:
		print_path(&ext->path);
		break;
	case WIRE_TOO_BIG:
		print_too_big(&ext->too_big);
		break;
	case WIRE_EXT_NONE:
		break;
	}
	printf("}}");
}

void print_baseline(const struct wire_msg *msg)
{
	static const char *const type[] = {
		[WIRE_DATA] = "data", [WIRE_SYN] = "syn", [WIRE_FIN] = "fin",
	};
	uint8_t a[4];
	uint16_t port;

	printf("\"fields\": {\"type\": \"%s\"", type[msg->type]);
	print_number("connection", msg->id);
	print_number("number", msg->number);
	switch (msg->type) {
	case WIRE_DATA:
		print_hex("payload", msg->body, msg->body_len);
		break;
	case WIRE_SYN:
		wire_get_syn(msg->body, a, &port);
		printf(", \"address\": \"%d.%d.%d.%d\"", a[0], a[1], a[2], a[3]);
		print_number("port", port);
		break;
	case WIRE_FIN:
		print_number("reason", msg->body[0]);
		break;
	}
	printf("}}");
}
