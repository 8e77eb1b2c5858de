/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/session/privileges.h"

#include "common/diag.h"
#include "common/sandbox/capabilities.h"
#include "common/scope.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * The niceness of the thread that drains the rings, and of what processes or users wait for: set-up
 * and the end.
 */
#define READER_NICE (-10)
#define URGENT_NICE (-20)

/*
 * Debian's and Ubuntu's kernels have levels above 2, at which perf_event_open() demands
 * CAP_SYS_ADMIN: with CAP_PERFMON alone it returns EACCES (Debian's 6.1.192).
 */
static bool perfmon_is_enough(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int level;

	return !f || fscanf(f, "%d", &level) != 1 || level <= 2;
}

void privileges_drop(const struct privileges_kept *kept)
{
	const struct {
		unsigned int capability;
		bool wanted;
	} capabilities[] = {
		{CAP_LEASE, true}, /* for file_leases.h */
		{CAP_KILL, kept->kill},
		{CAP_SYS_NICE, true}, /* for privileges_raise_all() */
		{CAP_PERFMON, kept->perfmon},
		{CAP_SYS_ADMIN, kept->perfmon && !perfmon_is_enough()},
		{CAP_DAC_READ_SEARCH, kept->read_code},
		{CAP_SYS_PTRACE, kept->read_code || kept->read_ends}, /* /proc/PID/root, stat */
		{CAP_CHECKPOINT_RESTORE, kept->read_code},	      /* /proc/PID/map_files */
	};
	bool keep[ARRAY_SIZE(capabilities)];

	if (capng_get_caps_process() < 0) {
		diag_warn("cannot read capabilities: recording with all of them");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++)
		keep[i] = capabilities[i].wanted &&
			  capng_have_capability(CAPNG_PERMITTED, capabilities[i].capability);
	capng_clear(CAPNG_SELECT_BOTH);
	for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++)
		if (keep[i])
			capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED,
				     capabilities[i].capability);
	if (capabilities_apply() < 0 && geteuid() == 0)
		diag_warn("cannot drop capabilities: recording with all of them");
}

void privileges_drop_for_scanner(void)
{
	static const unsigned int capabilities[] = {
		CAP_SYS_PTRACE,
		CAP_DAC_READ_SEARCH,
		CAP_CHECKPOINT_RESTORE, /* for /proc/PID/map_files */
		CAP_SYS_NICE,		/* the process waits for it */
		CAP_BPF,		/* for sleeping_threads.h */
		CAP_PERFMON,		/* too */
		CAP_SETUID,		/* to give up the rest, as the next ones */
		CAP_SETGID,
		CAP_SETPCAP,
	};
	bool permits[ARRAY_SIZE(capabilities)];

	/* What another user's program gets does not follow from the bounding set. */
	if (geteuid() != 0)
		return;
	if (capng_get_caps_process() < 0) {
		diag_warn("cannot read capabilities: scanning with all of them");
		return;
	}
	/*
	 * Under no_new_privs, root's exec gives no capability that was not permitted before. A
	 * container may permit only some.
	 */
	for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++)
		permits[i] = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 &&
			     capng_have_capability(CAPNG_PERMITTED, capabilities[i]);
	capng_clear(CAPNG_SELECT_BOTH);
	for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++)
		capng_update(CAPNG_ADD, CAPNG_BOUNDING_SET | (permits[i] ? CAPNG_PERMITTED : 0),
			     capabilities[i]);
	if (capabilities_apply() < 0)
		diag_warn("cannot drop capabilities: scanning with all of them");
}

int privileges_raise_priority(void)
{
	int before = getpriority(PRIO_PROCESS, 0);

	setpriority(PRIO_PROCESS, 0, URGENT_NICE);
	return before;
}

void privileges_raise_all(void)
{
	_cleanup_closedir_ DIR *threads = opendir("/proc/self/task");
	const struct dirent *entry;

	while (threads && (entry = readdir(threads))) {
		id_t tid = (id_t)strtoul(entry->d_name, NULL, 10);

		if (tid)
			setpriority(PRIO_PROCESS, tid, URGENT_NICE);
	}
}

void privileges_ease_priority(int before)
{
	setpriority(PRIO_PROCESS, 0, before < READER_NICE ? before : READER_NICE);
}

void privileges_restore_priority(int before)
{
	setpriority(PRIO_PROCESS, 0, before);
}
