/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leakparse --on-leak: a command that is started for each new cause, with a text on its standard
 * input. It never holds up the reader: nobody waits for it, at most a few run at a time, and each
 * is killed after a minute. It runs with the rights of the user who called leakparse: if this
 * process has a broker, that starts it.
 */
#ifndef LEAKTOOLS_REPORT_LEAK_COMMAND_H
#define LEAKTOOLS_REPORT_LEAK_COMMAND_H

#include "common/broker/broker.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEAK_COMMAND_MAX_RUNNING 4
#define LEAK_COMMAND_MAX_RUN_NS	 UINT64_C(60000000000)

struct leak_command;

/*
 * @text is the program and its arguments, at least one word, separated by blanks: no shell reads
 * it. One that runs longer than @max_run_ns is killed. At most @max_running run at a time; 0: as
 * many as may. Returns 0 or -ENOMEM.
 */
int leak_command_create(const char *text, uint64_t max_run_ns, size_t max_running,
			struct leak_command **ret);
/* Does not wait for the commands that still run. */
void leak_command_destroy(struct leak_command *command);

/* How many may run at a time. */
size_t leak_command_max(const struct leak_command *command);

/*
 * Starts the command. Returns a number for leak_command_result(), without which another one cannot
 * take its place; -EBUSY if as many run as may; or the negative errno with which it could not be
 * started. The first such failure, or of one that was started, is reported, and the next one after
 * a success.
 */
int leak_command_start(struct leak_command *command, const char *input, size_t size);

/*
 * What became of a command that was started: 0 if it has ended with status 0, 1 if it failed or was
 * killed, -EAGAIN if it runs. Its number is another one's after 0 and 1.
 */
int leak_command_result(struct leak_command *command, int number);

/* Waits until fewer than @nr run, or until @until_ns (clock.h). Returns whether fewer run. */
bool leak_command_wait(struct leak_command *command, size_t nr, uint64_t until_ns);

/* The broker's parts of these. @context: its own leak_command. */
int leak_command_serve_start(void *context, const struct broker_request *request, int *ret_fd);
int leak_command_serve_result(void *context, const struct broker_request *request, int *ret_fd);
int leak_command_serve_wait(void *context, const struct broker_request *request, int *ret_fd);

#endif
