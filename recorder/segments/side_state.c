/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/segments/side_state.h"

#include "common/hash.h"
#include "common/partition_point.h"
#include "common/perf_disk.h"
#include "recorder/events/sample_format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COMM_BYTES 16

/* A mapping, or a part of one; forked processes share it. */
struct side_map {
	uint32_t nr_users;
	struct perf_disk_mmap2 record; /* and its path, and the trailer */
};

struct side_thread {
	pid_t tid;
	char comm[COMM_BYTES];
	UT_hash_handle hh;
};

struct side_process {
	pid_t pid;
	struct side_thread *threads;
	struct side_map **maps; /* ascending; none overlaps another one */
	size_t nr_maps, nr_allocated;
	UT_hash_handle hh;
};

/* A record that waits for its time. */
struct waiting {
	uint64_t time_ns;
	size_t nr; /* the order of arrival */
	struct perf_event_header *record;
};

struct side_state {
	struct side_process *processes;
	struct waiting *waiting;
	size_t nr_waiting, nr_allocated, nr_noted;
	size_t map_bytes, max_map_bytes; /* of each process's mappings, as they are written */
	uint64_t nr_left_out;
};

struct side_state *side_state_create(size_t max_map_bytes)
{
	struct side_state *state = calloc(1, sizeof(*state));

	if (state)
		state->max_map_bytes = max_map_bytes;
	return state;
}

static void release_map(struct side_state *state, struct side_map *map)
{
	state->map_bytes -= map->record.header.size;
	if (!--map->nr_users)
		free(map);
}

static void drop_maps(struct side_state *state, struct side_process *process)
{
	for (size_t i = 0; i < process->nr_maps; i++)
		release_map(state, process->maps[i]);
	free(process->maps);
	process->maps = NULL;
	process->nr_maps = process->nr_allocated = 0;
}

/* Drops the threads of @process but @kept. */
static void drop_threads(struct side_process *process, const struct side_thread *kept)
{
	struct side_thread *thread, *next;

	HASH_ITER (hh, process->threads, thread, next) {
		if (thread == kept)
			continue;
		HASH_DELETE(hh, process->threads, thread);
		free(thread);
	}
}

static void drop_process(struct side_state *state, struct side_process *process)
{
	drop_threads(process, NULL);
	drop_maps(state, process);
	HASH_DELETE(hh, state->processes, process);
	free(process);
}

void side_state_destroy(struct side_state *state)
{
	struct side_process *process, *next;

	if (!state)
		return;
	HASH_ITER (hh, state->processes, process, next)
		drop_process(state, process);
	for (size_t i = 0; i < state->nr_waiting; i++)
		free(state->waiting[i].record);
	free(state->waiting);
	free(state);
}

static struct side_process *find_process(const struct side_state *state, pid_t pid)
{
	struct side_process *process;

	HASH_FIND(hh, state->processes, &pid, sizeof(pid), process);
	return process;
}

/* NULL: out of memory, as the next one. */
static struct side_process *get_process(struct side_state *state, pid_t pid)
{
	struct side_process *process = find_process(state, pid);

	if (process)
		return process;
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = pid;
	HASH_ADD(hh, state->processes, pid, sizeof(process->pid), process);
	if (hash_added(process))
		return process;
	free(process);
	return NULL;
}

static struct side_thread *find_thread(const struct side_process *process, pid_t tid)
{
	struct side_thread *thread;

	HASH_FIND(hh, process->threads, &tid, sizeof(tid), thread);
	return thread;
}

static struct side_thread *get_thread(struct side_process *process, pid_t tid)
{
	struct side_thread *thread = find_thread(process, tid);

	if (thread)
		return thread;
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	thread->tid = tid;
	HASH_ADD(hh, process->threads, tid, sizeof(thread->tid), thread);
	if (hash_added(thread))
		return thread;
	free(thread);
	return NULL;
}

/* Returns false if the process, which has @nr mappings, can have no more, and counts that. */
static bool has_room(struct side_state *state, size_t nr, const struct side_map *map)
{
	if (nr < SIDE_STATE_MAX_MAPS &&
	    state->map_bytes + map->record.header.size <= state->max_map_bytes)
		return true;
	state->nr_left_out++;
	return false;
}

static int grow_maps(struct side_process *process)
{
	size_t nr = 2 * process->nr_allocated + 16;
	struct side_map **maps;

	if (process->nr_maps < process->nr_allocated)
		return 0;
	maps = reallocarray(process->maps, nr, sizeof(struct side_map *));
	if (!maps)
		return -ENOMEM;
	process->maps = maps;
	process->nr_allocated = nr;
	return 0;
}

/*
 * Puts @map in the place of those from @at to before @last. It is left out if there is no room,
 * and freed if nobody uses it. Returns 0 or -ENOMEM, also if @map is NULL.
 */
