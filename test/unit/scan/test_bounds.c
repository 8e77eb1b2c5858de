/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that a hostile process has made up so that analysing it takes long. Each case takes a
 * second at most; what it must not do, minutes to years.
 */
#include "scan/analysis/scan.h"
#include "scan/heaps/heap_read.h"
#include "scan/names/module_symbols.h"
#include "scan/names/object_types.h"
#include "scan/roots/roots.h"
#include "scan/core/core_notes.h"
#include "test/support/heap_image.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define MAX_CPU_S 60

#define START	  0x7f0000000000ull
#define PAGE	  SCAN_PAGE_SIZE

/* A process with one mapping, which is not of a file. */
static void init(struct snapshot *ret, uint64_t size_bytes)
{
	snapshot_init(ret);
	ret->regions = calloc(1, sizeof(*ret->regions));
	assert_non_null(ret->regions);
	ret->nr_regions = 1;
	ret->regions[0] = (struct scan_region){
		.start = START,
		.end = START + size_bytes,
		.is_readable = true,
		.is_writable = true,
		.path = strdup(""),
	};
	assert_int_equal(scan_region_reserve(&ret->regions[0], size_bytes), 0);
}

static void add_run(struct snapshot *snapshot, uint64_t start, uint64_t end)
{
	assert_int_equal(scan_region_add_run(&snapshot->regions[0], start, end), 0);
}

static void set(struct snapshot *snapshot, uint64_t address, uint64_t word)
{
	memcpy(snapshot->regions[0].bytes + (address - START), &word, sizeof(word));
}

/* --- ended threads --- */

#define NR_THREADS  30000ull
#define STACK_BYTES 0x5000ull
#define LIST_AT	    704ull  /* in struct pthread */
#define BLOCK_AT    1680ull /* in struct pthread */

static uint64_t control_of(uint64_t i)
{
	return START + i * STACK_BYTES + STACK_BYTES - PAGE;
}

/* The list's node, and its neighbours. */
static void link_nodes(struct snapshot *snapshot, uint64_t node, uint64_t next)
{
	set(snapshot, node, next);
	set(snapshot, next + 8, node);
}

static void many_threads_have_ended(void **state)
{
	uint64_t head = START + NR_THREADS * STACK_BYTES;
	struct thread_stacks stacks;
	struct snapshot snapshot;

	init(&snapshot, NR_THREADS * STACK_BYTES + PAGE);
	for (uint64_t i = 0; i < NR_THREADS; i++) {
		uint64_t control = control_of(i);

		set(&snapshot, control, control);
		set(&snapshot, control + 16, control);
		set(&snapshot, control + BLOCK_AT, START + i * STACK_BYTES);
		set(&snapshot, control + BLOCK_AT + 8, STACK_BYTES);
		link_nodes(&snapshot, i ? control_of(i - 1) + LIST_AT : head, control + LIST_AT);
		add_run(&snapshot, control, control + PAGE);
	}
	link_nodes(&snapshot, control_of(NR_THREADS - 1) + LIST_AT, head);
	add_run(&snapshot, head, head + PAGE);
	assert_int_equal(thread_stacks_find(&stacks, &snapshot), 0);
	assert_int_equal(stacks.nr, NR_THREADS);
	assert_true(stacks.stacks[0].waits_for_join);
	thread_stacks_deinit(&stacks);
	/* The list breaks: none of them is known to be a thread. */
	set(&snapshot, control_of(NR_THREADS / 2) + LIST_AT, 0);
	assert_int_equal(thread_stacks_find(&stacks, &snapshot), 0);
	assert_int_equal(stacks.nr, 0);
	thread_stacks_deinit(&stacks);
	snapshot_deinit(&snapshot);
}

/* --- what looks like a heap --- */

