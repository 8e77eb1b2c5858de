/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Starts a command and stops it, by ptrace, at the first moment at which its allocators are mapped
 * and none of their functions has been called: after exec where the program is statically linked,
 * else when the dynamic linker has mapped the library. Probes and events are then set up, and the
 * command goes on.
 */
#ifndef LEAKTOOLS_RECORDER_LAUNCH_H
#define LEAKTOOLS_RECORDER_LAUNCH_H

#include "probes/plan/probe_set.h"
#include "probes/resources/resource_specs.h"

#include <sys/types.h>

struct launched {
	pid_t pid;
	bool stopped; /* still held, at a stop of ptrace's */
};

struct launch_options {
	bool own_stdout; /* ours is for the recording: the command's is our standard error */
	bool operators;	 /* allocator_plan_pid()'s */
	const struct resource_specs *resources;
};

/*
 * Starts @argv (found in PATH) and holds it as said; @ret_probes are the probes planned for its
 * allocators. The command goes on, at most to where the dynamic linker has mapped all that it
 * links, until it has mapped its libc, which comes after what the program and LD_PRELOAD want from
 * it, and the functions of the resources. Returns 0; a negative errno,
 * reported, if it cannot be started, ended before it had an allocator, or never mapped one. Nothing
 * is left running on failure.
 */
int launch_command(char *const *argv, const struct launch_options *options, struct launched *ret,
		   struct probe_set *ret_probes);

/* Lets the command run on, untraced. */
void launch_release(struct launched *launched);

#endif
