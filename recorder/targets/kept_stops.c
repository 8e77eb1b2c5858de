/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/targets/kept_stops.h"

#include "common/diag.h"
#include "common/proc/process_namespace.h"
#include "recorder/target_table/target_table.h"

/* With a new mark only: it is tried again in each round. */
static void tell_stuck(struct target_table *table)
{
	char name[PROCESS_NAME_MAX];
	pid_t pid;

	while ((pid = target_table_next_stuck(table))) {
		process_namespace_format_name(pid, name);
		diag_error("cannot continue %s, which leakrec has stopped: the kernel does not "
			   "permit it; `kill -CONT %d`, as root, continues it; no process is "
			   "stopped any more",
			   name, (int)pid);
	}
}

void kept_stops_tell(struct target_table *table, const struct bpf_recorder *recorder)
{
	bool is_sure;
	pid_t pid;

	tell_stuck(table);
	if (!target_table_consume_kept(table))
		return;
	/* Perf events have other programs, whose skips nobody counts. */
	is_sure = recorder && !bpf_recorder_nr_skipped(recorder, SKIP_COSTS_STOPS);
	while ((pid = target_table_next_kept(table, is_sure))) {
		char name[PROCESS_NAME_MAX];

		if (is_sure)
			continue;
		process_namespace_format_name(pid, name);
		diag_warn("%s stays stopped: another process stopped it, and leakrec may have "
			  "missed that it was continued; `kill -CONT %d` continues it",
			  name, (int)pid);
	}
}