static int replace_maps(struct side_state *state, struct side_process *process, size_t at,
			size_t last, struct side_map *map)
{
	size_t nr_old = last - at, nr_after = process->nr_maps - last, nr_new = 0;
	int err = map ? grow_maps(process) : -ENOMEM;

	for (size_t i = at; i < last; i++)
		release_map(state, process->maps[i]);
	if (!err && has_room(state, process->nr_maps - nr_old, map))
		nr_new = 1;
	if (nr_new != nr_old)
		memmove(process->maps + at + nr_new, process->maps + last,
			nr_after * sizeof(struct side_map *));
	process->nr_maps = at + nr_new + nr_after;
	if (nr_new) {
		process->maps[at] = map;
		map->nr_users++;
		state->map_bytes += map->record.header.size;
	} else if (map && !map->nr_users) {
		free(map);
	}
	return err;
}

static uint64_t end_of(const struct side_map *map)
{
	return map->record.address + map->record.len;
}

/* Finds the first mapping that ends after @address. */
static size_t find_map(const struct side_process *process, uint64_t address)
{
	return partition_point(process->nr_maps, i, end_of(process->maps[i]) <= address);
}

/* The part of a mapping from @start to @end, which nobody uses yet. NULL: out of memory. */
static struct side_map *make_part(const struct perf_disk_mmap2 *record, uint64_t start,
				  uint64_t end)
{
	struct side_map *map = malloc(offsetof(struct side_map, record) + record->header.size);

	if (!map)
		return NULL;
	map->nr_users = 0;
	memcpy(&map->record, record, record->header.size);
	map->record.file_offset += start - record->address;
	map->record.address = start;
	map->record.len = end - start;
	return map;
}

static int apply_mmap(struct side_state *state, const struct perf_disk_mmap2 *record)
{
	struct side_process *process = get_process(state, (pid_t)record->pid);
	uint64_t start = record->address, end = start + record->len;
	size_t at, last;
	int err = 0;

	if (!process)
		return -ENOMEM;
	if (end <= start)
		return 0;
	at = find_map(process, start);
	if (at < process->nr_maps && process->maps[at]->record.address < start) {
		const struct perf_disk_mmap2 *old = &process->maps[at]->record;

		if (end_of(process->maps[at]) > end)
			err = replace_maps(state, process, at + 1, at + 1,
					   make_part(old, end, end_of(process->maps[at])));
		if (!err)
			err = replace_maps(state, process, at, at + 1,
					   make_part(old, old->address, start));
		at++;
	}
	for (last = at; last < process->nr_maps && end_of(process->maps[last]) <= end;)
		last++;
	if (!err && last < process->nr_maps && process->maps[last]->record.address < end)
		err = replace_maps(
			state, process, last, last + 1,
			make_part(&process->maps[last]->record, end, end_of(process->maps[last])));
	return err ? err : replace_maps(state, process, at, last, make_part(record, start, end));
}

static int apply_comm(struct side_state *state, const struct perf_disk_comm *record)
{
	struct side_process *process = get_process(state, (pid_t)record->pid);
	struct side_thread *thread = process ? get_thread(process, (pid_t)record->tid) : NULL;
	size_t size = record->header.size - sizeof(*record) - sizeof(struct record_trailer);

	if (!thread)
		return -ENOMEM;
	memset(thread->comm, 0, sizeof(thread->comm));
	memcpy(thread->comm, record + 1,
	       size < sizeof(thread->comm) ? size : sizeof(thread->comm) - 1);
	if (record->header.misc & PERF_RECORD_MISC_COMM_EXEC) {
		drop_threads(process, thread);
		drop_maps(state, process);
	}
	return 0;
}

static int apply_fork(struct side_state *state, const struct perf_disk_task *record)
{
	const struct side_process *parent = find_process(state, (pid_t)record->ppid);
	const struct side_thread *creator =
		parent ? find_thread(parent, (pid_t)record->ptid) : NULL;
	struct side_process *process = find_process(state, (pid_t)record->pid);
	struct side_thread *thread;
	int err = 0;

	/* One with the same id, whose end was not seen. */
	if (process && record->pid != record->ppid)
		drop_process(state, process);
	process = get_process(state, (pid_t)record->pid);
	thread = process ? get_thread(process, (pid_t)record->tid) : NULL;
	if (!thread)
		return -ENOMEM;
	if (creator && creator != thread)
		memcpy(thread->comm, creator->comm, sizeof(thread->comm));
	for (size_t i = 0; parent && parent != process && i < parent->nr_maps && !err; i++)
		err = replace_maps(state, process, process->nr_maps, process->nr_maps,
				   parent->maps[i]);
	return err;
}

static void apply_exit(struct side_state *state, const struct perf_disk_task *record)
{
	struct side_process *process = find_process(state, (pid_t)record->pid);
	struct side_thread *thread = process ? find_thread(process, (pid_t)record->tid) : NULL;

	if (thread) {
		HASH_DELETE(hh, process->threads, thread);
		free(thread);
	}
	if (process && !process->threads)
		drop_process(state, process);
}

