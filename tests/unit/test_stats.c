/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/base/hist.h"
#include "mux/base/log.h"
#include "mux/conn/conn.h"
#include "mux/options/options.h"
#include "mux/path/path.h"
#include "mux/pipe/pipe.h"
#include "mux/session/queues.h"
#include "mux/session/stats.h"
#include "mux/settings/settings.h"
#include "loopback.h"

static char path[] = "/tmp/tm3-test-stats-XXXXXX";
static char text[8192];
static struct settings settings;
static struct log the_log;

static int set_up(void **state)
{
	int fd;

	(void)state;
	strcpy(path + sizeof(path) - 7, "XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	settings_init(&settings);
	log_init(&the_log, "rp", LOG_INFO);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	log_fini(&the_log);
	return unlink(path);
}

static struct stats *open_stats(void)
{
	struct stats *st = stats_open(path, &the_log, &settings, 4);

	assert_non_null(st);
	return st;
}

/* Closes, and returns the last line of the file. */
static const char *last_line(struct stats *st)
{
	FILE *in;
	size_t n;
	char *end;

	stats_close(st);
	in = fopen(path, "r");
	assert_non_null(in);
	n = fread(text, 1, sizeof(text) - 1, in);
	fclose(in);
	assert_true(n > 0 && text[n - 1] == '\n');
	text[n - 1] = '\0';
	end = strrchr(text, '\n');
	return end ? end + 1 : text;
}

/* The number behind "name": of the last line; its absence fails. */
static double number(const char *line, const char *name)
{
	char key[64];
	const char *at;

	snprintf(key, sizeof(key), "\"%s\":", name);
	at = strstr(line, key);
	assert_non_null(at);
	return strtod(at + strlen(key), NULL);
}

/* Within the microseconds that lines are written in. */
static void assert_near(double a, double b)
{
	assert_true(a - b < 2e-6 && b - a < 2e-6);
}

static double unix_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void begins_with_the_settings(void **state)
{
	const char *line;
	double now = unix_now();

	(void)state;
	settings.late = false;
	line = last_line(open_stats());
	assert_memory_equal(line, "{\"type\":\"start\",\"program\":\"rp\",", 30);
	assert_non_null(strstr(line, ",\"pipes\":4,\"transport\":\"tcp\","
			       "\"binding\":\"early\","
			       "\"pipe_policy\":\"soonest\","
			       "\"path_policy\":\"soonest\","
			       "\"conn_policy\":\"las\","
			       "\"aggregate\":\"off\","
			       "\"reinject\":\"off\"}"));
	assert_true(number(line, "time") >= now - 1e-3);
	assert_true(number(line, "time") <= unix_now() + 1e-3);
}

/* A session's lines are in the file before it is closed. */
static void sessions_are_there_at_once(void **state)
{
	struct stats *st = open_stats();
	FILE *in;

	(void)state;
	stats_session(st, 3, "begin", "192.0.2.1", NULL);
	in = fopen(path, "r");
	assert_non_null(in);
	text[fread(text, 1, sizeof(text) - 1, in)] = '\0';
	fclose(in);
	assert_non_null(strstr(text, "\"session\":3,\"peer\":\"192.0.2.1\","
			       "\"reason\":null}\n"));
	stats_close(st);
}

static void strings_are_escaped(void **state)
{
	struct stats *st = open_stats();

	(void)state;
	stats_session(st, 1, "end", "a\"b\\c", "line\nbreak\x01\xff\x7f~");
	assert_non_null(strstr(last_line(st),
			       "\"peer\":\"a\\\"b\\\\c\",\"reason\":"
			       "\"line\\u000abreak\\u0001\\u00ff\\u007f~\"}"));
}

static struct conn a_conn(void)
{
	static const struct destination to = {
		DESTINATION_IPV4, 4, 80, { 192, 0, 2, 1 }
	};
	return (struct conn){
		.id = 7, .dst = &to,
		.end = CONN_END_PEER_FIN, .opened_at = loop_clock(),
		.tx_bytes = UINT64_C(1) << 40, .rx_bytes = 2,
		.tx_messages = 3, .rx_messages = 4,
	};
}

static void a_connection_that_never_was(void **state)
{
	struct stats *st = open_stats();
	struct conn c = a_conn();
	const char *line;

	(void)state;
	c.end = CONN_END_REFUSED;
	stats_conn(st, 1, &c, c.opened_at);
	line = last_line(st);
	assert_non_null(strstr(line, "\"connected\":null,"));
	assert_true(number(line, "closed") == number(line, "opened"));
	assert_non_null(strstr(line, "\"reorder_ms\":{\"p50\":0.000,"
			       "\"p75\":0.000,\"p99\":0.000,\"max\":0.000}"));
	assert_non_null(strstr(line, ",\"end\":\"refused\"}"));
}

static void a_connection_in_full(void **state)
{
	struct stats *st = open_stats();
	struct conn c = a_conn();
	struct waits waits = { .most_messages = 5, .most_payload = 6 };
	const char *line;

	(void)state;
	hist_add(&waits.delays, 5000);
	hist_add(&waits.delays, 90000);
	c.waits = &waits;
	c.rx_messages = 5;		/* 0, 0, 0, 5, 90 ms */
	c.connected_at = c.opened_at + 20 * NS_PER_MS;
	stats_conn(st, 2, &c, c.opened_at + 3 * NS_PER_SEC);
	line = last_line(st);
	assert_memory_equal(line, "{\"type\":\"conn\",\"session\":2,\"id\":7,"
			    "\"protocol\":\"tcp\","
			    "\"dst\":\"192.0.2.1:80\",\"opened\":", 81);
	assert_true(number(line, "opened") >= unix_now() - 1);
	assert_true(number(line, "opened") <= unix_now() + 1e-3);
	assert_near(number(line, "connected") - number(line, "opened"), 0.02);
	assert_near(number(line, "closed") - number(line, "opened"), 3);
	assert_non_null(strstr(line, "\"tx_bytes\":1099511627776,"
			       "\"rx_bytes\":2,\"tx_messages\":3,"
			       "\"rx_messages\":5,"));
	assert_near(number(line, "p50"), 0);
	assert_true(number(line, "p75") > 4.6 && number(line, "p75") < 5.4);
	assert_near(number(line, "p99"), 90);
	assert_near(number(line, "max"), 90);
	assert_non_null(strstr(line, "\"reorder_max_messages\":5,"
			       "\"reorder_max_bytes\":6,"
			       "\"end\":\"peer-fin\"}"));
	/* What is added for the record is not added to the connection's. */
	assert_int_equal(hist_count(&waits.delays), 2);
}

static void a_pipe(void **state)
{
	struct stats *st = open_stats();
	struct pipe p = { .index = 2, .allowance = 11, .tx_bytes = 12,
			  .rx_bytes = 13, .tx_messages = 14, .rx_messages = 15,
			  .tx_acks = 16, .tx_ack_bytes = 17, .tx_copies = 18,
			  .info = { .rtt_ms = 1.5, .rttmin_ms = 0.25, .cwnd = 7,
				    .mss = 1448, .retransmits = 8,
				    .segments = 80, .unsent = 9,
				    .in_flight = 10 } };
	const char *line;
	int fd[2];

	(void)state;
	tcp_pair(fd);
	p.fd = fd[0];
	stats_pipe(st, 1, 3, &p, "up");
	line = last_line(st);
	assert_non_null(strstr(line, ",\"session\":1,\"pipe\":2,\"path\":3,"
			       "\"state\":\"up\",\"transport\":\"tcp\","
			       "\"cc\":\""));
	assert_non_null(strstr(line, "\",\"rtt_ms\":1.500,\"rttmin_ms\":0.250,"
			       "\"cwnd\":7,\"mss\":1448,\"unsent\":9,"
			       "\"in_flight\":10,\"allowance\":11,"
			       "\"tx_bytes\":12,\"rx_bytes\":13,"
			       "\"tx_messages\":14,\"rx_messages\":15,"
			       "\"tx_acks\":16,\"tx_ack_bytes\":17,"
			       "\"tx_copies\":18,"
			       "\"retransmits\":8,\"segments\":80}"));
	close(fd[0]);
	close(fd[1]);
}

static void pipes_of_other_kinds(void **state)
{
	struct pipe p = { .fd = -1, .transport = TRANSPORT_SCTP };
	struct stats *st = open_stats();
	const char *line;

	(void)state;
	stats_pipe(st, 1, 0, &p, "up");
	line = last_line(st);
	assert_non_null(strstr(line, "\"transport\":\"sctp\",\"cc\":null,"));
	assert_null(strstr(line, "subflows"));
	st = open_stats();
	p.transport = TRANSPORT_MPTCP;
	p.info.subflows = 2;
	stats_pipe(st, 1, 0, &p, "up");
	line = last_line(st);
	assert_non_null(strstr(line, "\"transport\":\"mptcp\","));
	assert_non_null(strstr(line, ",\"subflows\":2}"));
}

static void what_stands_in_queues(void **state)
{
	struct queues q = { .connections = 28, .flows = 1, .connecting = 2,
			    .missing = 3, .taking = 4, .credit = 5,
			    .sending = 6, .ending = 7, .idle = 0, .queued = 8,
			    .early = 9, .kept = 10 };
	struct stats *st = open_stats();

	(void)state;
	stats_queues(st, 3, &q, "limit");
	assert_non_null(strstr(last_line(st), ",\"session\":3,"
			       "\"sender\":\"limit\",\"connections\":28,"
			       "\"connecting\":2,\"missing\":3,\"taking\":4,"
			       "\"credit\":5,\"sending\":6,\"ending\":7,"
			       "\"idle\":0,\"flows\":1,\"queued\":8,"
			       "\"early\":9,\"kept\":10}"));
}

static void what_a_mixed_set_loses(void **state)
{
	struct stats *st = open_stats();
	struct losses l;

	(void)state;
	losses_init(&l, 0.5);
	losses_add(&l, 1, 1000, 10);
	losses_add(&l, 1 + LOSSES_STEP, 1200, 12);
	stats_losses(st, 3, 1, &l);
	assert_non_null(strstr(last_line(st), "\"session\":3,\"path\":1,"
			       "\"carried_by\":\"others\",\"percent\":1.000,"
			       "\"threshold\":0.5,\"segments\":200,"
			       "\"retransmits\":2,\"switches\":0}"));
}

static void a_path_among_several(void **state)
{
	struct path p = { .backup = true, .cost = 7, .npipes = 4,
			     .written = 123456, .reinjected = 789,
			     .variation.deviation = 0.0125 };
	struct stats *st = open_stats();

	(void)state;
	stats_path(st, 1, 2, &p, "wifi", true);
	assert_non_null(strstr(last_line(st), "\"session\":1,\"path\":2,"
			       "\"name\":\"wifi\",\"state\":\"backup\","
			       "\"rests\":true,\"cost\":7,\"pipes\":4,"
			       "\"written\":123456,"
			       "\"reinjected\":789,"
			       "\"deviation_ms\":12.500,"
			       "\"came\":null}"));
	st = open_stats();
	p.backup = false;
	stats_path(st, 1, 0, &p, NULL, false);
	assert_non_null(strstr(last_line(st), "\"name\":null,\"state\":\"use\","
			       "\"rests\":false,"));
	st = open_stats();
	p.off = true;
	stats_path(st, 1, 0, &p, NULL, true);
	assert_non_null(strstr(last_line(st), "\"state\":\"off\","));
	st = open_stats();
	aggregate_init(&p.aggregate, AGGREGATE_DELAY, 1, 1);
	p.npipes = 0;
	stats_aggregate(st, 1, 2, &p);
	assert_non_null(strstr(last_line(st), "\"session\":1,\"path\":2,"
			       "\"mode\":\"delay\","));
}

static void write_to_a_full_disk(void)
{
	struct stats *st = stats_open("/dev/full", &the_log, &settings, 4);
	struct conn c = a_conn();

	assert_non_null(st);
	for (int i = 0; i < 1000; i++)
		stats_conn(st, 1, &c, loop_clock());
	stats_session(st, 1, "end", "192.0.2.1", "over");
	stats_flush(st);
	stats_close(st);
}

/* Said in one line, and that is all. */
static void a_full_disk_ends_statistics_only(void **state)
{
	int saved = dup(STDERR_FILENO);
	FILE *said = freopen(path, "w+", stderr);
	size_t n;

	(void)state;
	assert_non_null(said);
	log_fini(&the_log);
	log_init(&the_log, "rp", LOG_INFO);
	write_to_a_full_disk();
	rewind(said);
	n = fread(text, 1, sizeof(text) - 1, said);
	dup2(saved, STDERR_FILENO);
	close(saved);
	text[n] = '\0';
	assert_string_equal(text, "rp: --stats: /dev/full: No space left on "
			    "device; no more statistics are written\n");
}

/* A named pipe in place of the file. */
static int make_pipe(void)
{
	int fd;

	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK);
	assert_true(fd >= 0);
	return fd;
}

