/* SPDX-License-Identifier: MIT */
/*
 * Thin streams over a modelled last mile that loses: keys typed, queries. What
 * repairs a lost message is the one that follows on the same pipe, so more
 * pipes must not make them slower. The engine's decision is its own. Under
 * sanitizers a part (part.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "miles.h"
#include "model.h"
#include "part.h"
#include "random.h"

enum { KEY = 40, KEYS = 12000 };
/* Of twelve settings those run in a part have each value of each. */
enum { STEP = ONE_IN > 1 ? 5 : 1 };

/* Until all but a hundredth of the messages are there, in order, ms. */
static double takes(unsigned int pipes, enum tcp_cc cc, bool delayed_acks,
		    int64_t every, enum thin_mode mode)
{
	struct model_params is = mile(100, 20 * MS, 100, pipes);
	struct random r = { 1 };
	struct model model;
	double ms;

	is.loss = is.loss_back = 0.02;
	is.delayed_acks = delayed_acks;
	is.cc = cc;
	model_init(&model, &is, &r);
	model.settings.thin = mode;
	for (int i = 0; i < KEYS; i++) {
		model_offer(&model, 0, KEY);
		model_run(&model, every);
	}
	assert_true(hist_count(&model.conn[0].took) > KEYS - 20);
	ms = (double)hist_quantile(&model.conn[0].took, 0.99) / 1e3;
	model_fini(&model);
	return ms;
}

/*
 * At most 1.1 of what they take over one pipe, whether or not each is acknowledged
 * before the next. Acknowledgements are lost as well.
 */
static void more_pipes_are_no_slower(void **state)
{
	static const int64_t every[] = { 30 * MS, 50 * MS, 100 * MS };

	(void)state;
	for (unsigned int k = 0; k < 2 * 2 * 3; k += STEP) {
		enum tcp_cc cc = k % 2 ? TCP_BBR : TCP_CUBIC;
		bool delayed = k / 2 % 2;
		double one = takes(1, cc, delayed, every[k / 4],
				   THIN_SAME_PIPE);

		for (unsigned int n = 2; n <= 8; n++) {
			double many = takes(n, cc, delayed, every[k / 4],
					    THIN_SAME_PIPE);

			if (many > 1.1 * one)
				fail_msg("every %d ms%s%s: %u pipes %.1f ms, one %.1f",
					 (int)(every[k / 4] / MS),
					 delayed ? " delayed" : "",
					 cc == TCP_BBR ? " bbr" : "", n, many,
					 one);
		}
	}
}

/* Which shows that staying on a pipe is what the test above is about. */
static void scattered_they_are(void **state)
{
	double one = takes(1, TCP_CUBIC, false, 50 * MS, THIN_OFF);
	double eight = takes(8, TCP_CUBIC, false, 50 * MS, THIN_OFF);

	(void)state;
	if (eight < 2 * one)
		fail_msg("8 pipes %.1f ms, one %.1f", eight, one);
}

/*
 * What a bulk has in flight on the same pipes is not the thin connection's. It leaves a
 * pipe that takes nothing more, which the bulk sees to now and then.
 */
static void a_bulk_beside_does_not_scatter_it(void **state)
{
	struct model_params is = mile(20, 100 * MS, 100, 8);
	unsigned int changes = 0, keys = 2000;
	struct random r = { 1 };
	struct model model;
	uint32_t on = 0;

	(void)state;
	model_init(&model, &is, &r);
	model.settings.thin = THIN_SAME_PIPE;
	model_offer(&model, 1, UINT64_MAX);
	model_run(&model, 5 * S);
	for (unsigned int i = 0; i < keys; i++) {
		model_offer(&model, 0, KEY);
		model_run(&model, 50 * MS);
		changes += on != model.conn[0].conn.last_pipe;
		on = model.conn[0].conn.last_pipe;
	}
	model_fini(&model);
	if (changes > keys / 100)
		fail_msg("on another pipe %u times", changes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_pipes_are_no_slower),
		cmocka_unit_test(scattered_they_are),
		cmocka_unit_test(a_bulk_beside_does_not_scatter_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
