/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/leaks/leak_set.h"

#include "common/diag.h"
#include "common/scope.h"
#include "plot/leaks/wrapper_set.h"

#include <errno.h>

#define NAME_BYTES_MAX	 256
#define FIRST_ALLOCATION 1024

struct process_name {
	int32_t pid;
	uint64_t end_ns; /* 0: that of the recording */
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

/*
 * A `leaks` file while it is read. In version 1, the frames of a stack follow each line that names
 * the stack. Its label is made of the first ones.
 */
struct reading {
	struct leak_set *set;
	struct leaks_reader *reader;
	const struct size_range *range; /* NULL: all */
	struct stack_label *label;	/* gets the frames that follow; NULL: they are skipped */
	struct wrapper_set wrappers;
};

static struct leak_group *known_group(const struct leak_set *set, uint32_t stack)
{
	struct leak_group *group;

	HASH_FIND_BYHASHVALUE(hh, set->groups, &stack, sizeof(stack), hash_number(stack, set->seed),
			      group);
	return group;
}

static struct leak_group *known_cause(const struct leak_set *set, uint32_t number)
{
	struct leak_group *group;

	HASH_FIND_BYHASHVALUE(hh, set->causes, &number, sizeof(number),
			      hash_number(number, set->seed), group);
	return group;
}

/* Adds the group of a stack or a cause, whose frames come next. */
static int add_group(struct reading *reading, struct leak_group **groups, uint32_t number,
		     struct leak_group **ret)
{
	struct leak_group *group = calloc(1, sizeof(*group));

	if (!group)
		return out_of_memory();
	group->number = number;
	group->rank = LEAK_SET_RANKS;
	HASH_ADD_BYHASHVALUE(hh, *groups, number, sizeof(number),
			     hash_number(number, reading->set->seed), group);
	if (!hash_added(group)) {
		free(group);
		return out_of_memory();
	}
	reading->label = &group->label;
	*ret = group;
	return 0;
}

static int add_stack_group(struct reading *reading, uint32_t stack, bool is_pool,
			   struct leak_group **ret)
{
	int err = add_group(reading, &reading->set->groups, stack, ret);

	if (!err)
		(*ret)->label.search.is_pool = is_pool;
	return err;
}

/* Version 2 defines each stack once, before the lines that have it. */
static int define_stack(struct reading *reading, const struct leaks_definition *definition)
{
	struct leak_group *group;

	if (known_group(reading->set, definition->stack))
		return leaks_reader_reject(reading->reader,
					   "its stack has been defined before: plot joined leaks "
					   "files one by one");
	return add_stack_group(reading, definition->stack, user_frame_is_pool(definition->function),
			       &group);
}

static int check_stack(const struct reading *reading, uint32_t stack)
{
	if (leaks_reader_version(reading->reader) == 1 || known_group(reading->set, stack))
		return 0;
	return leaks_reader_reject(
		reading->reader,
		"the file lacks the 'frames' line of its stack: run leakparse again");
}

/* Finds the group of @stack, which the current line names. */
static int find_group(struct reading *reading, uint32_t stack, bool is_pool,
		      struct leak_group **ret)
{
	*ret = known_group(reading->set, stack);
	if (*ret)
		return 0;
	return leaks_reader_version(reading->reader) == 1
		       ? add_stack_group(reading, stack, is_pool, ret)
		       : check_stack(reading, stack);
}

static struct process_name *known_process(const struct leak_set *set, int32_t pid)
{
	struct process_name *name;

