/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scan/core/core_file.h"

#include "scan/core/core_notes.h"

#include "common/diag.h"
#include "common/elf/elf_file.h"
#include "common/scope.h"

#include <elf.h>
#include <errno.h>

#define MAX_SEGMENTS   (1u << 20)
#define MAX_NOTE_BYTES (256u << 20)

struct core {
	struct snapshot *snapshot;
	const char *path;
	int fd;
	uint64_t size_bytes;
	Elf64_Phdr *segments;
	size_t nr_segments;
};

static int read_at(const struct core *core, uint64_t offset, void *to, uint64_t size)
{
	char *out = to;

	if (offset > core->size_bytes || size > core->size_bytes - offset)
		return -ENODATA;
	while (size > 0) {
		ssize_t len = pread(core->fd, out, size, (off_t)offset);

		if (len <= 0)
			return len < 0 ? -errno : -ENODATA;
		out += len;
		offset += (uint64_t)len;
		size -= (uint64_t)len;
	}
	return 0;
}

static int read_headers(struct core *core)
{
	Elf64_Ehdr header;
	Elf64_Shdr first;
	int err = read_at(core, 0, &header, sizeof(header));

	if (err)
		return err;
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_CORE ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_machine != thread_registers_machine ||
	    header.e_phentsize != sizeof(Elf64_Phdr))
		return -ENOEXEC;
	core->nr_segments = header.e_phnum;
	if (header.e_phnum == PN_XNUM) {
		err = read_at(core, header.e_shoff, &first, sizeof(first));
		core->nr_segments = err ? 0 : first.sh_info;
	}
	if (err || core->nr_segments == 0 || core->nr_segments > MAX_SEGMENTS)
		return err ? err : -ENOEXEC;
	core->segments = calloc(core->nr_segments, sizeof(*core->segments));
	if (!core->segments)
		return -ENOMEM;
	return read_at(core, header.e_phoff, core->segments,
		       core->nr_segments * sizeof(*core->segments));
}

/* A core file has one segment of notes, however many a hostile one has. */
static int read_notes(struct core *core)
{
	for (size_t i = 0; i < core->nr_segments; i++) {
		const Elf64_Phdr *segment = &core->segments[i];
		_cleanup_free_ char *notes = NULL;
		int err;

		if (segment->p_type != PT_NOTE)
			continue;
		if (segment->p_filesz > MAX_NOTE_BYTES)
			return -E2BIG;
		notes = malloc(segment->p_filesz + 1);
		if (!notes)
			return -ENOMEM;
		err = read_at(core, segment->p_offset, notes, segment->p_filesz);
		if (!err)
			err = core_notes_parse(core->snapshot, notes, segment->p_filesz);
		return err;
	}
	return 0;
}

