/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plans probes at the exits of functions that must have no return probe (function_exits.h).
 */
#ifndef LEAKTOOLS_PROBES_EXIT_PLAN_H
#define LEAKTOOLS_PROBES_EXIT_PLAN_H

#include "probes/sites/function_exits.h"
#include "probes/plan/probe_file.h"

/* What the functions of one file share. */
struct exit_planner {
	const struct elf_image *image;
	const char *display; /* the file, for the user */
	struct frame_table frames;
	int frames_error;
	bool is_read;
};

/* The file is read on demand. Release with exit_planner_deinit(). */
void exit_planner_init(struct exit_planner *ret, const struct elf_image *image,
		       const char *display);
void exit_planner_deinit(struct exit_planner *planner);

/*
 * Finds the exits of the function that the user knows as @symbol. Returns 0; -ENOTSUP, reported, if
 * the function cannot be recorded; or another negative errno, not reported.
 */
int exit_planner_find(struct exit_planner *planner, const struct elf_function *function,
		      const char *symbol, struct function_exits *ret);

/*
 * Appends the probe at one exit, which is at @offset in the file. It is a copy of @model, except
 * for the place and what is recorded: the result as "RESULT_FIELD:RESULT_TYPE", the caller, and the
 * distance from @entry_offset, the offset of the entry's probe. Returns 0 or a negative errno.
 */
int exit_plan_append(struct probe_file *file, const struct exit_planner *planner, uint64_t offset,
		     const struct probe *model, uint64_t entry_offset, const char *result_field,
		     const char *result_type);

/* The distance from the probe of the function's entry to the one that records @fetch_args, or 0. */
uint64_t exit_plan_from_entry(const char *fetch_args);

#endif
