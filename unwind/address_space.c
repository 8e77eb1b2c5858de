/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/address_space.h"

#include "common/diag.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Twice the kernel's default vm.max_map_count: no process that runs has more. */
#define MAX_MAPPINGS (1u << 17)

struct process {
	pid_t pid;
	bool exited;
	struct address_space *space;
	UT_hash_handle hh;
};

void address_spaces_init(struct address_spaces *spaces)
{
	*spaces = (struct address_spaces){0};
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

static void space_put(struct address_space *space)
{
	if (!space || --space->refs)
		return;
	free(space->mappings);
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

	HASH_FIND(hh, spaces->by_pid, &pid, sizeof(pid), process);
	return process;
}

/* Puts a reference to @space (its caller's) into the table as the address space of @pid. */
static int set_space(struct address_spaces *spaces, pid_t pid, struct address_space *space)
{
	struct process *process = find_process(spaces, pid);

	if (!process) {
		process = calloc(1, sizeof(*process));
		if (!process)
			return -ENOMEM;
		process->pid = pid;
		HASH_ADD(hh, spaces->by_pid, pid, sizeof(pid), process);
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

/* The space of @pid to be changed: made if there is none, copied if it is shared. */
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

		space->mappings = calloc(shared->nr, sizeof(*space->mappings));
		if (!space->mappings)
			goto out_of_memory;
		memcpy(space->mappings, shared->mappings, shared->nr * sizeof(*space->mappings));
		space->nr = space->capacity = shared->nr;
	}
	if (set_space(spaces, pid, space))
		goto out_of_memory;
	return space;

out_of_memory:
	space_put(space);
	return NULL;
}

/* The index of the first mapping that ends after @address. */
static size_t first_ending_after(const struct address_space *space, uint64_t address)
{
	size_t low = 0, high = space->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (space->mappings[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Replaces mappings [first, last) by @nr others. */
static int replace_mappings(struct address_space *space, size_t first, size_t last,
			    const struct mapping *others, size_t nr)
{
	size_t nr_after = space->nr - (last - first) + nr;

	if (nr_after > space->capacity) {
		size_t capacity = 2 * space->capacity;
		struct mapping *mappings;

		if (capacity < nr_after)
			capacity = nr_after + 16;
		mappings = reallocarray(space->mappings, capacity, sizeof(*mappings));
		if (!mappings)
			return -ENOMEM;
		space->mappings = mappings;
		space->capacity = capacity;
	}
	if (last < space->nr)
		memmove(&space->mappings[first + nr], &space->mappings[last],
			(space->nr - last) * sizeof(*space->mappings));
	for (size_t i = 0; i < nr; i++)
		space->mappings[first + i] = others[i];
	space->nr = nr_after;
	return 0;
}

/* What changes when [start, end) is mapped anew: the mappings met, and what takes their place. */
struct change {
	size_t first, last;
	struct mapping pieces[3]; /* what is left before, the new mapping, what is left behind */
	size_t nr_pieces;
};

static void plan_change(const struct address_space *space, const struct mapping *new,
			struct change *ret)
{
	*ret = (struct change){.first = first_ending_after(space, new->start)};
	for (ret->last = ret->first; ret->last < space->nr; ret->last++)
		if (space->mappings[ret->last].start >= new->end)
			break;

	if (ret->first < ret->last && space->mappings[ret->first].start < new->start) {
		struct mapping *before = &ret->pieces[ret->nr_pieces++];

		*before = space->mappings[ret->first];
		before->end = new->start;
	}
	if (new->module)
		ret->pieces[ret->nr_pieces++] = *new;
	if (ret->first < ret->last && space->mappings[ret->last - 1].end > new->end) {
		struct mapping *behind = &ret->pieces[ret->nr_pieces++];

		*behind = space->mappings[ret->last - 1];
		behind->file_offset += new->end - behind->start;
		behind->start = new->end;
	}
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
		return 0; /* empty, or around the end of the address space */
	if (is_mapped_already(space, &new))
		return 0;
	plan_change(space ? space : &empty, &new, &change);
	if (change.first == change.last && !module)
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
	return replace_mappings(changed, change.first, change.last, change.pieces,
				change.nr_pieces);
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
	/* A pid in the ring may have been given to a new process since. */
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

	size_t index = first_ending_after(space, address);
	const struct mapping *mapping = &space->mappings[index];

	return index < space->nr && mapping->start <= address ? mapping : NULL;
}

size_t address_space_neighbours(const struct address_space *space, uint64_t address,
				const struct mapping *ret[2])
{
	size_t index = first_ending_after(space, address), nr = 0;

	if (index > 0)
		ret[nr++] = &space->mappings[index - 1];
	if (index < space->nr)
		ret[nr++] = &space->mappings[index];
	return nr;
}
