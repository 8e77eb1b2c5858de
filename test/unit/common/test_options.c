/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Command lines that a table describes: parsing, bad usage, and the help text. */
#include "common/diag.h"
#include "common/number.h"
#include "common/options.h"
#include "common/options_help.h"
#include "common/scope.h"
#include "common/size_range.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum mode { MODE_HOLD, MODE_DROP };
enum { FIRST_GROUP = 1, SECOND_GROUP = 2 };

struct values {
	bool flag;
	const char *text, *word;
	pid_t pid;
	size_t count;
	uint64_t size_bytes, time_ns;
	struct size_range range;
	enum mode mode;
	unsigned int set;
	int level;
	unsigned int nr_parsed;
};

static int parse_level(void *options, const struct option_row *row, const char *text)
{
	struct values *values = options;
	uint64_t level = 1;

	if (text && number_parse(text, &level))
		return options_reject(row, text);
	values->level = (int)level;
	values->nr_parsed++;
	return 0;
}

#define LONG_HELP    "a help text that is too long for one line of eighty columns, so it has two"
#define FIELD(field) OPTION_FIELD(struct values, field)

static const struct option_word modes[] = {{"hold", MODE_HOLD}, {"drop", MODE_DROP}, {0}};
static const struct option_word bits[] = {{"one", 1}, {"two", 2}, {"four", 4}, {0}};

static const struct option_row rows[] = {
	{"flag", 'f', OPTION_FLAG, .help = "a flag", FIELD(flag), .groups = FIRST_GROUP},
	{"text", 't', OPTION_TEXT, "TEXT", "any text", FIELD(text), .alias = "txt",
	 .groups = FIRST_GROUP | SECOND_GROUP},
	{"word", 0, OPTION_TEXT, "WORD", "a word", FIELD(word), .words = modes},
	{"pid", 'p', OPTION_NUMBER, "PID", "a process", FIELD(pid), .min = 1, .max = INT_MAX,
	 .completes = OPTION_COMPLETES_PIDS},
	{.help = "Others:"},
	{"count", 0, OPTION_NUMBER, "N", "a number", FIELD(count), .min = 2,
	 .groups = SECOND_GROUP},
	{"bytes", 0, OPTION_SIZE, "SIZE", "a size", FIELD(size_bytes)},
	{"range", 0, OPTION_SIZE_RANGE, "SIZE|MIN..MAX", "a range", FIELD(range)},
	{"time", 0, OPTION_TIME, "TIME", "a time", FIELD(time_ns), .min = 1},
	{"mode", 0, OPTION_WORD, "MODE", "a mode", FIELD(mode), .words = modes},
	{"with", 0, OPTION_WORD_SET, "LIST", "bits", FIELD(set), .words = bits},
	{"level", 'z', OPTION_PARSED, "LEVEL", LONG_HELP, .parse = parse_level,
	 .letter_argument = "[LEVEL]"},
	{"fail", 0, OPTION_PARSED, "[=LEVEL]", "may have an argument", .parse = parse_level},
};

static const struct option_table table = {
	.tool = "tool",
	.synopsis = "tool [OPTION...]\ntool COMMAND",
	.about = "Does it.",
	.notes = "The end.",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
};

/* Parses the words, which end with a NULL. Hides the messages. */
static int parse(const struct option_table *with, struct values *ret, struct option_result *result,
		 ...)
{
	/* The arguments outlive the call: results point to them. */
	static char *argv[32];
	int argc = 0, err, own_stderr = dup(STDERR_FILENO);
	va_list words;
	char *word;

	*ret = (struct values){0};
	argv[argc++] = (char *)"tool";
	va_start(words, result);
	while ((word = va_arg(words, char *))) {
		assert_true((size_t)argc < ARRAY_SIZE(argv) - 1);
		argv[argc++] = word;
	}
	va_end(words);
	argv[argc] = NULL;
	assert_non_null(freopen("/dev/null", "w", stderr));
	err = options_parse(with, argc, argv, ret, result);
	fflush(stderr);
	dup2(own_stderr, STDERR_FILENO);
	close(own_stderr);
	return err;
}

#define PARSE(...)	parse(&table, &values, &result, __VA_ARGS__, NULL)
#define ASSERT_BAD(...) assert_int_equal(PARSE(__VA_ARGS__), -EINVAL)

