/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/verdicts/leak_processes.h"

#include <errno.h>
#include <stdlib.h>

static int compare_pids(const void *a, const void *b)
{
	const struct leak_process *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static int compare_threads(const void *a, const void *b)
{
	const struct leak_process *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return compare_pids(a, b);
}

static unsigned int kind_number(const struct leak_process *process)
{
	return process->kind ? process->kind->number : 0;
}

static int compare_kinds(const void *a, const void *b)
{
	const struct leak_process *x = a, *y = b;
	int order = compare_pids(a, b);

	return order ? order
		     : (kind_number(x) > kind_number(y)) - (kind_number(x) < kind_number(y));
}

static int compare_leaks(const void *a, const void *b)
{
	const struct leak_process *x = a, *y = b;

	if (x->leaked_bytes != y->leaked_bytes)
		return x->leaked_bytes > y->leaked_bytes ? -1 : 1;
	if (x->leaked_blocks != y->leaked_blocks)
		return x->leaked_blocks > y->leaked_blocks ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->blocks != y->blocks)
		return x->blocks > y->blocks ? -1 : 1;
	return compare_pids(a, b);
}

/* Makes an entry for each listed block. Returns how many. */
static size_t list_blocks(const struct leak_report *report, struct leak_process *to)
{
	size_t nr = 0;

	for (size_t i = 0; i < report->nr_sites; i++) {
		const struct site_verdict *site = &report->verdicts.sites[report->sites[i].site];
		const struct resource_kind *kind = leak_report_kind_of(report, &report->sites[i]);

		for (size_t k = 0; k < site->held_blocks; k++) {
			size_t at = report->verdicts.order[site->first + k];
			const struct heap_block *block = &report->held[at];
			/*
			 * The block's own verdict: a block that ended with its process leaks no
			 * more.
			 */
			bool leaks =
				verdict_is_leak((enum verdict)report->verdicts.blocks[at].verdict);

			if (report->choices[at] != LEAK_LISTED)
				continue;
			to[nr++] = (struct leak_process){
				.pid = block->allocated.pid,
				.tid = block->allocated.tid,
				.kind = kind,
				.blocks = 1,
				.bytes = block->size_bytes,
				.leaked_blocks = leaks,
				.leaked_bytes = leaks ? block->size_bytes : 0,
				.end_ns = block->allocated.time_ns +
					  leak_report_age_ns(report, block),
			};
		}
	}
	return nr;
}

/* Adds up entries that are equal by @compare, which has sorted them. Returns how many are left. */
static size_t add_up(struct leak_process *entries, size_t nr,
		     int (*compare)(const void *, const void *))
{
	size_t nr_left = 0;

	for (size_t i = 0; i < nr; i++) {
		struct leak_process *last = nr_left ? &entries[nr_left - 1] : NULL;

		if (!last || compare(last, &entries[i]) != 0) {
			entries[nr_left++] = entries[i];
			continue;
		}
		last->blocks += entries[i].blocks;
		last->bytes += entries[i].bytes;
		last->leaked_blocks += entries[i].leaked_blocks;
		last->leaked_bytes += entries[i].leaked_bytes;
		if (entries[i].end_ns > last->end_ns)
			last->end_ns = entries[i].end_ns;
	}
	return nr_left;
}

/* Finds those that @compare tells apart. */
static int find(const struct leak_report *report, int (*compare)(const void *, const void *),
		struct leak_process **ret, size_t *ret_nr)
{
	struct leak_process *entries = calloc(report->nr_held + 1, sizeof(*entries)), *fewer;
	size_t nr;

	if (!entries)
		return -ENOMEM;
	nr = list_blocks(report, entries);
	qsort(entries, nr, sizeof(*entries), compare);
	*ret_nr = add_up(entries, nr, compare);
	fewer = reallocarray(entries, *ret_nr + 1, sizeof(*entries));
	*ret = fewer ? fewer : entries;
	return 0;
}

int leak_processes_find(const struct leak_report *report, struct leak_process **ret, size_t *ret_nr)
{
	int err = find(report, compare_pids, ret, ret_nr);

	if (!err)
		qsort(*ret, *ret_nr, sizeof(**ret), compare_leaks);
	return err;
}

int leak_kinds_find(const struct leak_report *report, struct leak_process **ret, size_t *ret_nr)
{
	return find(report, compare_kinds, ret, ret_nr);
}

void leak_processes_sort(struct leak_process *processes, size_t nr)
{
	qsort(processes, nr, sizeof(*processes), compare_pids);
}

const struct leak_process *leak_processes_at(const struct leak_process *processes, size_t nr,
					     pid_t pid)
{
	return bsearch(&(struct leak_process){.pid = pid}, processes, nr, sizeof(*processes),
		       compare_pids);
}

int leak_threads_find(const struct leak_report *report, struct leak_process **ret, size_t *ret_nr)
{
	return find(report, compare_threads, ret, ret_nr);
}
