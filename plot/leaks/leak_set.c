/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/leaks/leak_set.h"

#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>

#define NAME_BYTES_MAX	 256
#define FIRST_ALLOCATION 1024
#define PROCESSES_MAX	 65536 /* the names of more are not kept */

struct process_name {
	int32_t pid;
	UT_hash_handle hh;
	char name[];
};

static int out_of_memory(void)
{
	diag_error("cannot keep the leaks: out of memory");
	return -ENOMEM;
}

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Finds or creates the group of @stack. */
static int find_group(struct leak_set *set, uint32_t stack, struct leak_group **ret)
{
	struct leak_group *group;

	HASH_FIND(hh, set->groups, &stack, sizeof(stack), group);
	if (!group) {
		group = calloc(1, sizeof(*group));
		if (!group)
			return out_of_memory();
		group->stack = stack;
		group->rank = LEAK_SET_RANKS;
		HASH_ADD(hh, set->groups, stack, sizeof(stack), group);
		if (!group->hh.tbl) {
			free(group);
			return out_of_memory();
		}
	}
	*ret = group;
	return 0;
}

static int add_process(struct leak_set *set, const struct leaks_process *process)
{
	size_t len = strnlen(process->name, NAME_BYTES_MAX);
	struct process_name *name;

	HASH_FIND_INT(set->processes, &process->pid, name);
	if (name || HASH_COUNT(set->processes) >= PROCESSES_MAX)
		return 0;
	name = calloc(1, sizeof(*name) + len + 1);
	if (!name)
		return -ENOMEM;
	name->pid = process->pid;
	memcpy(name->name, process->name, len);
	HASH_ADD_INT(set->processes, pid, name);
	if (name->hh.tbl)
		return 0;
	free(name);
	return -ENOMEM;
}

/* The name of the process of @leak; of its thread, if the file has no other. */
static const char *process_name_of(const struct leak_set *set, const struct leaks_leak *leak)
{
	struct process_name *name;

	HASH_FIND_INT(set->processes, &leak->pid, name);
	return name ? name->name : leak->comm;
}

/* Keeps a name for the title. */
static int add_name(struct leak_set *set, const char *name)
{
	for (size_t i = 0; i < set->nr_names; i++)
		if (strncmp(set->names[i], name, NAME_BYTES_MAX) == 0)
			return 0;
	if (set->nr_names == LEAK_SET_NAMES_MAX) {
		set->more_names = true;
		return 0;
	}
	char *copy = strndup(name, NAME_BYTES_MAX);
	if (!copy)
		return out_of_memory();
	set->names[set->nr_names++] = copy;
	return 0;
}

static int add_point(struct leak_set *set, const struct leak_point *point)
{
	if (set->nr_points == set->nr_points_allocated) {
		size_t nr = set->nr_points ? set->nr_points * 2 : FIRST_ALLOCATION;
		struct leak_point *points = reallocarray(set->points, nr, sizeof(*points));

		if (!points)
			return out_of_memory();
		set->points = points;
		set->nr_points_allocated = nr;
	}
	set->points[set->nr_points++] = *point;
	return 0;
}

/*
 * Adds @leak if its size is in @range. *@ret_group is its group if the next frames make the label
 * of the group, else NULL.
 */
static int add_leak(struct leak_set *set, const struct leaks_leak *leak,
		    const struct size_range *range, struct leak_group **ret_group)
{
	struct leak_group *group;
	int err;

	*ret_group = NULL;
	if (!leak->has_size) {
		set->nr_unknown_size++;
		return 0;
	}
	if (range && !size_range_has(range, leak->size_bytes)) {
		set->nr_outside_range++;
		return 0;
	}
	err = find_group(set, leak->stack, &group);
	if (err)
		return err;
	if (group->nr_leaks == 0) {
		*ret_group = group;
		group->label.search.is_pool = user_frame_is_pool(leak->function);
		group->first_size_bytes = leak->size_bytes;
		group->same_size = true;
	}
	group->same_size &= group->first_size_bytes == leak->size_bytes;
	group->nr_leaks++;
	group->total_bytes = add_saturating(group->total_bytes, leak->size_bytes);
	set->total_bytes = add_saturating(set->total_bytes, leak->size_bytes);
	if (set->nr_points == 0)
		set->pid = leak->pid;
	set->several_pids |= set->pid != leak->pid;
	err = add_name(set, process_name_of(set, leak));
	if (err)
		return err;
	enum plot_verdict verdict = plot_verdict_find(leak->verdict);
	struct leak_verdict_sum *sum = &set->verdicts[verdict];

	sum->nr_leaks++;
	sum->total_bytes = add_saturating(sum->total_bytes, leak->size_bytes);
	return add_point(set, &(struct leak_point){
				      .size_bytes = leak->size_bytes,
				      .time_ns = leak->time_ns,
				      .event = leak->event,
				      .age_ns = leak->age_ns,
				      .verdict = verdict,
				      .group = group,
			      });
}

/* Adds @item. *@label gets the frames that follow it; NULL: nothing does. */
static int add_item(struct leak_set *set, const struct leaks_reader *reader,
		    const struct leaks_item *item, const struct size_range *range,
		    struct stack_label **label)
{
	struct leak_group *unlabelled;
	int err = 0;

