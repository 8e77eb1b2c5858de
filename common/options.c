/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/options.h"

#include "common/diag.h"
#include "common/number.h"
#include "common/options_help.h"
#include "common/scope.h"
#include "common/size_range.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>

/* getopt_long()'s value of row i's long option is this + i: more than any letter's. */
#define FIRST_ROW_VALUE 256

/* Of an unknown option, to suggest a known one: */
#define MAX_NAME  32
#define MAX_TYPOS 2

/* The table as getopt_long() needs it. */
struct getopt_table {
	struct option names[2 * (OPTIONS_MAX_ROWS + OPTIONS_NR_COMMON) + 1];
	char letters[2 + 3 * (OPTIONS_MAX_ROWS + OPTIONS_NR_COMMON) + 1];
};

static size_t nr_all_rows(const struct option_table *table)
{
	return table->nr_rows + OPTIONS_NR_COMMON;
}

static const struct option_row *row_at(const struct option_table *table, size_t i)
{
	return i < table->nr_rows ? &table->rows[i] : &options_common[i - table->nr_rows];
}

static int argument_need(const char *argument)
{
	return !argument ? no_argument : *argument == '[' ? optional_argument : required_argument;
}

static void fill_getopt_table(const struct option_table *table, struct getopt_table *ret)
{
	struct option *name = ret->names;
	char *letter = ret->letters;

	*ret = (struct getopt_table){0};
	if (table->stops_at_operand)
		*letter++ = '+';
	/* A missing argument is told apart from an unknown option. */
	*letter++ = ':';
	for (size_t i = 0; i < nr_all_rows(table); i++) {
		const struct option_row *row = row_at(table, i);
		int need = argument_need(row->argument);
		int value = FIRST_ROW_VALUE + (int)i;

		if (!row->name)
			continue;
		*name++ = (struct option){row->name, need, NULL, value};
		if (row->alias)
			*name++ = (struct option){row->alias, need, NULL, value};
		if (!row->letter)
			continue;
		*letter++ = row->letter;
		if (row->letter_argument)
			need = argument_need(row->letter_argument);
		for (int colon = no_argument; colon < need; colon++)
			*letter++ = ':';
	}
}

/* @value is getopt_long()'s. */
static size_t row_of(const struct option_table *table, int value)
{
	size_t i = 0;

	if (value >= FIRST_ROW_VALUE)
		return (size_t)(value - FIRST_ROW_VALUE);
	while (i < nr_all_rows(table) && row_at(table, i)->letter != value)
		i++;
	return i;
}

/*
 * How many letters must be inserted, left out or replaced to turn one name into the other
 * (Levenshtein).
 */
static size_t name_distance(const char *a, size_t len, const char *b)
{
	size_t row[MAX_NAME + 1];

	if (len > MAX_NAME)
		return SIZE_MAX;
	for (size_t i = 0; i <= len; i++)
		row[i] = i;
	for (; *b; b++) {
		size_t diagonal = row[0]++;

		for (size_t i = 1; i <= len; i++) {
			size_t replaced = diagonal + (a[i - 1] != *b);
			size_t fewest = row[i] < row[i - 1] ? row[i] + 1 : row[i - 1] + 1;

			diagonal = row[i];
			row[i] = replaced < fewest ? replaced : fewest;
		}
	}
	return row[len];
}

static void reject_long_option(const struct option_table *table, const char *word)
{
	const char *name = word + strspn(word, "-"), *nearest = NULL;
	size_t len = strcspn(name, "="), least = MAX_TYPOS + 1, nr_meant = 0;

	for (size_t i = 0; i < table->nr_habits; i++) {
		const char *known = table->habits[i].name;

		if (!known || strncmp(known, name, len) != 0 || known[len])
			continue;
		diag_error("unknown option %s: %s", word, table->habits[i].hint);
		return;
	}
	for (size_t i = 0; i < nr_all_rows(table); i++) {
		const char *known = row_at(table, i)->name;
		size_t distance = known ? name_distance(name, len, known) : SIZE_MAX;

		nr_meant += known && strncmp(known, name, len) == 0;
		if (distance < least && distance < len) {
			least = distance;
			nearest = known;
		}
	}
	if (nr_meant > 1)
		diag_error("%s may be one of several options; see %s --help", word, table->tool);
	else if (nearest)
		diag_error("unknown option %s: did you mean --%s?", word, nearest);
	else
		diag_error("unknown option %s; see %s --help", word, table->tool);
}