/* All that is in the pipe now. */
static size_t read_pipe(int fd, char *to, size_t size)
{
	size_t have = 0;
	ssize_t n;

	while ((n = read(fd, to + have, size - 1 - have)) > 0)
		have += (size_t)n;
	to[have] = '\0';
	return have;
}

static unsigned long count_lines(const char *lines, const char *type)
{
	unsigned long n = 0;

	for (; (lines = strstr(lines, type)); lines++)
		n++;
	return n;
}

/* Nobody reads: it goes on, drops, and counts. All lines are whole. */
static void a_pipe_that_nobody_reads(void **state)
{
	enum { LINES = 5000, SIZE = 4 << 20 };
	char *all = malloc(SIZE);
	int fd = make_pipe();
	struct stats *st = open_stats();
	struct conn c = a_conn();
	size_t have = 0;
	int i;

	(void)state;
	assert_non_null(all);
	settings.stats_interval = 0.01;
	for (i = 0; i < LINES; i++)
		stats_conn(st, 1, &c, c.opened_at);
	while (have == 0 || all[have - 1] != '\n' ||
	       !strstr(all, "{\"type\":\"dropped\"")) {
		size_t more = read_pipe(fd, all + have, SIZE - have);

		have += more;
		stats_conn(st, 1, &c, c.opened_at);
		stats_flush(st);
		i++;
		assert_true(i < 2 * LINES);
	}
	assert_int_equal(count_lines(all, "{\"type\":\"dropped\""), 1);
	assert_true(number(strstr(all, "{\"type\":\"dropped\""), "lines") > 1000);
	have += read_pipe(fd, all + have, SIZE - have);
	assert_int_equal(count_lines(all, "{\"type\":\"conn\"") +
			 (unsigned long)number(strstr(all, "\"dropped\""),
					       "lines"), i);
	assert_int_equal(count_lines(all, "}\n"),
			 count_lines(all, "{\"type\":"));
	stats_close(st);
	close(fd);
	free(all);
}

