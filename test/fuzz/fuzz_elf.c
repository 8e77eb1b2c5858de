/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Takes any bytes as an ELF file of a target: its symbols, notes and unwind information, the
 * allocator in it, and where its probes go, also those on functions that the user names. Then takes
 * what was planned, with some bytes changed, as what a process that the file has taken over might
 * send. The size of the input says whether operators count, and whether the file is taken apart
 * into a stripped one and its debug file.
 */
#include "probes/elf/analysis_limit.h"
#include "probes/elf/debug_symbols.h"
#include "probes/plan/plan_message.h"
#include "probes/plan/probe_plan.h"
#include "probes/resources/resource_targets.h"
#include "test/fuzz/elf_input.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NR_PAIRS 3

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct resource_specs specs;

/* Functions of the first input, by name and by place, with results and with pointers to them. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const pairs[NR_PAIRS] = {
		"malloc|calloc:ret size=arg1 / free:arg1",
		"by_pointer=posix_memalign:*arg1 fail!=0 / realloc:arg1",
		"by_place=file+0x3b0:ret fail<0 / file+0x4a0:arg2",
	};

	(void)argc;
	(void)argv;
	for (int i = 0; i < NR_PAIRS; i++)
		if (resource_specs_add(&specs, i == 1 ? "--ref" : "--pair", pairs[i]))
			abort();
	return 0;
}

static void plan_pairs(const struct mapped_file *file, const struct elf_image *image)
{
	struct found_functions found[NR_PAIRS] = {0};
	struct probe_set set = {0};

	if (image->is_native)
		resource_targets_plan(&set, file, image, NULL, &specs, found);
	probe_set_deinit(&set);
}

/* @debug_fd: what may be the debug file. */
static void plan(const struct mapped_file *file, int debug_fd, bool with_operators,
		 struct probe_set *ret)
{
	struct debug_symbols_files debug = {.fds = {debug_fd}, .nr = 1};
	struct allocator allocator;
	struct elf_image image;

	*ret = (struct probe_set){.with_operators = with_operators};
	analysis_limit_begin(ANALYSIS_LIMIT_NS);
	if (elf_image_init(&image, file->fd) == 0) {
		const struct probe_source source = {file->fd, &image, &file->stat, file->path,
						    file->display};

		if (debug_symbols_are_wanted(&image, &debug.id))
			debug_symbols_try(&image, &debug);
		if (allocator_init(&allocator, &image, with_operators) == 0)
			probe_plan_file(ret, &source, &allocator);
		allocator_deinit(&allocator);
		plan_pairs(file, &image);
		elf_image_deinit(&image);
	}
	analysis_limit_end();
}

/* The bytes of @data, taken as numbers, say what is changed. */
static void forge(char *message, size_t size, const uint8_t *data, size_t nr)
{
	for (size_t i = 0; i + 3 <= nr && i < 24 && size; i += 3)
		message[(data[i] << 8 | data[i + 1]) % size] = (char)data[i + 2];
}

static void send_forged(const struct mapped_file *file, const struct probe_set *set,
			const uint8_t *data, size_t nr)
{
	struct message_reader reader = {0};
	struct probe_set got = {0};
	char *message = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&message, &size);

	if (!out)
		abort();
	plan_message_put(out, set);
	if (fclose(out))
		abort();
	forge(message, size, data, nr);
	reader = (struct message_reader){message, message + size, false};
	if (plan_message_get(&reader, file, NULL, &got) && got.nr_files)
		abort();
	for (size_t i = 0; i < got.nr_files; i++)
		for (size_t j = 0; j < got.files[i].nr_probes; j++)
			if (strpbrk(got.files[i].probes[j].definition, "\n@;"))
				abort();
	probe_set_deinit(&got);
	free(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const int whole = elf_input_create(), stripped = elf_input_create();
	struct mapped_file file = {
		.fd = size & 2 ? stripped : whole,
		.path = (char[]){"/file"},
		.display = (char[]){"/file"},
	};
	struct probe_set set;

	elf_input_write(whole, data, size);
	elf_input_write_stripped(stripped, data, size);
	elf_input_require(fstat(file.fd, &file.stat) == 0);
	plan(&file, whole, size & 1, &set);
	send_forged(&file, &set, data + size / 2, size / 2);
	probe_set_deinit(&set);
	close(whole);
	close(stripped);
	return 0;
}
