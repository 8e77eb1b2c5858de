/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/records/tracing_data.h"

#include "common/diag.h"
#include "common/schema/probe_events.h"
#include "common/scope.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FORMAT_BYTES ((size_t)64 << 10) /* the kernel's own are below 8 KiB */
#define MAX_NAME_BYTES	 256

/* A block of tracing data: Linux 6.1, tools/perf/util/trace-event-{info,read}.c. */
struct cursor {
	const uint8_t *bytes;
	size_t left;
};

static bool cursor_read(struct cursor *cursor, void *to, size_t size_bytes)
{
	if (size_bytes > cursor->left)
		return false;
	if (to)
		memcpy(to, cursor->bytes, size_bytes);
	cursor->bytes += size_bytes;
	cursor->left -= size_bytes;
	return true;
}

/* A NUL-terminated string, in place. */
static const char *cursor_read_string(struct cursor *cursor)
{
	const char *string = (const char *)cursor->bytes;
	const uint8_t *end = memchr(cursor->bytes, '\0', cursor->left);

	return end && cursor_read(cursor, NULL, (size_t)(end - cursor->bytes) + 1) ? string : NULL;
}

static bool cursor_read_block(struct cursor *cursor, struct cursor *ret_block)
{
	uint64_t size_bytes;

	if (!cursor_read(cursor, &size_bytes, sizeof(size_bytes)) || size_bytes > cursor->left)
		return false;
	*ret_block = (struct cursor){cursor->bytes, (size_t)size_bytes};
	return cursor_read(cursor, NULL, (size_t)size_bytes);
}

/* "unsigned long name", "char *name": at least two words, each an identifier. */
static bool is_plain_declaration(const char *declaration)
{
	size_t nr_words = 0;

	if (strstr(declaration, "__data_loc") || strstr(declaration, "__rel_loc"))
		return false;
	while (*declaration) {
		size_t len = strcspn(declaration, " *");

		if (isdigit((unsigned char)*declaration))
			return false;
		nr_words += len > 0;
		declaration += len;
		if (!*declaration)
			return len > 0 && nr_words >= 2;
		declaration++;
	}
	return false;
}

/*
 * libtraceevent (1.7.1, __read_token()) treats words that contain _PR_FMT specially, for old
 * kernels. It does not expect them as names, and leaks what it has read.
 */
static bool has_special_word(const char *text)
{
	return strstr(text, "_PR_FMT");
}

/*
 * A string's field is a 32-bit word: its length, and its offset in the raw data. Only the strings
 * of LEAK_MARK(), leakrec:holder, leakrec:unseen and leakrec:held are needed. Their field is
 * declared as a number.
 */
static bool reduce_text_field(const char *line, FILE *out)
{
	unsigned int offset;
	int end = 0;

	if (sscanf(line, " field:__data_loc char[] " PROBE_FIELD_TEXT "; offset:%9u; size:4;%n",
		   &offset, &end) != 1 ||
	    end == 0)
		return false;
	fprintf(out, "\tfield:unsigned int " PROBE_FIELD_TEXT ";\toffset:%u;\tsize:4;\tsigned:0;\n",
		offset);
	return true;
}

/* Copies a field that is one number. Arrays and strings are left out. */
static void reduce_field(const char *line, FILE *out)
{
	char declaration[MAX_NAME_BYTES];
	unsigned int offset, size_bytes, is_signed = 0;
	int end = 0;

	if (sscanf(line, " field:%255[A-Za-z0-9_ *]; offset:%9u; size:%9u;%n", declaration, &offset,
		   &size_bytes, &end) != 3 ||
	    end == 0 || !is_plain_declaration(declaration) || has_special_word(declaration))
		return;
	sscanf(line + end, " signed:%1u;", &is_signed);
	fprintf(out, "\tfield:%s;\toffset:%u;\tsize:%u;\tsigned:%u;\n", declaration, offset,
		size_bytes, is_signed);
}

/*
 * Generates a format from @text: its name, its id, its plain fields, and an empty print format. We
 * never print an event. Most of the library's parser handles the expressions of print formats and
 * may not withstand hostile ones. Generates nothing if @text is not a format.
 */
static void reduce_format(char *text, FILE *out)
{
	bool has_text;
	char name[MAX_NAME_BYTES];
	const char *line = strsep(&text, "\n");
	unsigned int id;

	if (!text || sscanf(line, "name: %255[A-Za-z0-9_]", name) != 1 || has_special_word(name))
		return;
	line = strsep(&text, "\n");
	if (!text || sscanf(line, "ID: %9u", &id) != 1)
		return;
	line = strsep(&text, "\n");
	if (!text || strcmp(line, "format:") != 0)
		return;
	fprintf(out, "name: %s\nID: %u\nformat:\n", name, id);
	/* The common fields, an empty line, and the event's own fields. */
	while ((line = strsep(&text, "\n")) && *line)
		reduce_field(line, out);
	fputc('\n', out);
	has_text = probe_schema_is_mark(name) || strcmp(name, "holder") == 0 ||
		   strcmp(name, "unseen") == 0 || strcmp(name, "held") == 0;
	while ((line = strsep(&text, "\n")) && *line)
		if (!has_text || !reduce_text_field(line, out))
			reduce_field(line, out);
	fputs("\nprint fmt: \"\"\n", out);
}

