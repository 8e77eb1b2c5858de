/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/processes/shadow_stack.h"

#include "common/diag.h"
#include "common/proc/living_thread.h"
#include "common/proc/proc_file.h"

#include <errno.h>
#include <string.h>

/* arch_proc_pid_thread_features(), arch/x86/kernel/cpu/proc.c (Linux 6.6): "shstk wrss". */
bool shadow_stack_is_in(const char *status)
{
	const char *features = proc_file_find(status, "x86_Thread_features:");
	const char *found = features ? strstr(features, "shstk") : NULL;

	return found && found < features + strcspn(features, "\n");
}

int shadow_stack_check(pid_t pid)
{
	char text[PROC_FILE_STATUS_SIZE];

	/* A process that has ended is reported when it is attached to. */
	if (proc_file_read(living_thread(pid), "status", text, sizeof(text)) ||
	    !shadow_stack_is_in(text))
		return 0;
	diag_error("cannot record process %d: it has a shadow stack, so that a probe could end it; "
		   "restart it without that (for glibc: GLIBC_TUNABLES=glibc.cpu.x86_shstk=off)",
		   (int)pid);
	return -EPERM;
}
