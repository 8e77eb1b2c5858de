/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/modules/address_space.h"

#include "common/diag.h"
#include "common/partition_point.h"
#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Twice the kernel's default vm.max_map_count. */
#define MAX_MAPPINGS (1u << 17)
#define MAX_RUN	     64

/* Consecutive mappings. A run never changes, so that several address spaces can share it. */
struct mapping_run {
	unsigned refs;
	size_t nr; /* from 1 */
	struct mapping mappings[];
};

/* The position of a mapping; {nr_runs, 0} is the end. */
struct mapping_place {
	size_t run, at;
};

struct process {
	pid_t pid;
	bool exited;
	struct address_space *space;
	UT_hash_handle hh;
};

void address_spaces_init(struct address_spaces *spaces)
{
	*spaces = (struct address_spaces){.seed = hash_seed()};
}

static struct address_space *space_create(struct address_spaces *spaces)
{
	struct address_space *space = calloc(1, sizeof(*space));

	if (!space)
		return NULL;
	space->refs = 1;
	space->id = ++spaces->last_id;
	space->generation = ++spaces->last_generation;
	return space;
}

static void run_put(struct mapping_run *run)
{
	if (run && --run->refs == 0)
		free(run);
}

static void space_put(struct address_space *space)
{
	if (!space || --space->refs)
		return;
	for (size_t i = 0; i < space->nr_runs; i++)
		run_put(space->runs[i]);
	free(space->runs);
	free(space);
}

static void process_destroy(struct address_spaces *spaces, struct process *process)
{
	HASH_DELETE(hh, spaces->by_pid, process);
	space_put(process->space);
	free(process);
}

void address_spaces_deinit(struct address_spaces *spaces)
{
	struct process *process, *next;

	HASH_ITER (hh, spaces->by_pid, process, next)
		process_destroy(spaces, process);
}

static struct process *find_process(const struct address_spaces *spaces, pid_t pid)
{
	struct process *process;

	HASH_FIND_BYHASHVALUE(hh, spaces->by_pid, &pid, sizeof(pid),
			      hash_number((uint64_t)pid, spaces->seed), process);
	return process;
}

/* Enters @space as the address space of @pid. Takes over the caller's reference. */
static int set_space(struct address_spaces *spaces, pid_t pid, struct address_space *space)
{
	struct process *process = find_process(spaces, pid);

	if (!process) {
		process = calloc(1, sizeof(*process));
		if (!process)
			return -ENOMEM;
		process->pid = pid;
		HASH_ADD_BYHASHVALUE(hh, spaces->by_pid, pid, sizeof(pid),
				     hash_number((uint64_t)pid, spaces->seed), process);
		if (!hash_added(process)) {
			free(process);
			return -ENOMEM;
		}
	}
	space_put(process->space);
	process->space = space;
	process->exited = false;
	return 0;
}

/*
 * Returns the address space of @pid for a change: a new one if there is none, a copy if it is
 * shared.
 */
static struct address_space *get_private(struct address_spaces *spaces, pid_t pid)
{
	struct process *process = find_process(spaces, pid);
	struct address_space *space;

	if (process && process->space->refs == 1)
		return process->space;

	space = space_create(spaces);
	if (!space)
		return NULL;
	if (process && process->space->nr) {
		const struct address_space *shared = process->space;

		space->runs = calloc(shared->nr_runs, sizeof(struct mapping_run *));
		if (!space->runs)
			goto out_of_memory;
		memcpy(space->runs, shared->runs, shared->nr_runs * sizeof(struct mapping_run *));
		space->nr_runs = shared->nr_runs;
		space->nr = shared->nr;
		for (size_t i = 0; i < space->nr_runs; i++)
			space->runs[i]->refs++;
	}
	if (set_space(spaces, pid, space))
		goto out_of_memory;
	return space;

out_of_memory:
	space_put(space);
	return NULL;
}

static uint64_t run_end(const struct mapping_run *run)
{
	return run->mappings[run->nr - 1].end;
}

/* The position of the first mapping that ends after @address, or the end. */
static struct mapping_place first_ending_after(const struct address_space *space, uint64_t address)
{
	struct mapping_place place = {0};
	const struct mapping_run *run;

	place.run = partition_point(space->nr_runs, i, run_end(space->runs[i]) <= address);
	if (place.run == space->nr_runs)
		return place;
	run = space->runs[place.run];
	place.at = partition_point(run->nr, i, run->mappings[i].end <= address);
	return place;
}

/* Returns the mapping at @place, and advances @place. NULL at the end. */
static const struct mapping *next_mapping(const struct address_space *space,
					  struct mapping_place *place)
{
	const struct mapping_run *run;

