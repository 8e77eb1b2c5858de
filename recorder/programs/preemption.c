/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/programs/preemption.h"

#include "common/scope.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

/* The version has the word PREEMPT, PREEMPT_RT, or PREEMPT_DYNAMIC: scripts/mkcompile_h (6.1). */
bool preemption_is_possible(const char *version, const char *models)
{
	const char *word = strstr(version, "PREEMPT");

	if (!word)
		return false;
	if (strncmp(word, "PREEMPT_DYNAMIC", strlen("PREEMPT_DYNAMIC")) != 0)
		return true;
	/* The model in force is in parentheses. "lazy" preempts in the kernel, too. */
	return !models || (!strstr(models, "(none)") && !strstr(models, "(voluntary)"));
}

bool kernel_is_preemptible(void)
{
	_cleanup_fclose_ FILE *f = fopen("/sys/kernel/debug/sched/preempt", "re");
	char models[128] = "";
	struct utsname name;

	return uname(&name) < 0 ||
	       preemption_is_possible(name.version,
				      f && fgets(models, sizeof(models), f) ? models : NULL);
}
