/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/leaks/leaks_reader.h"

#include "common/broker/named_file.h"
#include "common/diag.h"
#include "common/scope.h"
#include "plot/leaks/line_fields.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>

#define LAST_VERSION 2
/* Longer than any demangled C++ name with its path. Bounds a file without newlines. */
#define LINE_BYTES_MAX (1u << 20)

struct leaks_reader {
	FILE *file;
	char *name; /* for messages */
	char *line;
	uint64_t line_number;
	int version;
	bool wants_frames; /* the next frames are those of an item */
	struct leaks_summary summary;
	struct leaks_periods periods;
	struct leaks_history history; /* the last one */
};

int leaks_reader_reject(const struct leaks_reader *reader, const char *why)
{
	diag_error("%s: line %" PRIu64 ": %s", reader->name, reader->line_number, why);
	return -EINVAL;
}

/* Reads a line, without its newline. Returns 1, 0 at the end, or a negative errno (reported). */
static int read_line(struct leaks_reader *reader)
{
	size_t len = 0;
	int c;

	reader->line_number++;
	while ((c = getc_unlocked(reader->file)) != EOF && c != '\n') {
		if (c == '\0')
			return leaks_reader_reject(reader,
						   "contains a NUL byte; this is not a leaks file");
		if (len + 1 == LINE_BYTES_MAX)
			return leaks_reader_reject(reader, "is too long; this is not a leaks file");
		reader->line[len++] = (char)c;
	}
	if (ferror(reader->file)) {
		int err = errno ? errno : EIO;

		diag_error("cannot read %s: %s", reader->name, strerror(err));
		return -err;
	}
	if (c == EOF && len > 0)
		return leaks_reader_reject(
			reader,
			"ends without a newline: the file was cut off; run leakparse again");
	reader->line[len] = '\0';
	return c == EOF ? 0 : 1;
}

/* Parses the words with a key. */
static void parse_leak_keys(char *cursor, struct leaks_leak *leak)
{
	for (char *word; (word = line_next_field(&cursor));) {
		if (strncmp(word, "age=", 4) == 0)
			leak->has_age = field_parse_time(word + 4, &leak->age_ns) == 0;
		if (strncmp(word, "reach=", 6) == 0)
			leak->reach = reach_group_of(reach_class_parse(word + 6, strlen(word + 6)));
	}
}

/* In version 1: "COMM FUNCTION STACK CERTAINTY VERDICT KEY=VALUE..." */
static int parse_leak_end_1(struct leaks_reader *reader, char *cursor, struct leaks_leak *leak)
{
	if (field_parse_name(line_next_field(&cursor), &leak->comm) ||
	    field_parse_name(line_next_field(&cursor), &leak->function))
		return leaks_reader_reject(reader, "COMM or FUNCTION is missing");
	if (field_parse_u32(line_next_field(&cursor), &leak->stack))
		return leaks_reader_reject(reader, "STACK is not a number");
	/* Older files end here. */
	if (line_next_field(&cursor))
		leak->verdict = line_next_field(&cursor);
	if (leak->verdict)
		parse_leak_keys(cursor, leak);
	return 0;
}

/* "STACK VERDICT CALLER KEY=VALUE..." */
static int parse_leak_end(struct leaks_reader *reader, char *cursor, struct leaks_leak *leak)
{
	leak->comm = "?";
	if (field_parse_u32(line_next_field(&cursor), &leak->stack))
		return leaks_reader_reject(reader, "STACK is not a number");
	leak->verdict = line_next_field(&cursor);
	if (!leak->verdict || !line_next_field(&cursor))
		return leaks_reader_reject(reader, "VERDICT or CALLER is missing");
	parse_leak_keys(cursor, leak);
	return 0;
}

