/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/report/growth.h"

#include "common/diag.h"
#include "common/json/json_text.h"
#include "common/quantity.h"
#include "scan/report/census.h"
#include "scan/report/screen.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

struct growth_row {
	struct census_row now;
	char *type; /* as it stands in a file */
	uint64_t nr_before;
};

struct growth {
	struct growth_row *rows;
	size_t nr;
	double bytes_now, bytes_before;
};

static int compare_keys(const void *a, const void *b)
{
	const struct growth_row *x = a, *y = b;

	if (x->now.size_bytes != y->now.size_bytes)
		return x->now.size_bytes < y->now.size_bytes ? -1 : 1;
	return strcmp(x->type, y->type);
}

/* Of blocks that were not there before; 0: there are fewer, or as many. */
static uint64_t grown_blocks(const struct growth_row *row)
{
	return row->now.nr > row->nr_before ? row->now.nr - row->nr_before : 0;
}

static int compare_growth(const void *a, const void *b)
{
	const struct growth_row *x = a, *y = b;
	uint64_t x_bytes = grown_blocks(x) * x->now.size_bytes;
	uint64_t y_bytes = grown_blocks(y) * y->now.size_bytes;

	if (x_bytes != y_bytes)
		return x_bytes > y_bytes ? -1 : 1;
	return compare_keys(a, b);
}

static char *json_text_of(const char *type)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	json_write_string(out, type);
	return fclose(out) ? NULL : text;
}

static int growth_init(struct growth *ret, const struct census *now)
{
	*ret = (struct growth){.rows = calloc(now->nr + 1, sizeof(*ret->rows))};
	if (!ret->rows)
		return -ENOMEM;
	for (; ret->nr < now->nr; ret->nr++) {
		struct growth_row *row = &ret->rows[ret->nr];

		row->now = now->rows[ret->nr];
		row->type = json_text_of(row->now.type);
		if (!row->type)
			return -ENOMEM;
		ret->bytes_now += (double)row->now.nr * (double)row->now.size_bytes;
	}
	qsort(ret->rows, ret->nr, sizeof(*ret->rows), compare_keys);
	return 0;
}

static void growth_deinit(struct growth *growth)
{
	for (size_t i = 0; i < growth->nr; i++)
		free(growth->rows[i].type);
	free(growth->rows);
}

static int on_row(void *context, const struct census_file_row *before)
{
	struct growth *growth = context;
	struct growth_row key = {.now.size_bytes = before->size_bytes}, *row;

	growth->bytes_before += (double)before->nr * (double)before->size_bytes;
	key.type = (char *)before->type;
	row = bsearch(&key, growth->rows, growth->nr, sizeof(key), compare_keys);
	if (row)
		row->nr_before += before->nr;
	return 0;
}

static void write_total(FILE *out, const struct growth *growth, const struct snapshot *snapshot,
			const struct census_file *before)
{
	double more = growth->bytes_now - growth->bytes_before;

	fprintf(out, "\nIn use: %s, ", quantity_bytes(growth->bytes_now).text);
	fprintf(out, "%s %s than ", quantity_bytes(fabs(more)).text, more < 0 ? "less" : "more");
	/* The clock may have been set back. */
	if (before->taken_s && snapshot->taken_s >= before->taken_s)
		fprintf(out, "%s ",
			quantity_duration((double)(snapshot->taken_s - before->taken_s)).text);
	fputs("before\n", out);
}

static void write_rows(FILE *out, const struct scan *scan, const struct growth *growth, bool all)
{
	size_t nr_grown = 0, nr;

	while (nr_grown < growth->nr && grown_blocks(&growth->rows[nr_grown]))
		nr_grown++;
	nr = all || nr_grown < SCREEN_ROWS ? nr_grown : SCREEN_ROWS;
	if (!nr) {
		fputs("Nothing grew: there are no more blocks than before of any size and type.\n",
		      out);
		return;
	}
	fputs("\nGrown, by size and type:\n"
	      "     + BYTES    + BLOCKS        SIZE  BLOCKS NOW        LOST  TYPE\n",
	      out);
	for (size_t i = 0; i < nr; i++) {
		const struct growth_row *row = &growth->rows[i];
		const struct census_row *now = &row->now;

		fprintf(out, "%12s %11s %11" PRIu64,
			quantity_bytes((double)(grown_blocks(row) * now->size_bytes)).text,
			quantity_count(grown_blocks(row)).text, now->size_bytes);
		fprintf(out, " %11s %11s  ", quantity_count(now->nr).text,
			scan->may_say_lost ? quantity_count(now->nr_lost).text : "-");
		diag_print_escaped(out, now->type ? now->type : "-", NULL);
		putc('\n', out);
	}
	if (nr < nr_grown)
		fprintf(out, "  and %zu more; --all shows them\n", nr_grown - nr);
}

static void write_growth(FILE *out, const struct scan *scan, const struct growth *growth,
			 const struct census_file *before, bool all)
{
	write_total(out, growth, scan->snapshot, before);
	if (!scan->heap.is_whole || !before->is_whole)
		fprintf(out,
			"The heap was not found as a whole %s: some of this may not have grown.\n",
			before->is_whole ? "now" : "before");
	write_rows(out, scan, growth, all);
}

int growth_write(FILE *out, struct scan_report *report, const struct census_file *before, bool all)
{
	struct growth growth = {0};
	struct census census;
	int err = census_init(&census, report);

	if (!err)
		err = growth_init(&growth, &census);
	if (err)
		diag_error("cannot compare with %s: %s", before->path, strerror(-err));
	else
		err = census_file_read(before, on_row, &growth);
	if (!err) {
		qsort(growth.rows, growth.nr, sizeof(*growth.rows), compare_growth);
		if (screen_begin(out, report->scan))
			write_growth(out, report->scan, &growth, before, all);
	}
	growth_deinit(&growth);
	census_deinit(&census);
	return err;
}
