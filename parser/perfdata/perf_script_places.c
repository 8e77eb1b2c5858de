/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/perfdata/perf_script_places.h"

#include "common/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Each file gets a range as large as a process's address space, so that any offset fits. */
#define FILE_BITS   48
#define MAX_FILES   32000 /* addresses above are the kernel's */
#define NR_KNOWN    16384 /* a power of two */
#define COMM_SIZE   16
#define MAX_NAMES   ((size_t)1 << 20)
#define MAX_THREADS ((size_t)1 << 22) /* the number of ids that Linux has */
#define MAX_MAPPED  ((size_t)1 << 20)

struct text_thread {
	pid_t tid, pid;
	char comm[COMM_SIZE];
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
	UT_hash_handle hh;
};

/* An address in memory, and its counterpart in the files' ranges. */
struct known_address {
	uint64_t address, made_up; /* 0: the slot is empty */
	pid_t pid;
};

struct perf_script_places {
	const struct perf_consumer *consumer;
	struct text_thread *threads;
	struct text_file *files;
	struct text_pair *mapped; /* process, file's start */
	struct text_pair *named;  /* address */
	pid_t first_pid;	  /* of all threads whose process is not known; 0: none yet */
	bool guessed;
	struct known_address known[NR_KNOWN];
};

int perf_script_places_create(const struct perf_consumer *consumer, struct perf_script_places **ret)
{
	struct perf_script_places *places = calloc(1, sizeof(*places));

	if (!places)
		return -ENOMEM;
	places->consumer = consumer;
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
 * Adds the pair if it is new and there are not too many. Sets *@ret_is_new. Returns 0 or -ENOMEM.
 */
static int add_pair(struct text_pair **pairs, uint64_t a, uint64_t b, size_t max, bool *ret_is_new)
{
	const uint64_t key[2] = {a, b};
	struct text_pair *pair;

	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): both words are set */
	HASH_FIND(hh, *pairs, key, sizeof(key), pair);
	*ret_is_new = false;
	if (pair || HASH_COUNT(*pairs) >= max)
		return 0;
	pair = calloc(1, sizeof(*pair));
	if (!pair)
		return -ENOMEM;
	memcpy(pair->key, key, sizeof(key));
	HASH_ADD(hh, *pairs, key, sizeof(pair->key), pair);
	if (!hash_added(pair)) {
		free(pair);
		return -ENOMEM;
	}
	*ret_is_new = true;
	return 0;
}

/* Gets the thread. A new one has the process -1. */
static int get_thread(struct perf_script_places *places, pid_t tid, struct text_thread **ret)
{
	struct text_thread *thread;

	HASH_FIND(hh, places->threads, &tid, sizeof(tid), thread);
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
	HASH_ADD(hh, places->threads, tid, sizeof(thread->tid), thread);
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

int perf_script_places_fork(struct perf_script_places *places, const struct perf_task_record *task)
{
	struct text_pair *pair, *next;
	struct text_thread *thread;
	int err = get_thread(places, task->tid, &thread);

	if (err)
		return err;
	thread->pid = task->pid;
	if (task->pid == task->ppid)
		return 0;
	perf_script_places_exec(places, task->pid);
	/* A child inherits its parent's mappings. */
	HASH_ITER (hh, places->mapped, pair, next) {
		bool is_new;

		if (pair->key[0] != (uint64_t)task->ppid)
			continue;
		err = add_pair(&places->mapped, (uint64_t)task->pid, pair->key[1], MAX_MAPPED,
			       &is_new);
		if (err)
			return err;
	}
	return 0;
}

void perf_script_places_exec(struct perf_script_places *places, pid_t pid)
{
	struct text_pair *pair, *next;

	HASH_ITER (hh, places->mapped, pair, next) {
		if (pair->key[0] != (uint64_t)pid)
			continue;
		HASH_DEL(places->mapped, pair);
		free(pair);
	}
}

int perf_script_places_name(struct perf_script_places *places, pid_t tid, const char *name,
			    bool *ret_is_new)
{
	struct text_thread *thread;
	char comm[COMM_SIZE] = "";
	int err = get_thread(places, tid, &thread);

	if (err)
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
	struct text_file *file;

	HASH_FIND(hh, places->files, path, len, file);
	*ret = file;
	if (file || HASH_COUNT(places->files) == MAX_FILES)
		return 0;
	file = calloc(1, sizeof(*file) + len + 1);
	if (!file)
		return -ENOMEM;
	memcpy(file->path, path, len);
	file->start = ((uint64_t)HASH_COUNT(places->files) + 1) << FILE_BITS;
	HASH_ADD_KEYPTR(hh, places->files, file->path, len, file);
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
	bool is_new;
	int err = add_pair(&places->mapped, (uint64_t)pid, file->start, MAX_MAPPED, &is_new);

	if (err || !is_new || !consumer->on_mmap)
		return err;
	return consumer->on_mmap(consumer->context, &mmap);
}

int perf_script_places_frame(struct perf_script_places *places, pid_t pid,
			     const struct perf_script_frame *frame, uint64_t *ret)
{
	const struct perf_consumer *consumer = places->consumer;
	const struct text_file *file = NULL;
	bool is_new;
	/* "[vdso]", "[heap]" and the like are not files. */
	int err = frame->module && frame->module[0] == '/' ? get_file(places, frame->module, &file)
							   : 0;

	*ret = frame->address;
	if (err || !file || frame->address >> FILE_BITS)
		return err;
	*ret = file->start + frame->address;
	err = map_file(places, pid, file);
	if (err || !frame->symbol || !consumer->on_name)
		return err;
	err = add_pair(&places->named, *ret, 0, MAX_NAMES, &is_new);
	if (err || !is_new)
		return err;
	return consumer->on_name(consumer->context, file->path, frame->address, frame->symbol,
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
