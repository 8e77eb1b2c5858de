/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/leaks/leaks_reader.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define HEAD  "# leaks 1\n"
#define HEAD2 "# leaks 2\n# summary end=612790.000000000\n"
#define LEAK  "leak 3072 0x55d0c0ffee10 612746.918039456 120 4165 4166 emacs malloc 13\n"
#define LEAK2 "leak 3072 0x55d0c0ffee10 612746.918039456 120 4165 4166 13 growth x_term_init\n"

/* Creates a file with @size bytes of @text and stores its path in @path. */
static void write_file(char *path, const char *text, size_t size)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), size);
	close(fd);
}

static int open_text(const char *text, struct leaks_reader **ret)
{
	char path[] = "/tmp/test_leaks_reader.XXXXXX";

	write_file(path, text, strlen(text));
	int err = leaks_reader_open(path, ret);
	unlink(path);
	return err;
}

static struct leaks_reader *must_open(const char *text)
{
	struct leaks_reader *reader;

	assert_int_equal(open_text(text, &reader), 0);
	return reader;
}

static struct leaks_item must_next(struct leaks_reader *reader, enum leaks_item_kind kind)
{
	struct leaks_item item;

	assert_int_equal(leaks_reader_next(reader, &item), 0);
	assert_int_equal(item.kind, kind);
	return item;
}

/* Reads all of @text. Returns the first error, or the number of leaks. */
static int read_all(const char *text)
{
	struct leaks_reader *reader;
	struct leaks_item item;
	int nr_leaks = 0;

	int err = open_text(text, &reader);
	if (err)
		return err;
	while ((err = leaks_reader_next(reader, &item)) == 0 && item.kind != LEAKS_END)
		nr_leaks += item.kind == LEAKS_LEAK;
	leaks_reader_close(reader);
	return err ? err : nr_leaks;
}

static void reads_every_column(void **state)
{
	struct leaks_reader *reader = must_open(HEAD LEAK);
	struct leaks_leak leak = must_next(reader, LEAKS_LEAK).leak;

	assert_true(leak.has_size);
	assert_int_equal(leak.size_bytes, 3072);
	assert_int_equal(leak.address, 0x55d0c0ffee10);
	assert_int_equal(leak.time_ns, UINT64_C(612746918039456));
	assert_int_equal(leak.event, 120);
	assert_int_equal(leak.pid, 4165);
	assert_int_equal(leak.tid, 4166);
	assert_int_equal(leak.stack, 13);
	assert_string_equal(leak.comm, "emacs");
	assert_string_equal(leak.function, "malloc");
	must_next(reader, LEAKS_END);
	leaks_reader_close(reader);
}

static void reads_version_2(void **state)
{
	struct leaks_reader *reader = must_open(
		HEAD2 "thread 4166 4165 emacs\n"
		      "frames 13 malloc x_term_init\n"
		      "\tx_term_init+0x351  xterm.c:30913  (/usr/bin/emacs)\n"
		      "stack 1 growth firm 1 3072 13 malloc x_term_init bytes_per_s=2\n"
		      "\tskipped+0x1  (/x)\n" LEAK2 "\tskipped+0x1  (/x)\n"
		      "leak 1 0x1 1.000000000 1 1 1 13 at-exit f kind=fd age=2.500000000\n"
		      "frames 14 free f more words\n");
	struct leaks_item item = must_next(reader, LEAKS_DEFINITION);
	struct leaks_leak leak;

	assert_int_equal(leaks_reader_version(reader), 2);
	assert_int_equal(item.definition.stack, 13);
	assert_string_equal(item.definition.function, "malloc");
	item = must_next(reader, LEAKS_FRAME);
	assert_string_equal(item.frame.name, "x_term_init");
	assert_string_equal(item.place.line, "xterm.c:30913");
	item = must_next(reader, LEAKS_STACK);
	assert_int_equal(item.stack.stack, 13);
	assert_true(item.stack.has_rate);
	leak = must_next(reader, LEAKS_LEAK).leak;
	assert_int_equal(leak.size_bytes, 3072);
	assert_int_equal(leak.address, 0x55d0c0ffee10);
	assert_int_equal(leak.event, 120);
	assert_int_equal(leak.pid, 4165);
	assert_int_equal(leak.tid, 4166);
	assert_int_equal(leak.stack, 13);
	assert_string_equal(leak.verdict, "growth");
	assert_false(leak.has_age);
	leak = must_next(reader, LEAKS_LEAK).leak;
	assert_true(leak.has_age);
	assert_int_equal(leak.age_ns, 2500000000);
	assert_int_equal(must_next(reader, LEAKS_DEFINITION).definition.stack, 14);
	must_next(reader, LEAKS_END);
	leaks_reader_close(reader);
}

