/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/plan/exit_plan.h"

#include "probes/sites/probe_arch.h"

#include "common/diag.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void exit_planner_init(struct exit_planner *ret, const struct elf_image *image, const char *display)
{
	*ret = (struct exit_planner){.image = image, .display = display};
}

void exit_planner_deinit(struct exit_planner *planner)
{
	frame_table_deinit(&planner->frames);
}

int exit_planner_find(struct exit_planner *planner, const struct elf_function *function,
		      const char *symbol, struct function_exits *ret)
{
	int err;

	if (!planner->is_read)
		planner->frames_error = frame_table_init(&planner->frames, planner->image);
	planner->is_read = true;
	if (planner->frames_error) {
		*ret = (struct function_exits){
			.why = "the file's frame information (.eh_frame) is not understood",
			.where = function->offset,
		};
		err = planner->frames_error == -ENOMEM ? -ENOMEM : -ENOTSUP;
	} else {
		err = probe_arch_find_exits(probe_arch_native(), planner->image, &planner->frames,
					    function, ret);
	}
	if (err == -ENOTSUP)
		diag_warn("cannot record %s of %s: %s (at 0x%" PRIx64 "); its calls are missing: "
			  "exceptions could not pass a return probe",
			  symbol, planner->display, ret->why, ret->where);
	return err;
}

int exit_plan_append(struct probe_file *file, const struct exit_planner *planner, uint64_t offset,
		     const struct probe *model, uint64_t entry_offset, const char *result_field,
		     const char *result_type)
{
	const struct probe_arch *arch = probe_arch_native();
	struct probe *probe = probe_file_append(file);

	if (!probe)
		return -ENOMEM;
	*probe = *model;
	probe->point = PROBE_EXIT;
	probe->offset = offset;
	probe_arch_describe_at(planner->image, offset, &probe->instruction);
	/* The last field is an immediate value (Linux 5.4 and later). */
	if (asprintf(&probe->fetch_args,
		     "%s=%s:%s " PROBE_FIELD_CALLER "=%s:x64 " PROBE_FIELD_FROM_ENTRY "=\\%" PRId64
		     ":s64",
		     result_field, arch->result, result_type, arch->caller,
		     (int64_t)(offset - entry_offset)) < 0) {
		probe->fetch_args = NULL;
		return -ENOMEM;
	}
	return 0;
}

uint64_t exit_plan_from_entry(const char *fetch_args)
{
	static const char field[] = " " PROBE_FIELD_FROM_ENTRY "=\\";
	const char *at = strstr(fetch_args, field);

	return at ? (uint64_t)strtoll(at + strlen(field), NULL, 10) : 0;
}