	if (place->run >= space->nr_runs)
		return NULL;
	run = space->runs[place->run];
	if (++place->at < run->nr)
		return &run->mappings[place->at - 1];
	place->run++;
	place->at = 0;
	return &run->mappings[run->nr - 1];
}

/* Splits @nr mappings into at most *@ret_nr runs. */
static int make_runs(const struct mapping *mappings, size_t nr, struct mapping_run **ret,
		     size_t *ret_nr)
{
	size_t nr_runs = (nr + MAX_RUN - 1) / MAX_RUN, done = 0;

	for (*ret_nr = 0; *ret_nr < nr_runs; ++*ret_nr) {
		size_t nr_here = (nr - done) / (nr_runs - *ret_nr);
		struct mapping_run *run = malloc(sizeof(*run) + nr_here * sizeof(*run->mappings));

		if (!run) {
			while (*ret_nr > 0)
				free(ret[--*ret_nr]);
			return -ENOMEM;
		}
		run->refs = 1;
		run->nr = nr_here;
		memcpy(run->mappings, &mappings[done], nr_here * sizeof(*mappings));
		ret[*ret_nr] = run;
		done += nr_here;
	}
	return 0;
}

/* Replaces runs [first, last) by @nr others. */
static int replace_runs(struct address_space *space, size_t first, size_t last,
			struct mapping_run *const *others, size_t nr)
{
	size_t nr_after = space->nr_runs - (last - first) + nr;
	struct mapping_run **runs = calloc(nr_after + 1, sizeof(struct mapping_run *));

	if (!runs)
		return -ENOMEM;
	if (first)
		memcpy(runs, space->runs, first * sizeof(struct mapping_run *));
	if (nr)
		memcpy(&runs[first], others, nr * sizeof(struct mapping_run *));
	if (last < space->nr_runs)
		memcpy(&runs[first + nr], &space->runs[last],
		       (space->nr_runs - last) * sizeof(struct mapping_run *));
	for (size_t i = first; i < last; i++)
		run_put(space->runs[i]);
	free(space->runs);
	space->runs = runs;
	space->nr_runs = nr_after;
	return 0;
}

/* A change by a new mapping of [start, end): the mappings that it meets, and their replacements. */
struct change {
	struct mapping_place first, last;
	size_t nr_met;
	struct mapping pieces[3]; /* the rest before it, the new mapping, the rest after it */
	size_t nr_pieces;
};

static void plan_change(const struct address_space *space, const struct mapping *new,
			struct change *ret)
{
	const struct mapping *met, *first_met = NULL, *last_met = NULL;
	struct mapping_place next;

	*ret = (struct change){.first = first_ending_after(space, new->start)};
	for (ret->last = next = ret->first;
	     (met = next_mapping(space, &next)) && met->start < new->end; ret->last = next) {
		if (!first_met)
			first_met = met;
		last_met = met;
		ret->nr_met++;
	}

	if (first_met && first_met->start < new->start) {
		struct mapping *before = &ret->pieces[ret->nr_pieces++];

		*before = *first_met;
		before->end = new->start;
	}
	if (new->module)
		ret->pieces[ret->nr_pieces++] = *new;
	if (last_met && last_met->end > new->end) {
		struct mapping *behind = &ret->pieces[ret->nr_pieces++];

		*behind = *last_met;
		behind->file_offset += new->end - behind->start;
		behind->start = new->end;
	}
}

static void add_mappings(struct mapping *list, size_t *nr, const struct mapping *mappings,
			 size_t nr_mappings)
{
	if (nr_mappings)
		memcpy(&list[*nr], mappings, nr_mappings * sizeof(*list));
	*nr += nr_mappings;
}

static void append_run(struct mapping *list, size_t *nr, const struct mapping_run *run)
{
	add_mappings(list, nr, run->mappings, run->nr);
}

/* Replaces the runs that the change meets, and the next run if what remains is too short. */
static int apply_change(struct address_space *space, const struct change *change)
{
	struct mapping list[3 * MAX_RUN + ARRAY_SIZE(change->pieces)];
	size_t first = change->first.run, last = change->last.run, nr = 0, nr_runs;
	struct mapping_run *runs[4];

	if (change->first.at)
		add_mappings(list, &nr, space->runs[first]->mappings, change->first.at);
	else if (first > 0) /* otherwise, mappings in ascending order would make a run each */
		append_run(list, &nr, space->runs[--first]);
	add_mappings(list, &nr, change->pieces, change->nr_pieces);
	if (change->last.at) {
		const struct mapping_run *run = space->runs[last++];

		add_mappings(list, &nr, &run->mappings[change->last.at], run->nr - change->last.at);
	}
	if (nr < MAX_RUN / 4 && last < space->nr_runs)
		append_run(list, &nr, space->runs[last++]);
	if (make_runs(list, nr, runs, &nr_runs))
		return -ENOMEM;
	if (replace_runs(space, first, last, runs, nr_runs)) {
		while (nr_runs > 0)
			free(runs[--nr_runs]);
		return -ENOMEM;
	}
	space->nr += change->nr_pieces;
	space->nr -= change->nr_met;
	return 0;
}