static void data_is_full_of_pointers_to_themselves(void **state)
{
	const uint64_t size = 4 << 20;
	struct snapshot snapshot;
	struct heap heap;

	init(&snapshot, size);
	snapshot.regions[0].has_file = true;
	add_run(&snapshot, START, START + size);
	for (uint64_t at = START; at < START + size; at += 16) {
		set(&snapshot, at, at - 16);
		set(&snapshot, at + 8, at - 16);
	}
	assert_int_equal(heap_read(&heap, &snapshot, NULL), 0);
	assert_null(heap.allocator);
	heap_deinit(&heap);
	/* The rings of arenas that begin at each of them are long, and none of them ends. */
	for (uint64_t at = START; at < START + size; at += 16)
		set(&snapshot, at, at + 16);
	for (uint64_t at = START; at < START + size; at += 1024)
		set(&snapshot, at + 8, at - 16);
	assert_int_equal(heap_read(&heap, &snapshot, NULL), 0);
	heap_deinit(&heap);
	snapshot_deinit(&snapshot);
}

static void assert_not_whole(struct heap_image *image)
{
	struct heap heap;

	assert_int_equal(heap_read(&heap, &image->snapshot, NULL), 0);
	assert_non_null(heap.allocator);
	assert_false(heap.is_whole);
	heap_deinit(&heap);
	heap_image_deinit(image);
}

/* Each word of the libc's data seems to say where the heap begins. It is wrong, near the end. */
static void many_words_may_be_the_beginning(void **state)
{
	const uint64_t size = 8 << 20;
	struct heap_image image;

	heap_image_init_large(&image, 64 << 20, 32);
	heap_image_enlarge(&image, HEAP_IMAGE_LIBC, size);
	/* So that the arena's pointer to its top is none of these words. */
	heap_image_set(&image, HEAP_IMAGE_TOP - 8, 1);
	heap_image_set(&image, HEAP_IMAGE_SYSTEM, 1 << 20);
	heap_image_set(&image, image.at - 24, 24);
	for (uint64_t at = HEAP_IMAGE_LIBC + PAGE; at + 24 < HEAP_IMAGE_LIBC + size; at += 24)
		heap_image_set(&image, at + 16, HEAP_IMAGE_HEAP);
	assert_not_whole(&image);
}

/* Each word above the heap's first part begins chunks; none of them lead to the top. */
static void many_chunks_may_be_the_next(void **state)
{
	struct heap_image image;

	heap_image_init_large(&image, 64 << 20, 32);
	/* The end of a part, twice. */
	heap_image_set(&image, HEAP_IMAGE_HEAP + 8, 16 | 1);
	heap_image_set(&image, HEAP_IMAGE_HEAP + 24, 16 | 1);
	heap_image_set(&image, image.at - 24, 24);
	assert_not_whole(&image);
}

/* Each word below the thread's control block points to a cache, whose list is broken at its end. */
static void many_words_may_be_a_cache(void **state)
{
	/* struct tcache_perthread_struct of 2.42: 76 numbers of 16 bits, then 76 heads. */
	const uint64_t cache = HEAP_IMAGE_HEAP + 16, cache_bytes = 0x300, heads = cache + 152;
	struct heap_image image;
	uint64_t block;

	heap_image_init_large(&image, 64 << 20, 32);
	for (block = cache + cache_bytes; block < cache + (2 << 20); block += 32)
		heap_image_set(&image, block, block + 32);
	heap_image_set(&image, cache - 8, cache_bytes | 1);
	heap_image_set(&image, block, 8);
	for (uint64_t i = 0; i < 76; i++)
		heap_image_set(&image, heads + i * 8, 0);
	heap_image_set(&image, heads, cache + cache_bytes);
	for (uint64_t at = HEAP_IMAGE_DATA; at < HEAP_IMAGE_TLS; at += 8)
		heap_image_set(&image, at, cache);
	/* 50,000 threads: each looks at the same words. */
	free(image.snapshot.threads);
	image.snapshot.nr_threads = 50000;
	image.snapshot.threads = calloc(50000, sizeof(*image.snapshot.threads));
	assert_non_null(image.snapshot.threads);
	for (size_t i = 0; i < 50000; i++)
		image.snapshot.threads[i].registers.thread_pointer = HEAP_IMAGE_TLS;
	assert_not_whole(&image);
}

