/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From an allocator's ELF file to the probes on it: which functions, at which offsets, recording
 * what. Nothing is registered here. probe_set.h declares probe_set_plan_pid() and
 * probe_set_plan_file(), which probe_plan.c and allocator_files.c make up.
 */
#ifndef LEAKTOOLS_PROBES_PROBE_PLAN_H
#define LEAKTOOLS_PROBES_PROBE_PLAN_H

#include "probes/allocators/allocator.h"
#include "probes/elf/elf_image.h"
#include "probes/tracefs/group_name.h"
#include "probes/plan/probe_set.h"
#include "probes/tracefs/tracefs_uprobes.h"

#include <sys/stat.h>

struct mapped_file;

/* The file that probe_plan_file() plans for. */
struct probe_plan_source {
	const struct elf_image *image;
	const struct allocator *allocator; /* in it; none where it only has usdt_plan.h's */
	const struct stat *stat;
	const char *path;
	const char *display;
};

/*
 * Plans the probes for one file and appends it to @set. Returns 0, or a negative errno
 * after reporting it.
 */
int probe_plan_file(struct probe_set *set, const struct probe_plan_source *source);

/* Returns the new last probe of @file, with nothing but its defaults, or NULL: out of memory. */
struct probe *probe_plan_append(struct probe_file *file);

/*
 * The same for a file that a process has mapped, if it is an allocator or has probes of its own.
 * Returns 0 or a negative errno, reported.
 */
int probe_set_plan_mapped(struct probe_set *set, const struct mapped_file *file);

/*
 * Fills in what @file is called, @allocator being what the user is told of it, and *@ret, the name
 * for its group. Returns 0 or a negative errno, not reported.
 */
int probe_plan_name_file(struct probe_file *file, const struct probe_plan_source *source,
			 const char *allocator, struct group_name *ret);

/* Appends what @file has, which is left empty. Returns 0 or -ENOMEM. */
int probe_set_append(struct probe_set *set, struct probe_file *file);

/* Names the file's group, and its probes' definitions after it. Returns 0 or -ENOMEM. */
int probe_plan_set_group(struct probe_file *file, const struct group_name *name);

/* What the registration of @probe asks of tracefs. */
struct uprobe_spec probe_plan_spec(const struct probe_file *file, const struct probe *probe);

void probe_file_deinit(struct probe_file *file);

#endif