/* A word that a later writer of version 1 could have added means nothing. */
static void version_1_defines_nothing(void **state)
{
	struct leaks_reader *reader = must_open(HEAD "frames 13 malloc f\n\tf+0x1  (/x)\n" LEAK);

	must_next(reader, LEAKS_LEAK);
	must_next(reader, LEAKS_END);
	leaks_reader_close(reader);
}

static void size_may_be_unknown(void **state)
{
	struct leaks_reader *reader = must_open(HEAD "leak ? 0x1 0.000000000 1 -1 -1 x malloc 0\n");
	struct leaks_leak leak = must_next(reader, LEAKS_LEAK).leak;

	assert_false(leak.has_size);
	assert_int_equal(leak.pid, -1);
	leaks_reader_close(reader);
}

static void names_are_unescaped(void **state)
{
	struct leaks_reader *reader = must_open(
		HEAD "leak 1 0x1 0.000000000 1 1 1 a\\x20b\\x5cx\\x0a\\x00\\xzz\\x malloc 0\n");

	assert_string_equal(must_next(reader, LEAKS_LEAK).leak.comm, "a b\\x\n\\x00\\xzz\\x");
	leaks_reader_close(reader);
}

static void frames_have_functions(void **state)
{
	struct leaks_reader *reader =
		must_open(HEAD LEAK "\t_XQueryFont+0x1b0  font.c:12  (/usr/lib/libX11.so.6)\n"
				    "\n"
				    "\tskipped+0x1  (/x)\n" LEAK
				    "\tlibX11.so.6+0x24af0  (/usr/lib/libX11.so.6)\n"
				    "\t\n"
				    "\t0x7f0012345678  (unknown)\n"
				    "\toperator\\x20new+0x2c  (/usr/lib/libstdc++.so.6)\n");

	must_next(reader, LEAKS_LEAK);
	assert_string_equal(must_next(reader, LEAKS_FRAME).frame.name, "_XQueryFont");
	must_next(reader, LEAKS_LEAK);
	/* Without a function, the offset is kept. */
	assert_string_equal(must_next(reader, LEAKS_FRAME).frame.name, "libX11.so.6+0x24af0");
	assert_string_equal(must_next(reader, LEAKS_FRAME).frame.name, "0x7f0012345678");
	assert_string_equal(must_next(reader, LEAKS_FRAME).frame.name, "operator new");
	must_next(reader, LEAKS_END);
	leaks_reader_close(reader);
}

static void frames_may_contain_blanks(void **state)
{
	struct leaks_reader *reader = must_open(
		HEAD LEAK "\toperator new+0x2c  (/usr/lib/libstdc++.so.6)\n"
			  "\ta::operator+<int, char>+0x1  a.cc:3  (/usr/bin/x)  inlined\n");

	must_next(reader, LEAKS_LEAK);
	assert_string_equal(must_next(reader, LEAKS_FRAME).frame.name, "operator new");
	assert_string_equal(must_next(reader, LEAKS_FRAME).frame.name, "a::operator+<int, char>");
	leaks_reader_close(reader);
}

static void assert_frame(struct leaks_reader *reader, bool has_symbol, const char *module,
			 bool inlined)
{
	struct frame_facts frame = must_next(reader, LEAKS_FRAME).frame;

	assert_int_equal(frame.has_symbol, has_symbol);
	assert_int_equal(frame.inlined, inlined);
	if (module)
		assert_string_equal(frame.module, module);
	else
		assert_null(frame.module);
}