/* Generates the text of @block's format. NULL: out of memory; "": it is not a format. */
static char *reduce_block(const struct cursor *block, size_t *ret_len)
{
	_cleanup_free_ char *text = strndup((const char *)block->bytes, block->left);
	_cleanup_free_ char *reduced = NULL;
	FILE *out = open_memstream(&reduced, ret_len);
	bool failed = !text;

	if (!out)
		return NULL;
	if (text && strlen(text) == block->left)
		reduce_format(text, out);
	failed |= ferror(out) != 0;
	if (fclose(out) != 0 || failed)
		return NULL;
	return steal_ptr(reduced);
}

static int add_format(struct tep_handle *tep, const char *system, const struct cursor *block)
{
	_cleanup_free_ char *text = NULL;
	struct tep_event *event = NULL;
	size_t len;

	if (block->left > MAX_FORMAT_BYTES || strlen(system) > MAX_NAME_BYTES)
		return 0; /* not one of our events; otherwise a missing format is reported later */
	text = reduce_block(block, &len);
	if (!text)
		return -ENOMEM;
	if (len == 0)
		return 0;
	return tep_parse_format(tep, &event, text, len, system) == TEP_ERRNO__MEM_ALLOC_FAILED
		       ? -ENOMEM
		       : 0;
}

/* Reads the header, and the unused headers of ftrace's ring buffer. */
static bool read_preamble(struct cursor *cursor, const char **ret_problem)
{
	static const uint8_t magic[] = {23, 8, 68, 't', 'r', 'a', 'c', 'i', 'n', 'g'};
	uint8_t found[sizeof(magic)], big_endian, long_bytes;
	struct cursor block;
	const char *string;
	uint32_t page_bytes, nr_ftrace;

	*ret_problem = "it does not begin as tracing data";
	if (!cursor_read(cursor, found, sizeof(found)) || memcmp(found, magic, sizeof(magic)) != 0)
		return false;
	*ret_problem = "it ends early";
	if (!cursor_read_string(cursor) || !cursor_read(cursor, &big_endian, 1) ||
	    !cursor_read(cursor, &long_bytes, 1) ||
	    !cursor_read(cursor, &page_bytes, sizeof(page_bytes)))
		return false;
	*ret_problem = "its byte order is not this machine's";
	if (big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))
		return false;
	*ret_problem = "header_page or header_event is missing";
	string = cursor_read_string(cursor);
	if (!string || strcmp(string, "header_page") != 0 || !cursor_read_block(cursor, &block))
		return false;
	string = cursor_read_string(cursor);
	if (!string || strcmp(string, "header_event") != 0 || !cursor_read_block(cursor, &block))
		return false;
	*ret_problem = "it ends among ftrace's formats";
	if (!cursor_read(cursor, &nr_ftrace, sizeof(nr_ftrace)))
		return false;
	while (nr_ftrace-- > 0)
		if (!cursor_read_block(cursor, &block))
			return false;
	return true;
}

/*
 * Reads the events' formats. The rest (kallsyms, printk formats, saved command names) is not
 * needed.
 */
static int read_systems(struct tep_handle *tep, struct cursor *cursor, const char **ret_problem)
{
	uint32_t nr_systems, nr_events;
	struct cursor block;

	*ret_problem = "it ends among the events' formats";
	if (!cursor_read(cursor, &nr_systems, sizeof(nr_systems)))
		return -EINVAL;
	while (nr_systems-- > 0) {
		const char *system = cursor_read_string(cursor);

		if (!system || !cursor_read(cursor, &nr_events, sizeof(nr_events)))
			return -EINVAL;
		while (nr_events-- > 0) {
			int err;

			if (!cursor_read_block(cursor, &block))
				return -EINVAL;
			err = add_format(tep, system, &block);
			if (err)
				return err;
		}
	}
	return 0;
}

int tracing_data_parse(struct tep_handle *tep, const char *name, uint64_t offset,
		       const uint8_t *data, size_t size_bytes)
{
	struct cursor cursor = {data, size_bytes};
	const char *problem;
	int err = -EINVAL;

	if (read_preamble(&cursor, &problem))
		err = read_systems(tep, &cursor, &problem);
	if (err == -EINVAL)
		diag_error("%s: corrupted tracing data at offset %" PRIu64 ": %s", name,
			   offset + (size_bytes - cursor.left), problem);
	return err;
}