/* Parses a line after "leak". */
static int parse_leak(struct leaks_reader *reader, char *cursor, struct leaks_leak *ret)
{
	struct leaks_leak leak = {.has_size = true, .reach = REACH_GROUP_NOT_SCANNED};
	int err;

	char *size = line_next_field(&cursor);
	if (size && strcmp(size, "?") == 0)
		leak.has_size = false;
	else if (field_parse_number(size, 10, UINT64_MAX, &leak.size_bytes))
		return leaks_reader_reject(reader, "SIZE is neither a number of bytes nor '?'");
	if (field_parse_address(line_next_field(&cursor), &leak.address))
		return leaks_reader_reject(reader, "ADDRESS is not a hexadecimal number with 0x");
	if (field_parse_time(line_next_field(&cursor), &leak.time_ns))
		return leaks_reader_reject(reader, "TIME is not seconds with nine decimals");
	if (field_parse_number(line_next_field(&cursor), 10, UINT64_MAX, &leak.event))
		return leaks_reader_reject(reader, "EVENT is not a number");
	if (field_parse_id(line_next_field(&cursor), &leak.pid) ||
	    field_parse_id(line_next_field(&cursor), &leak.tid))
		return leaks_reader_reject(reader,
					   "PID and TID are not numbers of a process and a thread");
	err = reader->version == 1 ? parse_leak_end_1(reader, cursor, &leak)
				   : parse_leak_end(reader, cursor, &leak);
	*ret = leak;
	return err;
}

/* Parses a line after "frames". */
static int parse_definition(struct leaks_reader *reader, char *cursor, struct leaks_definition *ret)
{
	if (field_parse_u32(line_next_field(&cursor), &ret->stack))
		return leaks_reader_reject(reader, "STACK is not a number");
	if (field_parse_name(line_next_field(&cursor), &ret->function))
		return leaks_reader_reject(reader, "FUNCTION is missing");
	return 0;
}

/* Parses a line after "wrapper". */
static int parse_wrapper(struct leaks_reader *reader, char *cursor, struct leaks_wrapper *ret)
{
	if (field_parse_name(line_next_field(&cursor), &ret->function) || !cursor || !*cursor)
		return leaks_reader_reject(reader, "FUNCTION or MODULE is missing");
	ret->module = cursor;
	return 0;
}

/* Parses a line after "process". */
static int parse_process(struct leaks_reader *reader, char *cursor, struct leaks_process *ret)
{
	if (field_parse_id(line_next_field(&cursor), &ret->pid) ||
	    field_parse_name(line_next_field(&cursor), &ret->name))
		return leaks_reader_reject(reader, "PID is not a number, or NAME is missing");
	ret->end_ns = 0;
	for (char *word; (word = line_next_field(&cursor));)
		if (strncmp(word, "end=", 4) == 0 && field_parse_time(word + 4, &ret->end_ns))
			return leaks_reader_reject(reader, "the end of the process is not a time");
	return 0;
}

/* Parses @word as @key followed by a rate. Returns false if it is not. */
static bool parse_rate(const char *word, const char *key, double *ret)
{
	size_t len = strlen(key);
	char *end;

	if (strncmp(word, key, len) != 0)
		return false;
	*ret = strtod(word + len, &end);
	if (end != word + len && !*end && isfinite(*ret))
		return true;
	*ret = 0;
	return false;
}

/* Parses the rate's KEY=VALUE words, and that of a cause, unless @ret_cause is NULL. */
static bool parse_rates(char *cursor, double *ret_bytes, double *ret_blocks, uint32_t *ret_cause)
{
	bool has_rate = false;

	for (char *word; (word = line_next_field(&cursor));) {
		has_rate |= parse_rate(word, "bytes_per_s=", ret_bytes);
		parse_rate(word, "blocks_per_s=", ret_blocks);
		if (ret_cause && strncmp(word, "cause=", 6) == 0 &&
		    field_parse_u32(word + 6, ret_cause))
			*ret_cause = 0;
	}
	return has_rate;
}

