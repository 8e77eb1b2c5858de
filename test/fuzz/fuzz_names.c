/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names addresses by the symbols and debugging information of any ELF file: as the module's own
 * file, or as its debug file. Then looks for the functions of source lines in it. The input is
 * struct names_input, then the file.
 */
#include "probes/elf/analysis_limit.h"
#include "probes/elf/function_lines.h"
#include "test/fuzz/elf_input.h"
#include "test/fuzz/names_input.h"
#include "unwind/stacks/stack_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOAD_ADDRESS 0x7f0000000000ull
#define LOAD_BYTES   0x10000
#define NR_ADDRESSES 32

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char directory[] = "/tmp/fuzz_names_XXXXXX";		       /* of debug files */
static const char debug_name[] = "/.build-id/01/02030405060708.debug"; /* of NAMES_BUILD_ID */
static char path[64];						       /* of the input's file */
static char stripped_path[64];
static int fd, stripped_fd;
static FILE *out; /* nowhere */

static void remove_directory(void)
{
	static const char *const names[] = {debug_name, "/.build-id/01", "/.build-id", ""};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char name[128];

		snprintf(name, sizeof(name), "%s%s", directory, names[i]);
		remove(name);
	}
}

static int make_file(char ret_path[static 64])
{
	int new = elf_input_create();

	snprintf(ret_path, 64, "/proc/self/fd/%d", new);
	return new;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char name[128];

	(void)argc;
	(void)argv;
	unsetenv("DEBUGINFOD_URLS");
	out = fopen("/dev/null", "w");
	elf_input_require(out && mkdtemp(directory) && atexit(remove_directory) == 0);
	snprintf(name, sizeof(name), "%s/.build-id", directory);
	elf_input_require(mkdir(name, 0700) == 0);
	snprintf(name, sizeof(name), "%s/.build-id/01", directory);
	elf_input_require(mkdir(name, 0700) == 0);
	fd = make_file(path);
	snprintf(name, sizeof(name), "%s%s", directory, debug_name);
	elf_input_require(symlink(path, name) == 0);
	stripped_fd = make_file(stripped_path);
	return 0;
}

static void name_frames(struct stack_store *store, uint32_t id)
{
	for (size_t i = 0; i < stack_store_nr_frames(store, id); i++) {
		const struct stack_frame *frames;
		size_t nr;

		elf_input_require(stack_store_frames(store, id, i, &frames, &nr) == 0);
		elf_input_require(nr >= 1 && nr <= STACK_MAX_INLINED + 1 &&
				  !frames[nr - 1].inlined);
		for (size_t j = 0; j < nr; j++)
			stack_frame_print(&frames[j], out);
	}
}

static void name_addresses(const struct names_input *input)
{
	const struct stack_store_options options = {.debug_dir = directory};
	const bool is_missing = input->role % NAMES_NR_ROLES == NAMES_ONLY_DEBUG;
	const bool is_module = input->role % NAMES_NR_ROLES == NAMES_MODULE;
	const struct stack_mapping mapping = {
		.pid = 1,
		.start = LOAD_ADDRESS,
		.len = LOAD_BYTES,
		.path = is_missing  ? "/missing"
			: is_module ? path
				    : stripped_path,
		.build_id = {NAMES_BUILD_ID},
		.build_id_size = is_missing ? 8 : 0,
	};
	uint64_t addresses[NR_ADDRESSES];
	struct stack_store *store;
	uint32_t id;

	for (uint64_t i = 0; i < NR_ADDRESSES; i++)
		addresses[i] = LOAD_ADDRESS + input->first + i * input->step;
	elf_input_require(stack_store_create(&options, &store) == 0);
	elf_input_require(stack_store_map(store, &mapping) == 0);
	elf_input_require(stack_store_add_callchain(store, 1, addresses, NR_ADDRESSES, &id) == 0);
	name_frames(store, id);
	stack_store_destroy(store);
}

/* As the analysis of a file with --pair SOURCE:LINE does. */
static void find_line(const struct names_input *input)
{
	const bool is_module = input->role % NAMES_NR_ROLES == NAMES_MODULE;
	const struct debug_symbols_files debug = {
		.id = {.build_id = {NAMES_BUILD_ID}, .build_id_size = 8},
		.fds = {fd},
		.nr = 1,
	};
	struct elf_function function;
	struct elf_image image;

	analysis_limit_begin(ANALYSIS_LIMIT_NS);
	if (elf_image_init(&image, is_module ? fd : stripped_fd) == 0) {
		if (function_lines_are_in(&image) || !is_module)
			function_lines_find(&image, is_module ? NULL : &debug, "named.c",
					    input->line, &function);
		elf_image_deinit(&image);
	}
	analysis_limit_end();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct names_input input;

	if (size < sizeof(input))
		return -1;
	memcpy(&input, data, sizeof(input));
	data += sizeof(input);
	size -= sizeof(input);
	elf_input_write(fd, data, size);
	elf_input_write_stripped(stripped_fd, data, size);
	name_addresses(&input);
	find_line(&input);
	return 0;
}
