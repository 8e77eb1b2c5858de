/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/proc/process_status.h"

#include "common/proc/living_thread.h"
#include "common/proc/proc_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The last number of the line is that of the innermost namespace (proc(5)). */
static pid_t parse_own_pid(const char *text)
{
	const char *pids = proc_file_find(text, "NSpid:");
	pid_t pid = 0;

	while (pids && *pids == '\t') {
		char *end;

		pid = (pid_t)strtol(pids, &end, 10);
		pids = end;
	}
	return pid;
}

static int parse_effective_uid(const char *text, uid_t *ret)
{
	const char *uids = proc_file_find(text, "Uid:"); /* real, effective, saved, filesystem */
	char *end;

	if (!uids)
		return -EINVAL;
	strtoul(uids, &end, 10);
	if (*end != '\t')
		return -EINVAL;
	*ret = (uid_t)strtoul(end, NULL, 10);
	return 0;
}

static uint64_t parse_signals(const char *text, const char *key)
{
	const char *mask = proc_file_find(text, key);

	return mask ? strtoull(mask, NULL, 16) : 0;
}

int process_status_read(pid_t pid, struct process_status *ret)
{
	char text[PROC_FILE_STATUS_SIZE];
	uint64_t tgid, tracer, exe_kib = 0, library_kib = 0;
	int err = proc_file_read(pid, "status", text, sizeof(text));

	*ret = (struct process_status){0};
	if (err)
		return err;
	if (proc_file_number(text, "Tgid:", &tgid) ||
	    proc_file_number(text, "TracerPid:", &tracer) ||
	    parse_effective_uid(text, &ret->effective_uid))
		return -EINVAL;
	ret->tgid = (pid_t)tgid;
	ret->tracer = (pid_t)tracer;
	ret->own_pid = parse_own_pid(text);
	if (ret->own_pid <= 0)
		ret->own_pid = pid;
	ret->pending_signals = parse_signals(text, "SigPnd:") | parse_signals(text, "ShdPnd:");
	/* The kernel shows mm->exec_vm in two parts (task_mem(), fs/proc/task_mmu.c, 6.1). */
	proc_file_number(text, "VmExe:", &exe_kib);
	proc_file_number(text, "VmLib:", &library_kib);
	ret->code_bytes = (exe_kib + library_kib) * 1024;
	return 0;
}

pid_t process_status_tracer(pid_t pid)
{
	struct process_status status;
	/* A thread that has ended is not traced, others may be. */
	int err = process_status_read(living_thread(pid), &status);

	return err ? err : status.tracer;
}
