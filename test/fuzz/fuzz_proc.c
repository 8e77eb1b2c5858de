/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Takes any text as that of a process's maps, stat and status in /proc: a process chooses its name
 * and the names of its files. What is mapped goes on to the unwinder's address spaces.
 */
#include "common/proc/process_maps.h"
#include "common/proc/process_stat.h"
#include "common/proc/proc_file.h"
#include "unwind/modules/address_space.h"
#include "unwind/modules/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_true)
{
	if (!is_true)
		abort();
}

struct code {
	struct module_table modules;
	struct address_spaces spaces;
};

static void map(struct code *code, const struct process_mapping *mapping)
{
	const struct stack_mapping mapped = {
		.pid = 1,
		.start = mapping->start,
		.len = mapping->end - mapping->start,
		.file_offset = mapping->file_offset,
		.path = mapping->path,
	};
	const struct address_space *space;
	struct module *module;

	require(module_table_get(&code->modules, &mapped, &module) == 0 &&
		address_spaces_map(&code->spaces, &mapped, module) == 0);
	space = address_spaces_find(&code->spaces, 1);
	require(space);
	if (module)
		require(address_space_find(space, mapping->start)->module == module &&
			address_space_find(space, mapping->end - 1)->module == module);
}

static void take_line(struct code *code, char *line)
{
	struct process_mapping mapping;
	size_t len = strlen(line);

	if (process_maps_parse_line(line, &mapping))
		return;
	require(mapping.start < mapping.end && strlen(mapping.permissions) == 4);
	require(mapping.path >= line && mapping.path + strlen(mapping.path) <= line + len);
	if (process_mapping_is_code(&mapping))
		map(code, &mapping);
}

static void take_maps(const char *text, size_t size)
{
	FILE *maps = fmemopen((void *)text, size, "r");
	struct code code;
	size_t capacity = 0;
	char *line = NULL;

	require(maps);
	module_table_init(&code.modules, NULL);
	address_spaces_init(&code.spaces);
	while (getline(&line, &capacity, maps) > 0)
		take_line(&code, line);
	free(line);
	fclose(maps);
	address_spaces_deinit(&code.spaces);
	module_table_deinit(&code.modules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct process_stat stat;
	char *text = malloc(size + 1);
	uint64_t number;

	require(text);
	memcpy(text, data, size);
	text[size] = '\0';
	if (process_stat_parse(text, &stat) == 0)
		process_stat_is_dead(&stat);
	proc_file_number(text, "TracerPid:", &number);
	proc_file_find(text, "NSpid:");
	if (size)
		take_maps(text, size);
	free(text);
	return 0;
}