static void frames_have_modules(void **state)
{
	struct leaks_reader *reader = must_open(HEAD LEAK "\tf+0x1  a.c:3  (/bin/x)  inlined\n"
							  "\tf+0x2  (/bin/x)\n"
							  "\tx+0x3  (/bin/x)\n"
							  "\t0x7f0012345678  (unknown)\n"
							  "\t(truncated: the stack is longer)\n");

	must_next(reader, LEAKS_LEAK);
	assert_frame(reader, true, "(/bin/x)", true);
	assert_frame(reader, true, "(/bin/x)", false);
	assert_frame(reader, false, "(/bin/x)", false);
	assert_frame(reader, false, NULL, false);
	assert_frame(reader, false, NULL, false);
	leaks_reader_close(reader);
}

static void verdicts_are_read(void **state)
{
	struct leaks_reader *reader = must_open(
		HEAD "stack 1 growth firm 5 3840 293 realloc allocations=5 bytes_per_s=1.5e+03\n"
		     "\tskipped+0x1  (/x)\n"
		     "stack 2 start-up doubtful:lost 5 3840 7 malloc\n"
		     "leak 8 0x1 1.000000000 1 1 1 x malloc 7 firm start-up new=1 age=2.500000000\n"
		     "leak 8 0x1 1.000000000 1 1 1 x malloc 7\n");
	struct leaks_item item = must_next(reader, LEAKS_STACK);

	assert_int_equal(item.stack.stack, 293);
	assert_string_equal(item.stack.verdict, "growth");
	assert_true(item.stack.has_rate);
	assert_int_equal(item.stack.bytes_per_s, 1500);
	item = must_next(reader, LEAKS_STACK);
	assert_int_equal(item.stack.stack, 7);
	assert_false(item.stack.has_rate);
	item = must_next(reader, LEAKS_LEAK);
	assert_string_equal(item.leak.verdict, "start-up");
	assert_true(item.leak.has_age);
	assert_int_equal(item.leak.age_ns, 2500000000);
	item = must_next(reader, LEAKS_LEAK);
	assert_null(item.leak.verdict);
	assert_false(item.leak.has_age);
	leaks_reader_close(reader);
}

static void causes_are_read(void **state)
{
	struct leaks_reader *reader = must_open(
		"# leaks 2\ncause 3 growth firm 5 3840 4 worker bytes_per_s=1.5e+03 new=1\n"
		"\tworker+0x1  w.c:5  (/x)\n"
		"frames 7 malloc f\n"
		"stack 1 growth firm 5 3840 7 malloc f bytes_per_s=1 cause=3\n"
		"stack 2 growth firm 5 3840 7 malloc f cause=x\n"
		"periods 1 1.000000000 1.000000000\n"
		"cause-history 3 held_bytes=1 held_blocks=1\n");
	struct leaks_item item = must_next(reader, LEAKS_CAUSE);

	assert_int_equal(item.cause.number, 3);
	assert_int_equal(item.cause.nr_stacks, 4);
	assert_string_equal(item.cause.verdict, "growth");
	assert_true(item.cause.has_rate);
	assert_int_equal(item.cause.bytes_per_s, 1500);
	assert_string_equal(must_next(reader, LEAKS_FRAME).frame.name, "worker");
	must_next(reader, LEAKS_DEFINITION);
	assert_int_equal(must_next(reader, LEAKS_STACK).stack.cause, 3);
	assert_int_equal(must_next(reader, LEAKS_STACK).stack.cause, 0);
	item = must_next(reader, LEAKS_HISTORY);
	assert_true(item.history->is_cause);
	assert_int_equal(item.history->stack, 3);
	must_next(reader, LEAKS_END);
	leaks_reader_close(reader);
}

static void places_are_read(void **state)
{
	struct leaks_reader *reader = must_open(HEAD "leak 8 0x1 1.000000000 1 1 1 x malloc 7\n"
						     "\tf+0x1a  /src/a\\x20b.c:63  (/bin/x)\n"
						     "\tg+0x2b  a.c:7  (/bin/x)  inlined\n"
						     "\th+0x3c  (/bin/x)\n"
						     "\tx+0x4d  (/bin/x)\n");
	struct leaks_item item;

	must_next(reader, LEAKS_LEAK);
	item = must_next(reader, LEAKS_FRAME);
	assert_string_equal(item.place.line, "a b.c:63");
	assert_string_equal(item.place.offset, "0x1a");
	item = must_next(reader, LEAKS_FRAME);
	assert_string_equal(item.place.line, "a.c:7");
	item = must_next(reader, LEAKS_FRAME);
	assert_null(item.place.line);
	assert_string_equal(item.place.offset, "0x3c");
	item = must_next(reader, LEAKS_FRAME);
	assert_string_equal(item.frame.name, "x+0x4d");
	assert_null(item.place.offset);
	leaks_reader_close(reader);
}

