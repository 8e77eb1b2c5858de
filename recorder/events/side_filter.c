/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/events/side_filter.h"

#include "common/perf_disk.h"
#include "recorder/events/sample_format.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* No process id is as large: PID_MAX_LIMIT (include/linux/threads.h, Linux 6.18). */
#define NR_PIDS	   (4 << 20)
#define NR_WORDS   (NR_PIDS / 64)
#define PID_OFFSET 8 /* in MMAP2, COMM, FORK and EXIT records */

struct kept_record {
	uint64_t time_ns;
	size_t offset; /* in the kept bytes */
};

struct side_filter {
	uint64_t *recorded; /* a bit for each process id */
	uint64_t *may_live; /* those of them that were not seen to have ended */
	pid_t watched;	    /* or -1 */
	int watched_fd;
	bool found_none; /* no process was found alive when that was looked for last */
	char *bytes;
	size_t nr_bytes, nr_bytes_allocated;
	struct kept_record *records;
	size_t nr_records, nr_records_allocated;
	size_t next; /* the index of the record to take */
};

static bool has_bit(const uint64_t *set, uint32_t pid)
{
	return pid < NR_PIDS && set[pid / 64] >> pid % 64 & 1;
}

static void assign_bit(uint64_t *set, uint32_t pid, bool value)
{
	uint64_t bit = 1ULL << pid % 64;

	if (pid < NR_PIDS)
		set[pid / 64] = value ? set[pid / 64] | bit : set[pid / 64] & ~bit;
}

static void unwatch(struct side_filter *filter)
{
	if (filter->watched_fd >= 0)
		close(filter->watched_fd);
	filter->watched_fd = -1;
	filter->watched = -1;
}

/* A process with this id begins. */
static void begin_process(struct side_filter *filter, uint32_t pid, bool is_recorded)
{
	if ((uint32_t)filter->watched == pid)
		unwatch(filter);
	assign_bit(filter->recorded, pid, is_recorded);
	assign_bit(filter->may_live, pid, is_recorded);
}

struct side_filter *side_filter_create(const pid_t *pids, size_t nr_pids)
{
	struct side_filter *filter = calloc(1, sizeof(*filter));

	if (!filter)
		return NULL;
	filter->watched = filter->watched_fd = -1;
	filter->recorded = calloc(NR_WORDS, sizeof(*filter->recorded));
	filter->may_live = calloc(NR_WORDS, sizeof(*filter->may_live));
	if (!filter->recorded || !filter->may_live) {
		side_filter_destroy(filter);
		return NULL;
	}
	for (size_t i = 0; i < nr_pids; i++)
		begin_process(filter, (uint32_t)pids[i], true);
	return filter;
}

void side_filter_destroy(struct side_filter *filter)
{
	if (!filter)
		return;
	unwatch(filter);
	free(filter->recorded);
	free(filter->may_live);
	free(filter->bytes);
	free(filter->records);
	free(filter);
}

static size_t trailer_offset(const struct perf_event_header *record)
{
	return record->size - sizeof(struct record_trailer);
}

uint64_t side_filter_time_ns(const struct perf_event_header *record)
{
	size_t at = record->type == PERF_RECORD_SAMPLE
			    ? RECORD_SAMPLE_TIME_OFFSET
			    : trailer_offset(record) + offsetof(struct record_trailer, time_ns);
	uint64_t time_ns;

	memcpy(&time_ns, (const char *)record + at, sizeof(time_ns));
	return time_ns;
}

/* The array with room for @nr elements of @size bytes, or NULL. */
static void *with_room(void *array, size_t *nr_allocated, size_t nr, size_t size)
{
	void *grown;

	if (nr <= *nr_allocated)
		return array;
	grown = reallocarray(array, 2 * nr, size);
	if (grown)
		*nr_allocated = 2 * nr;
	return grown;
}

