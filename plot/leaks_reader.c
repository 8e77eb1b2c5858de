/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/leaks_reader.h"

#include "common/diag.h"
#include "common/scope.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>

#define FORMAT_VERSION 1
/* Longer than any demangled C++ name with its path; a file without newlines ends here. */
#define LINE_BYTES_MAX (1u << 20)
#define NS_DIGITS      9

struct leaks_reader {
	FILE *file;
	char *name; /* for messages */
	char *line;
	uint64_t line_number;
	bool in_leak; /* frames that follow belong to a leak */
	struct leaks_summary summary;
};

/* Reports that the current line is wrong. */
static int bad_line(const struct leaks_reader *reader, const char *what)
{
	diag_error("%s: line %" PRIu64 ": %s", reader->name, reader->line_number, what);
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
			return bad_line(reader, "holds a NUL byte; this is not a leaks file");
		if (len + 1 == LINE_BYTES_MAX)
			return bad_line(reader, "is too long; this is not a leaks file");
		reader->line[len++] = (char)c;
	}
	if (ferror(reader->file)) {
		int err = errno ? errno : EIO;

		diag_error("cannot read %s: %s", reader->name, strerror(err));
		return -err;
	}
	if (c == EOF && len > 0)
		return bad_line(reader,
				"ends without a newline; the file was cut off, make it again");
	reader->line[len] = '\0';
	return c == EOF ? 0 : 1;
}

/* Cuts the next word off *@cursor. Returns it, or NULL at the line's end. */
static char *next_word(char **cursor)
{
	char *word = *cursor;

	if (!word || !*word)
		return NULL;
	char *blank = strchr(word, ' ');
	if (blank)
		*blank = '\0';
	*cursor = blank ? blank + 1 : NULL;
	return *word ? word : NULL;
}

