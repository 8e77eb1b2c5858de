/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Starts a command and stops it, by ptrace, at the first moment when its allocators are mapped and
 * none of their functions has been called: after exec if the program is statically linked, else
 * when the dynamic linker has mapped the library. The recorder then sets up probes and events, and
 * releases the command.
 */
#ifndef LEAKTOOLS_RECORDER_LAUNCH_H
#define LEAKTOOLS_RECORDER_LAUNCH_H

#include "probes/resources/resource_plan.h"

#include <sys/types.h>

struct launched {
	pid_t pid;
	bool stopped; /* still in a ptrace stop */
	int status;   /* how it ended, as a shell says it: 128 + the signal; 0: it goes on */
};

struct launch_options {
	bool own_stdout; /* the recording goes to our stdout: the command gets our stderr instead */
	int niceness;	 /* of the command: the recorder has raised its own priority */
	bool operators;	 /* probe C++'s operators, too: as in allocator_plan_pid() */
	const struct resource_specs *resources;
};

/*
 * Starts @argv (found in PATH) and stops it; @ret_probes are the probes planned for its allocators.
 * The stop is when the command has mapped its libc and the functions of the resources, but not
 * later than when the dynamic linker has mapped all libraries. Returns 0, or a negative errno,
 * reported, if the command cannot be started, ended before it had an allocator, or never mapped
 * one. Nothing is left running on failure.
 */
int launch_command(char *const *argv, const struct launch_options *options, struct launched *ret,
		   struct probe_set *ret_probes);

/* Continues the command, untraced. */
void launch_release(struct launched *launched);

#endif
