/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/core/core_notes.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/procfs.h>

#define MAX_THREADS	(1u << 20)
#define MAX_PATHS_BYTES (64u << 20) /* of all regions' names; the kernel writes 4 MiB of them */

struct note {
	uint32_t type;
	const char *data;
	size_t size;
};

/* Cuts the next note off [*at, end). Returns false if there is none. */
static bool next_note(const char **at, const char *end, struct note *ret)
{
	Elf64_Nhdr header;
	size_t name, data;

	if ((size_t)(end - *at) < sizeof(header))
		return false;
	memcpy(&header, *at, sizeof(header));
	*at += sizeof(header);
	name = ((size_t)header.n_namesz + 3) & ~(size_t)3;
	data = ((size_t)header.n_descsz + 3) & ~(size_t)3;
	if ((size_t)(end - *at) < name || (size_t)(end - *at) - name < header.n_descsz)
		return false;
	*ret = (struct note){header.n_type, *at + name, header.n_descsz};
	*at += name;
	*at += (size_t)(end - *at) < data ? (size_t)(end - *at) : data;
	return true;
}

static int add_thread(struct snapshot *snapshot, const struct note *note)
{
	const size_t registers_at = offsetof(struct elf_prstatus, pr_reg);
	size_t nr = snapshot->nr_threads;
	struct elf_prstatus status;
	struct scan_thread *thread;

	if (note->size < sizeof(status) || nr >= MAX_THREADS)
		return 0;
	memcpy(&status, note->data, sizeof(status));
	if (!snapshot->threads || (nr & (nr - 1)) == 0) {
		thread = reallocarray(snapshot->threads, nr ? nr * 2 : 1, sizeof(*thread));
		if (!thread)
			return -ENOMEM;
		snapshot->threads = thread;
	}
	thread = &snapshot->threads[nr];
	*thread = (struct scan_thread){.tid = status.pr_pid};
	if (thread_registers_set_general(&thread->registers, note->data + registers_at,
					 note->size - registers_at) == 0)
		snapshot->nr_threads++;
	return 0;
}

static void set_process(struct snapshot *snapshot, const struct note *note)
{
	struct elf_prpsinfo info;

	if (note->size < sizeof(info))
		return;
	memcpy(&info, note->data, sizeof(info));
	snapshot->pid = info.pr_pid;
	memcpy(snapshot->name, info.pr_fname, sizeof(info.pr_fname));
	snapshot->name[sizeof(info.pr_fname)] = '\0';
}

/* The regions from @start to @end are of that file. */
static int set_file(struct snapshot *snapshot, const uint64_t *range, const char *path,
		    size_t *paths_left)
{
	size_t size = strlen(path) + 1;

	for (size_t i = snapshot_region_index(snapshot, range[0]);
	     i < snapshot->nr_regions && snapshot->regions[i].start < range[1]; i++) {
		struct scan_region *region = &snapshot->regions[i];
		char *copy;

		if (region->start < range[0] || region->has_file)
			continue;
		if (size > *paths_left)
			return -E2BIG;
		*paths_left -= size;
		copy = strdup(path);
		if (!copy)
			return -ENOMEM;
		free(region->path);
		region->path = copy;
		region->has_file = true; /* the number is not in the core file */
		region->file_offset = range[2] + (region->start - range[0]);
	}
	return 0;
}

/* NT_FILE: count, unit of offsets, {start, end, offset} for each, then the names. */
static int set_files(struct snapshot *snapshot, const struct note *note)
{
	uint64_t head[2], range[3], before = 0;
	const char *name, *end = note->data + note->size;
	size_t paths_left = MAX_PATHS_BYTES;
	int err = 0;

	if (note->size < sizeof(head))
		return 0;
	memcpy(head, note->data, sizeof(head));
	if (head[0] > (note->size - sizeof(head)) / sizeof(range))
		return 0;
	name = note->data + sizeof(head) + head[0] * sizeof(range);
	for (uint64_t i = 0; i < head[0] && !err; i++) {
		size_t len = strnlen(name, (size_t)(end - name));

		if (name + len == end)
			break;
		memcpy(range, note->data + sizeof(head) + i * sizeof(range), sizeof(range));
		range[2] *= head[1];
		/* In ascending order: so a hostile list costs no more than its length. */
		if (range[0] < range[1] && range[0] >= before) {
			err = set_file(snapshot, range, name, &paths_left);
			before = range[1];
		}
		name += len + 1;
	}
	return err;
}

int core_notes_parse(struct snapshot *snapshot, const char *notes, size_t size)
{
	const char *at = notes, *end = notes + size;
	bool has_files = false;
	struct note note;
	int err = 0;

	while (!err && next_note(&at, end, &note)) {
		struct scan_thread *last =
			snapshot->nr_threads ? &snapshot->threads[snapshot->nr_threads - 1] : NULL;

		if (note.type == NT_PRSTATUS)
			err = add_thread(snapshot, &note);
		else if (note.type == NT_PRPSINFO)
			set_process(snapshot, &note);
		else if (note.type == NT_FILE && !has_files) {
			/* Others would cost as much again: a list may cover all regions. */
			err = set_files(snapshot, &note);
			has_files = true;
		} else if (last && note.type == NT_ARM_TLS && note.size >= sizeof(uint64_t))
			memcpy(&last->registers.thread_pointer, note.data, sizeof(uint64_t));
		else if (last &&
			 (note.type == NT_X86_XSTATE ||
			  (note.type == NT_FPREGSET && !last->registers.vector)) &&
			 thread_registers_set_vector(&last->registers, note.data, note.size) ==
				 -ENOMEM)
			err = -ENOMEM;
	}
	return err;
}
