/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "emulator.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "clock.h"
#include "frame.h"
#include "truth.h"

enum {
	BURST = 32,			/* frames of one end before the next */
	FLUSH_EVERY = 1,		/* s */
};

/* While spinning, commands are looked for this often. */
static const int64_t SPIN_LOOK = NS_PER_MS / 2;

int64_t emulator_settle(struct emulator *e)
{
	int64_t now = clock_now();

	link_run(&e->link[0], now);
	link_run(&e->link[1], now);
	return now;
}

void emulator_restart(struct emulator *e, uint64_t seed)
{
	int64_t now = emulator_settle(e);

	e->seed = seed;
	link_restart(&e->link[0], seed, now);
	link_restart(&e->link[1], seed, now);
}

/* --- out --- */

static void deliver(struct emulator *e, int direction, int64_t now)
{
	struct link *l = &e->link[direction];
	int end = !direction;
	struct packet *p;

	for (int i = 0; i < BURST && (p = link_exit(l, now)); i++) {
		bool written;

		now = clock_now();
		written = tap_write(&e->tap[end], p->data, p->len);
		if (written)
			pcap_add(&e->pcap[end], p->data, p->len, now);
		link_done(l, p, written, now);
	}
}

/* --- in --- */

static int fail(struct emulator *e, int end, int err)
{
	snprintf(e->failed, sizeof(e->failed), "device %s: %s", e->tap[end].dev,
		 err == -EBADFD ? "gone" : strerror(-err));
	e->stop = true;
	return err;
}

/* Whether the frame may pass: the MTU may have been raised by others. */
static bool fits(struct emulator *e, int end, ssize_t len)
{
	if (len <= (ssize_t)e->tap[end].mtu + FRAME_HEADER)
		return true;
	e->oversize[end]++;
	return false;
}

/* No slot left: the frame is read and counted all the same. */
static int receive_lost(struct emulator *e, int end)
{
	static uint8_t scratch[1 << 16];
	ssize_t n = tap_read(&e->tap[end], scratch, e->pool.frame_max);

	if (n < 0)
		return (int)n;
	if (fits(e, end, n))
		link_enter_lost(&e->link[end], scratch, (uint32_t)n,
				clock_now());
	return 0;
}

static int receive_one(struct emulator *e, int end)
{
	struct packet *p = pool_get(&e->pool);
	int64_t now;
	ssize_t n;

	if (!p)
		return receive_lost(e, end);
	n = tap_read(&e->tap[end], p->data, e->pool.frame_max);
	if (n < 0 || !fits(e, end, n)) {
		pool_put(&e->pool, p);
		return n < 0 ? (int)n : 0;
	}
	now = clock_now();
	p->len = (uint32_t)n;
	pcap_add(&e->pcap[end], p->data, p->len, now);
	link_enter(&e->link[end], p, now);
	return 0;
}

static int receive(struct emulator *e, int end)
{
	for (int i = 0; i < BURST; i++) {
		int ret = receive_one(e, end);

		if (ret == -EAGAIN || ret == -EINTR)
			return 0;
		if (ret)
			return fail(e, end, ret);
	}
	return 0;
}

/* --- time --- */

static void keep_records(struct emulator *e, int64_t now)
{
	if (e->samples && now >= e->next_sample) {
		truth_sample(e, e->samples, now);
		e->next_sample += e->sample_every;
		/* Missed ones are not made up for. */
		if (e->next_sample <= now)
			e->next_sample = now + e->sample_every;
	}
	if (now < e->next_flush)
		return;
	e->next_flush = now + FLUSH_EVERY * NS_PER_S;
	for (int i = 0; i < 2; i++)
		if (e->pcap[i].out)
			fflush(e->pcap[i].out);
	if (e->samples)
		fflush(e->samples);
	if (e->drops)
		fflush(e->drops);
}

static bool keeps_records(const struct emulator *e)
{
	return e->samples || e->drops || e->pcap[0].out || e->pcap[1].out;
}

static int64_t next_deadline(const struct emulator *e)
{
	int64_t ab = link_next(&e->link[0]);
	int64_t ba = link_next(&e->link[1]);
	int64_t next = ab < ba ? ab : ba;

	if (e->samples && e->next_sample < next)
		next = e->next_sample;
	if (keeps_records(e) && e->next_flush < next)
		next = e->next_flush;
	return next;
}

static struct timespec until(int64_t deadline, int64_t now)
{
	int64_t left = deadline > now ? deadline - now : 0;

	return (struct timespec){ left / NS_PER_S, left % NS_PER_S };
}

/* Gathers frames, unless one is due already. */
static void nap(const struct emulator *e, int64_t deadline)
{
	int64_t now = clock_now();
	struct timespec timeout = until(e->woke + e->coalesce, now);

	if (deadline > now && (timeout.tv_sec || timeout.tv_nsec))
		ppoll(NULL, 0, &timeout, NULL);
}

/* What can be read: bit 0 and 1 the ends, bit 2 the watch; -errno. */
static int sleep_until(struct emulator *e, const struct emulator_watch *watch,
		       int64_t deadline)
{
	struct pollfd fds[3] = {
		{ .fd = e->tap[0].fd, .events = POLLIN },
		{ .fd = e->tap[1].fd, .events = POLLIN },
		{ .fd = watch->fd, .events = POLLIN },
	};
	struct timespec timeout;
	int ready = 0;

	nap(e, deadline);
	timeout = until(deadline, clock_now());
	if (ppoll(fds, 3, deadline == NEVER ? NULL : &timeout, NULL) < 0)
		return errno == EINTR ? 0 : -errno;
	e->woke = clock_now();
	for (int i = 0; i < 3; i++)
		ready |= (fds[i].revents != 0) << i;
	return ready;
}

/* The same without sleep: both ends may have something. */
static int look(struct emulator *e, const struct emulator_watch *watch,
		int64_t now, int64_t *next_look)
{
	if (now < *next_look)
		return 1 | 2;
	*next_look = now + SPIN_LOOK;
	return sleep_until(e, watch, now) | 1 | 2;
}

int emulator_run(struct emulator *e, const struct emulator_watch *watch)
{
	int64_t next_look = 0;
	int ret = 0;

	while (!e->stop && ret >= 0) {
		int64_t now = emulator_settle(e);
		int ready;

		deliver(e, 0, now);
		deliver(e, 1, now);
		keep_records(e, now);
		ready = e->spin ? look(e, watch, now, &next_look)
				: sleep_until(e, watch, next_deadline(e));
		if (ready < 0)
			return ready;
		for (int end = 0; end < 2 && ret >= 0; end++)
			if (ready & 1 << end)
				ret = receive(e, end);
		if (ready & 4)
			watch->handle(watch->arg);
	}
	/* What left since the last one is counted as well. */
	if (e->samples)
		truth_sample(e, e->samples, clock_now());
	return ret;
}
