/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/modules/module_segments.h"

#include "common/elf/elf_file.h"

#include <errno.h>
#include <stdlib.h>

#define SMALL_PAGE   4096u
#define LARGE_PAGE   65536u
#define MAX_SEGMENTS 256
#define MAX_SEGMENT  (1ull << 46) /* bytes */

int module_read_segments(struct module *module, Elf *elf)
{
	size_t nr_headers;
	GElf_Ehdr ehdr;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &ehdr) ||
	    (ehdr.e_type != ET_EXEC && ehdr.e_type != ET_DYN) || elf_getphdrnum(elf, &nr_headers))
		return -ENOEXEC;
	if (nr_headers > MAX_SEGMENTS)
		nr_headers = MAX_SEGMENTS;

	struct module_segment *segments = calloc(nr_headers + 1, sizeof(*segments));
	if (!segments)
		return -ENOMEM;

	size_t nr = 0;
	for (size_t i = 0; i < nr_headers; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(elf, (int)i, &phdr) || phdr.p_type != PT_LOAD)
			continue;
		segments[nr++] = (struct module_segment){
			.file_offset = phdr.p_offset,
			.file_size = phdr.p_filesz,
			.vaddr = phdr.p_vaddr,
			.memory_size = phdr.p_memsz,
			.flags = phdr.p_flags,
		};
	}
	free(module->segments);
	module->segments = segments;
	module->nr_segments = nr;
	module->machine = ehdr.e_machine;
	module->elf_class = ehdr.e_ident[EI_CLASS];
	return 0;
}

static bool is_whole(const struct module *module, const struct module_segment *segment)
{
	for (uint64_t page = SMALL_PAGE; page <= LARGE_PAGE; page *= 4) {
		uint64_t end = segment->vaddr % page + segment->memory_size;

		if (module->code_len == (end + page - 1) / page * page)
			return true;
	}
	return false;
}

int module_use_debug_file(struct module *module, int fd)
{
	struct module_segment *code = NULL;
	Elf *elf = elf_file_begin(fd);
	int err = elf ? module_read_segments(module, elf) : -ENOENT;

	elf_end(elf);
	for (size_t i = 0; !err && i < module->nr_segments; i++) {
		struct module_segment *segment = &module->segments[i];

		if (!(segment->flags & PF_X))
			continue;
		if (code || segment->memory_size > MAX_SEGMENT || !is_whole(module, segment))
			err = -ENOENT;
		code = segment;
	}
	if (err || !code) {
		module->nr_segments = 0;
		return -ENOENT;
	}
	/* An offset and its address are congruent modulo the page size. */
	code->file_offset = module->code_offset + code->vaddr % SMALL_PAGE;
	code->file_size = code->memory_size;
	module->segments[0] = *code;
	module->nr_segments = 1;
	return 0;
}

/*
 * Rates how well a segment fits a byte of the file, as several may share its page; 0: not at all.
 */
static int rate_segment(const struct module_segment *segment, uint64_t file_offset)
{
	/* A segment is mapped from the start of its first page. */
	uint64_t start = segment->file_offset & ~(uint64_t)(SMALL_PAGE - 1);

	if (file_offset < start ||
	    file_offset - start >= segment->file_size + (segment->file_offset - start))
		return 0;
	return 1 + 2 * (file_offset >= segment->file_offset) + !!(segment->flags & PF_X);
}

bool module_vaddr(const struct module *module, uint64_t file_offset, uint64_t *ret)
{
	const struct module_segment *best = NULL;
	int best_rating = 0;

	for (size_t i = 0; i < module->nr_segments; i++) {
		int rating = rate_segment(&module->segments[i], file_offset);

		if (rating > best_rating) {
			best = &module->segments[i];
			best_rating = rating;
		}
	}
	if (!best)
		return false;
	*ret = file_offset - best->file_offset + best->vaddr;
	return true;
}

bool module_code_bias(const struct module *module, uint64_t start, uint64_t file_offset,
		      uint64_t *ret)
{
	for (size_t i = 0; i < module->nr_segments; i++) {
		const struct module_segment *segment = &module->segments[i];

		if (!(segment->flags & PF_X))
			continue;
		/* A mapping begins with a page, of the recording machine's size. */
		for (uint64_t page = SMALL_PAGE; page <= LARGE_PAGE; page *= 4)
			if (file_offset == (segment->file_offset & ~(page - 1))) {
				*ret = start - file_offset + segment->file_offset - segment->vaddr;
				return true;
			}
	}
	return false;
}

uint64_t module_span(const struct module *module)
{
	uint64_t low = UINT64_MAX, high = 0;

	for (size_t i = 0; i < module->nr_segments; i++) {
		const struct module_segment *segment = &module->segments[i];

		if (segment->vaddr < low)
			low = segment->vaddr;
		if (segment->vaddr + segment->memory_size > high)
			high = segment->vaddr + segment->memory_size;
	}
	return high > low ? high - low : 0;
}