/* A number that is all of @text, at most @max; NULL is no number. */
static int parse_number(const char *text, int base, uint64_t max, uint64_t *ret)
{
	char *end;

	/* strtoull() takes signs and blanks. */
	if (!text || !isxdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	unsigned long long number = strtoull(text, &end, base);
	if (errno || *end || number > max)
		return -EINVAL;
	*ret = number;
	return 0;
}

static int parse_u32(const char *text, uint32_t *ret)
{
	uint64_t number;

	if (parse_number(text, 10, UINT32_MAX, &number))
		return -EINVAL;
	*ret = (uint32_t)number;
	return 0;
}

/* A process's or thread's number; -1 where the kernel had none to give. */
static int parse_id(const char *text, int32_t *ret)
{
	uint64_t number = 0;
	bool is_none = text && strcmp(text, "-1") == 0;

	if (!is_none && parse_number(text, 10, INT32_MAX, &number))
		return -EINVAL;
	*ret = is_none ? -1 : (int32_t)number;
	return 0;
}

static int parse_address(const char *text, uint64_t *ret)
{
	if (!text || strncmp(text, "0x", 2) != 0)
		return -EINVAL;
	return parse_number(text + 2, 16, UINT64_MAX, ret);
}

/* "SECONDS.NNNNNNNNN" in nanoseconds. */
static int parse_time(char *text, uint64_t *ret_ns)
{
	char *dot = text ? strchr(text, '.') : NULL;
	uint64_t seconds, ns;

	if (!dot || strlen(dot + 1) != NS_DIGITS)
		return -EINVAL;
	*dot = '\0';
	if (parse_number(text, 10, UINT64_MAX, &seconds) ||
	    parse_number(dot + 1, 10, UINT64_MAX, &ns) ||
	    __builtin_mul_overflow(seconds, UINT64_C(1000000000), &seconds) ||
	    __builtin_add_overflow(seconds, ns, ret_ns))
		return -EINVAL;
	return 0;
}

static int hex_digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* Undoes \xNN in place. An escaped NUL stays as it is: it would cut the name. */
static void unescape(char *name)
{
	char *to = name;

	for (const char *from = name; *from; to++) {
		if (from[0] == '\\' && from[1] == 'x' && isxdigit((unsigned char)from[2]) &&
		    isxdigit((unsigned char)from[3]) && strncmp(from + 2, "00", 2) != 0) {
			*to = (char)(hex_digit(from[2]) << 4 | hex_digit(from[3]));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

static int parse_name(char *word, const char **ret)
{
	if (!word)
		return -EINVAL;
	unescape(word);
	*ret = word;
	return 0;
}

/* The words of a leak line after "leak". */
static int parse_leak(struct leaks_reader *reader, char *cursor, struct leaks_leak *ret)
{
	struct leaks_leak leak = {.has_size = true};

	char *size = next_word(&cursor);
	if (size && strcmp(size, "?") == 0)
		leak.has_size = false;
	else if (parse_number(size, 10, UINT64_MAX, &leak.size_bytes))
		return bad_line(reader, "SIZE is neither a number of bytes nor '?'");
	if (parse_address(next_word(&cursor), &leak.address))
		return bad_line(reader, "ADDRESS is not a hexadecimal number with 0x");
	if (parse_time(next_word(&cursor), &leak.time_ns))
		return bad_line(reader, "TIME is not seconds with nine decimals");
	if (parse_number(next_word(&cursor), 10, UINT64_MAX, &leak.event))
		return bad_line(reader, "EVENT is not a number");
	if (parse_id(next_word(&cursor), &leak.pid) || parse_id(next_word(&cursor), &leak.tid))
		return bad_line(reader, "PID and TID are not numbers of a process and a thread");
	if (parse_name(next_word(&cursor), &leak.comm) ||
	    parse_name(next_word(&cursor), &leak.function))
		return bad_line(reader, "COMM or FUNCTION is missing");
	if (parse_u32(next_word(&cursor), &leak.stack))
		return bad_line(reader, "STACK is not a number");
	/* Older files end here. */
	if (next_word(&cursor))
		leak.verdict = next_word(&cursor);
	for (char *word; leak.verdict && (word = next_word(&cursor));)
		if (strncmp(word, "age=", 4) == 0)
			leak.has_age = parse_time(word + 4, &leak.age_ns) == 0;
	*ret = leak;
	return 0;
}

/* True if @symbol, of a frame in @module, is "NAME+0x..." with the module's own name: no function.
 */
static bool is_module_offset(const char *symbol, size_t name_len, const char *module)
{
	const char *slash = module ? strrchr(module, '/') : NULL;
	const char *name = slash ? slash + 1 : module ? module + 1 : "";

	return name_len && strncmp(name, symbol, name_len) == 0 &&
	       strcmp(name + name_len, ")") == 0;
}

/* "SYMBOL+0xOFFSET  FILE:LINE  (MODULE)"; the offset matters only where there is no function. */
static int parse_frame(char *cursor, struct leaks_frame *ret)
{
	const char *module = strrchr(cursor, '(');
	char *symbol = next_word(&cursor);

	if (!symbol)
		return -ENODATA;
	char *offset = strstr(symbol, "+0x");
	if (offset && !is_module_offset(symbol, (size_t)(offset - symbol), module))
		*offset = '\0';
	return parse_name(symbol, &ret->symbol);
}

/* One KEY=VALUE of the summary. */
static int parse_summary_word(struct leaks_reader *reader, char *word)
{
	struct leaks_summary *summary = &reader->summary;
	char *value = strchr(word, '=');
	int err = 0;

	if (!value)
		return 0;
	*value++ = '\0';
	if (strcmp(word, "events") == 0) {
		err = parse_number(value, 10, UINT64_MAX, &summary->events);
		summary->has_events = !err;
	} else if (strcmp(word, "lost") == 0) {
		err = parse_number(value, 10, UINT64_MAX, &summary->lost_events);
	} else if (strcmp(word, "truncated") == 0) {
		summary->is_truncated = strcmp(value, "0") != 0;
	} else if (strcmp(word, "start") == 0) {
		err = parse_time(value, &summary->start_ns);
		summary->has_start = !err;
	} else if (strcmp(word, "end") == 0) {
		err = parse_time(value, &summary->end_ns);
		summary->has_end = !err;
	}
	return err ? bad_line(reader, "the summary holds a number that is none") : 0;
}

/* A comment; the summary is one. */
static int parse_comment(struct leaks_reader *reader, char *cursor)
{
	char *word = next_word(&cursor);

	if (!word || strcmp(word, "summary") != 0)
		return 0;
	while ((word = next_word(&cursor))) {
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
		diag_error("%s is empty; leakparse writes leaks files", reader->name);
		return -EINVAL;
	}
	cursor = reader->line;
	word = next_word(&cursor);
	if (word && strcmp(word, "#") == 0)
		word = next_word(&cursor);
	else
		word = NULL;
	if (!word || strcmp(word, "leaks") != 0 ||
	    parse_number(next_word(&cursor), 10, UINT64_MAX, &version))
		return bad_line(reader,
				"does not begin with '# leaks 1'; this is not a leaks file");
	if (version != FORMAT_VERSION) {
		diag_error("%s is in version %" PRIu64 " of the leaks format; this leakplot reads "
			   "version %d",
			   reader->name, version, FORMAT_VERSION);
		return -EINVAL;
	}
	return 0;
}

/* A recording given by mistake is the likeliest wrong input: say what to do with it. */
static int refuse_recording(struct leaks_reader *reader)
{
	int c = getc(reader->file);

	/* perf.data begins with "PERFILE2"; no text of ours begins with a P. */
	if (c == 'P') {
		diag_error("%s is no leaks file; if it is a recording, run leakparse on it first",
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
	int err;

	if (reader) {
		reader->line = malloc(LINE_BYTES_MAX);
		reader->name = strdup(is_stdin ? "standard input" : path);
	}
	if (!reader || !reader->line || !reader->name) {
		diag_error("cannot read %s: out of memory", path);
		leaks_reader_close(reader);
		return -ENOMEM;
	}
	reader->file = is_stdin ? stdin : fopen(path, "re");
	if (!reader->file) {
		err = -errno;
		diag_error("cannot read %s: %s", path, strerror(-err));
	} else {
		err = refuse_recording(reader);
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

int leaks_reader_next(struct leaks_reader *reader, struct leaks_item *ret)
{
	int got;

	while ((got = read_line(reader)) > 0) {
		char *cursor = reader->line;
		int err = 0;

		if (*cursor == '\t') {
			if (!reader->in_leak)
				continue;
			ret->kind = LEAKS_FRAME;
			/* A frame about which nothing is known is an empty line. */
			if (parse_frame(cursor + 1, &ret->frame) == 0)
				return 0;
			continue;
		}

		const char *word = next_word(&cursor);
		if (word && strcmp(word, "#") == 0) {
			err = parse_comment(reader, cursor);
			if (err)
				return err;
			continue;
		}
		reader->in_leak = word && strcmp(word, "leak") == 0;
		if (reader->in_leak) {
			ret->kind = LEAKS_LEAK;
			return parse_leak(reader, cursor, &ret->leak);
		}
	}
	if (got == 0)
		ret->kind = LEAKS_END;
	return got;
}

const struct leaks_summary *leaks_reader_summary(const struct leaks_reader *reader)
{
	return &reader->summary;
}
