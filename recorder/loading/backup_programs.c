/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/loading/backup_programs.h"

#include "common/scope.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <stdio.h>

#define MAX_NAME_BYTES 64
#define NOT_LOADED     UINT64_MAX /* more than any count */

static const char *const suffixes[] = {"_2", "_3"};

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

uint64_t backup_programs_nr_skipped(const struct bpf_object *object,
				    const struct bpf_program *const *programs, size_t nr)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < nr; i++) {
		uint64_t least = nr_misses(programs[i]);

		if (least == NOT_LOADED)
			continue;
		/* Each one's count has the events at which all were skipped. */
		for (size_t j = 0; j < ARRAY_SIZE(suffixes); j++) {
			uint64_t misses = nr_misses(backup_of(object, programs[i], j));

			least = misses < least ? misses : least;
		}
		sum += least;
	}
	return sum;
}
