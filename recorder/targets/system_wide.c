/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/targets/system_wide.h"

#include "common/diag.h"
#include "common/quantity.h"
#include "common/proc/process_namespace.h"
#include "recorder/processes/process_list.h"

#include <errno.h>
#include <unistd.h>

int system_wide_find_allocators(const struct record_config *config, struct allocator_search *search,
				struct probe_set *ret_set, size_t *ret_nr)
{
	struct process_list list = {0};
	int err;

	if (!process_namespace_is_initial()) {
		diag_error(
			"cannot record all processes from within a container; run it on the host");
		return -EPERM;
	}
	err = config->scope == RECORD_CGROUP ? process_list_add_cgroup(&list, config->cgroup_fd)
					     : process_list_add_all(&list);
	if (!err)
		err = allocator_search_process(search, getpid(), ret_set);
	for (size_t i = 0; i < list.nr && !err; i++)
		err = allocator_search_process(search, list.pids[i], ret_set);
	*ret_nr = list.nr;
	process_list_deinit(&list);
	return err;
}

void system_wide_report_start(const char *cgroup, size_t nr_processes, size_t nr_files)
{
	diag_note("recording %s%s: %zu process%s with %zu allocator%s so far; Ctrl-C ends it",
		  cgroup ? "cgroup " : "all processes", cgroup ? cgroup : "", nr_processes,
		  quantity_word(nr_processes, "", "es"), nr_files, quantity_plural(nr_files));
}