/* All of them would look through all of it. */
static void many_threads_have_their_stacks_in_one_block(void **state)
{
	const size_t nr = 50000;
	struct heap_image image;
	struct thread_stacks stacks;
	struct roots roots;
	struct heap heap;
	uint64_t bytes = 0;

	heap_image_init_large(&image, 8 << 20, 2 << 20);
	free(image.snapshot.threads);
	image.snapshot.nr_threads = nr;
	image.snapshot.threads = calloc(nr, sizeof(*image.snapshot.threads));
	assert_non_null(image.snapshot.threads);
	for (size_t i = 0; i < nr; i++)
		image.snapshot.threads[i].registers.sp = HEAP_IMAGE_HEAP + 16 + (i * 7919 % nr) * 8;
	assert_int_equal(heap_read(&heap, &image.snapshot, NULL), 0);
	assert_true(heap.is_whole);
	assert_int_equal(thread_stacks_find(&stacks, &image.snapshot), 0);
	assert_int_equal(roots_init(&roots, &heap, &stacks), 0);
	for (size_t i = 0; i < roots.nr; i++)
		if (roots.ranges[i].kind == ROOT_STACK)
			bytes += roots.ranges[i].size_bytes;
	/* All of it, once. */
	assert_int_equal(bytes, heap_block_bytes(&heap, 0));
	roots_deinit(&roots);
	heap_deinit(&heap);
	heap_image_deinit(&image);
}

/* Of a block that claims to be large, two pages were touched. It is held, then lost. */
static void a_block_claims_terabytes(void **state)
{
	const uint64_t start = 0x600000000000, size = 4ull << 40, last = start + size - PAGE;
	struct heap_image image;
	struct scan_region *regions;
	struct scan scan;

	heap_image_init(&image);
	regions = calloc(image.snapshot.nr_regions + 1, sizeof(*regions));
	assert_non_null(regions);
	memcpy(regions, image.snapshot.regions, 2 * sizeof(*regions));
	memcpy(regions + 3, image.snapshot.regions + 2,
	       (image.snapshot.nr_regions - 2) * sizeof(*regions));
	free(image.snapshot.regions);
	image.snapshot.regions = regions;
	image.snapshot.nr_regions++;
	regions[2] = (struct scan_region){
		.start = start,
		.end = start + size,
		.is_readable = true,
		.is_writable = true,
		.path = strdup(""),
	};
	assert_int_equal(scan_region_reserve(&regions[2], size), 0);
	assert_int_equal(scan_region_add_run(&regions[2], start, start + PAGE), 0);
	assert_int_equal(scan_region_add_run(&regions[2], last, last + PAGE), 0);
	heap_image_set(&image, start + 8, size | 2);
	heap_image_set(&image, last + 8, heap_image_add(&image, 24));
	heap_image_set(&image, HEAP_IMAGE_MAPPED, size);
	heap_image_set(&image, HEAP_IMAGE_MAPPED + 8, size);
	heap_image_end(&image);
	heap_image_set(&image, HEAP_IMAGE_DATA, start + 16);
	assert_int_equal(scan_init(&scan, &image.snapshot, NULL, NULL), 0);
	assert_int_equal(scan.totals[REACH_HELD].nr, 2);
	scan_deinit(&scan);
	heap_image_set(&image, HEAP_IMAGE_DATA, 0);
	assert_int_equal(scan_init(&scan, &image.snapshot, NULL, NULL), 0);
	assert_int_equal(scan.totals[REACH_HELD].nr, 0);
	assert_int_equal(scan.lost.nr, 2);
	assert_int_equal(scan.lost.nr_roots, 1);
	scan_deinit(&scan);
	heap_image_deinit(&image);
}

static uint64_t own_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	uint64_t pages = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%" SCNu64, &pages), 1);
	fclose(file);
	return pages * PAGE;
}

/* One list of all blocks, and then no two that belong together. */
static void all_blocks_are_lost(void **state)
{
	struct rlimit limit, before;
	struct heap_image image;
	struct scan scan;

	getrlimit(RLIMIT_AS, &before);
	heap_image_init_large(&image, 64 << 20, 32);
	for (int round = 0; round < 2; round++) {
		for (uint64_t at = HEAP_IMAGE_HEAP + 16; at + 32 < image.at; at += 32)
			heap_image_set(&image, at, round ? 0 : at + 32);
		assert_int_equal(scan_init(&scan, &image.snapshot, NULL, NULL), 0);
		lost_graph_deinit(&scan.lost);
		limit = before;
		limit.rlim_cur = own_bytes() + scan.heap.map.nr_blocks * (round ? 56ull : 24ull);
		/* ASan's own memory is larger, and would count. */
		if (own_bytes() < 1ull << 40)
			setrlimit(RLIMIT_AS, &limit);
		assert_int_equal(lost_graph_init(&scan.lost, &scan.marking), 0);
		setrlimit(RLIMIT_AS, &before);
		assert_int_equal(scan.lost.nr_roots, round ? scan.lost.nr : 1);
		scan_deinit(&scan);
	}
	heap_image_deinit(&image);
}

