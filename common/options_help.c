/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/options_help.h"

#include "common/scope.h"

#include <inttypes.h>

#define HELP_COLUMN 28 /* where the text about an option begins */
#define HELP_WIDTH  80

const struct option_row options_common[OPTIONS_NR_COMMON] = {
	[OPTIONS_HELP] = {"help", 'h', OPTION_FLAG, .help = "show this text"},
	[OPTIONS_VERSION] = {"version", 'V', OPTION_FLAG, .help = "show the version"},
};

/* Writes the words of @text from @column on; further lines are indented by @indent. */
static void write_wrapped(FILE *out, const char *text, size_t column, size_t indent)
{
	bool is_first = true;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (!is_first && column + 1 + len > HELP_WIDTH) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (!is_first) {
			fputc(' ', out);
			column++;
		}
		fwrite(text, 1, len, out);
		column += len;
		text += len + (text[len] == ' ');
		is_first = false;
	}
	fputc('\n', out);
}

/* "-s, --size SIZE|MIN..MAX" */
static void write_names(FILE *out, const struct option_row *row)
{
	const char *argument = row->argument ? row->argument : "";
	const char *space = row->argument && *row->argument != '[' ? " " : "";

	if (row->letter)
		fprintf(out, "-%c%s, ", row->letter,
			row->letter_argument ? row->letter_argument : "");
	fprintf(out, "--%s%s%s", row->name, space, argument);
	if (row->alias)
		fprintf(out, ", --%s%s%s", row->alias, space, argument);
}

static void write_row(FILE *out, const struct option_row *row)
{
	_cleanup_free_ char *names = NULL;
	size_t len = 0, column;
	FILE *names_out;

	if (!row->name) {
		fprintf(out, "\n%s\n", row->help);
		return;
	}
	names_out = open_memstream(&names, &len);
	if (!names_out)
		return;
	write_names(names_out, row);
	if (fclose(names_out) != 0)
		return;
	/* Rows without a letter are indented by the width of one. */
	column = row->letter ? 2 : 6;
	fprintf(out, "%*s%s", (int)column, "", names);
	column += len;
	if (column + 2 > HELP_COLUMN) {
		fputc('\n', out);
		column = 0;
	}
	fprintf(out, "%*s", (int)(HELP_COLUMN - column), "");
	write_wrapped(out, row->help, HELP_COLUMN, HELP_COLUMN);
}

static void write_synopsis(FILE *out, const char *synopsis)
{
	const char *prefix = "usage: ";

	while (*synopsis) {
		size_t len = strcspn(synopsis, "\n");

		fprintf(out, "%s%.*s\n", prefix, (int)len, synopsis);
		prefix = "       ";
		synopsis += len + (synopsis[len] == '\n');
	}
}

void options_help_write(FILE *out, const struct option_table *table)
{
	write_synopsis(out, table->synopsis);
	write_wrapped(out, table->about, 0, 0);
	if (table->nr_rows && table->rows[0].name)
		fputc('\n', out);
	for (size_t i = 0; i < table->nr_rows; i++)
		write_row(out, &table->rows[i]);
	/* Common options do not belong under a tool's last heading. */
	fputc('\n', out);
	for (size_t i = 0; i < OPTIONS_NR_COMMON; i++)
		write_row(out, &options_common[i]);
	if (table->notes) {
		fputc('\n', out);
		write_wrapped(out, table->notes, 0, 0);
	}
}

static const char *completion_of(const struct option_row *row)
{
	static const char *const names[] = {
		[OPTION_COMPLETES_NOTHING] = "nothing",
		[OPTION_COMPLETES_FILES] = "files",
		[OPTION_COMPLETES_DIRECTORIES] = "directories",
		[OPTION_COMPLETES_PIDS] = "pids",
	};

	if (row->words)
		return row->kind == OPTION_WORD_SET ? "list" : "words";
	return row->suggestions ? "words" : names[row->completes];
}

/* @dashes, @name: the option as it is written; @argument: what it takes when written so. */
static void write_table_line(FILE *out, const struct option_row *row, const char *dashes,
			     const char *name, const char *argument)
{
	const char *need = !argument ? "none" : *argument == '[' ? "optional" : "required";

	fprintf(out, "%s%s\t%s\t%s\t", dashes, name, need, completion_of(row));
	for (const struct option_word *word = row->words; word && word->word; word++)
		fprintf(out, "%s%s", word == row->words ? "" : " ", word->word);
	if (!row->words)
		fputs(row->suggestions ? row->suggestions : "-", out);
	fprintf(out, "\t%s\n", row->help);
}

static void write_table_row(FILE *out, const struct option_row *row)
{
	const char letter[] = {row->letter, '\0'};

	if (!row->name)
		return;
	if (row->letter)
		write_table_line(out, row, "-", letter,
				 row->letter_argument ? row->letter_argument : row->argument);
	write_table_line(out, row, "--", row->name, row->argument);
	if (row->alias)
		write_table_line(out, row, "--", row->alias, row->argument);
}

void options_help_write_table(FILE *out, const struct option_table *table)
{
	for (size_t i = 0; i < table->nr_rows; i++)
		write_table_row(out, &table->rows[i]);
	for (size_t i = 0; i < OPTIONS_NR_COMMON; i++)
		write_table_row(out, &options_common[i]);
}

/* "hold or drop"; "mmap and fd" */
static void write_words(FILE *out, const struct option_row *row)
{
	const char *conjunction = row->kind == OPTION_WORD_SET ? " and " : " or ";

	for (const struct option_word *word = row->words; word->word; word++)
		fprintf(out, "%s%s",
			word == row->words ? ""
			: word[1].word	   ? ", "
					   : conjunction,
			word->word);
}

void options_help_write_takes(FILE *out, const struct option_row *row)
{
	if (row->takes) {
		fputs(row->takes, out);
	} else if (row->words) {
		write_words(out, row);
	} else if (row->kind == OPTION_NUMBER && row->max) {
		fprintf(out, "a number from %" PRIu64 " to %" PRIu64, row->min, row->max);
	} else if (row->kind == OPTION_NUMBER) {
		fprintf(out, "a number of at least %" PRIu64, row->min);
	} else if (row->kind == OPTION_SIZE) {
		fputs("a size like 4096 or 4k", out);
	} else if (row->kind == OPTION_SIZE_RANGE) {
		fputs(OPTION_TAKES_SIZE_RANGE, out);
	} else if (row->kind == OPTION_TIME && row->min) {
		fputs("a time above 0: seconds, or one like 10ms, 5m or 2h", out);
	} else if (row->kind == OPTION_TIME) {
		fputs("seconds, or a time like 10ms, 5m or 2h", out);
	} else {
		fputs(row->argument ? row->argument : "no argument", out);
	}
}