/* Parses a line after "cause": NR VERDICT CERTAINTY BLOCKS BYTES STACKS CALLER */
static int parse_cause(struct leaks_reader *reader, char *cursor, struct leaks_cause *ret)
{
	struct leaks_cause cause = {0};
	char *words[7] = {0};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = line_next_field(&cursor);
	if (field_parse_u32(words[0], &cause.number) || !cause.number || !words[6] ||
	    field_parse_number(words[5], 10, UINT32_MAX, &cause.nr_stacks))
		return leaks_reader_reject(reader, "NR, STACKS or CALLER is missing");
	cause.verdict = words[1];
	cause.has_rate = parse_rates(cursor, &cause.bytes_per_s, &cause.blocks_per_s, NULL);
	*ret = cause;
	return 0;
}

/* Parses a line after "stack". */
static int parse_stack(struct leaks_reader *reader, char *cursor, struct leaks_stack *ret)
{
	struct leaks_stack stack = {0};
	char *words[7] = {0};

	/* RANK VERDICT CERTAINTY BLOCKS BYTES STACK FUNCTION */
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = line_next_field(&cursor);
	if (!words[1] || field_parse_u32(words[5], &stack.stack))
		return leaks_reader_reject(reader, "VERDICT or STACK is missing");
	stack.verdict = words[1];
	stack.function = words[6];
	stack.has_rate = parse_rates(cursor, &stack.bytes_per_s, &stack.blocks_per_s, &stack.cause);
	*ret = stack;
	return 0;
}

static int parse_history(struct leaks_reader *reader, char *cursor, bool is_cause)
{
	const char *wrong = history_parse(cursor, &reader->periods, is_cause, &reader->history);

	return wrong ? leaks_reader_reject(reader, wrong) : 0;
}

static int parse_periods(struct leaks_reader *reader, char *cursor)
{
	const char *wrong = history_parse_periods(cursor, &reader->periods);

	return wrong ? leaks_reader_reject(reader, wrong) : 0;
}

/* Whether @symbol is "NAME+0x..." with the name of @module: then the function is not known. */
static bool is_module_offset(const char *symbol, size_t name_len, const char *module)
{
	const char *slash = module ? strrchr(module, '/') : NULL;
	const char *name = slash ? slash + 1 : module ? module + 1 : "";

	return name_len && strncmp(name, symbol, name_len) == 0 &&
	       strcmp(name + name_len, ")") == 0;
}

/* The last column, which begins with "(MODULE)"; NULL if there is none. */
static char *find_module(char *frame)
{
	char *module = NULL;

	while ((frame = strstr(frame, "  ("))) {
		frame += 2;
		module = frame;
	}
	return module;
}

/* Cuts @text before the next column, which it returns; NULL: there is none. */
static char *cut_column(char *text)
{
	/* Two blanks separate columns; a name may contain one. */
	char *end = strstr(text, "  ");

	if (end)
		*end = '\0';
	return end ? end + 2 : NULL;
}

/* The last part of the path of "FILE:LINE", in @column before @module; NULL: there is none. */
static const char *parse_line(char *column, char *module)
{
	const char *line;
	char *slash;

	if (!column || !module || column == module)
		return NULL;
	cut_column(column);
	slash = strrchr(column, '/');
	return field_parse_name(slash ? slash + 1 : column, &line) == 0 ? line : NULL;
}

/*
 * "SYMBOL+0xOFFSET  FILE:LINE  (MODULE)  inlined". The name has the offset only if there is no
 * function.
 */
static int parse_frame(char *cursor, struct frame_facts *ret, struct stack_label_place *ret_place)
{
	char *module = find_module(cursor), *symbol = cursor, *column;

	*ret = (struct frame_facts){.inlined = module && cut_column(module)};
	column = cut_column(symbol);
	*ret_place = (struct stack_label_place){.line = parse_line(column, module)};
	if (!*symbol)
		return -ENODATA;
	if (module && strcmp(module, "(unknown)") != 0)
		ret->module = module;
	char *offset = strrchr(symbol, '+');
	if (offset && strncmp(offset, "+0x", 3) != 0)
		offset = NULL;
	bool is_address = offset && is_module_offset(symbol, (size_t)(offset - symbol), module);
	if (offset && !is_address) {
		*offset = '\0';
		ret_place->offset = offset + 1;
	}
	ret->has_symbol = ret->module && !is_address;
	return field_parse_name(symbol, &ret->name);
}

