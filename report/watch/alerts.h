/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The alerts of --on-leak: one for each cause, by the command (leak_command.h). An alert has been
 * given when the command has ended with status 0. If it could not be started, was killed or ended
 * with another status, it is started again with the same text: after a pause that doubles each
 * time, and ALERT_MAX_FAILURES times together, as a command that always fails may send something
 * each time.
 */
#ifndef LEAKTOOLS_REPORT_ALERTS_H
#define LEAKTOOLS_REPORT_ALERTS_H

#include "report/watch/leak_command.h"

#define ALERT_MAX_FAILURES 8
#define ALERT_PAUSE_NS	   UINT64_C(60000000000) /* the first one: two hours together */

struct alerts_options {
	const char *command;
	size_t max_running; /* as leak_command_create() */
	uint64_t pause_ns;  /* after the first failure */
	/* The alert of that name, which it takes over, has been given. Returns 0 or -ENOMEM. */
	int (*given)(void *context, char *name);
	void *context;
};

struct alerts;

/* Returns 0 or -ENOMEM. */
int alerts_create(const struct alerts_options *options, struct alerts **ret);
/* Does not wait for the commands that still run. */
void alerts_destroy(struct alerts *alerts);

/*
 * Gives an alert with that text. Takes @text and @name over; @name may be NULL: then nobody is told
 * that it was given. @wait_until_ns (clock.h): waits until then while as many commands run as may;
 * 0: does not wait. Returns 0; -EBUSY if there was no room, and the alert is dropped; or -ENOMEM.
 */
int alerts_give(struct alerts *alerts, char *text, size_t size, char *name, uint64_t wait_until_ns);

/*
 * Sees what has become of the commands, and starts those again whose pause is over; with
 * @wait_until_ns, all that have failed. Returns 0 or -ENOMEM.
 */
int alerts_go_on(struct alerts *alerts, uint64_t wait_until_ns);

/* Waits for the commands, and starts none again. Returns 0 or -ENOMEM. */
int alerts_finish(struct alerts *alerts, uint64_t until_ns);

#endif