/* --- names --- */

/* The name of each is too long, and its file is not copied. */
static void many_tables_have_a_long_name(void **state)
{
	const uint64_t nr = 200000, info = START, name = START + PAGE, tables = name + PAGE;
	const uint64_t words[] = {START, name};
	struct snapshot snapshot;
	struct object_types types;
	char text[PAGE];

	init(&snapshot, 4 << 20);
	snapshot.regions[0].has_file = true;
	snapshot.regions[0].is_writable = false;
	snapshot.mem_fd = memfd_create("memory", 0);
	memset(text, 'x', sizeof(text));
	assert_int_equal(pwrite(snapshot.mem_fd, words, sizeof(words), (off_t)info), sizeof(words));
	assert_int_equal(pwrite(snapshot.mem_fd, text, PAGE, (off_t)name), PAGE);
	assert_int_equal(ftruncate(snapshot.mem_fd, (off_t)(START + (4 << 20))), 0);
	object_types_init(&types, &snapshot);
	for (uint64_t i = 1; i <= nr; i++) {
		const uint64_t table = tables + i * 16;
		const struct heap_block_view block = {.size_bytes = 8,
						      .bytes = (const uint8_t *)&table};

		assert_int_equal(pwrite(snapshot.mem_fd, &info, 8, (off_t)(table - 8)), 8);
		assert_null(object_type(&types, &block));
	}
	object_types_deinit(&types);
	snapshot_deinit(&snapshot);
}

#define NR_SYMBOLS 400000ull
#define DATA_AT	   0x1000

/* A file whose variables all have one address. */
struct __attribute__((packed)) symbol_file {
	Elf64_Ehdr header;
	Elf64_Phdr data;
	Elf64_Shdr sections[3];
	char names[8];
	Elf64_Sym symbols[NR_SYMBOLS];
};

static void write_symbol_file(int fd)
{
	struct symbol_file *file = calloc(1, sizeof(*file));
	const size_t names_at = offsetof(struct symbol_file, names);

	assert_non_null(file);
	file->header = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phoff = offsetof(struct symbol_file, data),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shoff = offsetof(struct symbol_file, sections),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 3,
	};
	file->data = (Elf64_Phdr){.p_type = PT_LOAD,
				  .p_flags = PF_R | PF_W | PF_X,
				  .p_vaddr = DATA_AT,
				  .p_filesz = PAGE,
				  .p_memsz = PAGE};
	file->sections[1] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
					 .sh_offset = offsetof(struct symbol_file, symbols),
					 .sh_size = sizeof(file->symbols),
					 .sh_link = 2,
					 .sh_entsize = sizeof(Elf64_Sym)};
	file->sections[2] = (Elf64_Shdr){
		.sh_type = SHT_STRTAB, .sh_offset = names_at, .sh_size = sizeof(file->names)};
	memcpy(file->names, "\0data", 6);
	for (size_t i = 0; i < NR_SYMBOLS; i++)
		file->symbols[i] = (Elf64_Sym){.st_name = 1,
					       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
					       .st_shndx = 1,
					       .st_value = DATA_AT,
					       .st_size = PAGE};
	assert_int_equal(write(fd, file, sizeof(*file)), sizeof(*file));
	free(file);
}