static void processes_are_read(void **state)
{
	struct leaks_reader *reader = must_open(HEAD "process 7 a\\x20b 5 3840 new=1\n"
						     "process 8 ? 5 3840 end=1.500000000\n");
	struct leaks_item item = must_next(reader, LEAKS_PROCESS);

	assert_int_equal(item.process.pid, 7);
	assert_string_equal(item.process.name, "a b");
	assert_int_equal(item.process.end_ns, 0);
	item = must_next(reader, LEAKS_PROCESS);
	assert_string_equal(item.process.name, "?");
	assert_int_equal(item.process.end_ns, 1500000000);
	must_next(reader, LEAKS_END);
	leaks_reader_close(reader);
}

#define PERIODS "periods 3 10.000000000 2.000000000 new=1 peak=11.500000000\n"

static void histories_are_read(void **state)
{
	struct leaks_reader *reader =
		must_open(HEAD PERIODS "history all held_bytes=1,2,3 held_blocks=4,5,6 new=1 "
				       "at_peak_bytes=9 at_peak_blocks=7 "
				       "lifetimes=1024:7,1536:8\n"
				       "history 12 held_bytes=0,0,1\n"
				       "\tf+0x1  (/x)\n");
	const struct leaks_history *history = must_next(reader, LEAKS_HISTORY).history;
	const struct leaks_periods *periods = leaks_reader_periods(reader);

	assert_int_equal(periods->nr, 3);
	assert_int_equal(periods->begin_ns, 10000000000);
	assert_int_equal(periods->length_ns, 2000000000);
	assert_int_equal(periods->peak_ns, 11500000000);
	assert_true(history->is_all);
	assert_int_equal(history->at_peak_bytes, 9);
	assert_int_equal(history->at_peak_blocks, 7);
	assert_int_equal(history->nr, 3);
	assert_int_equal(history->held_bytes[2], 3);
	assert_int_equal(history->held_blocks[0], 4);
	assert_int_equal(history->nr_lifetimes, 2);
	assert_int_equal(history->lifetimes[1].ns, 1536);
	assert_int_equal(history->lifetimes[1].nr_blocks, 8);
	history = must_next(reader, LEAKS_HISTORY).history;
	assert_false(history->is_all);
	assert_int_equal(history->stack, 12);
	assert_int_equal(history->nr_lifetimes, 0);
	must_next(reader, LEAKS_FRAME);
	leaks_reader_close(reader);
}

static void wrong_histories_are_rejected(void **state)
{
	static const char *const wrong[] = {
		"history all held_bytes=1,2,3\n", /* before the periods */
		"periods 0 1.000000000 1.000000000\n",
		"periods 99999 1.000000000 1.000000000\n",
		"periods 1 1 1\n",
		"periods 1 1.000000000 0.000000000\n",
		"periods 4000 18446744072.000000000 1.000000000\n",
		PERIODS "history all\n",
		PERIODS "history x held_bytes=1,2,3\n",
		PERIODS "history all held_bytes=1,2\n",
		PERIODS "history all held_bytes=1,2,3,4\n",
		"periods 3 10.000000000 2.000000000 peak=11\n",
		PERIODS "history all held_bytes=1,2,3 at_peak_bytes=x\n",
		PERIODS "history all held_bytes=1,2,-3\n",
		PERIODS "history all held_bytes=1,2,18446744073709551615\n",
		PERIODS "history all held_bytes=1,2,3 lifetimes=5\n",
		PERIODS "history all held_bytes=1,2,3 lifetimes=5:1,5:2\n",
		PERIODS "history all held_bytes=1,2,3 held_blocks=\n",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		char text[256];

		snprintf(text, sizeof(text), HEAD "%s", wrong[i]);
		assert_int_equal(read_all(text), -EINVAL);
	}
}