static bool is_mapped_already(const struct address_space *space, const struct mapping *new)
{
	const struct mapping *old = address_space_find(space, new->start);

	return old && new->start == old->start &&new->end == old->end &&new->module ==
			      old->module &&new->file_offset == old->file_offset;
}

int address_spaces_map(struct address_spaces *spaces, const struct stack_mapping *mapping,
		       struct module *module)
{
	const struct address_space *space = address_spaces_find(spaces, mapping->pid);
	static const struct address_space empty;
	struct address_space *changed;
	struct change change;
	struct mapping new = {
		.start = mapping->start,
		.end = mapping->start + mapping->len,
		.file_offset = mapping->file_offset,
		.module = module,
	};

	if (new.end <= new.start)
		return 0; /* empty, or beyond the end of the address space */
	if (is_mapped_already(space, &new))
		return 0;
	plan_change(space ? space : &empty, &new, &change);
	if (!change.nr_met && !module)
		return 0;
	if (space && space->nr >= MAX_MAPPINGS) {
		if (!spaces->warned_full)
			diag_warn("process %d: more than %u mappings; the rest is ignored",
				  (int)mapping->pid, MAX_MAPPINGS);
		spaces->warned_full = true;
		return 0;
	}

	changed = get_private(spaces, mapping->pid);
	if (!changed)
		return -ENOMEM;
	changed->generation = ++spaces->last_generation;
	return apply_change(changed, &change);
}

int address_spaces_fork(struct address_spaces *spaces, pid_t child, pid_t parent)
{
	struct process *from = find_process(spaces, parent);

	if (child == parent)
		return 0; /* a new thread */
	if (!from) {
		address_spaces_exec(spaces, child);
		return 0;
	}
	from->space->refs++;
	if (set_space(spaces, child, from->space)) {
		from->space->refs--;
		return -ENOMEM;
	}
	return 0;
}

void address_spaces_exec(struct address_spaces *spaces, pid_t pid)
{
	struct process *process = find_process(spaces, pid);

	if (process)
		process_destroy(spaces, process);
}

void address_spaces_exit(struct address_spaces *spaces, pid_t pid)
{
	struct process *process = find_process(spaces, pid), *oldest;
	pid_t *slot = &spaces->exited[spaces->next_exited];

	if (!process || process->exited)
		return;
	/* The pid in the ring may belong to a new process by now. */
	oldest = *slot ? find_process(spaces, *slot) : NULL;
	if (oldest && oldest->exited)
		process_destroy(spaces, oldest);
	process->exited = true;
	*slot = pid;
	spaces->next_exited = (spaces->next_exited + 1) % MAX_EXITED;
}

const struct address_space *address_spaces_find(const struct address_spaces *spaces, pid_t pid)
{
	const struct process *process = find_process(spaces, pid);

	return process ? process->space : NULL;
}

const struct mapping *address_space_find(const struct address_space *space, uint64_t address)
{
	if (!space)
		return NULL;

	struct mapping_place place = first_ending_after(space, address);
	const struct mapping *mapping = next_mapping(space, &place);

	return mapping && mapping->start <= address ? mapping : NULL;
}

void address_space_for_each(const struct address_space *space,
			    void (*visit)(void *context, const struct mapping *mapping),
			    void *context)
{
	for (size_t i = 0; i < space->nr_runs; i++)
		for (size_t j = 0; j < space->runs[i]->nr; j++)
			visit(context, &space->runs[i]->mappings[j]);
}

size_t address_space_neighbours(const struct address_space *space, uint64_t address,
				const struct mapping *ret[2])
{
	struct mapping_place place = first_ending_after(space, address), before = place;
	size_t nr = 0;

	if (before.at == 0 && before.run > 0)
		before = (struct mapping_place){before.run - 1, space->runs[before.run - 1]->nr};
	if (before.at > 0)
		ret[nr++] = &space->runs[before.run]->mappings[before.at - 1];
	ret[nr] = next_mapping(space, &place);
	return nr + (ret[nr] != NULL);
}