	switch (item->kind) {
	case LEAKS_END:
		break;
	case LEAKS_LEAK:
		err = add_leak(set, &item->leak, range, &unlabelled);
		*label = unlabelled ? &unlabelled->label : NULL;
		return err;
	case LEAKS_FRAME:
		err = *label ? stack_label_add(*label, &item->frame, &item->place) : 0;
		break;
	case LEAKS_PROCESS:
		*label = NULL;
		err = add_process(set, &item->process);
		break;
	case LEAKS_STACK:
		*label = NULL;
		err = history_set_add_verdict(&set->histories, &item->stack);
		break;
	case LEAKS_HISTORY:
		err = history_set_add(&set->histories, leaks_reader_periods(reader), item->history,
				      label);
		break;
	}
	return err ? out_of_memory() : 0;
}

static int read_leaks(struct leak_set *set, struct leaks_reader *reader,
		      const struct size_range *range)
{
	struct stack_label *label = NULL;
	struct leaks_item item;
	int err;

	do {
		err = leaks_reader_next(reader, &item);
		if (!err)
			err = add_item(set, reader, &item, range, &label);
	} while (!err && item.kind != LEAKS_END);
	return err;
}

/* Most leaks first, then most bytes, then the smaller stack number. */
static bool ranks_before(const struct leak_group *a, const struct leak_group *b)
{
	if (!b || a->nr_leaks != b->nr_leaks)
		return !b || a->nr_leaks > b->nr_leaks;
	if (a->total_bytes != b->total_bytes)
		return a->total_bytes > b->total_bytes;
	return a->stack < b->stack;
}

static void rank_groups(struct leak_set *set)
{
	struct leak_group *group, *next;

	HASH_ITER (hh, set->groups, group, next) {
		size_t i = LEAK_SET_RANKS;

		while (i > 0 && ranks_before(group, set->ranked[i - 1]))
			i--;
		if (i == LEAK_SET_RANKS)
			continue;
		for (size_t j = LEAK_SET_RANKS - 1; j > i; j--)
			set->ranked[j] = set->ranked[j - 1];
		set->ranked[i] = group;
	}
	for (int i = 0; i < LEAK_SET_RANKS && set->ranked[i]; i++)
		set->ranked[i]->rank = i;
}

static int compare_times(const void *a, const void *b)
{
	const struct leak_point *x = *(struct leak_point *const *)a;
	const struct leak_point *y = *(struct leak_point *const *)b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->event > y->event) - (x->event < y->event);
}

/* Numbers the points of each stack in time order. */
static int number_points(struct leak_set *set)
{
	_cleanup_free_ struct leak_point **points =
		calloc(set->nr_points + 1, sizeof(struct leak_point *));

	if (!points)
		return out_of_memory();
	for (size_t i = 0; i < set->nr_points; i++)
		points[i] = &set->points[i];
	qsort(points, set->nr_points, sizeof(struct leak_point *), compare_times);
	for (size_t i = 0; i < set->nr_points; i++)
		points[i]->nth = ++points[i]->group->nr_numbered;
	return 0;
}

int leak_set_init(struct leak_set *set, const char *path, const struct size_range *range)
{
	struct leaks_reader *reader;

	int err = leaks_reader_open(path, &reader);
	if (err)
		return err;
	*set = (struct leak_set){0};
	err = read_leaks(set, reader, range);
	set->summary = *leaks_reader_summary(reader);
	leaks_reader_close(reader);
	set->has_no_bytes = set->nr_points && !set->total_bytes;
	if (!err && set->has_no_bytes)
		err = number_points(set);
	if (err) {
		leak_set_deinit(set);
		return err;
	}
	rank_groups(set);
	return 0;
}

void leak_set_deinit(struct leak_set *set)
{
	struct process_name *process, *next_process;
	struct leak_group *group, *next;

	HASH_ITER (hh, set->groups, group, next) {
		HASH_DEL(set->groups, group);
		stack_label_clear(&group->label);
		free(group);
	}
	HASH_ITER (hh, set->processes, process, next_process) {
		HASH_DEL(set->processes, process);
		free(process);
	}
	for (size_t i = 0; i < set->nr_names; i++)
		free(set->names[i]);
	free(set->points);
	history_set_deinit(&set->histories);
	*set = (struct leak_set){0};
}

static int compare_sizes(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Inserts @size into @sorted, most frequent first, of which @max are kept. */
static void insert_recurring(struct recurring_size *sorted, size_t *nr, size_t max,
			     struct recurring_size size)
{
	size_t i = *nr;

	while (i > 0 && size.nr_leaks > sorted[i - 1].nr_leaks)
		i--;
	if (i == max)
		return;
	if (*nr < max)
		(*nr)++;
	memmove(&sorted[i + 1], &sorted[i], (*nr - 1 - i) * sizeof(*sorted));
	sorted[i] = size;
}

int leak_set_recurring_sizes(const struct leak_set *set, struct recurring_size *ret, size_t max,
			     size_t *ret_nr)
{
	_cleanup_free_ uint64_t *sizes = calloc(set->nr_points + 1, sizeof(*sizes));
	size_t run = 0, nr = 0;

	if (!sizes)
		return out_of_memory();
	for (size_t i = 0; i < set->nr_points; i++)
		sizes[i] = set->points[i].size_bytes;
	qsort(sizes, set->nr_points, sizeof(*sizes), compare_sizes);
	for (size_t i = 0; i < set->nr_points; i++) {
		run++;
		if (i + 1 < set->nr_points && sizes[i + 1] == sizes[i])
			continue;
		if (run > 1)
			insert_recurring(ret, &nr, max, (struct recurring_size){sizes[i], run});
		run = 0;
	}
	*ret_nr = nr;
	return 0;
}