static void other_lines_and_their_frames_are_skipped(void **state)
{
	struct leaks_reader *reader =
		must_open(HEAD "unexpected double-free 64 0x1 1.000000000 1 1 1 x free 12\n"
			       "\tfree_all+0x1a  main.c:12  (/usr/bin/x)\n"
			       "invented words of a later minor version\n"
			       "\tframe+0x1  (/x)\n"
			       "# a comment\n" LEAK);

	must_next(reader, LEAKS_LEAK);
	must_next(reader, LEAKS_END);
	leaks_reader_close(reader);
}

static void columns_may_be_added(void **state)
{
	assert_int_equal(read_all(HEAD "leak 1 0x1 0.000000000 1 1 1 x malloc 0 more words\n"), 1);
}

static void summary_is_read(void **state)
{
	struct leaks_reader *reader =
		must_open(HEAD "# summary events=900000 new=x lost=12 word start=612740.000000001 "
			       "end=612790.500000000 truncated=1\n");

	must_next(reader, LEAKS_END);
	const struct leaks_summary *summary = leaks_reader_summary(reader);
	assert_true(summary->has_events && summary->has_start && summary->has_end);
	assert_int_equal(summary->events, 900000);
	assert_int_equal(summary->lost_events, 12);
	assert_int_equal(summary->start_ns, UINT64_C(612740000000001));
	assert_int_equal(summary->end_ns, UINT64_C(612790500000000));
	assert_true(summary->is_truncated);
	leaks_reader_close(reader);
}

static void summary_may_be_missing(void **state)
{
	struct leaks_reader *reader = must_open(HEAD);

	must_next(reader, LEAKS_END);
	assert_false(leaks_reader_summary(reader)->has_start);
	leaks_reader_close(reader);
}

static void wrong_beginnings_are_rejected(void **state)
{
	assert_true(read_all("") < 0);
	assert_true(read_all("\n") < 0);
	assert_true(read_all("# leaks\n") < 0);
	assert_true(read_all("# leaks 1") < 0);
	assert_true(read_all("# leaks x\n") < 0);
	assert_true(read_all("# leaks 0\n") < 0);
	assert_true(read_all("# leaks 3\n") < 0);
	assert_true(read_all("# leaks 11\n" LEAK) < 0);
	assert_true(read_all("PERFILE2\n") < 0);
	assert_true(read_all(LEAK) < 0);
}

static void wrong_leak_lines_are_rejected(void **state)
{
	static const char *const lines[] = {
		"leak\n",
		"leak 1\n",
		"leak  1 0x1 0.000000000 1 1 1 x malloc 0\n",
		"leak -1 0x1 0.000000000 1 1 1 x malloc 0\n",
		"leak 0x10 0x1 0.000000000 1 1 1 x malloc 0\n",
		"leak 18446744073709551616 0x1 0.000000000 1 1 1 x malloc 0\n",
		"leak 1 1 0.000000000 1 1 1 x malloc 0\n",
		"leak 1 0x 0.000000000 1 1 1 x malloc 0\n",
		"leak 1 0x10000000000000000 0.000000000 1 1 1 x malloc 0\n",
		"leak 1 0x1 0 1 1 1 x malloc 0\n",
		"leak 1 0x1 0.5 1 1 1 x malloc 0\n",
		"leak 1 0x1 0.0000000001 1 1 1 x malloc 0\n",
		"leak 1 0x1 18446744074.000000000 1 1 1 x malloc 0\n",
		"leak 1 0x1 0.000000000 - 1 1 x malloc 0\n",
		"leak 1 0x1 0.000000000 1 4294967296 1 x malloc 0\n",
		"leak 1 0x1 0.000000000 1 1 -2 x malloc 0\n",
		"leak 1 0x1 0.000000000 1 1 1 x malloc\n",
		"leak 1 0x1 0.000000000 1 1 1 x malloc 4294967296\n",
		"leak 1 0x1 0.000000000 1 1 1 x\n",
	};
	static const char *const lines_2[] = {
		LEAK,
		"leak 1 0x1 0.000000000 1 1 1\n",
		"leak 1 0x1 0.000000000 1 1 1 4294967296 growth f\n",
		"leak 1 0x1 0.000000000 1 1 1 -1 growth f\n",
		"leak 1 0x1 0.000000000 1 1 1 13\n",
		"leak 1 0x1 0.000000000 1 1 1 13 growth\n",
		"frames\n",
		"frames x malloc f\n",
		"frames -1 malloc f\n",
		"frames 4294967296 malloc f\n",
		"frames 99999999999999999999 malloc f\n",
		"frames 1\n",
		"process 1 a 1 1 end=1\n",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char text[256];

		snprintf(text, sizeof(text), HEAD "%s", lines[i]);
		if (read_all(text) >= 0)
			fail_msg("accepted: %s", lines[i]);
	}
	for (size_t i = 0; i < sizeof(lines_2) / sizeof(lines_2[0]); i++) {
		char text[256];

		snprintf(text, sizeof(text), HEAD2 "%s", lines_2[i]);
		if (read_all(text) != -EINVAL)
			fail_msg("accepted: %s", lines_2[i]);
	}
	assert_true(read_all(HEAD "# summary events=many\n") < 0);
	assert_true(read_all(HEAD "# summary start=1\n") < 0);
}

