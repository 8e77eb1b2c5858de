/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/syscall_schema.h"

#include "common/scope.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static const struct resource_kind mapping_kind = {
	.name = "mapping",
	.number = RESOURCE_MAPPINGS,
	.names_one = true,
};

/* Arguments: SYSCALL_DEFINE in mm/mmap.c, mm/mremap.c, arch/x86/kernel/sys_x86_64.c (6.1, 6.18). */
static const struct syscall_schema schema_table[] = {
	{
		.name = "mmap",
		.call = {.schema = {"mmap", RESOURCE_AT_RETURN, 0, {NULL}, -1, -1, -1, FAMILY_ANY},
			 .kind = &mapping_kind},
		.number = SYS_mmap,
		.groups = SYSCALL_MAPPINGS,
		.nr_args = 6,
		.arg_names = {"addr", "len", "prot", "flags", "fd", "off"},
		.gives = true,
		.size_arg = 1,
		.replaces_arg = 3,
		.replaces_bit = MAP_FIXED,
	},
	{
		.name = "munmap",
		.call = {.schema =
				 {"munmap", RESOURCE_AT_RETURN, 0, {NULL}, -1, -1, -1, FAMILY_ANY},
			 .kind = &mapping_kind},
		.number = SYS_munmap,
		.groups = SYSCALL_MAPPINGS,
		.nr_args = 2,
		.arg_names = {"addr", "len"},
		.takes = true,
		.size_arg = -1,
	},
	{
		.name = "mremap",
		.call = {.schema =
				 {"mremap", RESOURCE_AT_RETURN, 0, {NULL}, -1, -1, -1, FAMILY_ANY},
			 .kind = &mapping_kind},
		.number = SYS_mremap,
		.groups = SYSCALL_MAPPINGS,
		.nr_args = 5,
		.arg_names = {"addr", "old_len", "new_len", "flags", "new_addr"},
		.gives = true,
		.takes = true,
		.size_arg = -1,
	},
	{
		.name = "brk",
		.call = {.schema = {"brk", RESOURCE_AT_RETURN, 0, {NULL}, -1, -1, -1, FAMILY_ANY},
			 .kind = &mapping_kind},
		.number = SYS_brk,
		.groups = SYSCALL_MAPPINGS,
		.nr_args = 1,
		.arg_names = {"brk", SYSCALL_FIELD_BREAK},
		.gives = true,
		.size_arg = -1,
	},
};

const struct syscall_schema *syscall_schema_table(size_t *ret_nr)
{
	*ret_nr = ARRAY_SIZE(schema_table);
	return schema_table;
}

const struct syscall_schema *syscall_schema_parse_event(const char *event_name, bool *ret_is_exit)
{
	static const char enter[] = "sys_enter_", exit[] = "sys_exit_";
	const char *name;

	*ret_is_exit = strncmp(event_name, exit, strlen(exit)) == 0;
	if (*ret_is_exit)
		name = event_name + strlen(exit);
	else if (strncmp(event_name, enter, strlen(enter)) == 0)
		name = event_name + strlen(enter);
	else
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(schema_table); i++)
		if (strcmp(schema_table[i].name, name) == 0)
			return &schema_table[i];
	return NULL;
}
