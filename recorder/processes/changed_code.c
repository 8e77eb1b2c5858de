/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/processes/changed_code.h"

#include "common/diag.h"
#include "common/proc/proc_file.h"
#include "common/proc/process_maps.h"
#include "common/scope.h"
#include "recorder/processes/memory_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_LIMIT_NS 1000000000 /* no process that is not hostile takes it */

/* The shortest jump to another page, and the breakpoint that the kernel sets. */
#if defined(__aarch64__)
#define JUMP_BYTES 4
static const uint8_t BREAKPOINT[] = {0xa0, 0x00, 0x20, 0xd4};
#else
#define JUMP_BYTES 5
static const uint8_t BREAKPOINT[] = {0xcc};
static const uint8_t NOP5[JUMP_BYTES] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
#endif

/* What is read in another thread. */
struct code_read {
	pid_t pid;
	uint64_t address;
	uint8_t bytes[JUMP_BYTES];
	ssize_t nr;
};

struct code_check {
	const struct probe_file *file;
	struct process_mapping mapping;
	struct read_thread *thread;
	struct code_read *read; /* kept if the thread is left behind */
	const char *changed;	/* the function that was found changed, or NULL */
};

static void read_code(void *argument)
{
	struct code_read *read = argument;
	struct memory_reader reader = {0};

	read->nr = memory_reader_open(&reader, read->pid);
	if (!read->nr)
		read->nr = memory_reader_read(&reader, read->address, read->bytes, JUMP_BYTES);
	memory_reader_close(&reader);
}

/* True if the bytes are the file's, but for probes of other tracers. */
static bool is_alike(const uint8_t *memory, const uint8_t *file)
{
#if !defined(__aarch64__)
	if (memory[0] == 0xe8 && memcmp(file, NOP5, sizeof(NOP5)) == 0)
		return true;
#endif
	for (size_t i = 0; i < JUMP_BYTES; i += sizeof(BREAKPOINT))
		if (memcmp(memory + i, file + i, sizeof(BREAKPOINT)) != 0 &&
		    memcmp(memory + i, BREAKPOINT, sizeof(BREAKPOINT)) != 0)
			return false;
	return true;
}

/* True if the process has changed the code at @offset in the file, or hinders its reading. */
static bool is_changed(struct code_check *check, uint64_t offset)
{
	const struct process_mapping *mapping = &check->mapping;
	uint8_t expected[JUMP_BYTES];

	if (offset < mapping->file_offset ||
	    offset - mapping->file_offset + JUMP_BYTES > mapping->end - mapping->start ||
	    pread(check->file->fd, expected, JUMP_BYTES, (off_t)offset) != JUMP_BYTES)
		return false;
	check->read->address = mapping->start + (offset - mapping->file_offset);
	read_thread_begin(check->thread, read_code, check->read);
	return !read_thread_wait(check->thread, READ_LIMIT_NS) ||
	       (check->read->nr == JUMP_BYTES && !is_alike(check->read->bytes, expected));
}

static void check_mapping(struct code_check *check)
{
	for (size_t i = 0; i < check->file->nr_probes && !check->changed; i++) {
		const struct probe *probe = &check->file->probes[i];
		bool changed = is_changed(check, probe->function_offset) ||
			       is_changed(check, probe->offset);

		for (size_t j = 0; j < probe->nr_points && !changed; j++)
			changed =
				is_changed(check, probe->function_offset + probe->points[j].offset);
		if (changed)
			check->changed = probe->symbol;
	}
}

static bool is_mapping_of(const struct process_mapping *mapping, pid_t pid,
			  const struct probe_file *file)
{
	char path[PROC_FILE_PATH_SIZE];
	struct stat st;

	proc_file_mapping_path(path, pid, mapping->start, mapping->end);
	return stat(path, &st) == 0 && st.st_dev == file->stat.st_dev &&
	       st.st_ino == file->stat.st_ino;
}

/* A process that has ended, or whose maps cannot be read, is reported when it is attached to. */
static void check_mappings(struct code_check *check, const struct probe_set *set)
{
	_cleanup_fclose_ FILE *maps = proc_file_open(check->read->pid, "maps");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	while (maps && !check->changed && getline(&line, &size, maps) > 0) {
		if (process_maps_parse_line(line, &check->mapping) ||
		    !process_mapping_is_code(&check->mapping))
			continue;
		for (size_t i = 0; i < set->nr_files && !check->changed; i++) {
			check->file = &set->files[i];
			if (!check->file->is_on_fuse &&
			    is_mapping_of(&check->mapping, check->read->pid, check->file))
				check_mapping(check);
		}
	}
}

int changed_code_check(pid_t pid, const struct probe_set *set)
{
	struct code_check check = {.read = calloc(1, sizeof(*check.read))};

	check.thread = check.read ? read_thread_create() : NULL;
	if (!check.thread) {
		diag_error("cannot record: out of memory");
		free(check.read);
		return -ENOMEM;
	}
	check.read->pid = pid;
	check_mappings(&check, set);
	if (check.changed)
		diag_error("cannot record process %d: something, perhaps an agent that hooks it, "
			   "has changed the code of %s in its memory (%s), where probes could "
			   "crash it; restart it without that",
			   (int)pid, check.changed, check.file->display);
	if (read_thread_destroy(check.thread))
		free(check.read);
	return check.changed ? -EPERM : 0;
}