int side_filter_keep(struct side_filter *filter, const struct perf_event_header *record)
{
	void *bytes = with_room(filter->bytes, &filter->nr_bytes_allocated,
				filter->nr_bytes + record->size, 1);
	void *records;

	if (!bytes)
		return -ENOMEM;
	filter->bytes = bytes;
	records = with_room(filter->records, &filter->nr_records_allocated, filter->nr_records + 1,
			    sizeof(*filter->records));
	if (!records)
		return -ENOMEM;
	filter->records = records;
	memcpy(filter->bytes + filter->nr_bytes, record, record->size);
	filter->records[filter->nr_records++] = (struct kept_record){
		.time_ns = side_filter_time_ns(record),
		.offset = filter->nr_bytes,
	};
	filter->nr_bytes += record->size;
	return 0;
}

/* Records of one time keep the order of their ring. */
static int compare_records(const void *a, const void *b)
{
	const struct kept_record *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->offset < y->offset ? -1 : 1;
}

void side_filter_sort(struct side_filter *filter)
{
	if (filter->nr_records)
		qsort(filter->records, filter->nr_records, sizeof(*filter->records),
		      compare_records);
}

static uint32_t pid_at(const struct perf_event_header *record, size_t offset)
{
	uint32_t pid;

	memcpy(&pid, (const char *)record + offset, sizeof(pid));
	return pid;
}

/* A record of losses names the process that found the ring full: that is nobody's business. */
static void blank_process(struct perf_event_header *record)
{
	memset((char *)record + trailer_offset(record), 0, 2 * sizeof(uint32_t));
}

/* True if the record is about a recorded process. Notes who is one. */
static bool admits(struct side_filter *filter, struct perf_event_header *record)
{
	const struct perf_disk_task *task = (const struct perf_disk_task *)record;

	switch (record->type) {
	case PERF_RECORD_FORK:
		if (task->pid != task->ppid)
			begin_process(filter, task->pid, has_bit(filter->recorded, task->ppid));
		return has_bit(filter->recorded, task->pid);
	case PERF_RECORD_EXIT:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
		return has_bit(filter->recorded, pid_at(record, PID_OFFSET));
	case PERF_RECORD_SAMPLE:
		return has_bit(filter->recorded,
			       pid_at(record, RECORD_SAMPLE_TIME_OFFSET - sizeof(uint64_t)));
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		blank_process(record);
		return true;
	default:
		return false;
	}
}

const struct perf_event_header *side_filter_next(struct side_filter *filter)
{
	while (filter->next < filter->nr_records) {
		void *record = filter->bytes + filter->records[filter->next++].offset;

		if (admits(filter, record))
			return record;
	}
	filter->next = filter->nr_records = filter->nr_bytes = 0;
	return NULL;
}

int side_filter_fd(const struct side_filter *filter)
{
	return filter->watched_fd;
}

static bool is_over(int pidfd)
{
	struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};

	return poll(&poll_fd, 1, 0) > 0;
}

/* The first process that may live, or -1. */
static pid_t find_candidate(const struct side_filter *filter)
{
	for (size_t i = 0; i < NR_WORDS; i++)
		if (filter->may_live[i])
			return (pid_t)(i * 64) + __builtin_ctzll(filter->may_live[i]);
	return -1;
}

/* True if pidfd_open() failed for want of something, which says nothing about the process. */
static bool is_shortage(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOMEM;
}

/* True if a recorded process lives; it is then watched, unless descriptors have run out. */
static bool find_live(struct side_filter *filter)
{
	pid_t pid = filter->watched_fd >= 0 ? filter->watched : find_candidate(filter);

	for (; pid >= 0; pid = find_candidate(filter)) {
		if (filter->watched_fd < 0)
			filter->watched_fd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (filter->watched_fd < 0 && is_shortage(errno))
			return true;
		filter->watched = pid;
		if (filter->watched_fd >= 0 && !is_over(filter->watched_fd))
			return true;
		unwatch(filter);
		assign_bit(filter->may_live, (uint32_t)pid, false);
	}
	return false;
}

bool side_filter_have_all_ended(struct side_filter *filter)
{
	bool found_none = filter->found_none;

	filter->found_none = !find_live(filter);
	return found_none && filter->found_none;
}