	HASH_FIND_BYHASHVALUE(hh, set->processes, &pid, sizeof(pid),
			      hash_number((uint64_t)pid, set->seed), name);
	return name;
}

static int add_process(struct leak_set *set, const struct leaks_process *process)
{
	size_t len = strnlen(process->name, NAME_BYTES_MAX);
	struct process_name *name;

	if (known_process(set, process->pid))
		return 0;
	name = calloc(1, sizeof(*name) + len + 1);
	if (!name)
		return -ENOMEM;
	name->pid = process->pid;
	name->end_ns = process->end_ns;
	memcpy(name->name, process->name, len);
	HASH_ADD_BYHASHVALUE(hh, set->processes, pid, sizeof(name->pid),
			     hash_number((uint64_t)name->pid, set->seed), name);
	if (hash_added(name))
		return 0;
	free(name);
	return -ENOMEM;
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

/* The age of @leak of @process (NULL: not known); 0 if the file does not tell. */
static uint64_t age_of(const struct reading *reading, const struct leaks_leak *leak,
		       const struct process_name *process)
{
	const struct leaks_summary *summary = leaks_reader_summary(reading->reader);
	uint64_t end_ns = process && process->end_ns ? process->end_ns : summary->end_ns;

	if (leak->has_age || leaks_reader_version(reading->reader) == 1)
		return leak->age_ns;
	return end_ns > leak->time_ns ? end_ns - leak->time_ns : 0;
}

/* Adds @leak if its size is in the range. */
static int add_leak(struct reading *reading, const struct leaks_leak *leak)
{
	struct leak_set *set = reading->set;
	enum plot_verdict verdict = plot_verdict_find(leak->verdict);
	struct leak_verdict_sum *sum = &set->verdicts[verdict];
	struct process_name *process;
	struct leak_group *group;
	int err;

	if (!leak->has_size) {
		set->nr_unknown_size++;
		return 0;
	}
	if (reading->range && !size_range_has(reading->range, leak->size_bytes)) {
		set->nr_outside_range++;
		return 0;
	}
	err = find_group(reading, leak->stack, user_frame_is_pool(leak->function), &group);
	if (err)
		return err;
	/* What was left behind by a process is not judged with other stacks. */
	if (group->cause && verdict != PLOT_AT_EXIT)
		group = group->cause;
	if (group->nr_leaks == 0) {
		group->first_size_bytes = leak->size_bytes;
		group->same_size = true;
	}
	group->same_size &= group->first_size_bytes == leak->size_bytes;
	group->nr_leaks++;
	group->nr_lost += leak->reach == REACH_GROUP_LOST;
	group->nr_without_holder += leak->reach == REACH_GROUP_NO_HOLDER;
	group->total_bytes = add_saturating(group->total_bytes, leak->size_bytes);
	set->total_bytes = add_saturating(set->total_bytes, leak->size_bytes);
	if (set->nr_points == 0)
		set->pid = leak->pid;
	set->several_pids |= set->pid != leak->pid;
	process = known_process(set, leak->pid);
	/* The thread's name, if the file has no other. */
	err = add_name(set, process ? process->name : leak->comm);
	if (err)
		return err;
	sum->nr_leaks++;
	sum->nr_lost += leak->reach == REACH_GROUP_LOST;
	sum->nr_without_holder += leak->reach == REACH_GROUP_NO_HOLDER;
	set->nr_of_reach[leak->reach]++;
	sum->total_bytes = add_saturating(sum->total_bytes, leak->size_bytes);
	return add_point(set, &(struct leak_point){
				      .size_bytes = leak->size_bytes,
				      .time_ns = leak->time_ns,
				      .event = leak->event,
				      .age_ns = age_of(reading, leak, process),
				      .verdict = verdict,
				      .group = group,
			      });
}

static int add_stack(struct reading *reading, const struct leaks_stack *stack)
{
	struct leak_group *group = known_group(reading->set, stack->stack);
	struct leak_group *cause = known_cause(reading->set, stack->cause);
	int err = check_stack(reading, stack->stack);

	if (err)
		return err;
	if (group && cause)
		group->cause = cause;
	return history_set_add_verdict(&reading->set->histories, stack, cause) ? out_of_memory()
									       : 0;
}

static int add_cause(struct reading *reading, const struct leaks_cause *cause)
{
	struct leak_group *group;
	int err;

	if (known_cause(reading->set, cause->number))
		return leaks_reader_reject(reading->reader, "its cause has been defined before");
	err = add_group(reading, &reading->set->causes, cause->number, &group);
	if (err)
		return err;
	group->is_cause = true;
	group->nr_stacks = cause->nr_stacks;
	/* Its frames begin with the one that it is named after. */
	group->label.search.is_over = true;
	return history_set_add_cause(&reading->set->histories, cause) ? out_of_memory() : 0;
}

static int find_cause(const struct reading *reading, uint32_t number, struct leak_group **ret)
{
	*ret = known_cause(reading->set, number);
	if (!*ret)
		return leaks_reader_reject(reading->reader, "the file lacks its 'cause' line");
	(*ret)->has_history = true;
	return 0;
}

static int add_history(struct reading *reading, const struct leaks_history *history)
{
	struct stack_history *kept;

	if (history_set_add(&reading->set->histories, leaks_reader_periods(reading->reader),
			    history, &kept))
		return out_of_memory();
	if (!kept)
		return 0;
	return history->is_cause
		       ? find_cause(reading, kept->stack, &kept->group)
		       : find_group(reading, kept->stack, kept->verdict.is_pool, &kept->group);
}

static int add_frame(struct reading *reading, const struct leaks_item *item)
{
	struct frame_facts frame = item->frame;

	if (!reading->label)
		return 0;
	frame.is_own_wrapper = wrapper_set_has(&reading->wrappers, frame.name, frame.module);
	return stack_label_add(reading->label, &frame, &item->place) ? out_of_memory() : 0;
}

static int add_item(struct reading *reading, const struct leaks_item *item)
{
	if (item->kind != LEAKS_FRAME)
		reading->label = NULL;
	switch (item->kind) {
	case LEAKS_END:
		return 0;
	case LEAKS_LEAK:
		return add_leak(reading, &item->leak);
	case LEAKS_DEFINITION:
		return define_stack(reading, &item->definition);
	case LEAKS_FRAME:
		return add_frame(reading, item);
	case LEAKS_WRAPPER:
		return wrapper_set_add(&reading->wrappers, item->wrapper.function,
				       item->wrapper.module)
			       ? out_of_memory()
			       : 0;
	case LEAKS_PROCESS:
		return add_process(reading->set, &item->process) ? out_of_memory() : 0;
	case LEAKS_STACK:
		return add_stack(reading, &item->stack);
	case LEAKS_CAUSE:
		return add_cause(reading, &item->cause);
	case LEAKS_HISTORY:
		return add_history(reading, item->history);
	}
	return 0;
}

static int read_leaks(struct reading *reading)
{
	struct leaks_item item;
	int err;

	do {
		err = leaks_reader_next(reading->reader, &item);
		if (!err)
			err = add_item(reading, &item);
	} while (!err && item.kind != LEAKS_END);
	return err;
}

/* Most bytes first, as in the plots of histories, then most leaks, then the smaller number. */
static bool ranks_before(const struct leak_group *a, const struct leak_group *b)
{
	if (!b || a->total_bytes != b->total_bytes)
		return !b || a->total_bytes > b->total_bytes;
	if (a->nr_leaks != b->nr_leaks)
		return a->nr_leaks > b->nr_leaks;
	return a->number < b->number;
}

static void rank_groups(struct leak_set *set, struct leak_group *groups)
{
	struct leak_group *group, *next;

	HASH_ITER (hh, groups, group, next) {
		size_t i = LEAK_SET_RANKS;

		if (!group->nr_leaks)
			continue;
		while (i > 0 && ranks_before(group, set->ranked[i - 1]))
			i--;
		if (i == LEAK_SET_RANKS)
			continue;
		for (size_t j = LEAK_SET_RANKS - 1; j > i; j--)
			set->ranked[j] = set->ranked[j - 1];
		set->ranked[i] = group;
	}
}

/* Whether the history of its cause includes that of the stack. */
static bool is_in_cause(const struct leak_group *group)
{
	return group->cause && group->cause->has_history;
}

static void arrange(struct leak_set *set)
{
	rank_groups(set, set->groups);
	rank_groups(set, set->causes);
	for (int i = 0; i < LEAK_SET_RANKS && set->ranked[i]; i++)
		set->ranked[i]->rank = i;
	history_set_arrange(&set->histories, is_in_cause);
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
	struct reading reading = {.set = set, .range = range};

	int err = leaks_reader_open(path, &reading.reader);
	if (err)
		return err;
	*set = (struct leak_set){.seed = hash_seed()};
	err = read_leaks(&reading);
	wrapper_set_deinit(&reading.wrappers);
	set->summary = *leaks_reader_summary(reading.reader);
	leaks_reader_close(reading.reader);
	set->has_no_bytes = set->nr_points && !set->total_bytes;
	if (!err && set->has_no_bytes)
		err = number_points(set);
	if (err) {
		leak_set_deinit(set);
		return err;
	}
	arrange(set);
	return 0;
}

static void destroy_groups(struct leak_group *groups)
{
	struct leak_group *group, *next;

	HASH_ITER (hh, groups, group, next) {
		HASH_DEL(groups, group);
		stack_label_clear(&group->label);
		free(group);
	}
}

void leak_set_deinit(struct leak_set *set)
{
	struct process_name *process, *next_process;

	destroy_groups(set->groups);
	destroy_groups(set->causes);
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
