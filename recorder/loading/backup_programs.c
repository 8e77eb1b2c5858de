/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/loading/backup_programs.h"

#include "common/scope.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <stdio.h>
#include <string.h>

#define MAX_NAME_BYTES 64
#define NOT_LOADED     UINT64_MAX /* more than any count */

static const char *const suffixes[] = {"_2", "_3"};

static const struct {
	const char *name;
	enum skip_cost cost;
} costs[] = {
	{"syscall_enter", SKIP_COSTS_CALLS},
	{"syscall_exit", SKIP_COSTS_CALLS},
	{"after_map_pages", SKIP_COSTS_FILES},
	{"after_file_fault", SKIP_COSTS_FILES},
	{"map_pages_begins", SKIP_COSTS_FILES},
	{"file_fault_begins", SKIP_COSTS_FILES},
	{"child_is_made", SKIP_COSTS_SET_UP},
	{"child_begins", SKIP_COSTS_SET_UP},
	{"after_fork", SKIP_COSTS_SET_UP},
	{"after_exec", SKIP_COSTS_SET_UP},
	{"after_first_thread", SKIP_COSTS_SET_UP},
	/* The entry of a process that has ended stays. A child that gets its id is not set up. */
	{"after_exit", SKIP_COSTS_SET_UP},
	/* What a thread left stays, and another that gets its id finds it. */
	{"forget_state", SKIP_COSTS_SET_UP},
	/* after_first_thread() makes up for it. */
	{"carrier_ends", SKIP_COSTS_NOTHING},
	{"signalled", SKIP_COSTS_STOPS},
};

bool tracepoints_are_preemptible(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int id = btf ? btf__find_by_name_kind(btf, "bpf_session_cookie", BTF_KIND_FUNC) : -1;
	const struct btf_type *function = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	const struct btf_type *prototype = function ? btf__type_by_id(btf, function->type) : NULL;
	bool ret = prototype && btf_vlen(prototype) > 0;

	btf__free(btf);
	return ret;
}

static struct bpf_program *backup_of(const struct bpf_object *object,
				     const struct bpf_program *program, size_t i)
{
	char name[MAX_NAME_BYTES];

	snprintf(name, sizeof(name), "%s%s", bpf_program__name(program), suffixes[i]);
	return bpf_object__find_program_by_name(object, name);
}

void backup_programs_choose(struct bpf_object *object, bool at_tracepoints, bool at_functions)
{
	struct bpf_program *program = NULL, *backup;

	while ((program = bpf_object__next_program(object, program))) {
		bool is_at_tracepoint =
			bpf_program__expected_attach_type(program) == BPF_TRACE_RAW_TP;
		bool is_needed = is_at_tracepoint ? at_tracepoints : at_functions;

		for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
			if ((backup = backup_of(object, program, i)))
				bpf_program__set_autoload(
					backup, is_needed && bpf_program__autoload(program));
	}
}

/* How often the kernel skipped @program, or NOT_LOADED. */
static uint64_t nr_misses(const struct bpf_program *program)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);
	int fd = program ? bpf_program__fd(program) : -1;

	return fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0 ? info.recursion_misses
									: NOT_LOADED;
}

/* At how many events the program @name of @object and all of its backups may have been skipped. */
static uint64_t nr_skipped(const struct bpf_object *object, const char *name)
{
	const struct bpf_program *program = bpf_object__find_program_by_name(object, name);
	uint64_t least = nr_misses(program);

	if (least == NOT_LOADED)
		return 0;
	/* Each one's count has the events at which all were skipped. */
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		uint64_t misses = nr_misses(backup_of(object, program, i));

		least = misses < least ? misses : least;
	}
	return least;
}

enum skip_cost backup_programs_cost(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(costs); i++)
		if (strcmp(name, costs[i].name) == 0)
			return costs[i].cost;
	return SKIP_IS_UNKNOWN;
}

uint64_t backup_programs_nr_skipped(const struct bpf_object *object, enum skip_cost cost)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < ARRAY_SIZE(costs); i++)
		if (costs[i].cost == cost)
			sum += nr_skipped(object, costs[i].name);
	return sum;
}