/* Parses one KEY=VALUE of the summary. */
static int parse_summary_word(struct leaks_reader *reader, char *word)
{
	struct leaks_summary *summary = &reader->summary;
	char *value = strchr(word, '=');
	int err = 0;

	if (!value || parse_rate(word, "observed=", &summary->observed))
		return 0;
	*value++ = '\0';
	if (strcmp(word, "events") == 0) {
		err = field_parse_number(value, 10, UINT64_MAX, &summary->events);
		summary->has_events = !err;
	} else if (strcmp(word, "lost") == 0) {
		err = field_parse_number(value, 10, UINT64_MAX, &summary->lost_events);
	} else if (strcmp(word, "truncated") == 0) {
		summary->is_truncated = strcmp(value, "0") != 0;
	} else if (strcmp(word, "not_seen") == 0) {
		summary->has_unseen = strcmp(value, "0") != 0;
	} else if (strcmp(word, "start") == 0) {
		err = field_parse_time(value, &summary->start_ns);
		summary->has_start = !err;
	} else if (strcmp(word, "end") == 0) {
		err = field_parse_time(value, &summary->end_ns);
		summary->has_end = !err;
	}
	return err ? leaks_reader_reject(reader, "the summary has an invalid number") : 0;
}

/* Parses a comment, which may be the summary. */
static int parse_comment(struct leaks_reader *reader, char *cursor)
{
	char *word = line_next_field(&cursor);

	if (!word || strcmp(word, "summary") != 0)
		return 0;
	while ((word = line_next_field(&cursor))) {
		int err = parse_summary_word(reader, word);

		if (err)
			return err;
	}
	return 0;
}

/* Checks the first line. */
static int check_version(struct leaks_reader *reader)
{
	char *cursor, *word;
	uint64_t version;

	int got = read_line(reader);
	if (got < 0)
		return got;
	if (got == 0) {
		diag_error("%s is empty; write it with leakparse", reader->name);
		return -EINVAL;
	}
	cursor = reader->line;
	word = line_next_field(&cursor);
	if (word && strcmp(word, "#") == 0)
		word = line_next_field(&cursor);
	else
		word = NULL;
	if (!word || strcmp(word, "leaks") != 0 ||
	    field_parse_number(line_next_field(&cursor), 10, UINT64_MAX, &version))
		return leaks_reader_reject(
			reader, "does not begin with '# leaks 2'; this is not a leaks file");
	if (version < 1 || version > LAST_VERSION) {
		diag_error("%s has version %" PRIu64 " of the leaks format; this leakplot reads "
			   "versions 1 to %d",
			   reader->name, version, LAST_VERSION);
		return -EINVAL;
	}
	reader->version = (int)version;
	return 0;
}

/* A recording is the most likely wrong input: say what to do with it. */
static int reject_recording(struct leaks_reader *reader)
{
	int c = getc(reader->file);

	/* perf.data begins with "PERFILE2"; no text of ours begins with a P. */
	if (c == 'P') {
		diag_error(
			"%s is not a leaks file; if it is a recording, run leakparse on it first",
			reader->name);
		return -EINVAL;
	}
	ungetc(c, reader->file);
	return 0;
}

int leaks_reader_open(const char *path, struct leaks_reader **ret)
{
	bool is_stdin = strcmp(path, "-") == 0;
	struct leaks_reader *reader = calloc(1, sizeof(*reader));
	int err, fd = -1;

	if (reader) {
		reader->line = malloc(LINE_BYTES_MAX);
		reader->name = strdup(is_stdin ? "standard input" : path);
	}
	if (!reader || !reader->line || !reader->name) {
		diag_error("cannot read %s: out of memory", path);
		leaks_reader_close(reader);
		return -ENOMEM;
	}
	if (!is_stdin)
		fd = named_file_open(path);
	errno = fd < 0 ? -fd : 0;
	reader->file = is_stdin ? stdin : fd < 0 ? NULL : fdopen(fd, "r");
	if (!reader->file) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		diag_error("cannot read %s: %s", path, strerror(-err));
	} else {
		err = reject_recording(reader);
		if (!err)
			err = check_version(reader);
	}
	if (err) {
		leaks_reader_close(reader);
		return err;
	}
	*ret = reader;
	return 0;
}

