/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/perfdata/perf_script_places.h"

#include "common/hash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Each file gets a range as large as a process's address space, so that any offset fits. */
#define FILE_BITS   48
#define MEMORY_BITS 40	  /* no file is that large; few programs and libraries are mapped below */
#define MAX_FILES   32000 /* addresses above are the kernel's */
#define NR_KNOWN    16384 /* a power of two */
#define GENERATED   "/tmp/perf-" /* perf's names for it begin so */
#define COMM_SIZE   16
#define MAX_NAMES   ((size_t)1 << 20)
#define MAX_THREADS ((size_t)1 << 22) /* the number of ids that Linux has */
#define MAX_MAPPED  ((size_t)1 << 20)

struct text_thread {
	pid_t tid, pid;
	char comm[COMM_SIZE];
	struct text_pair *mapped; /* by the process with this id */
	UT_hash_handle hh;
};

struct text_file {
	uint64_t start;
	UT_hash_handle hh;
	char path[];
};

/* Notes that a process has mapped a file, or that a position was named. */
struct text_pair {
	uint64_t key[2];
	struct text_pair *next; /* of the process */
	UT_hash_handle hh;
};

/* An address in memory, and its counterpart in the files' ranges. */
struct known_address {
	uint64_t address, made_up; /* 0: the slot is empty */
	pid_t pid;
};

struct perf_script_places {
	const struct perf_consumer *consumer;
	uint64_t seed; /* of all hashes */
	struct text_thread *threads;
	struct text_file *files;
	struct text_pair *mapped; /* process, file's start */
	struct text_pair *named;  /* address */
	pid_t first_pid;	  /* of all threads whose process is not known; 0: none yet */
	bool guessed, in_memory;
	struct known_address known[NR_KNOWN];
};

int perf_script_places_create(const struct perf_consumer *consumer, struct perf_script_places **ret)
{
	struct perf_script_places *places = calloc(1, sizeof(*places));

	if (!places)
		return -ENOMEM;
	places->consumer = consumer;
	places->seed = hash_seed();
	*ret = places;
	return 0;
}

static void free_pairs(struct text_pair **pairs)
{
	struct text_pair *pair, *next;

	HASH_ITER (hh, *pairs, pair, next) {
		HASH_DEL(*pairs, pair);
		free(pair);
	}
}

void perf_script_places_destroy(struct perf_script_places *places)
{
	struct text_thread *thread, *next_thread;
	struct text_file *file, *next_file;

	HASH_ITER (hh, places->threads, thread, next_thread) {
		HASH_DEL(places->threads, thread);
		free(thread);
	}
	HASH_ITER (hh, places->files, file, next_file) {
		HASH_DEL(places->files, file);
		free(file);
	}
	free_pairs(&places->mapped);
	free_pairs(&places->named);
	free(places);
}

/*
 * Adds the pair if it is new and there are not too many; otherwise *@ret is NULL. Returns 0 or
 * -ENOMEM.
 */
static int add_pair(const struct perf_script_places *places, struct text_pair **pairs,
		    const uint64_t key[2], size_t max, struct text_pair **ret)
{
	unsigned int hash = (unsigned int)hash_words(key, 2, places->seed);
	struct text_pair *pair;

	HASH_FIND_BYHASHVALUE(hh, *pairs, key, sizeof(pair->key), hash, pair);
	*ret = NULL;
	if (pair || HASH_COUNT(*pairs) >= max)
		return 0;
	pair = calloc(1, sizeof(*pair));
	if (!pair)
		return -ENOMEM;
	memcpy(pair->key, key, sizeof(pair->key));
	HASH_ADD_BYHASHVALUE(hh, *pairs, key, sizeof(pair->key), hash, pair);
	if (!hash_added(pair)) {
		free(pair);
		return -ENOMEM;
	}
	*ret = pair;
	return 0;
}

static struct text_thread *find_thread(const struct perf_script_places *places, pid_t tid)
{
	struct text_thread *thread;

	HASH_FIND_BYHASHVALUE(hh, places->threads, &tid, sizeof(tid),
			      hash_number((uint64_t)tid, places->seed), thread);
	return thread;
}

/* Gets the thread. A new one has the process -1. */
static int get_thread(struct perf_script_places *places, pid_t tid, struct text_thread **ret)
{
	struct text_thread *thread = find_thread(places, tid);

	*ret = thread;
	if (thread)
		return 0;
	if (HASH_COUNT(places->threads) >= MAX_THREADS)
		return -ENOMEM;
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return -ENOMEM;
	thread->tid = tid;
	thread->pid = -1;
	HASH_ADD_BYHASHVALUE(hh, places->threads, tid, sizeof(thread->tid),
			     hash_number((uint64_t)tid, places->seed), thread);
	if (!hash_added(thread)) {
		free(thread);
		return -ENOMEM;
	}
	*ret = thread;
	return 0;
}

