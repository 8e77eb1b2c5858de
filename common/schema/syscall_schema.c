/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/schema/syscall_schema.h"

#include "common/scope.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static const struct resource_kind mapping_kind = {
	.name = "mapping",
	.number = RESOURCE_MAPPINGS,
	.names_one = true,
};

static const struct resource_kind descriptor_kind = {
	.name = "fd",
	.number = RESOURCE_DESCRIPTORS,
	.names_one = true,
};

/* A row of SYSCALL_DESCRIPTORS. Newer architectures do not have SYS_... of the older calls. */
#define DESCRIPTORS(call_name, does_what, ...)                                                     \
	{                                                                                          \
		.name = #call_name, .number = SYS_##call_name, .groups = SYSCALL_DESCRIPTORS,      \
		.does = (does_what), .size_arg = -1,                                               \
		.call = {.schema = {#call_name,                                                    \
				    RESOURCE_AT_RETURN,                                            \
				    0,                                                             \
				    {NULL},                                                        \
				    -1,                                                            \
				    -1,                                                            \
				    -1,                                                            \
				    FAMILY_ANY},                                                   \
			 .kind = &descriptor_kind},                                                \
		__VA_ARGS__                                                                        \
	}
#define OPENS(call_name)   DESCRIPTORS(call_name, SYSCALL_OPENS, .gives = true)
#define TWO_ARGS(one, two) .nr_args = 2, .arg_names = {one, two}

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
	OPENS(openat),
	OPENS(openat2),
	OPENS(open_by_handle_at),
	OPENS(socket),
	OPENS(accept),
	OPENS(accept4),
	OPENS(dup),
	OPENS(epoll_create1),
	OPENS(eventfd2),
	OPENS(timerfd_create),
	OPENS(signalfd4),
	OPENS(inotify_init1),
	OPENS(fanotify_init),
	OPENS(memfd_create),
	OPENS(userfaultfd),
	OPENS(pidfd_open),
	OPENS(pidfd_getfd),
	OPENS(perf_event_open),
	OPENS(io_uring_setup),
	OPENS(mq_open),
#ifdef SYS_open
	OPENS(open),
	OPENS(creat),
	OPENS(epoll_create),
	OPENS(eventfd),
	OPENS(signalfd),
	OPENS(inotify_init),
	DESCRIPTORS(pipe, SYSCALL_OPENS_PAIR, .gives = true, .pair_arg = 0),
	DESCRIPTORS(dup2, SYSCALL_REPLACES, .gives = true, TWO_ARGS("oldfd", "newfd")),
#endif
	DESCRIPTORS(pipe2, SYSCALL_OPENS_PAIR, .gives = true, .pair_arg = 0),
	DESCRIPTORS(socketpair, SYSCALL_OPENS_PAIR, .gives = true, .pair_arg = 3),
	DESCRIPTORS(dup3, SYSCALL_REPLACES, .gives = true, TWO_ARGS("oldfd", "newfd")),
	DESCRIPTORS(fcntl, SYSCALL_MAY_DUP, .gives = true, TWO_ARGS("fd", "cmd")),
	DESCRIPTORS(close, SYSCALL_CLOSES, .takes = true, .nr_args = 1, .arg_names = {"fd"}),
#ifdef SYS_close_range
	DESCRIPTORS(close_range, SYSCALL_CLOSES_RANGE, .takes = true, .nr_args = 3,
		    .arg_names = {"fd", "max_fd", "flags"}),
#endif
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