static int apply(struct side_state *state, const struct perf_event_header *record)
{
	switch (record->type) {
	case PERF_RECORD_MMAP2:
		return apply_mmap(state, (const void *)record);
	case PERF_RECORD_COMM:
		return apply_comm(state, (const void *)record);
	case PERF_RECORD_FORK:
		return apply_fork(state, (const void *)record);
	default:
		apply_exit(state, (const void *)record);
		return 0;
	}
}

static size_t least_size(uint32_t type)
{
	switch (type) {
	case PERF_RECORD_MMAP2:
		return sizeof(struct perf_disk_mmap2);
	case PERF_RECORD_COMM:
		return sizeof(struct perf_disk_comm);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return sizeof(struct perf_disk_task);
	default:
		return UINT16_MAX;
	}
}

int side_state_note(struct side_state *state, const struct perf_event_header *record)
{
	struct record_trailer trailer;
	struct perf_event_header *copy;

	if (record->size < least_size(record->type) + sizeof(trailer))
		return 0;
	if (state->nr_waiting == state->nr_allocated) {
		size_t nr = 2 * state->nr_allocated + 64;
		struct waiting *grown = reallocarray(state->waiting, nr, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		state->waiting = grown;
		state->nr_allocated = nr;
	}
	copy = malloc(record->size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, record, record->size);
	memcpy(&trailer, (const char *)record + record->size - sizeof(trailer), sizeof(trailer));
	state->waiting[state->nr_waiting++] =
		(struct waiting){trailer.time_ns, state->nr_noted++, copy};
	return 0;
}

static int compare_waiting(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->nr < y->nr ? -1 : x->nr > y->nr;
}

int side_state_apply(struct side_state *state, uint64_t until_ns)
{
	size_t nr = 0;
	int err = 0;

	if (!state->nr_waiting)
		return 0;
	qsort(state->waiting, state->nr_waiting, sizeof(*state->waiting), compare_waiting);
	for (; !err && nr < state->nr_waiting && state->waiting[nr].time_ns <= until_ns; nr++) {
		err = apply(state, state->waiting[nr].record);
		free(state->waiting[nr].record);
	}
	state->nr_waiting -= nr;
	memmove(state->waiting, state->waiting + nr, state->nr_waiting * sizeof(*state->waiting));
	return err;
}

static void set_task(void *end, pid_t pid, pid_t tid)
{
	const struct record_trailer trailer = {.pid = (uint32_t)pid, .tid = (uint32_t)tid};

	memcpy((char *)end - sizeof(trailer), &trailer, sizeof(trailer));
}

static int write_thread(const struct side_process *process, const struct side_thread *thread,
			struct perf_writer *writer)
{
	struct {
		struct perf_disk_task task;
		struct record_trailer trailer;
	} fork = {
		.task.header = {PERF_RECORD_FORK, PERF_RECORD_MISC_USER, sizeof(fork)},
		.task.pid = (uint32_t)process->pid,
		.task.ppid = (uint32_t)process->pid,
		.task.tid = (uint32_t)thread->tid,
		.task.ptid = (uint32_t)process->pid,
	};
	struct {
		struct perf_disk_comm task;
		char comm[COMM_BYTES];
		struct record_trailer trailer;
	} comm = {
		.task.header = {PERF_RECORD_COMM, PERF_RECORD_MISC_USER, sizeof(comm)},
		.task.pid = (uint32_t)process->pid,
		.task.tid = (uint32_t)thread->tid,
	};
	int err = 0;

	set_task(&fork + 1, process->pid, thread->tid);
	set_task(&comm + 1, process->pid, thread->tid);
	memcpy(comm.comm, thread->comm, sizeof(comm.comm));
	if (thread->tid != process->pid)
		err = perf_writer_add_record(writer, &fork.task.header);
	if (err || !*thread->comm)
		return err;
	return perf_writer_add_record(writer, &comm.task.header);
}

static int write_map(const struct side_process *process, const struct side_map *map,
		     struct perf_writer *writer)
{
	uint64_t words[UINT16_MAX / sizeof(uint64_t) + 1];
	struct perf_disk_mmap2 *record = (void *)words;

	memcpy(words, &map->record, map->record.header.size);
	record->pid = record->tid = (uint32_t)process->pid;
	set_task((char *)words + record->header.size, process->pid, process->pid);
	return perf_writer_add_record(writer, &record->header);
}

int side_state_write(const struct side_state *state, struct perf_writer *writer)
{
	const struct side_process *process, *next;
	int err = 0;

	HASH_ITER (hh, state->processes, process, next) {
		const struct side_thread *first = find_thread(process, process->pid), *thread;

		if (first)
			err = write_thread(process, first, writer);
		for (thread = process->threads; thread && !err; thread = thread->hh.next)
			if (thread != first)
				err = write_thread(process, thread, writer);
		for (size_t i = 0; i < process->nr_maps && !err; i++)
			err = write_map(process, process->maps[i], writer);
		if (err)
			return err;
	}
	return 0;
}

uint64_t side_state_left_out(const struct side_state *state)
{
	return state->nr_left_out;
}