int perf_script_places_process(struct perf_script_places *places, pid_t pid, pid_t tid,
			       pid_t *ret_pid)
{
	struct text_thread *thread;
	int err = get_thread(places, tid, &thread);

	if (err)
		return err;
	if (pid >= 0)
		thread->pid = pid;
	if (thread->pid < 0) {
		if (!places->first_pid)
			places->first_pid = tid;
		places->guessed |= places->first_pid != tid;
		thread->pid = places->first_pid;
	}
	*ret_pid = thread->pid;
	return 0;
}

bool perf_script_places_guessed(const struct perf_script_places *places)
{
	return places->guessed;
}

/*
 * It may be in memory or in its file. Of generated code, which has no file, perf always prints
 * addresses in memory.
 */
static bool is_doubtful(const struct perf_script_frame *frame)
{
	return frame->module && frame->module[0] == '/' && !frame->is_in_file &&
	       strncmp(frame->module, GENERATED, strlen(GENERATED)) != 0;
}

void perf_script_places_begin_stack(struct perf_script_places *places,
				    const struct perf_sample *sample,
				    const struct perf_script_frame *first)
{
	places->in_memory |= is_doubtful(first) && first->address &&
			     (first->address == sample->probe_address ||
			      first->address == sample->return_address);
}

bool perf_script_places_in_memory(const struct perf_script_places *places)
{
	return places->in_memory;
}

int perf_script_places_fork(struct perf_script_places *places, const struct perf_task_record *task)
{
	struct text_thread *thread;
	int err = get_thread(places, task->tid, &thread);

	if (err)
		return err;
	thread->pid = task->pid;
	/*
	 * A child inherits its parent's mappings, but it is cheaper to say again what it has mapped
	 * than to note all of that here.
	 */
	if (task->pid != task->ppid)
		perf_script_places_exec(places, task->pid);
	return 0;
}

void perf_script_places_exec(struct perf_script_places *places, pid_t pid)
{
	struct text_thread *process = find_thread(places, pid);
	struct text_pair *pair;

	while (process && process->mapped) {
		pair = process->mapped;
		process->mapped = pair->next;
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the table has all of them */
		HASH_DEL(places->mapped, pair);
		free(pair);
	}
}

int perf_script_places_name(struct perf_script_places *places, pid_t tid, const char *name,
			    bool *ret_is_new)
{
	struct text_thread *thread;
	char comm[COMM_SIZE] = "", substitute[16];
	int err = get_thread(places, tid, &thread);

	*ret_is_new = false;
	(void)snprintf(substitute, sizeof(substitute), ":%d", tid);
	if (err || strcmp(name, substitute) == 0)
		return err;
	memcpy(comm, name, strnlen(name, sizeof(comm) - 1));
	*ret_is_new = strcmp(comm, thread->comm) != 0;
	memcpy(thread->comm, comm, sizeof(comm));
	return 0;
}

/* *@ret is NULL if there are too many files. */
static int get_file(struct perf_script_places *places, const char *path,
		    const struct text_file **ret)
{
	size_t len = strlen(path);
	unsigned int hash = (unsigned int)hash_text(path, places->seed);
	struct text_file *file;

	HASH_FIND_BYHASHVALUE(hh, places->files, path, len, hash, file);
	*ret = file;
	if (file || HASH_COUNT(places->files) == MAX_FILES)
		return 0;
	file = calloc(1, sizeof(*file) + len + 1);
	if (!file)
		return -ENOMEM;
	memcpy(file->path, path, len);
	file->start = ((uint64_t)HASH_COUNT(places->files) + 1) << FILE_BITS;
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, places->files, file->path, len, hash, file);
	if (!hash_added(file)) {
		free(file);
		return -ENOMEM;
	}
	*ret = file;
	return 0;
}

static int map_file(struct perf_script_places *places, pid_t pid, const struct text_file *file)
{
	const struct perf_consumer *consumer = places->consumer;
	struct perf_mmap_record mmap = {
		.origin = {.pid = pid, .tid = pid},
		.tid = pid,
		.executable = true,
		.mapping =
			{
				.pid = pid,
				.start = file->start,
				.len = (uint64_t)1 << FILE_BITS,
				.path = file->path,
			},
	};
	const uint64_t key[2] = {(uint64_t)pid, file->start};
	struct text_thread *process;
	struct text_pair *added;
	int err = add_pair(places, &places->mapped, key, MAX_MAPPED, &added);

	if (err || !added)
		return err;
	err = get_thread(places, pid, &process);
	if (err)
		return err;
	LL_PREPEND(process->mapped, added);
	return consumer->on_mmap ? consumer->on_mmap(consumer->context, &mmap) : 0;
}

