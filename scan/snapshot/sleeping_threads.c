/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/snapshot/sleeping_threads.h"

#include "scan/snapshot/sleeping_threads_shared.h"

#include "common/scope.h"
#include "sleeping_threads.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HEAD_BYTES  offsetof(struct sleeping_thread, vector)
#define FIRST_BYTES 65536u
#define MAX_BYTES   (1u << 28) /* 60,000 threads */

/* Who reads /proc/PID uses the memory for a moment, too. */
#define MAX_ASKED    5
#define ASK_AGAIN_NS 1000000

int sleeping_threads_init(struct sleeping_threads *ret, pid_t pid)
{
	union bpf_iter_link_info info = {.task.pid = (uint32_t)pid};
	/* libbpf refuses options whose padding is not zero. */
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));

	*ret = (struct sleeping_threads){0};
	libbpf_set_print(NULL);
	ret->bpf = sleeping_threads_bpf__open_and_load();
	if (!ret->bpf)
		return -errno;
	ret->link = bpf_program__attach_iter(ret->bpf->progs.read_thread, &opts);
	return ret->link ? 0 : -errno;
}

void sleeping_threads_deinit(struct sleeping_threads *threads)
{
	bpf_link__destroy(threads->link);
	sleeping_threads_bpf__destroy(threads->bpf);
	free(threads->before);
	free(threads->after);
	*threads = (struct sleeping_threads){0};
}

/* Reads all of the iterator's file. */
static int read_records(const struct sleeping_threads *threads, uint8_t **ret, size_t *ret_bytes)
{
	_cleanup_close_ int fd = bpf_iter_create(bpf_link__fd(threads->link));
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t capacity = 0, nr = 0;
	ssize_t len;

	if (fd < 0)
		return fd;
	do {
		if (nr == capacity) {
			uint8_t *grown;

			capacity = capacity ? capacity * 2 : FIRST_BYTES;
			grown = capacity > MAX_BYTES ? NULL : realloc(bytes, capacity);
			if (!grown)
				return -ENOMEM;
			bytes = grown;
		}
		len = read(fd, bytes + nr, capacity - nr);
		nr += len > 0 ? (size_t)len : 0;
	} while (len > 0 || (len < 0 && (errno == EINTR || errno == EAGAIN)));
	if (len < 0)
		return -errno;
	free(*ret);
	*ret = steal_ptr(bytes);
	*ret_bytes = nr;
	return 0;
}

/* Takes the record at *@at into @to. Returns false at the end. */
static bool next_record(const uint8_t *bytes, size_t nr, size_t *at, struct sleeping_thread *to)
{
	if (nr - *at < HEAD_BYTES)
		return false;
	memcpy(to, bytes + *at, HEAD_BYTES);
	if (to->vector_bytes > SLEEPING_VECTOR || nr - *at - HEAD_BYTES < to->vector_bytes)
		return false;
	memcpy(to->vector, bytes + *at + HEAD_BYTES, to->vector_bytes);
	*at += HEAD_BYTES + to->vector_bytes;
	return true;
}

/*
 * True if all threads of one process were listed, none is on a CPU, and nobody else uses their
 * memory. A thread that has ended, and has no memory any more, need not be waited for.
 */
static bool are_off_cpus(const uint8_t *bytes, size_t nr)
{
	struct sleeping_thread thread, first = {0};
	uint64_t memory = 0;
	unsigned int nr_threads = 0, nr_users = 0, nr_mm_users = 0;
	size_t at = 0;

	while (next_record(bytes, nr, &at, &thread)) {
		if (!nr_threads++)
			first = thread;
		if (thread.tgid != first.tgid || thread.on_cpu || !thread.tid ||
		    (thread.memory && memory && thread.memory != memory) ||
		    (thread.memory && !thread.is_kernels && !thread.vector_bytes))
			return false;
		if (!thread.memory)
			continue;
		memory = thread.memory;
		nr_mm_users = thread.nr_mm_users;
		nr_users++;
	}
	return at == nr && nr_users && nr_threads == first.nr_threads && nr_mm_users <= nr_users;
}

static bool have_others(const uint8_t *bytes, size_t nr)
{
	struct sleeping_thread thread;
	unsigned int nr_users = 0, nr_mm_users = 0;
	size_t at = 0;

	while (next_record(bytes, nr, &at, &thread)) {
		nr_users += thread.memory != 0;
		if (thread.memory)
			nr_mm_users = thread.nr_mm_users;
	}
	return nr_mm_users > nr_users;
}

bool sleeping_threads_have_others(struct sleeping_threads *threads)
{
	const struct timespec pause = {.tv_nsec = ASK_AGAIN_NS};

	for (int i = 0; threads->link && i < MAX_ASKED; i++) {
		if (i)
			nanosleep(&pause, NULL);
		if (read_records(threads, &threads->after, &threads->after_bytes) == 0 &&
		    !have_others(threads->after, threads->after_bytes))
			return false;
	}
	return threads->link;
}

int sleeping_threads_begin(struct sleeping_threads *threads)
{
	int err = read_records(threads, &threads->before, &threads->before_bytes);

	if (err)
		return err;
	return are_off_cpus(threads->before, threads->before_bytes) ? 0 : -EAGAIN;
}

/* True if the threads after are those before, and have not run. */
static bool have_slept(const struct sleeping_threads *threads)
{
	struct sleeping_thread before, after;
	size_t at_before = 0, at_after = 0;

	if (threads->before_bytes != threads->after_bytes ||
	    !are_off_cpus(threads->after, threads->after_bytes))
		return false;
	while (next_record(threads->before, threads->before_bytes, &at_before, &before))
		if (!next_record(threads->after, threads->after_bytes, &at_after, &after) ||
		    before.tid != after.tid || before.start_ns != after.start_ns ||
		    before.nr_switches != after.nr_switches || before.memory != after.memory)
			return false;
	return true;
}

static int store(const struct sleeping_threads *threads, struct snapshot *snapshot)
{
	struct sleeping_thread record;
	size_t at = 0, nr = 0;
	int err = 0;

	while (next_record(threads->before, threads->before_bytes, &at, &record))
		nr++;
	snapshot->threads = nr ? calloc(nr, sizeof(*snapshot->threads)) : NULL;
	if (!snapshot->threads)
		return -ENOMEM;
	at = 0;
	while (!err && next_record(threads->before, threads->before_bytes, &at, &record)) {
		struct scan_thread *thread = &snapshot->threads[snapshot->nr_threads];

		if (!record.memory || record.is_kernels)
			continue;
		thread->tid = (pid_t)record.tid;
		snapshot->nr_threads++;
		err = thread_registers_set_sleeping(&thread->registers, &record);
	}
	return err;
}

int sleeping_threads_end(struct sleeping_threads *threads, struct snapshot *snapshot)
{
	int err = read_records(threads, &threads->after, &threads->after_bytes);

	if (err)
		return err;
	return have_slept(threads) ? store(threads, snapshot) : -EAGAIN;
}
