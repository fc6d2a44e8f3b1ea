/* SPDX-License-Identifier: MIT */
/*
 * Who asks for connections and reads no answer: those that get no place count as what its
 * session holds, and the session ends when that is too much. What it held is free at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mux/conn/conn.h"
#include "ext_hand.h"
#include "loopback.h"
#include "peer.h"

/* Connections of all, of which one session may have half; and what it asks for. */
enum { PLACES = 8, MINE = PLACES / 2, ASKED = 30, REFUSED = ASKED - MINE };

/* OPENs that lie in a pipe, and what each of them takes there at least. */
enum { READ_AHEAD = 4000, OPEN_LEAST = WIRE_HEADER + 13 };

static size_t memory_of(unsigned int places)
{
	return (size_t)places * CONNS_SHARE * CONN_MEMORY;
}

/* What it did not write itself it would not look for. */
static void fill_pipe(struct pipe *p)
{
	fill_socket(p->watch.fd);
	p->idle.bytes = UINT64_MAX;
}

/* --- the extension --- */

static void deaf(struct hand *h, size_t memory)
{
	hand_begin(h, false);
	h->connects = true;
	hand_memory(h, memory);
	hand_hears(h, WIRE_WELCOME);
	fill_pipe(h->s->pipes[0]);
}

static void open_id(struct hand *h, uint16_t id)
{
	struct wire_ext what = {
		.type = WIRE_OPEN,
		.open = {
			.id = id, .protocol = WIRE_PROTOCOL_TCP,
			.to = destination_name("x", 1, 80), .window = 1,
		},
	};

	hand_ext(h, &what);
}

static void asks(struct hand *h, uint16_t from, uint16_t n)
{
	for (uint16_t id = from; id < from + n && session_is_up(h->s); id++) {
		open_id(h, id);
		run_round(h->engine.loop);
	}
}

static void what_is_refused_has_no_place_and_is_held(void **state)
{
	struct hand h;

	(void)state;
	deaf(&h, memory_of(PLACES));
	asks(&h, 1, ASKED);
	assert_int_equal(h.opened, MINE);
	assert_int_equal(h.engine.conns, MINE);
	assert_int_equal(h.s->nconns, ASKED);
	assert_int_equal(h.s->nturned_away, REFUSED);
	assert_int_equal(h.engine.hoard.bytes,
			 ASKED * sizeof(struct channel) +
			 REFUSED * CONN_REFUSED_MEMORY);
	/* There is nobody to tell any more. */
	session_stop(h.s, "the test");
	run_round(h.engine.loop);
	assert_int_equal(h.engine.hoard.bytes, ASKED * sizeof(struct channel));
	assert_int_equal(h.engine.conns, 0);
	assert_int_equal(h.s->nturned_away, 0);
	hand_end(&h);
}

static void who_is_told_holds_them_no_more(void **state)
{
	struct hand h;

	(void)state;
	hand_begin(&h, false);
	h.connects = true;
	hand_memory(&h, memory_of(PLACES));
	asks(&h, 1, ASKED);
	while (h.s->nturned_away) {
		hand_listens(&h);
		run_round(h.engine.loop);
	}
	assert_int_equal(h.engine.hoard.bytes, ASKED * sizeof(struct channel));
	assert_int_equal(h.engine.conns, MINE);
	assert_int_equal(h.s->nconns, MINE);
	hand_end(&h);
}

/* Its pipe takes a second to end, and others may have begun by then. */
static void what_a_session_held_is_free_before_its_pipes_are(void **state)
{
	struct hand h;

	(void)state;
	deaf(&h, memory_of(PLACES));
	asks(&h, 1, 1000);
	assert_true(h.s->stopping);
	run_round(h.engine.loop);
	assert_non_null(h.s);
	assert_int_equal(h.s->ext->channels, 0);
	for (unsigned int id = 0; id <= WIRE_ID_MAX; id++)
		assert_null(h.s->ext->channel[id]);
	assert_int_equal(h.s->nconns, 0);
	assert_int_equal(h.engine.hoard.bytes, 0);
	hand_end(&h);
}

/* A round brings as many messages as there are, until that is too much: then somebody sheds. */
static void nothing_is_read_until_somebody_sheds(void **state)
{
	struct hand h;

	(void)state;
	deaf(&h, memory_of(PLACES));
	for (uint16_t id = 1; id <= READ_AHEAD; id++)
		open_id(&h, id);
	assert_true(run_until(h.engine.loop, "the end", hand_has_ended, &h));
	assert_in_range(h.engine.incidents.count[INCIDENT_CONNECTIONS], 1,
			READER_LEAST / OPEN_LEAST);
	hand_end(&h);
}

/* --- the baseline --- */

static void sends(struct peer *peer, uint16_t from, uint16_t n, bool syn)
{
	uint8_t buf[WIRE_SYN_SIZE] = { 0 };

	for (uint16_t id = from; id < from + n && peer->s; id++) {
		size_t len = WIRE_HEADER + 1;

		if (syn)
			len = wire_put_syn(buf, id, (uint8_t[]){ 1, 2, 3, 4 }, 80);
		else
			wire_put_data(buf, id, 1, 1);
		assert_true(peer_put(peer, 0, buf, len));
		run_round(peer->engine.loop);
	}
}

static void open_peer(struct peer *peer, size_t memory)
{
	peer_init(peer);
	peer->settings.max_memory = memory;
	peer_open(peer, true);
	for (unsigned int i = 0; i < PEER_PIPES; i++)
		fill_pipe(peer->s->pipes[i]);
}

/* Neither a SYN nor what comes ahead of it takes a place where there is none. */
static void so_it_is_in_the_baseline(void **state)
{
	struct peer peer;

	(void)state;
	for (int syn = 0; syn < 2; syn++) {
		open_peer(&peer, memory_of(PLACES));
		sends(&peer, 100, MINE, false);
		sends(&peer, 200, REFUSED, syn);
		assert_int_equal(peer.engine.conns, MINE);
		assert_int_equal(peer.s->nturned_away, REFUSED);
		assert_in_range(peer.engine.hoard.bytes,
				REFUSED * CONN_REFUSED_MEMORY,
				ASKED * (CONN_REFUSED_MEMORY + 256));
		session_fail(peer.s, "the test is over");
		run_round(peer.engine.loop);
		assert_int_equal(peer.engine.conns, 0);
		assert_int_equal(peer.engine.hoard.bytes, 0);
		peer_close(&peer);
	}
}

static void too_many_end_a_session_of_the_baseline(void **state)
{
	struct peer peer;

	(void)state;
	open_peer(&peer, memory_of(PLACES));
	sends(&peer, 1, 1000, true);
	assert_null(peer.s);
	assert_int_equal(peer.engine.hoard.bytes, 0);
	peer_close(&peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_refused_has_no_place_and_is_held),
		cmocka_unit_test(who_is_told_holds_them_no_more),
		cmocka_unit_test(what_a_session_held_is_free_before_its_pipes_are),
		cmocka_unit_test(nothing_is_read_until_somebody_sheds),
		cmocka_unit_test(so_it_is_in_the_baseline),
		cmocka_unit_test(too_many_end_a_session_of_the_baseline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