static void reject_letter(const struct option_table *table, int letter)
{
	for (size_t i = 0; i < table->nr_habits; i++) {
		if (table->habits[i].letter != letter)
			continue;
		diag_error("unknown option -%c: %s", letter, table->habits[i].hint);
		return;
	}
	diag_error("unknown option -%c; see %s --help", letter, table->tool);
}

/* @word is where getopt_long() stopped. */
static int report_bad_option(const struct option_table *table, int kind, const char *word)
{
	size_t row = optopt ? row_of(table, optopt) : nr_all_rows(table);

	if (kind == ':')
		diag_error("--%s needs an argument; see %s --help", row_at(table, row)->name,
			   table->tool);
	else if (optopt >= FIRST_ROW_VALUE)
		diag_error("--%s takes no argument; see %s --help", row_at(table, row)->name,
			   table->tool);
	else if (optopt)
		reject_letter(table, optopt);
	else
		reject_long_option(table, word);
	return -EINVAL;
}

int options_reject(const struct option_row *row, const char *text)
{
	_cleanup_free_ char *takes = NULL;
	size_t len;
	FILE *out = open_memstream(&takes, &len);

	if (out) {
		options_help_write_takes(out, row);
		if (fclose(out) != 0)
			takes = NULL;
	}
	diag_error("--%s takes %s, not \"%s\"", row->name, takes ? takes : row->argument, text);
	return -EINVAL;
}

static void store_integer(void *field, size_t size, uint64_t value)
{
	uint32_t narrow = (uint32_t)value;

	if (size == sizeof(narrow))
		memcpy(field, &narrow, sizeof(narrow));
	else
		memcpy(field, &value, sizeof(value));
}

static int parse_number(const struct option_row *row, const char *text, void *field)
{
	uint64_t number;

	if (number_parse(text, &number) || number < row->min || (row->max && number > row->max))
		return options_reject(row, text);
	store_integer(field, row->size, number);
	return 0;
}

static int parse_time(const struct option_row *row, const char *text, void *field)
{
	uint64_t time_ns;

	if (number_parse_time(text, &time_ns) || time_ns < row->min)
		return options_reject(row, text);
	memcpy(field, &time_ns, sizeof(time_ns));
	return 0;
}

static const struct option_word *find_word(const struct option_row *row, const char *text,
					   size_t len)
{
	for (const struct option_word *word = row->words; word->word; word++)
		if (strlen(word->word) == len && memcmp(word->word, text, len) == 0)
			return word;
	return NULL;
}

static int parse_text(const struct option_row *row, const char *text, void *field)
{
	if (row->words && !find_word(row, text, strlen(text)))
		return options_reject(row, text);
	memcpy(field, &text, sizeof(text));
	return 0;
}

static int parse_directory(const struct option_row *row, const char *text, void *field)
{
	_cleanup_close_ int fd = open(text, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0) {
		int err = errno;

		diag_error("cannot use --%s %s: %s", row->name, text, strerror(err));
		return -err;
	}
	memcpy(field, &text, sizeof(text));
	return 0;
}

static int parse_word(const struct option_row *row, const char *text, void *field)
{
	const struct option_word *word = find_word(row, text, strlen(text));

	if (!word)
		return options_reject(row, text);
	store_integer(field, row->size, word->value);
	return 0;
}