static void many_variables_have_one_address(void **state)
{
	char path[] = "/tmp/test_bounds.XXXXXX";
	int fd = mkstemp(path);
	struct module_symbols symbols;
	struct module_place place;
	struct snapshot snapshot;
	struct stat stat;
	void *code;

	assert_true(fd >= 0);
	write_symbol_file(fd);
	assert_int_equal(fstat(fd, &stat), 0);
	code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(code != MAP_FAILED);
	module_symbols_open(&symbols, getpid());
	unlink(path);
	init(&snapshot, PAGE);
	snapshot.regions[0].has_file = true;
	snapshot.regions[0].inode = stat.st_ino;
	for (uint64_t i = 0; i < NR_SYMBOLS; i++)
		module_symbols_find(&symbols, &snapshot, START + i % PAGE, &place);
	assert_string_equal(place.symbol, "data");
	assert_int_equal(place.offset, (NR_SYMBOLS - 1) % PAGE);
	module_symbols_deinit(&symbols);
	snapshot_deinit(&snapshot);
	munmap(code, PAGE);
	close(fd);
}

/* --- core files --- */

/* One list of files in a note. It has one file, which is all of the memory. */
struct __attribute__((packed)) file_list {
	Elf64_Nhdr header;
	uint64_t nr, unit, range[3];
	char name[4];
};

static void many_lists_name_the_files_of_many_mappings(void **state)
{
	const size_t nr_lists = 1000000, nr_regions = 60000;
	struct snapshot snapshot;
	struct file_list *lists = calloc(nr_lists, sizeof(*lists));

	snapshot_init(&snapshot);
	snapshot.regions = calloc(nr_regions, sizeof(*snapshot.regions));
	assert_true(lists && snapshot.regions);
	snapshot.nr_regions = nr_regions;
	for (size_t i = 0; i < nr_regions; i++) {
		snapshot.regions[i].start = START + i * PAGE;
		snapshot.regions[i].end = START + (i + 1) * PAGE;
	}
	for (size_t i = 0; i < nr_lists; i++)
		lists[i] = (struct file_list){
			{0, sizeof(*lists) - sizeof(Elf64_Nhdr), NT_FILE},
			1,
			PAGE,
			{START, START + nr_regions * PAGE, 0},
			"/f",
		};
	assert_int_equal(
		core_notes_parse(&snapshot, (const char *)lists, nr_lists * sizeof(*lists)), 0);
	assert_string_equal(snapshot.regions[nr_regions - 1].path, "/f");
	snapshot_deinit(&snapshot);
	free(lists);
}

static void a_long_name_is_of_many_mappings(void **state)
{
	const size_t nr_regions = 60000, name_bytes = 1 << 20;
	struct snapshot snapshot;
	struct file_list *list = calloc(1, sizeof(*list) + name_bytes);

	snapshot_init(&snapshot);
	snapshot.regions = calloc(nr_regions, sizeof(*snapshot.regions));
	assert_true(list && snapshot.regions);
	snapshot.nr_regions = nr_regions;
	for (size_t i = 0; i < nr_regions; i++) {
		snapshot.regions[i].start = START + i * PAGE;
		snapshot.regions[i].end = START + (i + 1) * PAGE;
	}
	*list = (struct file_list){
		{0, (Elf64_Word)(sizeof(*list) - sizeof(Elf64_Nhdr) + name_bytes), NT_FILE},
		1,
		PAGE,
		{START, START + nr_regions * PAGE, 0},
		"",
	};
	memset(list->name, 'x', name_bytes);
	assert_int_equal(
		core_notes_parse(&snapshot, (const char *)list, sizeof(*list) + name_bytes),
		-E2BIG);
	snapshot_deinit(&snapshot);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_threads_have_ended),
		cmocka_unit_test(data_is_full_of_pointers_to_themselves),
		cmocka_unit_test(many_words_may_be_the_beginning),
		cmocka_unit_test(many_chunks_may_be_the_next),
		cmocka_unit_test(many_words_may_be_a_cache),
		cmocka_unit_test(many_threads_have_their_stacks_in_one_block),
		cmocka_unit_test(a_block_claims_terabytes),
		cmocka_unit_test(all_blocks_are_lost),
		cmocka_unit_test(many_tables_have_a_long_name),
		cmocka_unit_test(many_variables_have_one_address),
		cmocka_unit_test(many_lists_name_the_files_of_many_mappings),
		cmocka_unit_test(a_long_name_is_of_many_mappings),
	};
	const struct rlimit limit = {MAX_CPU_S, MAX_CPU_S};

	setrlimit(RLIMIT_CPU, &limit);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