static void a_cut_off_file_is_rejected(void **state)
{
	assert_int_equal(read_all(HEAD LEAK), 1);
	for (size_t len = 1; len < strlen(LEAK); len++) {
		char text[256];

		snprintf(text, sizeof(text), HEAD LEAK "%.*s", (int)len, LEAK);
		assert_true(read_all(text) < 0);
	}
	assert_int_equal(read_all(HEAD2 LEAK2), 1);
	for (size_t len = 1; len < strlen(LEAK2); len++) {
		char text[256];

		snprintf(text, sizeof(text), HEAD2 "%.*s", (int)len, LEAK2);
		assert_true(read_all(text) < 0);
	}
}

static void nul_bytes_are_rejected(void **state)
{
	static const char text[] = HEAD "# a\0b\n" LEAK;
	char path[] = "/tmp/test_leaks_reader.XXXXXX";
	struct leaks_reader *reader;
	struct leaks_item item;

	write_file(path, text, sizeof(text) - 1);
	assert_int_equal(leaks_reader_open(path, &reader), 0);
	unlink(path);
	assert_true(leaks_reader_next(reader, &item) < 0);
	leaks_reader_close(reader);
}

static void too_long_lines_are_rejected(void **state)
{
	size_t long_len = 900 * 1024, too_long_len = 3 * 1024 * 1024;
	char *text = malloc(too_long_len + 64);

	assert_non_null(text);
	size_t head_len = (size_t)sprintf(text, HEAD "# ");
	memset(text + head_len, 'x', too_long_len);
	memcpy(text + head_len + long_len, "\n", 2);
	assert_int_equal(read_all(text), 0);
	text[head_len + long_len] = 'x';
	text[head_len + long_len + 1] = 'x';
	memcpy(text + head_len + too_long_len, "\n", 2);
	assert_true(read_all(text) < 0);
	free(text);
}

static void other_than_files_are_rejected(void **state)
{
	struct leaks_reader *reader;

	assert_true(leaks_reader_open("/nonexistent/leaks", &reader) < 0);
	assert_true(leaks_reader_open("/tmp", &reader) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_column),
		cmocka_unit_test(reads_version_2),
		cmocka_unit_test(version_1_defines_nothing),
		cmocka_unit_test(size_may_be_unknown),
		cmocka_unit_test(names_are_unescaped),
		cmocka_unit_test(frames_have_functions),
		cmocka_unit_test(frames_may_contain_blanks),
		cmocka_unit_test(frames_have_modules),
		cmocka_unit_test(verdicts_are_read),
		cmocka_unit_test(causes_are_read),
		cmocka_unit_test(places_are_read),
		cmocka_unit_test(processes_are_read),
		cmocka_unit_test(histories_are_read),
		cmocka_unit_test(wrong_histories_are_rejected),
		cmocka_unit_test(other_lines_and_their_frames_are_skipped),
		cmocka_unit_test(columns_may_be_added),
		cmocka_unit_test(summary_is_read),
		cmocka_unit_test(summary_may_be_missing),
		cmocka_unit_test(wrong_beginnings_are_rejected),
		cmocka_unit_test(wrong_leak_lines_are_rejected),
		cmocka_unit_test(a_cut_off_file_is_rejected),
		cmocka_unit_test(nul_bytes_are_rejected),
		cmocka_unit_test(too_long_lines_are_rejected),
		cmocka_unit_test(other_than_files_are_rejected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
