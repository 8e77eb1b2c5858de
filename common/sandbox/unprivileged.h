/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What belongs to others (the memory of a process, its files) is analysed without any privilege: it
 * may be made to mislead us, or to use a bug in a library that reads it.
 */
#ifndef LEAKTOOLS_COMMON_UNPRIVILEGED_H
#define LEAKTOOLS_COMMON_UNPRIVILEGED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Gives up all capabilities, for good. Returns 0 or a negative errno, reported. */
int unprivileged_become(void);

/* Drops all capabilities of the calling thread, @who, for good; warns if that fails. */
void unprivileged_drop_capabilities(const char *who);

/* Closes all descriptors but @kept. Negative numbers, and the same one again, mean nothing. */
void unprivileged_keep_only(const int *kept, size_t nr);

/*
 * Keeps only the capabilities to read files and mappings of others, for names of functions; with
 * @as_caller, becomes the user who called sudo. A program that this process executes gets no
 * capabilities, root's neither. Returns 0 or -EPERM, not reported.
 */
int unprivileged_read_only(bool as_caller);

/*
 * For a child of @parent, with which it ends. Gives up all capabilities, for good, becomes nobody
 * if it may, and from then on can only compute, get memory, and read and write what is open: every
 * other system call fails with EPERM. Returns 0 or a negative errno, reported; -ESRCH, not
 * reported: the parent has ended.
 */
int unprivileged_isolate(pid_t parent);

/*
 * For a process that is root and reads a recording to the end: gives up all capabilities, for good,
 * and becomes nobody if it may. From then on it can start threads, ask a terminal for its size,
 * send messages on sockets that are open, and do what an isolated child can; every other system
 * call fails with EPERM. A warning says if the kernel has no filter for that. @draws: it can change
 * a terminal's settings, too. Returns 0 or a negative errno, reported.
 */
int unprivileged_confine(bool draws);

/*
 * The same for a child of @parent, with which it ends. Returns -ESRCH, too, not reported: the
 * parent has ended.
 */
int unprivileged_confine_child(pid_t parent);

/*
 * For a child of root's that will execute a program which is given what others made, such as
 * gnuplot. Gives up all capabilities, for good, and becomes nobody if it may. The program cannot
 * signal or trace others, nor, without @has_window, start a process or connect. Returns 0 or a
 * negative errno, not reported: its standard error is the program's.
 */
int unprivileged_program(bool has_window);

/*
 * For a broker that keeps capabilities: it cannot signal or trace others, but @signalled (0: no
 * process), nor get their descriptors, nor start a process or a program. It can connect, to servers
 * of debug files. A kernel without filters changes nothing.
 */
void unprivileged_limit_broker(pid_t signalled);

#endif
