/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A tool's options as a table: see options.h for what is made of it. */
#ifndef LEAKTOOLS_COMMON_OPTION_TABLE_H
#define LEAKTOOLS_COMMON_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPTIONS_MAX_ROWS 64

/* How an argument is parsed, and the type of the field that receives it. */
enum option_kind {
	OPTION_FLAG, /* bool: set to true; no argument */
	OPTION_TEXT, /* const char *: points into argv; one of the row's words, if it has any */
	OPTION_DIRECTORY,  /* const char *: points into argv; there is such a directory */
	OPTION_NUMBER,	   /* an integer of 4 or 8 bytes: from min to max */
	OPTION_SIZE,	   /* uint64_t: bytes */
	OPTION_SIZE_RANGE, /* struct size_range */
	OPTION_TIME,	   /* uint64_t: nanoseconds */
	OPTION_WORD,	   /* an enum: the value of one of the row's words */
	OPTION_WORD_SET,   /* an enum or unsigned int: the values of several words, ORed */
	OPTION_PARSED,	   /* by the row's parse() */
};

/* What a shell completes an argument to, if the row has neither words nor suggestions. */
enum option_completion {
	OPTION_COMPLETES_NOTHING,
	OPTION_COMPLETES_FILES,
	OPTION_COMPLETES_DIRECTORIES,
	OPTION_COMPLETES_PIDS,
};

struct option_word {
	const char *word;
	unsigned int value;
};

struct option_row {
	const char *name; /* the long name; NULL: this row is a heading, @help */
	char letter;	  /* 0: none */
	enum option_kind kind;
	const char *argument; /* as help shows it; NULL: none; "[=BYTES]": may be left out */
	const char *help;
	/* The field of the tool's options; see OPTION_FIELD. */
	size_t offset, size;

	const char *alias;		 /* a second long name */
	const char *letter_argument;	 /* where it differs: "[LEVEL]" may be left out after -z */
	const struct option_word *words; /* the last one's word is NULL */
	const char *suggestions;	 /* for completion only, separated by blanks */
	const char *takes; /* for messages: "--NAME takes TAKES, not ..."; NULL: the kind's */
	enum option_completion completes;
	uint64_t min, max;   /* of OPTION_NUMBER, max 0: no limit; min also of OPTION_TIME, in ns */
	unsigned int groups; /* bits whose meaning is the tool's; see options_given_in() */

	/*
	 * Parses @text (NULL: no argument) into the tool's @options. Returns 0 or a negative errno,
	 * reported, for instance by options_reject().
	 */
	int (*parse)(void *options, const struct option_row *row, const char *text);
};

/* What OPTION_SIZE_RANGE takes, for rows with a parse() of their own. */
#define OPTION_TAKES_SIZE_RANGE "a size like 3072 or 3k, or MIN..MAX"

/* The field of a row, as in {"top", ..., OPTION_FIELD(struct leaks_options, top)}. */
#define OPTION_FIELD(type, field)                                                                  \
	.offset = offsetof(type, field), .size = sizeof(((type *)NULL)->field)

/* An option that users know from other tools or versions, and what to use here. */
struct option_habit {
	char letter;	  /* 0: it has a name */
	const char *name; /* NULL: it has a letter */
	const char *hint; /* "--format chooses the output" */
};

struct option_table {
	const char *tool;
	const char *synopsis; /* a line for each way of using the tool */
	const char *about;
	const char *notes; /* after the options; or NULL */
	const struct option_row *rows;
	size_t nr_rows;
	const struct option_habit *habits;
	size_t nr_habits;
	bool stops_at_operand; /* what follows the first operand is not the tool's to parse */
};

#endif