/*
 * The position in the frame's file. Where some addresses are in memory, all are, also a program's
 * at 0x400000: they become positions that no file has.
 */
static uint64_t position_of(struct perf_script_places *places,
			    const struct perf_script_frame *frame)
{
	if (!is_doubtful(frame))
		return frame->address;
	if (frame->address >> MEMORY_BITS)
		places->in_memory = true;
	else if (places->in_memory)
		return frame->address | (uint64_t)1 << MEMORY_BITS;
	return frame->address;
}

int perf_script_places_frame(struct perf_script_places *places, pid_t pid,
			     const struct perf_script_frame *frame, uint64_t *ret)
{
	const struct perf_consumer *consumer = places->consumer;
	const struct text_file *file = NULL;
	struct text_pair *added;
	uint64_t position;
	/* "[vdso]", "[heap]" and the like are not files. */
	int err = frame->module && frame->module[0] == '/' ? get_file(places, frame->module, &file)
							   : 0;

	*ret = frame->address;
	if (err || !file || frame->address >> FILE_BITS)
		return err;
	position = position_of(places, frame);
	*ret = file->start + position;
	err = map_file(places, pid, file);
	if (err || !frame->symbol || !consumer->on_name)
		return err;
	err = add_pair(places, &places->named, (const uint64_t[2]){*ret, 0}, MAX_NAMES, &added);
	if (err || !added)
		return err;
	return consumer->on_name(consumer->context, file->path, position, frame->symbol,
				 frame->symbol_offset);
}

static size_t slot_of(pid_t pid, uint64_t address)
{
	return hash_mix(address ^ (uint64_t)pid << 48, 0xd6e8feb86659fd93) & (NR_KNOWN - 1);
}

void perf_script_places_learn(struct perf_script_places *places, const struct perf_sample *sample)
{
	/* At a return the first frame is the caller, at an entry the function. */
	uint64_t address = probe_point_is_return(sample->event->point) ? sample->return_address
								       : sample->probe_address;

	/* An exit's first frame may be in another function's code. */
	if (sample->nr_callchain == 0 || address == 0 || sample->event->point == PROBE_EXIT)
		return;
	places->known[slot_of(sample->origin.pid, address)] = (struct known_address){
		.address = address,
		.made_up = sample->callchain[0],
		.pid = sample->origin.pid,
	};
}

/* Returns @address itself if it is unknown. */
static uint64_t translate(const struct perf_script_places *places, pid_t pid, uint64_t address)
{
	const struct known_address *known = &places->known[slot_of(pid, address)];

	return known->address == address && known->pid == pid ? known->made_up : address;
}

static size_t insert(uint64_t *chain, size_t nr, size_t max, size_t at, uint64_t address)
{
	if (nr == max)
		nr--;
	memmove(chain + at + 1, chain + at, (nr - at) * sizeof(*chain));
	chain[at] = address;
	return nr + 1;
}

/* Makes the probed function's frame. */
static int place_function(struct perf_script_places *places, const struct perf_sample *sample,
			  uint64_t *ret)
{
	const struct probe_schema *schema = sample->event->schema;
	size_t nr_rows;
	const struct perf_script_frame frame = {
		.address = (uint64_t)(schema - probe_schema_table(&nr_rows)) * 16,
		.is_in_file = true,
		.symbol = schema->function,
		.module = "/unknown",
	};

	*ret = translate(places, sample->origin.pid, sample->probe_address);
	if (*ret != sample->probe_address)
		return 0;
	return perf_script_places_frame(places, sample->origin.pid, &frame, ret);
}

int perf_script_places_complete(struct perf_script_places *places, const struct perf_sample *sample,
				uint64_t *chain, size_t max, size_t *ret_nr)
{
	bool is_return = probe_point_is_return(sample->event->point);
	uint64_t function, caller = is_return ? sample->return_address : sample->caller;
	size_t nr = sample->nr_callchain;

	if (is_return || nr == 0) {
		int err = place_function(places, sample, &function);

		if (err)
			return err;
		if (sample->event->point == PROBE_EXIT && nr)
			chain[0] = function;
		else
			nr = insert(chain, nr, max, 0, function);
	}
	caller = caller ? translate(places, sample->origin.pid, caller) : 0;
	if (caller && (nr == 1 || chain[1] != caller))
		nr = insert(chain, nr, max, 1, caller);
	*ret_nr = nr;
	return 0;
}
