/* SPDX-License-Identifier: MIT */
/*
 * Turns the TCP connections of a cgroup into LP, and tells LP where they wanted.
 *
 *   connect4, connect6   put LP's address in the place of the server's, which
 *                        the socket keeps in its own storage
 *   sockops              writes it into the SYN, as a TCP option
 *   getpeername4, 6      tell the program what it asked for
 *
 * LP reads the option from the SYN that its kernel saved (lp/origin.h). So no
 * table is shared with LP: nothing can be full, evicted or out of date, a source
 * port may be used again at once, and what a socket keeps goes with it.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/in.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "redirect.h"

enum {
	STREAM = 1,		/* SOCK_STREAM */
	LOOPBACK_DEVICE = 1,	/* in every network namespace */
	OPTION = 253,		/* for experiments (RFC 4727) */
	OPTION_V4 = 2 + 4 + 2,
	OPTION_V6 = 2 + 16 + 2,	/* all that Linux leaves free in a SYN */
};

char LICENSE[] SEC("license") = "Dual MIT/GPL";

const volatile struct settings settings SEC(".rodata.settings");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct wanted);
} tm3_wanted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, struct prefix);
	__type(value, __u8);
} tm3_except SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, struct state);
} tm3_state SEC(".maps");

static struct state *state(void)
{
	int zero = 0;

	return bpf_map_lookup_elem(&tm3_state, &zero);
}

static void count(__u64 *counter)
{
	__sync_fetch_and_add(counter, 1);
}

static bool is_asked_for(__be16 port)
{
	__u16 p = bpf_ntohs(port);

	return settings.ports[p / 64] >> (p % 64) & 1;
}

static bool is_left_alone(const struct wanted *to)
{
	struct prefix key = { .bits = 128 };

	__builtin_memcpy(key.addr, to->addr, sizeof(key.addr));
	return bpf_map_lookup_elem(&tm3_except, &key);
}

enum verdict { GO_ON, TURN, REFUSE };

static enum verdict judge(struct bpf_sock_addr *ctx, const struct wanted *to)
{
	struct bpf_sock *sk = ctx->sk;
	struct state *s = state();

	if (!sk || !s || ctx->type != STREAM || ctx->protocol != IPPROTO_TCP)
		return GO_ON;
	/* It may have failed to connect to another server before. */
	bpf_sk_storage_delete(&tm3_wanted, sk);
	if (!is_asked_for(to->port) || is_left_alone(to) ||
	    bpf_get_netns_cookie(ctx) != settings.netns)
		return GO_ON;
	if (sk->bound_dev_if && sk->bound_dev_if != LOOPBACK_DEVICE) {
		count(&s->bound);
		return GO_ON;
	}
	if (!bpf_sk_storage_get(&tm3_wanted, sk, (void *)to,
				BPF_SK_STORAGE_GET_F_CREATE)) {
		count(&s->dropped);
		return REFUSE;
	}
	count(&s->redirected);
	return TURN;
}

static void set_v4(struct wanted *to, __be32 addr)
{
	__builtin_memset(to->addr, 0, 10);
	to->addr[10] = to->addr[11] = 0xff;
	__builtin_memcpy(to->addr + 12, &addr, sizeof(addr));
}

static __be32 v4_of(const struct wanted *to)
{
	__be32 addr;

	__builtin_memcpy(&addr, to->addr + 12, sizeof(addr));
	return addr;
}

static bool is_v4(const __u8 addr[16])
{
	__u32 part[3];

	__builtin_memcpy(part, addr, sizeof(part));
	return !part[0] && !part[1] && part[2] == bpf_htonl(0xffff);
}

SEC("cgroup/connect4")
int tm3_connect4(struct bpf_sock_addr *ctx)
{
	struct wanted to = { .port = ctx->user_port };
	enum verdict verdict;

	set_v4(&to, ctx->user_ip4);
	verdict = judge(ctx, &to);
	if (verdict == TURN) {
		ctx->user_ip4 = bpf_htonl(INADDR_LOOPBACK);
		ctx->user_port = settings.local_port;
	}
	return verdict != REFUSE;
}

SEC("cgroup/connect6")
int tm3_connect6(struct bpf_sock_addr *ctx)
{
	struct wanted to = { .port = ctx->user_port };
	enum verdict verdict;
	__u32 part[4];
	bool v4;

	part[0] = ctx->user_ip6[0];
	part[1] = ctx->user_ip6[1];
	part[2] = ctx->user_ip6[2];
	part[3] = ctx->user_ip6[3];
	__builtin_memcpy(to.addr, part, sizeof(part));
	v4 = is_v4(to.addr);
	verdict = judge(ctx, &to);
	if (verdict == TURN) {
		ctx->user_ip6[0] = 0;
		ctx->user_ip6[1] = 0;
		ctx->user_ip6[2] = v4 ? bpf_htonl(0xffff) : 0;
		ctx->user_ip6[3] = bpf_htonl(v4 ? INADDR_LOOPBACK : 1);
		ctx->user_port = settings.local_port;
	}
	return verdict != REFUSE;
}

static struct wanted *remembered(struct bpf_sock *sk)
{
	return sk ? bpf_sk_storage_get(&tm3_wanted, sk, 0, 0) : 0;
}

SEC("cgroup/getpeername4")
int tm3_peername4(struct bpf_sock_addr *ctx)
{
	struct wanted *to = remembered(ctx->sk);

	if (to) {
		ctx->user_ip4 = v4_of(to);
		ctx->user_port = to->port;
	}
	return 1;
}

SEC("cgroup/getpeername6")
int tm3_peername6(struct bpf_sock_addr *ctx)
{
	struct wanted *to = remembered(ctx->sk);
	__u32 part[4];

	if (to) {
		__builtin_memcpy(part, to->addr, sizeof(part));
		ctx->user_ip6[0] = part[0];
		ctx->user_ip6[1] = part[1];
		ctx->user_ip6[2] = part[2];
		ctx->user_ip6[3] = part[3];
		ctx->user_port = to->port;
	}
	return 1;
}

/* A socket's, and with it the wish to be asked for each header; others stay. */
static void write_headers(struct bpf_sock_ops *ctx, bool on)
{
	int others = ctx->bpf_sock_ops_cb_flags &
		     ~BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;

	bpf_sock_ops_cb_flags_set(ctx, others |
		(on ? BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG : 0));
}

static void write_option(struct bpf_sock_ops *ctx, const struct wanted *to)
{
	__u8 option[OPTION_V6] = { OPTION, OPTION_V6 };

	if (is_v4(to->addr)) {
		option[1] = OPTION_V4;
		__builtin_memcpy(option + 2, to->addr + 12, 4);
		__builtin_memcpy(option + 6, &to->port, 2);
		bpf_store_hdr_opt(ctx, option, OPTION_V4, 0);
	} else {
		__builtin_memcpy(option + 2, to->addr, 16);
		__builtin_memcpy(option + 18, &to->port, 2);
		bpf_store_hdr_opt(ctx, option, OPTION_V6, 0);
	}
}

SEC("sockops")
int tm3_sockops(struct bpf_sock_ops *ctx)
{
	struct wanted *to;

	switch (ctx->op) {
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		break;
	default:
		return 1;
	}
	to = remembered(ctx->sk);
	if (!to)
		return 1;
	switch (ctx->op) {
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		write_headers(ctx, true);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		bpf_reserve_hdr_opt(ctx, is_v4(to->addr) ? OPTION_V4 : OPTION_V6, 0);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		write_option(ctx, to);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		write_headers(ctx, false);
		break;
	}
	return 1;
}