static void arguments_reach_their_fields(void **state)
{
	struct option_result result;
	struct values values;

	assert_int_equal(PARSE("-f", "-t", "x", "--pid=12", "--count", "18446744073709551615",
			       "--bytes", "4k", "--range", "1..2k", "--time", "1.5m", "--mode",
			       "drop", "--with", "one,four", "--word", "hold"),
			 0);
	assert_true(values.flag);
	assert_string_equal(values.text, "x");
	assert_string_equal(values.word, "hold");
	assert_int_equal(values.pid, 12);
	assert_int_equal(values.count, SIZE_MAX);
	assert_int_equal(values.size_bytes, 4096);
	assert_int_equal(values.range.min_bytes, 1024);
	assert_int_equal(values.range.max_bytes, 2048);
	assert_int_equal(values.time_ns, 90000000000);
	assert_int_equal(values.mode, MODE_DROP);
	assert_int_equal(values.set, 5);
	assert_int_equal(result.nr_operands, 0);
	/* Of one option, the last argument counts; sets are added up. */
	assert_int_equal(PARSE("--txt", "a", "--text", "b", "--with", "one", "--with", "two"), 0);
	assert_string_equal(values.text, "b");
	assert_int_equal(values.set, 3);
}

static void arguments_may_be_left_out(void **state)
{
	struct option_result result;
	struct values values;

	assert_int_equal(PARSE("-z", "operand"), 0);
	assert_int_equal(values.level, 1);
	assert_int_equal(result.nr_operands, 1);
	assert_int_equal(PARSE("-z7"), 0);
	assert_int_equal(values.level, 7);
	/* The long option takes the next word. */
	assert_int_equal(PARSE("--level", "9"), 0);
	assert_int_equal(values.level, 9);
	ASSERT_BAD("--level");
	assert_int_equal(PARSE("--fail"), 0);
	assert_int_equal(values.nr_parsed, 1);
	assert_int_equal(PARSE("--fail=3"), 0);
	assert_int_equal(values.level, 3);
}

static void bad_usage_is_refused(void **state)
{
	struct option_result result;
	struct values values;

	ASSERT_BAD("--nonsense");
	ASSERT_BAD("-q");
	ASSERT_BAD("--flag=1");
	ASSERT_BAD("--text");
	ASSERT_BAD("-t");
	ASSERT_BAD("--word", "hol");
	ASSERT_BAD("--word", "");
	ASSERT_BAD("--pid", "0");
	ASSERT_BAD("--pid", "-1");
	ASSERT_BAD("--pid", "2147483648");
	ASSERT_BAD("--pid", "1x");
	ASSERT_BAD("--pid", "");
	ASSERT_BAD("--count", "1");
	ASSERT_BAD("--count", "18446744073709551616");
	ASSERT_BAD("--bytes", "x");
	ASSERT_BAD("--range", "2..1");
	ASSERT_BAD("--time", "0");
	ASSERT_BAD("--time", "1y");
	ASSERT_BAD("--mode", "both");
	ASSERT_BAD("--with", "one,");
	ASSERT_BAD("--with", "one,three");
	ASSERT_BAD("-zx");
	/* "--t" may be --text or --time, so it is rejected. "--tex" can only be --text. */
	ASSERT_BAD("--t", "x");
	assert_int_equal(PARSE("--tex", "x"), 0);
}

static void operands_end_options_where_the_table_says(void **state)
{
	struct option_table stopping = table;
	struct option_result result;
	struct values values;

	assert_int_equal(PARSE("command", "-f", "--", "-t"), 0);
	assert_true(values.flag);
	assert_int_equal(result.nr_operands, 2);
	stopping.stops_at_operand = true;
	assert_int_equal(parse(&stopping, &values, &result, "-p", "3", "command", "-f", NULL), 0);
	assert_false(values.flag);
	assert_int_equal(values.pid, 3);
	assert_int_equal(result.nr_operands, 2);
	assert_string_equal(result.operands[1], "-f");
	assert_null(result.operands[2]);
}

static void groups_tell_what_was_given(void **state)
{
	struct option_result result;
	struct values values;

	assert_int_equal(PARSE("--count", "2", "-t", "x"), 0);
	assert_string_equal(options_given_in(&table, &result, SECOND_GROUP)->name, "text");
	assert_string_equal(options_given_outside(&table, &result, FIRST_GROUP)->name, "count");
	assert_null(options_given_outside(&table, &result, SECOND_GROUP));
	assert_true(options_has(&table, &result, "count"));
	assert_false(options_has(&table, &result, "pid"));
	assert_int_equal(PARSE("-p", "1"), 0);
	assert_null(options_given_in(&table, &result, FIRST_GROUP | SECOND_GROUP));
}

static void statuses_are_not_errno_values(void **state)
{
	assert_int_equal(options_exit_status(1), DIAG_EXIT_OK);
	assert_int_equal(options_exit_status(-EINVAL), DIAG_EXIT_USAGE);
	assert_int_equal(options_exit_status(-ENOMEM), DIAG_EXIT_FAILED);
}

static void assert_written(void (*write)(FILE *out, const struct option_table *table),
			   const char *expected)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	write(out, &table);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, expected);
}