/* It may come later. */
static void a_pipe_without_a_reader(void **state)
{
	struct stats *st;
	int fd = make_pipe();

	(void)state;
	close(fd);
	st = open_stats();
	fd = open(path, O_RDONLY | O_NONBLOCK);
	assert_true(fd >= 0);
	assert_true(read_pipe(fd, text, sizeof(text)) > 0);
	assert_memory_equal(text, "{\"type\":\"start\"", 15);
	stats_close(st);
	close(fd);
}

static void the_file_is_its_owners_alone(void **state)
{
	struct stat st;

	(void)state;
	umask(0);
	for (int again = 0; again < 2; again++) {
		stats_close(open_stats());
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
		if (!again)
			assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(chmod(path, 0644), 0);
	stats_close(open_stats());
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

/* A link of ours is followed, another user's is not. */
static void links_of_others_are_not_followed(void **state)
{
	char dir[] = "/tmp/tm3-test-stats-XXXXXX", link[sizeof(dir) + 8];

	(void)state;
	assert_non_null(mkdtemp(dir));	/* not sticky, as /tmp itself is */
	snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(symlink(path, link), 0);
	stats_close(stats_open(link, &the_log, &settings, 4));
	if (!geteuid()) {
		assert_int_equal(lchown(link, 65534, 65534), 0);
		assert_null(stats_open(link, &the_log, &settings, 4));
		assert_int_equal(errno, ELOOP);
	}
	assert_int_equal(unlink(link), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void what_was_dropped_and_sent_again(void **state)
{
	struct stats *st = open_stats();
	struct stats_counts counts = {
		.protocol = 1, .unrecorded = 6, .dropped = 5, .stale = 2, .again = 3,
		.again_bytes = UINT64_C(1) << 40, .copies = 7,
		.hints_sent = 20, .hints_received = 21, .hints_dropped = 22,
		.reinjected = 23, .reinjected_bytes = 24, .too_big = 8,
		.datagrams = { 11, 12, 13, 14, 15, 16, 17, 18, 19 },
	};

	(void)state;
	stats_counters(st, 4, &counts);
	assert_non_null(strstr(last_line(st), "\"protocol\":1,\"unrecorded\":6,\"dropped\":5,"
			       "\"stale\":2,\"again\":3,"
			       "\"again_bytes\":1099511627776,"
			       "\"copies\":7,"
			       "\"hints_sent\":20,"
			       "\"hints_received\":21,"
			       "\"hints_dropped\":22,"
			       "\"reinjected\":23,"
			       "\"reinjected_bytes\":24,"
			       "\"too_big\":8,"
			       "\"datagrams_sent\":11,"
			       "\"datagrams_received\":12,"
			       "\"datagrams_stale\":13,"
			       "\"datagrams_crowded\":14,"
			       "\"datagrams_large\":15,"
			       "\"datagrams_stray\":16,"
			       "\"datagrams_denied\":17,"
			       "\"datagrams_narrow\":18,"
			       "\"datagrams_unsent\":19}"));
}

static void no_file_no_statistics(void **state)
{
	struct stats_counts counts = { .late = 1 };
	struct conn c = a_conn();
	struct pipe p = { .fd = -1 };

	(void)state;
	assert_null(stats_open("/no/such/place", &the_log, &settings, 4));
	stats_session(NULL, 1, "begin", "192.0.2.1", NULL);
	stats_pipe(NULL, 1, 0, &p, "up");
	stats_conn(NULL, 1, &c, 1);
	stats_counters(NULL, 1, &counts);
	stats_flush(NULL);
	stats_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(begins_with_the_settings,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(sessions_are_there_at_once,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(strings_are_escaped,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_connection_that_never_was,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_connection_in_full,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_pipe, set_up, tear_down),
		cmocka_unit_test_setup_teardown(pipes_of_other_kinds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_stands_in_queues, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_mixed_set_loses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_path_among_several, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_full_disk_ends_statistics_only,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_pipe_that_nobody_reads,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_pipe_without_a_reader,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_file_is_its_owners_alone,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(links_of_others_are_not_followed,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_was_dropped_and_sent_again,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_file_no_statistics,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
