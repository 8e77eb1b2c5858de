/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/names/stack_path.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define VIA_BYTES 72 /* of one name */

const struct stack_path_style stack_path_summary = {
	.columns = 96, .max_bytes = SIZE_MAX, .has_place = true};

static void print_file(FILE *out, const char *path)
{
	diag_print_escaped(out, named_stack_basename(path), NULL);
}

/* "query_font", "query_font (leaky_daemon.c:63)", "query_font (app+0x12)" */
static void print_frame(FILE *out, const struct named_frame *frame, enum path_detail detail,
			bool has_place)
{
	bool has_address = detail == PATH_DETAIL_ADDRESS && frame->module;
	bool has_line = frame->file && (has_place || detail == PATH_DETAIL_LINE);

	diag_print_escaped(out, frame->name, NULL);
	/* The name of a frame without a symbol is its module and address. */
	if (!frame->has_symbol || (!has_address && !has_line && !(has_place && frame->module)))
		return;
	fputs(" (", out);
	if (has_line) {
		print_file(out, frame->file);
		fprintf(out, has_address ? ":%d, " : ":%d", frame->line);
	}
	if (has_address || !has_line)
		print_file(out, frame->module);
	if (has_address)
		fprintf(out, "+0x%" PRIx64, frame->module_offset);
	fputc(')', out);
}

/* The caller frees the result, which is NULL if memory is exhausted. */
static char *frame_text(const struct named_frame *frame, enum path_detail detail, bool has_place)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	print_frame(out, frame, detail, has_place);
	return fclose(out) == 0 ? steal_ptr(text) : NULL;
}

/* Writes a frame that the path does not show, cut to a length that leaves the line readable. */
static void print_via(FILE *out, const struct named_frame *frame, enum path_detail detail,
		      size_t *nr)
{
	_cleanup_free_ char *text = frame_text(frame, detail, false);
	size_t len = text ? strlen(text) : 0;

	fputs((*nr)++ ? ", " : " (via ", out);
	if (len > VIA_BYTES) {
		/* Not within a character. */
		for (len = VIA_BYTES; len && ((unsigned char)text[len] & 0xc0) == 0x80;)
			len--;
		fprintf(out, "%.*s...", (int)len, text);
	} else if (text) {
		fputs(text, out);
	}
}

/*
 * Writes the frames with details that the path does not show: those beyond @shown, and those inside
 * the first.
 */
static void print_others(FILE *out, const struct stack_path *path,
			 const struct path_details *details, size_t shown)
{
	const struct named_frame *frames = path->stack->frames;
	size_t nr = 0;

	for (size_t i = shown; i < path->stack->nr && nr < details->nr; i++)
		if (path_details_of(details, i))
			print_via(out, &frames[i], path_details_of(details, i), &nr);
	for (size_t i = path->first; i-- > 0 && nr < details->nr;)
		if (path_details_of(details, i))
			print_via(out, &frames[i], path_details_of(details, i), &nr);
	if (nr)
		fputc(')', out);
}

/* Writes as many frames as fit in @columns. Returns 0 or -ENOMEM. */
static int print_path(FILE *out, const struct stack_path *path, const struct path_details *details,
		      const struct stack_path_style *style, size_t max_columns)
{
	const struct named_stack *stack = path->stack;
	size_t columns = 0, i;

	if (path->first >= stack->nr) {
		fputs("(no stack)", out);
		return 0;
	}
	for (i = path->first; i < stack->nr; i++) {
		_cleanup_free_ char *text =
			frame_text(&stack->frames[i], path_details_of(details, i),
				   style->has_place && i == path->first);

		if (!text)
			return -ENOMEM;
		/* The first name always fits. */
		if (columns && columns + strlen(text) + 3 > max_columns) {
			fputs(" ...", out);
			break;
		}
		fprintf(out, "%s%s", columns ? " < " : "", text);
		columns += strlen(text) + (columns ? 3 : 0);
	}
	print_others(out, path, details, i);
	return 0;
}

void stack_path_write(FILE *out, const struct named_stack *stack, size_t first)
{
	const struct stack_path path = {stack, first};

	print_path(out, &path, &(struct path_details){0}, &stack_path_summary,
		   stack_path_summary.columns);
}

/* The caller frees the result, which is NULL if memory is exhausted. */
static char *path_text(const struct stack_path *path, const struct path_details *details,
		       const struct stack_path_style *style)
{
	size_t columns = style->columns;

	for (;;) {
		_cleanup_free_ char *text = NULL;
		size_t size, over;
		FILE *out = open_memstream(&text, &size);
		int err;

		if (!out)
			return NULL;
		err = print_path(out, path, details, style, columns);
		if (fclose(out) != 0 || err)
			return NULL;
		over = size > style->max_bytes ? size - style->max_bytes : 0;
		if (!over || !columns)
			return steal_ptr(text);
		/* What follows the frames needs room, too: the last of them are left out. */
		columns = columns > over ? columns - over : 0;
	}
}

static int compare_texts(const void *a, const void *b, void *context)
{
	char *const *texts = context;

	return strcmp(texts[*(const size_t *)a], texts[*(const size_t *)b]);
}

/* Finds what tells those of @paths apart that have the same text. */
static void find_details(const struct stack_path *paths, size_t nr, char **texts, size_t *order,
			 struct path_details *ret)
{
	for (size_t i = 0; i < nr; i++)
		order[i] = i;
	qsort_r(order, nr, sizeof(*order), compare_texts, texts);
	for (size_t i = 0, alike; i < nr; i += alike) {
		alike = 1;
		while (i + alike < nr && !compare_texts(&order[i], &order[i + alike], texts))
			alike++;
		if (alike > 1)
			path_details_find(paths, order + i, alike, ret);
	}
}

int stack_paths_texts(const struct stack_path *paths, size_t nr,
		      const struct stack_path_style *style, char ***ret)
{
	_cleanup_free_ struct path_details *details = calloc(nr + 1, sizeof(*details));
	_cleanup_free_ size_t *order = calloc(nr + 1, sizeof(*order));
	char **texts = calloc(nr + 1, sizeof(*texts));
	int err = details && order && texts ? 0 : -ENOMEM;

	for (size_t i = 0; i < nr && !err; i++) {
		texts[i] = path_text(&paths[i], &details[i], style);
		err = texts[i] ? 0 : -ENOMEM;
	}
	if (!err)
		find_details(paths, nr, texts, order, details);
	for (size_t i = 0; i < nr && !err; i++) {
		if (!details[i].nr)
			continue;
		free(texts[i]);
		texts[i] = path_text(&paths[i], &details[i], style);
		err = texts[i] ? 0 : -ENOMEM;
	}
	if (err) {
		stack_paths_free(texts, nr);
		texts = NULL;
	}
	*ret = texts;
	return err;
}

void stack_paths_free(char **texts, size_t nr)
{
	for (size_t i = 0; texts && i < nr; i++)
		free(texts[i]);
	free(texts);
}
