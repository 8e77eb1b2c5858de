/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes by what they belong to, not by their ids: a unit of systemd, a cgroup, or a program. A
 * restarted service has other processes, and mostly a new cgroup of the same name.
 */
#ifndef LEAKTOOLS_RECORDER_FOLLOWED_H
#define LEAKTOOLS_RECORDER_FOLLOWED_H

#include "common/service/service_manager.h"
#include "recorder/processes/process_list.h"

struct followed {
	const char *unit;    /* "nginx", "nginx.service", "/system.slice/..."; or NULL */
	const char *program; /* a path; or NULL */
};

/* True for the name of a unit: nothing that leads to another directory. */
bool followed_is_unit_name(const char *name);

/*
 * Waits until there are such processes besides this one, and lists them. Tells @manager that it
 * waits, which is progress. Signals end the process. Returns 0 or a negative errno, reported.
 * Release *@ret with process_list_deinit().
 *
 * A unit's cgroup is looked for in slices, which are root's, and nowhere below: who has a service
 * manager of his own can give any name to cgroups below that.
 */
int followed_wait(const struct followed *followed, struct service_manager *manager,
		  struct process_list *ret);

#endif
