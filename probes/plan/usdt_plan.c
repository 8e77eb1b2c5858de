/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/plan/usdt_plan.h"

#include "probes/plan/usdt_pool_probes.h"
#include "probes/sites/probe_arch.h"
#include "probes/elf/usdt_notes.h"

#include "common/diag.h"
#include "common/schema/probe_events.h"

#include <errno.h>

#define PROVIDER "leaktools"
/* The most probes of a file. With perf events, each is an event in every thread. */
#define MAX_PROBES 64

/* How leak_probes.h passes an argument: in the first argument register of a call. */
#if defined(__x86_64__)
#define MARK_ARGUMENTS "8@%rdi"
#elif defined(__aarch64__)
#define MARK_ARGUMENTS "8@x0"
#endif

bool usdt_plan_has_probes(const struct elf_image *image)
{
	struct usdt_probes found;
	bool has_probes = usdt_probes_find(image, PROVIDER, 1, &found) == 0 &&
			  (found.nr > 0 || found.nr_rejected > 0);

	usdt_probes_deinit(&found);
	return has_probes;
}

/* Appends the probe for the @nth mark of the file. */
static int plan_mark(struct probe_file *file, const struct elf_image *image,
		     const struct usdt_probe *found, size_t nth)
{
	struct probe *probe = probe_file_append(file);
	size_t len;

	if (!probe)
		return -ENOMEM;
	probe->schema = &probe_schema_mark;
	probe->point = PROBE_ENTRY;
	probe->function_offset = probe->offset = found->offset;
	probe_arch_describe_at(image, found->offset, &probe->instruction);
	snprintf(probe->symbol, sizeof(probe->symbol), "%s", probe->schema->function);
	if (probe_schema_event_name(probe->schema->function, probe->point, probe->event,
				    sizeof(probe->event)))
		return -E2BIG;
	len = strlen(probe->event);
	if (nth > 0)
		snprintf(probe->event + len, sizeof(probe->event) - len, "_%zu", nth);
	/*
	 * Only the address: the kernel waits for the page of what it reads (strncpy_from_user(),
	 * copy_from_user() in kernel/trace/trace_uprobe.c, Linux 6.1 and 6.12). While it does, no
	 * uprobe can be removed on the whole machine.
	 */
	return asprintf(&probe->fetch_args, PROBE_FIELD_TEXT "=%s:x64",
			probe_arch_native()->arguments[0]) < 0
		       ? -ENOMEM
		       : 0;
}

int usdt_plan_probes(struct probe_file *file, const struct elf_image *image)
{
	struct usdt_probes found;
	size_t nr_marks = 0, nr_unusable;
	int err = usdt_probes_find(image, PROVIDER, MAX_PROBES, &found);

	nr_unusable = found.nr_rejected;
	for (size_t i = 0; i < found.nr && !err; i++) {
		const struct usdt_probe *probe = &found.probes[i];

		if (usdt_pool_probes_has_name(probe->name))
			continue;
		if (strcmp(probe->name, probe_schema_mark.function) != 0 ||
		    strcmp(probe->arguments, MARK_ARGUMENTS) != 0 || probe->has_semaphore)
			nr_unusable++;
		else
			err = plan_mark(file, image, probe, nr_marks++);
	}
	if (!err && nr_unusable)
		diag_note("%s: %zu of its USDT probes ignored: more than %d, or not made by this "
			  "version of <leaktools/leak_probes.h>",
			  file->display, nr_unusable, MAX_PROBES);
	usdt_probes_deinit(&found);
	return err;
}