static void help_is_the_table(void **state)
{
	assert_written(
		options_help_write,
		"usage: tool [OPTION...]\n"
		"       tool COMMAND\n"
		"Does it.\n"
		"\n"
		"  -f, --flag                a flag\n"
		"  -t, --text TEXT, --txt TEXT\n"
		"                            any text\n"
		"      --word WORD           a word\n"
		"  -p, --pid PID             a process\n"
		"\n"
		"Others:\n"
		"      --count N             a number\n"
		"      --bytes SIZE          a size\n"
		"      --range SIZE|MIN..MAX\n"
		"                            a range\n"
		"      --time TIME           a time\n"
		"      --mode MODE           a mode\n"
		"      --with LIST           bits\n"
		"  -z[LEVEL], --level LEVEL  a help text that is too long for one line of eighty\n"
		"                            columns, so it has two\n"
		"      --fail[=LEVEL]        may have an argument\n"
		"\n"
		"  -h, --help                show this text\n"
		"  -V, --version             show the version\n"
		"\n"
		"The end.\n");
}

static void completions_are_the_table(void **state)
{
	assert_written(options_help_write_table,
		       "-f\tnone\tnothing\t-\ta flag\n"
		       "--flag\tnone\tnothing\t-\ta flag\n"
		       "-t\trequired\tnothing\t-\tany text\n"
		       "--text\trequired\tnothing\t-\tany text\n"
		       "--txt\trequired\tnothing\t-\tany text\n"
		       "--word\trequired\twords\thold drop\ta word\n"
		       "-p\trequired\tpids\t-\ta process\n"
		       "--pid\trequired\tpids\t-\ta process\n"
		       "--count\trequired\tnothing\t-\ta number\n"
		       "--bytes\trequired\tnothing\t-\ta size\n"
		       "--range\trequired\tnothing\t-\ta range\n"
		       "--time\trequired\tnothing\t-\ta time\n"
		       "--mode\trequired\twords\thold drop\ta mode\n"
		       "--with\trequired\tlist\tone two four\tbits\n"
		       "-z\toptional\tnothing\t-\t" LONG_HELP "\n"
		       "--level\trequired\tnothing\t-\t" LONG_HELP "\n"
		       "--fail\toptional\tnothing\t-\tmay have an argument\n"
		       "-h\tnone\tnothing\t-\tshow this text\n"
		       "--help\tnone\tnothing\t-\tshow this text\n"
		       "-V\tnone\tnothing\t-\tshow the version\n"
		       "--version\tnone\tnothing\t-\tshow the version\n");
}

static void messages_say_what_an_argument_may_be(void **state)
{
	static const char *const expected[] = {
		[1] = "TEXT",
		[2] = "hold or drop",
		[3] = "a number from 1 to 2147483647",
		[5] = "a number of at least 2",
		[6] = "a size like 4096 or 4k",
		[7] = "a size like 3072 or 3k, or MIN..MAX",
		[8] = "a time above 0: seconds, or one like 10ms, 5m or 2h",
		[10] = "one, two and four",
	};

	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		_cleanup_free_ char *text = NULL;
		size_t len;
		FILE *out = open_memstream(&text, &len);

		assert_non_null(out);
		options_help_write_takes(out, &rows[i]);
		assert_int_equal(fclose(out), 0);
		if (expected[i])
			assert_string_equal(text, expected[i]);
	}
}

static void times_have_units(void **state)
{
	static const struct {
		const char *text;
		uint64_t time_ns;
	} times[] = {{"0", 0},
		     {"1.5", 1500000000},
		     {".5s", 500000000},
		     {"3ns", 3},
		     {"2us", 2000},
		     {"10ms", 10000000},
		     {"1m", 60000000000},
		     {"2min", 120000000000},
		     {"1h", 3600000000000},
		     {"1d", 86400000000000}};
	static const char *const bad[] = {"", "-1", " 1", "1x", "s", "inf", "nan", "1e10", "1 s"};
	uint64_t time_ns;

	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		assert_int_equal(number_parse_time(times[i].text, &time_ns), 0);
		assert_int_equal(time_ns, times[i].time_ns);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(number_parse_time(bad[i], &time_ns), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_reach_their_fields),
		cmocka_unit_test(arguments_may_be_left_out),
		cmocka_unit_test(bad_usage_is_refused),
		cmocka_unit_test(operands_end_options_where_the_table_says),
		cmocka_unit_test(groups_tell_what_was_given),
		cmocka_unit_test(statuses_are_not_errno_values),
		cmocka_unit_test(help_is_the_table),
		cmocka_unit_test(completions_are_the_table),
		cmocka_unit_test(messages_say_what_an_argument_may_be),
		cmocka_unit_test(times_have_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
