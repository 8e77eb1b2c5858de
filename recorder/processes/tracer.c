/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/processes/tracer.h"

#include "common/proc/proc_file.h"
#include "common/proc/process_status.h"

#include <stdio.h>
#include <string.h>

bool tracer_name(pid_t pid, char to[static TRACER_NAME_MAX])
{
	pid_t tracer = process_status_tracer(pid);
	char name[32] = "?";

	if (tracer <= 0)
		return false;
	proc_file_read(tracer, "comm", name, sizeof(name));
	name[strcspn(name, "\n")] = '\0';
	snprintf(to, TRACER_NAME_MAX, "process %d (%s)", (int)tracer, name);
	return true;
}