/* Copies what the file holds of the segment; a hole in the file is memory that was not touched. */
static int copy_segment(struct core *core, const Elf64_Phdr *segment, struct scan_region *region)
{
	uint64_t at = segment->p_offset, end = at + segment->p_filesz;

	while (at < end) {
		off_t data = lseek(core->fd, (off_t)at, SEEK_DATA), hole;
		uint64_t first, last, start;
		int err;

		if (data < 0 || (uint64_t)data >= end)
			return data < 0 && errno != ENXIO ? -errno : 0;
		hole = lseek(core->fd, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		/* Whole pages of memory, whatever the file's blocks are. */
		first = ((uint64_t)data - segment->p_offset) & ~(uint64_t)(SCAN_PAGE_SIZE - 1);
		last = ((uint64_t)hole < end ? (uint64_t)hole : end) - segment->p_offset;
		last = (last + SCAN_PAGE_SIZE - 1) & ~(uint64_t)(SCAN_PAGE_SIZE - 1);
		if (last > segment->p_filesz)
			last = segment->p_filesz;
		err = read_at(core, segment->p_offset + first, region->bytes + first, last - first);
		start = region->start + first;
		if (!err)
			err = scan_region_add_run(region, start, region->start + last);
		if (err)
			return err;
		core->snapshot->copied_bytes += last - first;
		at = segment->p_offset + last;
	}
	return 0;
}

static int compare_segments(const void *a, const void *b)
{
	const Elf64_Phdr *x = a, *y = b;

	return x->p_vaddr < y->p_vaddr ? -1 : x->p_vaddr > y->p_vaddr;
}

static bool is_sane(const struct core *core, const Elf64_Phdr *segment, uint64_t end)
{
	return segment->p_vaddr >= end && segment->p_vaddr % SCAN_PAGE_SIZE == 0 &&
	       segment->p_memsz % SCAN_PAGE_SIZE == 0 && segment->p_filesz <= segment->p_memsz &&
	       segment->p_filesz % SCAN_PAGE_SIZE == 0 &&
	       segment->p_vaddr + segment->p_memsz > segment->p_vaddr &&
	       segment->p_offset <= core->size_bytes &&
	       segment->p_filesz <= core->size_bytes - segment->p_offset;
}

static int add_segment(struct core *core, const Elf64_Phdr *segment)
{
	struct snapshot *snapshot = core->snapshot;
	struct scan_region *region = &snapshot->regions[snapshot->nr_regions];
	int err;

	*region = (struct scan_region){
		.start = segment->p_vaddr,
		.end = segment->p_vaddr + segment->p_memsz,
		.is_readable = segment->p_flags & PF_R,
		.is_writable = segment->p_flags & PF_W,
		.is_executable = segment->p_flags & PF_X,
		.path = strdup(""),
	};
	if (!region->path)
		return -ENOMEM;
	snapshot->nr_regions++;
	if (!segment->p_filesz)
		return 0;
	err = scan_region_reserve(region, segment->p_memsz);
	return err ? err : copy_segment(core, segment, region);
}

static int read_segments(struct core *core)
{
	struct snapshot *snapshot = core->snapshot;
	uint64_t end = 0;

	qsort(core->segments, core->nr_segments, sizeof(*core->segments), compare_segments);
	snapshot->regions = calloc(core->nr_segments, sizeof(*snapshot->regions));
	if (!snapshot->regions)
		return -ENOMEM;
	for (size_t i = 0; i < core->nr_segments; i++) {
		const Elf64_Phdr *segment = &core->segments[i];
		int err;

		if (segment->p_type != PT_LOAD || segment->p_memsz == 0)
			continue;
		/* The parts of the file that make up segments cannot be more than the file. */
		if (!is_sane(core, segment, end) || snapshot->copied_bytes > core->size_bytes)
			return -EINVAL;
		end = segment->p_vaddr + segment->p_memsz;
		err = add_segment(core, segment);
		if (err)
			return err;
	}
	return snapshot->nr_regions ? 0 : -ENODATA;
}

/* Writable memory of no file that the core does not hold: see core(5), coredump_filter. */
static void count_unread(struct core *core)
{
	struct snapshot *snapshot = core->snapshot;

	for (size_t i = 0; i < core->nr_segments; i++) {
		const Elf64_Phdr *segment = &core->segments[i];
		const struct scan_region *region =
			segment->p_type == PT_LOAD ? snapshot_region(snapshot, segment->p_vaddr)
						   : NULL;

		if (region && region->is_writable && !region->has_file)
			unread_memory_add(&snapshot->unread, segment->p_vaddr,
					  segment->p_memsz - segment->p_filesz);
	}
}

static int read_core(struct core *core)
{
	int err = read_headers(core);

	if (!err)
		err = read_segments(core);
	if (!err)
		err = read_notes(core);
	if (!err)
		count_unread(core);
	return err ? err : core->snapshot->nr_threads ? 0 : -ENODATA;
}

int core_file_read(struct snapshot *ret, const char *path)
{
	struct core core = {.snapshot = ret, .path = path};
	struct stat stat;
	const char *why;
	int err;

	snapshot_init(ret);
	ret->is_core = true;
	core.fd = elf_file_open(path, &stat);
	err = core.fd < 0 ? core.fd : 0;
	core.size_bytes = err ? 0 : (uint64_t)stat.st_size;
	if (!err)
		err = read_core(&core);
	why = err == -ENOEXEC	? "it is no core file of a 64-bit process of this machine's kind"
	      : err == -ENODATA ? "it is truncated, or holds no memory or no threads"
	      : err == -EINVAL	? "its segments are not those of a process"
				: strerror(-err);
	if (err)
		diag_error("cannot scan %s: %s", path, why);
	free(core.segments);
	if (core.fd >= 0)
		close(core.fd);
	return err;
}
