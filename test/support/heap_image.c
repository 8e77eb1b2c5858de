/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test/support/heap_image.h"

#include <elf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/user.h>

/* struct malloc_state and struct malloc_par of glibc 2.36 in the libc's data. */
#define ARENA	    (HEAP_IMAGE_LIBC + 0x100)
#define BINS	    (ARENA + 112)
#define NR_BINS	    127
#define FASTBINS_AT (HEAP_IMAGE_TOP - 80)
#define NEXT_OFFSET (NR_BINS * 16 + 16) /* from the bins */
#define BASE_AT	    (HEAP_IMAGE_LIBC + 0xe00)

#define PAGE	    SCAN_PAGE_SIZE
#define PREV_IN_USE 1u

struct mapping {
	uint64_t start;
	bool is_file, is_code;
};

static const struct mapping mappings[] = {
	{HEAP_IMAGE_DATA, true, false},	  {HEAP_IMAGE_HEAP, false, false},
	{HEAP_IMAGE_CODE, true, true},	  {HEAP_IMAGE_LIBC, true, false},
	{HEAP_IMAGE_STACK, false, false},
};
#define NR_MAPPINGS (sizeof(mappings) / sizeof(mappings[0]))

static void *need(void *p)
{
	if (!p)
		abort();
	return p;
}

static const char *path_of(const struct mapping *mapping)
{
	return mapping->start == HEAP_IMAGE_STACK  ? "[stack]"
	       : mapping->start == HEAP_IMAGE_HEAP ? "[heap]"
	       : mapping->start == HEAP_IMAGE_DATA ? "/bin/program"
						   : "/lib/libc.so.6";
}

static void add_region(struct snapshot *snapshot, const struct mapping *mapping)
{
	struct scan_region *region = &snapshot->regions[snapshot->nr_regions++];

	*region = (struct scan_region){
		.start = mapping->start,
		.end = mapping->start + PAGE,
		.is_readable = true,
		.is_writable = !mapping->is_code,
		.is_executable = mapping->is_code,
		.has_file = mapping->is_file,
		.path = need(strdup(path_of(mapping))),
	};
	if (scan_region_reserve(region, PAGE) ||
	    scan_region_add_run(region, region->start, region->end))
		abort();
}

static uint8_t *byte_at(const struct heap_image *image, uint64_t address)
{
	const uint8_t *bytes = need((void *)snapshot_bytes(&image->snapshot, address, 8));

	return (uint8_t *)bytes;
}

void heap_image_set(struct heap_image *image, uint64_t address, uint64_t word)
{
	memcpy(byte_at(image, address), &word, sizeof(word));
}

uint64_t heap_image_get(const struct heap_image *image, uint64_t address)
{
	return load_word(byte_at(image, address));
}

static void init(struct heap_image *ret, uint64_t bins)
{
	struct snapshot *snapshot = &ret->snapshot;

	*ret = (struct heap_image){.at = HEAP_IMAGE_HEAP, .top_at = bins - 16};
	snapshot_init(snapshot);
	snapshot->pid = 1;
	snapshot->regions = need(calloc(NR_MAPPINGS, sizeof(*snapshot->regions)));
	for (size_t i = 0; i < NR_MAPPINGS; i++)
		add_region(snapshot, &mappings[i]);
	snapshot->threads = need(calloc(1, sizeof(*snapshot->threads)));
	snapshot->nr_threads = 1;
	snapshot->threads[0] = (struct scan_thread){
		.tid = 1,
		.registers = {.pc = HEAP_IMAGE_CODE,
			      .sp = HEAP_IMAGE_SP,
			      .thread_pointer = HEAP_IMAGE_TLS,
			      .syscall = -1,
			      .general = {{"rax", 0}, {"rbx", 0}},
			      .nr_general = 2},
	};
	for (uint64_t i = 0; i < NR_BINS; i++) {
		heap_image_set(ret, bins + i * 16, bins + i * 16 - 16);
		heap_image_set(ret, bins + i * 16 + 8, bins + i * 16 - 16);
	}
	heap_image_set(ret, bins + NEXT_OFFSET, ARENA);
	heap_image_set(ret, bins + NEXT_OFFSET + 24, PAGE);
	heap_image_set(ret, BASE_AT, HEAP_IMAGE_HEAP);
}

void heap_image_init(struct heap_image *ret)
{
	init(ret, BINS);
}

void heap_image_init_2_43(struct heap_image *ret)
{
	init(ret, ARENA + 24);
}

void heap_image_deinit(struct heap_image *image)
{
	snapshot_deinit(&image->snapshot);
}

/* The flag says whether the chunk before is in use. */
static uint64_t add(struct heap_image *image, uint64_t size_bytes, bool is_free)
{
	uint64_t chunk = image->at, size = (size_bytes + 8 + 15) & ~15ull;

	heap_image_set(image, chunk + 8, size | (image->was_free ? 0 : PREV_IN_USE));
	if (is_free)
		heap_image_set(image, chunk + size, size);
	image->was_free = is_free;
	image->at += size;
	return chunk + 16;
}

uint64_t heap_image_add(struct heap_image *image, uint64_t size_bytes)
{
	return add(image, size_bytes, false);
}

uint64_t heap_image_add_free(struct heap_image *image, uint64_t size_bytes)
{
	return add(image, size_bytes, true);
}

void heap_image_end(struct heap_image *image)
{
	heap_image_set(image, image->top_at, image->at);
	heap_image_set(image, image->at + 8, (HEAP_IMAGE_HEAP + PAGE - image->at) | PREV_IN_USE);
}

