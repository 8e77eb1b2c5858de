/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/processes/changed_code.h"

#include "common/diag.h"
#include "common/proc/living_thread.h"
#include "common/proc/proc_file.h"
#include "common/proc/process_maps.h"
#include "common/scope.h"
#include "recorder/processes/memory_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_PLACES    4096 /* a process can map a file as often as it likes */
#define READ_LIMIT_NS 1000000000

/* The shortest jump to another page. */
#if defined(__aarch64__)
#define JUMP_BYTES 4
#else
#define JUMP_BYTES 5
#endif

/* A place that gets a probe, or the entry of its function. */
struct code_place {
	const struct probe_file *file;
	const struct probe *probe;
	uint64_t address;
	uint8_t expected[JUMP_BYTES], found[JUMP_BYTES];
	bool is_found;
	bool is_private; /* else the kernel puts no breakpoint there */
};

/* What is read in another thread, which keeps it if it is left behind. */
struct code_read {
	pid_t process, pid; /* and a thread of it that lives */
	size_t nr;
	struct code_place places[MAX_PLACES];
};

static void read_code(void *argument)
{
	struct code_read *read = argument;
	struct memory_reader reader = {0};

	if (memory_reader_open(&reader, read->pid))
		return;
	for (size_t i = 0; i < read->nr; i++) {
		struct code_place *place = &read->places[i];

		place->is_found = memory_reader_read(&reader, place->address, place->found,
						     JUMP_BYTES) == JUMP_BYTES;
	}
	memory_reader_close(&reader);
}

/* True if the bytes are the file's, but for breakpoints, as those of other tracers. */
static bool is_alike(const uint8_t *memory, const uint8_t *file)
{
#if defined(__aarch64__)
	uint32_t instruction;

	memcpy(&instruction, memory, sizeof(instruction));
	return memcmp(memory, file, JUMP_BYTES) == 0 || (instruction & 0xffe0001f) == 0xd4200000;
#else
	/* Those that compilers put where code may be patched, and what Linux 6.19 adds. */
	static const uint8_t nops[][JUMP_BYTES] = {
		{0x0f, 0x1f, 0x44, 0x00, 0x00},
		{0x0f, 0x1f, 0x44, 0x00, 0x08},
		{0x66, 0x66, 0x66, 0x66, 0x90},
		{0xe9, 0x00, 0x00, 0x00, 0x00},
	};

	/*
	 * The kernel makes a call of another tracer's probed nop (Linux 6.18,
	 * arch/x86/kernel/uprobes.c).
	 */
	for (size_t i = 0; memory[0] == 0xe8 && i < ARRAY_SIZE(nops); i++)
		if (memcmp(file, nops[i], sizeof(nops[i])) == 0)
			return true;
	for (size_t i = 0; i < JUMP_BYTES; i++)
		if (memory[i] != file[i] && memory[i] != 0xcc)
			return false;
	return true;
#endif
}

static void add_place(struct code_read *read, const struct process_mapping *mapping,
		      const struct probe_file *file, const struct probe *probe, uint64_t offset)
{
	struct code_place *place = &read->places[read->nr];

	if (read->nr == MAX_PLACES || offset < mapping->file_offset ||
	    offset - mapping->file_offset + JUMP_BYTES > mapping->end - mapping->start ||
	    pread(file->fd, place->expected, JUMP_BYTES, (off_t)offset) != JUMP_BYTES)
		return;
	place->file = file;
	place->probe = probe;
	place->address = mapping->start + (offset - mapping->file_offset);
	/* valid_vma(), kernel/events/uprobes.c (Linux 5.15 to 6.18) */
	place->is_private = mapping->permissions[1] != 'w' && mapping->permissions[3] == 'p';
	read->nr++;
}

static void add_places(struct code_read *read, const struct process_mapping *mapping,
		       const struct probe_file *file)
{
	for (size_t i = 0; i < file->nr_probes; i++) {
		const struct probe *probe = &file->probes[i];

		add_place(read, mapping, file, probe, probe->function_offset);
		add_place(read, mapping, file, probe, probe->offset);
		for (size_t j = 0; j < probe->nr_points; j++)
			add_place(read, mapping, file, probe,
				  probe->function_offset + probe->points[j].offset);
	}
}

/* A process that has ended, or whose maps cannot be read, is reported when it is attached to. */
static void list_places(struct code_read *read, const struct probe_set *set)
{
	_cleanup_fclose_ FILE *maps = proc_file_open(read->pid, "maps");
	_cleanup_free_ char *line = NULL;
	char path[PROC_FILE_PATH_SIZE];
	struct process_mapping mapping;
	struct stat st;
	size_t size = 0;

	while (maps && read->nr < MAX_PLACES && getline(&line, &size, maps) > 0) {
		if (process_maps_parse_line(line, &mapping) || !process_mapping_is_code(&mapping))
			continue;
		proc_file_mapping_path(path, read->pid, mapping.start, mapping.end);
		if (stat(path, &st) < 0)
			continue;
		for (size_t i = 0; i < set->nr_files; i++)
			if (!set->files[i].is_on_fuse && set->files[i].stat.st_dev == st.st_dev &&
			    set->files[i].stat.st_ino == st.st_ino)
				add_places(read, &mapping, &set->files[i]);
	}
}

static const struct code_place *find_changed(const struct code_read *read)
{
	for (size_t i = 0; i < read->nr; i++)
		if (read->places[i].is_found &&
		    !is_alike(read->places[i].found, read->places[i].expected))
			return &read->places[i];
	return NULL;
}

static const struct code_place *find_without_breakpoints(const struct code_read *read)
{
	for (size_t i = 0; i < read->nr; i++)
		if (!read->places[i].is_private)
			return &read->places[i];
	return NULL;
}

/* Tells what speaks against probes: @changed or, if that is NULL, @other. */
static void tell(const struct code_read *read, const struct code_place *changed,
		 const struct code_place *other)
{
	if (changed)
		diag_error("cannot record process %d: something, perhaps an agent that hooks it, "
			   "has changed the code of %s in its memory (%s), where probes could "
			   "crash it; restart it without that",
			   (int)read->process, changed->probe->symbol, changed->file->display);
	else
		diag_error("cannot record process %d: the code of %s (%s) is writable or shared in "
			   "its memory, where the kernel places no probe; restart it without what "
			   "makes it so",
			   (int)read->process, other->probe->symbol, other->file->display);
}

static int judge(const struct code_read *read, bool was_read, bool tells)
{
	const struct code_place *changed = was_read ? find_changed(read) : NULL;
	const struct code_place *other = find_without_breakpoints(read);

	if (!changed && !other)
		return 0;
	if (tells)
		tell(read, changed, other);
	return -EPERM;
}

int changed_code_check(pid_t pid, const struct probe_set *set, bool tells)
{
	struct code_read *read = calloc(1, sizeof(*read));
	struct read_thread *thread;
	bool was_read = false;
	int err;

	if (!read) {
		if (tells)
			diag_error("cannot record: out of memory");
		return -ENOMEM;
	}
	read->process = pid;
	read->pid = living_thread(pid);
	list_places(read, set);
	thread = read->nr ? read_thread_create() : NULL;
	if (thread) {
		read_thread_begin(thread, read_code, read);
		was_read = read_thread_wait(thread, READ_LIMIT_NS);
	}
	err = judge(read, was_read, tells);
	if (read_thread_destroy(thread))
		free(read);
	return err;
}
