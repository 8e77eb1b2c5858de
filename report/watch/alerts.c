/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/watch/alerts.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <stdlib.h>

#define NOT_RUNNING (-1)

struct alert {
	char *text, *name;
	size_t size;
	int number; /* of its command (leak_command_start()), or NOT_RUNNING */
	int nr_failures;
	uint64_t next_ns; /* when it is started again */
	bool is_over;	  /* given, or given up */
};

struct alerts {
	struct alerts_options options;
	struct leak_command *command;
	struct alert *all;
	size_t nr;
};

int alerts_create(const struct alerts_options *options, struct alerts **ret)
{
	struct alerts *alerts = calloc(1, sizeof(*alerts));

	*ret = alerts;
	if (!alerts)
		return -ENOMEM;
	alerts->options = *options;
	return leak_command_create(options->command, LEAK_COMMAND_MAX_RUN_NS, options->max_running,
				   &alerts->command);
}

static void free_alert(struct alert *alert)
{
	free(alert->text);
	free(alert->name);
}

void alerts_destroy(struct alerts *alerts)
{
	if (!alerts)
		return;
	for (size_t i = 0; i < alerts->nr; i++)
		free_alert(&alerts->all[i]);
	free(alerts->all);
	leak_command_destroy(alerts->command);
	free(alerts);
}

static void note_failure(const struct alerts *alerts, struct alert *alert)
{
	alert->number = NOT_RUNNING;
	alert->next_ns = clock_now_ns() + (alerts->options.pause_ns << alert->nr_failures);
	if (++alert->nr_failures < ALERT_MAX_FAILURES)
		return;
	alert->is_over = true;
	diag_warn("--on-leak: the command has failed %d times for a cause, and is not started for "
		  "it again",
		  alert->nr_failures);
}

/* Sees which commands have ended. Returns 0 or -ENOMEM. */
static int collect(struct alerts *alerts)
{
	int err = 0;

	for (size_t i = 0; i < alerts->nr && !err; i++) {
		struct alert *alert = &alerts->all[i];
		int result = alert->number == NOT_RUNNING
				     ? -EAGAIN
				     : leak_command_result(alerts->command, alert->number);

		if (result == -EAGAIN)
			continue;
		if (result) {
			note_failure(alerts, alert);
			continue;
		}
		alert->number = NOT_RUNNING;
		alert->is_over = true;
		if (alert->name && alerts->options.given)
			err = alerts->options.given(alerts->options.context,
						    steal_ptr(alert->name));
	}
	return err;
}

static void forget_those_over(struct alerts *alerts)
{
	size_t nr = 0;

	for (size_t i = 0; i < alerts->nr; i++) {
		if (alerts->all[i].is_over)
			free_alert(&alerts->all[i]);
		else
			alerts->all[nr++] = alerts->all[i];
	}
	alerts->nr = nr;
}

/* Starts the command. Returns 0, also if it fails; -EBUSY if too many run; or -ENOMEM. */
static int start(struct alerts *alerts, struct alert *alert, uint64_t wait_until_ns)
{
	int err, number;

	if (wait_until_ns)
		leak_command_wait(alerts->command, leak_command_max(alerts->command),
				  wait_until_ns);
	err = collect(alerts);
	if (err)
		return err;
	number = leak_command_start(alerts->command, alert->text, alert->size);
	if (number == -EBUSY)
		return -EBUSY;
	if (number < 0)
		note_failure(alerts, alert);
	else
		alert->number = number;
	return 0;
}

int alerts_give(struct alerts *alerts, char *text, size_t size, char *name, uint64_t wait_until_ns)
{
	struct alert alert = {.text = text, .size = size, .name = name, .number = NOT_RUNNING};
	struct alert *more = realloc(alerts->all, (alerts->nr + 1) * sizeof(*more));
	int err = more ? 0 : -ENOMEM;

	if (more) {
		alerts->all = more;
		err = start(alerts, &alert, wait_until_ns);
	}
	if (err)
		free_alert(&alert);
	else
		alerts->all[alerts->nr++] = alert;
	return err;
}

int alerts_go_on(struct alerts *alerts, uint64_t wait_until_ns)
{
	int err = collect(alerts);

	for (size_t i = 0; i < alerts->nr && !err; i++) {
		struct alert *alert = &alerts->all[i];

		if (alert->number == NOT_RUNNING && !alert->is_over &&
		    (wait_until_ns || clock_now_ns() >= alert->next_ns))
			err = start(alerts, alert, wait_until_ns);
	}
	forget_those_over(alerts);
	return err == -EBUSY ? 0 : err;
}

int alerts_finish(struct alerts *alerts, uint64_t until_ns)
{
	leak_command_wait(alerts->command, 1, until_ns);
	return collect(alerts);
}