void heap_image_enlarge(struct heap_image *image, uint64_t start, uint64_t size_bytes)
{
	struct scan_region *region =
		need((struct scan_region *)snapshot_region(&image->snapshot, start));
	uint8_t *page = region->bytes;
	size_t page_bytes = region->buffer_bytes;

	if (scan_region_reserve(region, size_bytes))
		abort();
	memcpy(region->bytes, page, PAGE);
	munmap(page, page_bytes);
	region->end = region->start + size_bytes;
	region->nr_runs = 0;
	if (scan_region_add_run(region, region->start, region->end))
		abort();
}

void heap_image_init_large(struct heap_image *ret, uint64_t size_bytes, uint64_t chunk)
{
	uint64_t end = HEAP_IMAGE_HEAP + size_bytes;

	heap_image_init(ret);
	heap_image_enlarge(ret, HEAP_IMAGE_HEAP, size_bytes);
	while (ret->at + 2 * chunk < end)
		heap_image_add(ret, chunk - 8);
	heap_image_end(ret);
	heap_image_set(ret, ret->at + 8, (end - ret->at) | 1);
	heap_image_set(ret, HEAP_IMAGE_SYSTEM, size_bytes);
}

void heap_image_set_fastbin(struct heap_image *image, uint64_t first)
{
	uint64_t size = heap_image_get(image, first - 8) & ~7ull;

	heap_image_set(image, FASTBINS_AT + (size - 32) / 16 * 8, first - 16);
}

uint64_t heap_image_link(uint64_t block, uint64_t next, uint64_t bias)
{
	return (next ? next - bias : 0) ^ block >> 12;
}

void heap_image_add_page(struct heap_image *image, uint64_t address)
{
	const struct mapping mapping = {address, false, false};
	struct snapshot *snapshot = &image->snapshot;

	snapshot->regions = need(reallocarray(snapshot->regions, snapshot->nr_regions + 1,
					      sizeof(*snapshot->regions)));
	add_region(snapshot, &mapping);
}

/* Appends a note to @to. Returns its end. */
static uint8_t *put_note(uint8_t *to, uint32_t type, const void *data, size_t size)
{
	const Elf64_Nhdr header = {.n_namesz = 5, .n_descsz = (uint32_t)size, .n_type = type};

	memcpy(to, &header, sizeof(header));
	memcpy(to + sizeof(header), "CORE", 5);
	memcpy(to + sizeof(header) + 8, data, size);
	return to + sizeof(header) + 8 + ((size + 3) & ~(size_t)3);
}

static uint8_t *put_thread(uint8_t *to, const struct thread_registers *registers)
{
	struct elf_prstatus status = {.pr_pid = 1};
	struct user_regs_struct r = {0};

#ifdef __x86_64__
	r.rip = registers->pc;
	r.rsp = registers->sp;
	r.fs_base = registers->thread_pointer;
	r.orig_rax = (unsigned long long)registers->syscall;
	r.rax = registers->general[0].value;
	r.rbx = registers->general[1].value;
#endif
	memcpy(&status.pr_reg, &r, sizeof(r));
	return put_note(to, NT_PRSTATUS, &status, sizeof(status));
}

static uint8_t *put_files(uint8_t *to)
{
	struct {
		uint64_t nr, unit, ranges[NR_MAPPINGS * 3];
		char names[NR_MAPPINGS * 16];
	} files = {.unit = PAGE};
	char names[sizeof(files.names)];
	size_t len = 0, head;

	for (size_t i = 0; i < NR_MAPPINGS; i++) {
		const char *path = path_of(&mappings[i]);

		if (!mappings[i].is_file)
			continue;
		files.ranges[files.nr * 3] = mappings[i].start;
		files.ranges[files.nr++ * 3 + 1] = mappings[i].start + PAGE;
		memcpy(names + len, path, strlen(path) + 1);
		len += strlen(path) + 1;
	}
	head = (2 + files.nr * 3) * sizeof(uint64_t);
	memcpy((uint8_t *)&files + head, names, len);
	return put_note(to, NT_FILE, &files, head + len);
}

uint8_t *heap_image_core(const struct heap_image *image, size_t *ret_size)
{
	const size_t notes_at = sizeof(Elf64_Ehdr) + (NR_MAPPINGS + 1) * sizeof(Elf64_Phdr);
	uint8_t *core = need(calloc(NR_MAPPINGS + 1, PAGE)), *end;
	Elf64_Phdr *segments = (void *)(core + sizeof(Elf64_Ehdr));
	Elf64_Ehdr header = {.e_ident = ELFMAG,
			     .e_type = ET_CORE,
			     .e_machine = thread_registers_machine,
			     .e_phoff = sizeof(header),
			     .e_phentsize = sizeof(Elf64_Phdr),
			     .e_phnum = NR_MAPPINGS + 1};

	header.e_ident[EI_CLASS] = ELFCLASS64;
	memcpy(core, &header, sizeof(header));
	end = put_files(put_thread(core + notes_at, &image->snapshot.threads[0].registers));
	segments[NR_MAPPINGS] = (Elf64_Phdr){.p_type = PT_NOTE,
					     .p_offset = notes_at,
					     .p_filesz = (uint64_t)(end - core) - notes_at};
	for (size_t i = 0; i < NR_MAPPINGS; i++) {
		segments[i] = (Elf64_Phdr){
			.p_type = PT_LOAD,
			.p_flags = PF_R | (mappings[i].is_code ? PF_X : PF_W),
			.p_offset = (i + 1) * PAGE,
			.p_vaddr = mappings[i].start,
			.p_filesz = PAGE,
			.p_memsz = PAGE,
		};
		memcpy(core + (i + 1) * PAGE, image->snapshot.regions[i].bytes, PAGE);
	}
	*ret_size = (NR_MAPPINGS + 1) * PAGE;
	return core;
}