/* Adds to what earlier options set. */
static int parse_word_set(const struct option_row *row, const char *text, void *field)
{
	const char *rest = text;
	unsigned int set;

	memcpy(&set, field, sizeof(set));
	for (;;) {
		size_t len = strcspn(rest, ",");
		const struct option_word *word = find_word(row, rest, len);

		if (!word)
			return options_reject(row, text);
		set |= word->value;
		if (!rest[len])
			break;
		rest += len + 1;
	}
	memcpy(field, &set, sizeof(set));
	return 0;
}

static int parse_argument(const struct option_row *row, void *options, const char *text)
{
	void *field = (char *)options + row->offset;

	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return 0;
	case OPTION_TEXT:
		return parse_text(row, text, field);
	case OPTION_DIRECTORY:
		return parse_directory(row, text, field);
	case OPTION_NUMBER:
		return parse_number(row, text, field);
	case OPTION_SIZE:
		return size_parse(text, field) ? options_reject(row, text) : 0;
	case OPTION_SIZE_RANGE:
		return size_range_parse(text, field) ? options_reject(row, text) : 0;
	case OPTION_TIME:
		return parse_time(row, text, field);
	case OPTION_WORD:
		return parse_word(row, text, field);
	case OPTION_WORD_SET:
		return parse_word_set(row, text, field);
	case OPTION_PARSED:
		break;
	}
	return row->parse(options, row, text);
}

int options_parse(const struct option_table *table, int argc, char **argv, void *options,
		  struct option_result *ret)
{
	struct getopt_table getopt_table;
	int value;

	*ret = (struct option_result){0};
	assert(table->nr_rows <= OPTIONS_MAX_ROWS);
	/* Not an option for getopt_long(), where it could make an abbreviation ambiguous. */
	if (argc == 2 && strcmp(argv[1], "--options-table") == 0) {
		options_help_write_table(stdout, table);
		return 1;
	}
	fill_getopt_table(table, &getopt_table);
	opterr = 0;
	optind = 0; /* glibc starts anew: tests parse several command lines */
	while ((value = getopt_long(argc, argv, getopt_table.letters, getopt_table.names, NULL)) !=
	       -1) {
		size_t row;
		int err;

		if (value == '?' || value == ':')
			return report_bad_option(table, value, argv[optind - 1]);
		row = row_of(table, value);
		if (row == table->nr_rows + OPTIONS_HELP) {
			options_help_write(stdout, table);
			return 1;
		}
		if (row == table->nr_rows + OPTIONS_VERSION) {
			printf("%s %s\n", table->tool, LEAKTOOLS_VERSION);
			return 1;
		}
		ret->given |= UINT64_C(1) << row;
		err = parse_argument(row_at(table, row), options, optarg);
		if (err)
			return err;
	}
	ret->operands = argv + optind;
	ret->nr_operands = (size_t)(argc - optind);
	return 0;
}

int options_exit_status(int err)
{
	if (err != 1)
		return err == -EINVAL ? DIAG_EXIT_USAGE : DIAG_EXIT_FAILED;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return DIAG_EXIT_OK;
	diag_output_failed("to standard output", errno);
	return DIAG_EXIT_FAILED;
}

const struct option_row *options_given_in(const struct option_table *table,
					  const struct option_result *result, unsigned int groups)
{
	for (size_t i = 0; i < table->nr_rows; i++)
		if (result->given & UINT64_C(1) << i && table->rows[i].groups & groups)
			return &table->rows[i];
	return NULL;
}

const struct option_row *options_given_outside(const struct option_table *table,
					       const struct option_result *result,
					       unsigned int groups)
{
	for (size_t i = 0; i < table->nr_rows; i++)
		if (result->given & UINT64_C(1) << i && !(table->rows[i].groups & groups))
			return &table->rows[i];
	return NULL;
}

bool options_has(const struct option_table *table, const struct option_result *result,
		 const char *name)
{
	for (size_t i = 0; i < table->nr_rows; i++)
		if (table->rows[i].name && strcmp(table->rows[i].name, name) == 0)
			return result->given & UINT64_C(1) << i;
	return false;
}