void leaks_reader_close(struct leaks_reader *reader)
{
	if (!reader)
		return;
	if (reader->file && reader->file != stdin)
		fclose(reader->file);
	free(reader->line);
	free(reader->name);
	free(reader);
}

/*
 * Parses a line with the first word @word. Returns 1 and the item in *@ret, 0 if the line is to be
 * skipped, or a negative errno after reporting it.
 */
static int parse_item(struct leaks_reader *reader, const char *word, char *cursor,
		      struct leaks_item *ret)
{
	int err;

	if (strcmp(word, "leak") == 0) {
		ret->kind = LEAKS_LEAK;
		reader->wants_frames = reader->version == 1;
		err = parse_leak(reader, cursor, &ret->leak);
	} else if (strcmp(word, "frames") == 0 && reader->version > 1) {
		ret->kind = LEAKS_DEFINITION;
		reader->wants_frames = true;
		err = parse_definition(reader, cursor, &ret->definition);
	} else if (strcmp(word, "wrapper") == 0) {
		ret->kind = LEAKS_WRAPPER;
		err = parse_wrapper(reader, cursor, &ret->wrapper);
	} else if (strcmp(word, "process") == 0) {
		ret->kind = LEAKS_PROCESS;
		err = parse_process(reader, cursor, &ret->process);
	} else if (strcmp(word, "stack") == 0) {
		ret->kind = LEAKS_STACK;
		err = parse_stack(reader, cursor, &ret->stack);
	} else if (strcmp(word, "cause") == 0 && reader->version > 1) {
		ret->kind = LEAKS_CAUSE;
		reader->wants_frames = true;
		err = parse_cause(reader, cursor, &ret->cause);
	} else if (strcmp(word, "history") == 0) {
		ret->kind = LEAKS_HISTORY;
		ret->history = &reader->history;
		reader->wants_frames = reader->version == 1;
		err = parse_history(reader, cursor, false);
	} else if (strcmp(word, "cause-history") == 0 && reader->version > 1) {
		ret->kind = LEAKS_HISTORY;
		ret->history = &reader->history;
		err = parse_history(reader, cursor, true);
	} else {
		return strcmp(word, "periods") == 0 ? parse_periods(reader, cursor) : 0;
	}
	return err ? err : 1;
}

int leaks_reader_next(struct leaks_reader *reader, struct leaks_item *ret)
{
	int got;

	while ((got = read_line(reader)) > 0) {
		char *cursor = reader->line;
		int err = 0;

		if (*cursor == '\t') {
			if (!reader->wants_frames)
				continue;
			ret->kind = LEAKS_FRAME;
			/* An unknown frame is an empty line. */
			if (parse_frame(cursor + 1, &ret->frame, &ret->place) == 0)
				return 0;
			continue;
		}

		const char *word = line_next_field(&cursor);
		if (word && strcmp(word, "#") == 0) {
			err = parse_comment(reader, cursor);
			if (err)
				return err;
			continue;
		}
		reader->wants_frames = false;
		err = word ? parse_item(reader, word, cursor, ret) : 0;
		if (err)
			return err < 0 ? err : 0;
	}
	if (got == 0)
		ret->kind = LEAKS_END;
	return got;
}

int leaks_reader_version(const struct leaks_reader *reader)
{
	return reader->version;
}

const struct leaks_periods *leaks_reader_periods(const struct leaks_reader *reader)
{
	return &reader->periods;
}

const struct leaks_summary *leaks_reader_summary(const struct leaks_reader *reader)
{
	return &reader->summary;
}
