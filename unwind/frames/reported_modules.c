/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frames/reported_modules.h"

#include "common/scope.h"
#include "unwind/modules/module_file.h"
#include "unwind/modules/module_segments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_REPORTED 2048 /* modules in an address space */

/* A module as libdwfl has it, and the position of its code. */
struct reported_module {
	const Dwfl_Module *dwfl_module;
	struct module *module;
	uint64_t bias;
};

struct report {
	struct module_reporter *reporter;
	struct reported_module list[MAX_REPORTED];
	size_t nr;
	bool is_late;
};

/*
 * Other mappings of a file (data, or the rest of code that was mapped over) must not make a second
 * module of it. The code of one file in two linker namespaces does not overlap.
 */
static bool overlaps_reported(const struct report *report, const struct module *module,
			      uint64_t bias)
{
	uint64_t span = module_span(module);

	for (size_t i = 0; i < report->nr; i++) {
		uint64_t other = report->list[i].bias;

		if (report->list[i].module == module &&
		    (bias == other || (bias > other ? bias - other : other - bias) < span))
			return true;
	}
	return false;
}

static void report_file(struct report *report, const struct mapping *mapping)
{
	struct module_reporter *reporter = report->reporter;
	struct module *module = mapping->module;
	uint64_t bias;

	if (module->machine != reporter->machine || module->elf_class != ELFCLASS64 ||
	    !module_code_bias(module, mapping->start, mapping->file_offset, &bias) ||
	    overlaps_reported(report, module, bias) ||
	    (module->owner != 0 && !debuginfo_has_room(reporter->debuginfo, reporter->kept_bytes)))
		return;

	int fd = module_open_file(reporter->modules, module);
	Dwfl_Module *reported =
		fd < 0 ? NULL
		       : debuginfo_report_elf(reporter->debuginfo, reporter->dwfl, module->path,
					      module->file_path, fd, bias);
	if (!reported)
		return;
	if (module->owner != 0)
		reporter->kept_bytes += debuginfo_kept_bytes(reporter->debuginfo, reported);
	report->list[report->nr++] =
		(struct reported_module){.dwfl_module = reported, .module = module, .bias = bias};
}

/* Users' files take their owners' time; root's, and looking for any, take that for opening. */
static void report_mapping(void *context, const struct mapping *mapping)
{
	struct report *report = context;
	struct owner_time *time = report->reporter->time;
	struct module *module = mapping->module;

	if (report->nr == MAX_REPORTED)
		return;
	if (!owner_time_begin_opening(time)) {
		report->is_late = true;
		return;
	}
	if (module_find_file(report->reporter->modules, module))
		return;
	if (module->owner == 0 || owner_time_begin(time, module))
		report_file(report, mapping);
	else
		report->is_late = true;
}

static int compare(const void *a, const void *b)
{
	uintptr_t first = (uintptr_t)((const struct reported_module *)a)->dwfl_module;
	uintptr_t second = (uintptr_t)((const struct reported_module *)b)->dwfl_module;

	return (first > second) - (first < second);
}

int reported_modules_init(struct reported_modules *ret, struct module_reporter *reporter,
			  const struct address_space *space)
{
	_cleanup_free_ struct report *report = malloc(sizeof(*report));

	*ret = (struct reported_modules){0};
	if (!report)
		return -ENOMEM;
	report->reporter = reporter;
	report->nr = 0;
	report->is_late = false;
	dwfl_report_begin(reporter->dwfl);
	address_space_for_each(space, report_mapping, report);
	dwfl_report_end(reporter->dwfl, NULL, NULL);

	qsort(report->list, report->nr, sizeof(report->list[0]), compare);
	ret->list = calloc(report->nr + 1, sizeof(report->list[0]));
	if (!ret->list)
		return -ENOMEM;
	memcpy(ret->list, report->list, report->nr * sizeof(report->list[0]));
	ret->nr = report->nr;
	ret->are_late = report->is_late;
	return 0;
}

void reported_modules_deinit(struct reported_modules *modules)
{
	free(modules->list);
}

struct module *reported_modules_find(const struct reported_modules *modules,
				     const Dwfl_Module *dwfl_module)
{
	const struct reported_module wanted = {.dwfl_module = dwfl_module};
	const struct reported_module *found =
		bsearch(&wanted, modules->list, modules->nr, sizeof(*modules->list), compare);

	return found ? found->module : NULL;
}
