/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/output/synthesize.h"

#include "common/elf/elf_file.h"
#include "common/interrupted.h"
#include "common/perf_disk.h"
#include "common/scope.h"
#include "common/proc/living_thread.h"
#include "common/proc/process_maps.h"
#include "common/proc/process_namespace.h"
#include "common/proc/proc_file.h"
#include "recorder/processes/tasks.h"

#include <errno.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* The trailer of records other than samples, for RECORD_SAMPLE_TYPE. */
static void add_trailer(void *at, pid_t pid, pid_t tid)
{
	struct record_trailer trailer = {.pid = (uint32_t)pid, .tid = (uint32_t)tid};

	memcpy(at, &trailer, sizeof(trailer));
}

/* Writes a FORK record, which tells readers to which process a thread belongs. */
static int write_fork(struct perf_writer *writer, pid_t pid, pid_t tid)
{
	struct {
		struct perf_disk_task task;
		struct record_trailer trailer;
	} record = {
		.task.header = {PERF_RECORD_FORK, PERF_RECORD_MISC_USER, sizeof(record)},
		.task.pid = (uint32_t)pid,
		.task.tid = (uint32_t)tid,
		.task.ppid = (uint32_t)pid,
		.task.ptid = (uint32_t)pid,
	};

	add_trailer(&record.trailer, pid, tid);
	return perf_writer_add_side(writer, &record.task.header);
}

static int write_comm(struct perf_writer *writer, pid_t pid, pid_t tid)
{
	struct {
		struct perf_disk_comm task;
		char comm[16];
		struct record_trailer trailer;
	} record = {
		.task.header = {PERF_RECORD_COMM, PERF_RECORD_MISC_USER, sizeof(record)},
		.task.pid = (uint32_t)pid,
		.task.tid = (uint32_t)tid,
	};
	char name[32];

	snprintf(name, sizeof(name), "task/%d/comm", tid);
	if (proc_file_read(pid, name, record.comm, sizeof(record.comm)))
		return 0;
	record.comm[strcspn(record.comm, "\n")] = '\0';
	add_trailer(&record.trailer, pid, tid);
	return perf_writer_add_side(writer, &record.task.header);
}

/*
 * Reads the build-id of a mapped file. map_files opens exactly that file, even if its path is in
 * another mount namespace or names another file by now.
 */
static void mapping_build_id(pid_t thread, uint64_t start, uint64_t end, struct build_id *ret)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	char path[PROC_FILE_PATH_SIZE];

	ret->size = 0;
	proc_file_mapping_path(path, thread, start, end);
	fd = elf_file_open(path, &st);
	if (fd >= 0)
		build_id_read(fd, ret);
}

/*
 * True for executable mappings, with or without a file. With @with_data also for other mappings of
 * files.
 */
static bool is_recorded(const struct process_mapping *mapping, bool with_data)
{
	return mapping->permissions[2] == 'x' || (with_data && mapping->path[0] == '/');
}

/* Paths are those that the process sees, as in the kernel's records. */
static int write_mapping(struct perf_writer *writer, pid_t pid, pid_t thread,
			 const struct process_namespace *namespace,
			 const struct process_mapping *mapping, struct build_ids *build_ids,
			 struct live_unwinder *unwinder)
{
	char buffer[sizeof(struct perf_disk_mmap2) + PATH_MAX + 8 + sizeof(struct record_trailer)]
		__attribute__((aligned(8))) = {0};
	struct perf_disk_mmap2 *record = (struct perf_disk_mmap2 *)buffer;
	char *path_in_record = buffer + sizeof(*record);
	const char *path =
		*mapping->path ? process_namespace_path(namespace, mapping->path) : "//anon";
	bool is_executable = mapping->permissions[2] == 'x';
	struct build_id id;
	size_t len = strlen(path), padded = len / 8 * 8 + 8;
	if (len >= PATH_MAX)
		return 0;
	record->header.type = PERF_RECORD_MMAP2;
	record->header.misc =
		PERF_RECORD_MISC_USER | (is_executable ? 0 : PERF_RECORD_MISC_MMAP_DATA);
	record->header.size = (uint16_t)(sizeof(*record) + padded + sizeof(struct record_trailer));
	record->pid = record->tid = (uint32_t)pid;
	record->address = mapping->start;
	record->len = mapping->end - mapping->start;
	record->file_offset = mapping->file_offset;
	record->major = mapping->major;
	record->minor = mapping->minor;
	record->inode = mapping->inode;
	record->prot = (mapping->permissions[0] == 'r' ? PROT_READ : 0) |
		       (mapping->permissions[1] == 'w' ? PROT_WRITE : 0) | PROT_EXEC;
	record->flags = mapping->permissions[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
	memcpy(path_in_record, path, len);

	mapping_build_id(thread, mapping->start, mapping->end, &id);
	if (id.size) {
		record->header.misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
		memset(&record->major, 0, 24);
		record->build_id_size = id.size;
		memcpy(record->build_id, id.bytes, id.size);
		if (build_ids_add_record(build_ids, &record->header))
			return -ENOMEM;
	}
	add_trailer(path_in_record + padded, pid, pid);
	if (unwinder && live_unwinder_note(unwinder, &record->header))
		return -ENOMEM;
	return perf_writer_add_side(writer, &record->header);
}

static int write_mappings(struct perf_writer *writer, pid_t pid, bool with_data,
			  struct build_ids *build_ids, struct live_unwinder *unwinder)
{
	pid_t thread = living_thread(pid);
	_cleanup_fclose_ FILE *maps = proc_file_open(thread, "maps");
	_cleanup_free_ char *line = NULL;
	struct process_namespace namespace;
	size_t size = 0;
	int err = 0;

	process_namespace_read(pid, &namespace);
	while (maps && !err && getline(&line, &size, maps) > 0) {
		struct process_mapping mapping;

		if (is_interrupted())
			return -EINTR;
		if (process_maps_parse_line(line, &mapping) || !is_recorded(&mapping, with_data))
			continue;
		err = write_mapping(writer, pid, thread, &namespace, &mapping, build_ids, unwinder);
	}
	return err;
}

int synthesize_process(struct perf_writer *writer, pid_t pid, bool with_data,
		       struct build_ids *build_ids, struct live_unwinder *unwinder)
{
	struct task_list tasks;
	int err = task_list_read(&tasks, &pid, 1);

	if (!err)
		err = write_comm(writer, pid, pid);
	for (size_t i = 0; i < tasks.nr_tids && !err; i++) {
		if (tasks.tids[i] == pid)
			continue;
		err = write_fork(writer, pid, tasks.tids[i]);
		if (!err)
			err = write_comm(writer, pid, tasks.tids[i]);
	}
	task_list_deinit(&tasks);
	if (!err)
		err = write_mappings(writer, pid, with_data, build_ids, unwinder);
	return err == -ESRCH ? 0 : err;
}
