/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/watch/watch.h"

#include "common/clock.h"
#include "common/colour.h"
#include "common/diag.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "report/text/leaks_text.h"
#include "report/text/summary_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TOP_LEFT       "\033[H"
#define CLEAR_TO_RIGHT "\033[K"
#define CLEAR_BELOW    "\033[J"

int watch_init(struct watch *watch)
{
	const struct alerts_options alerts = {
		.command = watch->command_text,
		.max_running = watch->max_commands,
		.pause_ns = ALERT_PAUSE_NS,
		.given = watch->history.add,
		.context = watch->history.context,
	};
	int err = 0;

	watch->memory = cause_memory_create();
	if (!watch->memory)
		err = -ENOMEM;
	if (!err && watch->command_text)
		err = alerts_create(&alerts, &watch->alerts);
	if (err)
		diag_error("cannot watch for leaks: %s", strerror(-err));
	return err;
}

void watch_deinit(struct watch *watch)
{
	alerts_destroy(watch->alerts);
	cause_memory_destroy(watch->memory);
}

/* --- Limits --- */

static bool is_leak(const struct watch *watch, enum verdict verdict)
{
	unsigned int wanted = watch->leaks->verdicts;

	if (!wanted)
		wanted = 1u << VERDICT_GROWTH | 1u << VERDICT_OVERDUE;
	return wanted & 1u << verdict;
}

static bool grows_too_fast(const struct watch *watch, const struct site_verdict *verdict)
{
	return verdict->has_rate &&
	       verdict->rate.bytes_per_s - verdict->rate.bytes_error > (double)watch->limit.bytes;
}

static bool exceeds_size(const struct watch *watch, const struct leak_report *report)
{
	if (!watch->limit.bytes)
		return leak_report_has_held(report);
	/* In windows, what is held is a sample. */
	return report->in_windows ? report->estimate.bytes > (double)watch->limit.bytes
				  : leak_report_all_bytes(report) > watch->limit.bytes;
}

/* --- The command --- */

/* Returns 0 or -ENOMEM. */
static int cause_text(const struct watch *watch, const struct leak_report *report,
		      const struct leak_cause *cause, char **ret, size_t *ret_size)
{
	const struct summary_report_style style = {.utf8 = watch->style.utf8};
	const struct leak_site *site = &report->sites_by_cause[cause->first];
	uint64_t length_ns = watch->analysis->end_ns - watch->analysis->start_ns;
	FILE *out = open_memstream(ret, ret_size);
	int err;

	if (!out)
		return -ENOMEM;
	fputs(quantity_duration((double)length_ns / 1e9).text, out);
	fputs(" recorded\n", out);
	err = summary_rows_write_one(out, report, cause, &style);
	fputs("\nThe stack that holds most of it:\n", out);
	leaks_write_stack(out, watch->analysis, report->verdicts.sites[site->site].site->stack_id,
			  0);
	return fclose(out) ? -ENOMEM : err;
}

/*
 * Whether the cause has had its alert, or will get it again if the command has failed. *@ret_name:
 * what the history calls it if not; NULL without a history. Returns 0 or -ENOMEM.
 */
static int find_reported(const struct watch *watch, const struct leak_report *report,
			 const struct leak_cause *cause, bool *ret, char **ret_name)
{
	int err = cause_memory_had(watch->memory, report, cause, CAUSE_IS_REPORTED, ret);

	if (err || *ret || !watch->history.name)
		return err;
	err = watch->history.name(report, cause, ret_name);
	*ret = !err && watch->history.had(watch->history.context, *ret_name);
	return err;
}

/* Starts the command unless it has been for that cause. Returns 0 or -ENOMEM. */
static int report_cause(struct watch *watch, const struct leak_report *report,
			const struct leak_cause *cause, uint64_t wait_until_ns)
{
	_cleanup_free_ char *text = NULL, *name = NULL;
	bool is_reported;
	size_t size;
	int err = find_reported(watch, report, cause, &is_reported, &name);

	if (!err && !is_reported) {
		err = cause_text(watch, report, cause, &text, &size);
		if (!err)
			err = alerts_give(watch->alerts, steal_ptr(text), size, steal_ptr(name),
					  wait_until_ns);
		if (err == -EBUSY) {
			/* At the next tick, or never. */
			watch->nr_unreported += wait_until_ns != 0;
			return 0;
		}
	}
	/* Its new stacks, too. */
	return err ? err : cause_memory_mark(watch->memory, report, cause, CAUSE_IS_REPORTED);
}

/* --- Judging --- */

/* Whether the cause had the mark at the tick before, or this is the end. Marks it. */
static int is_lasting(struct watch *watch, const struct leak_report *report,
		      const struct leak_cause *cause, enum cause_mark mark, bool is_end, bool *ret)
{
	int err = cause_memory_had(watch->memory, report, cause, mark, ret);

	*ret |= is_end;
	return err ? err : cause_memory_mark(watch->memory, report, cause, mark);
}

static int judge_cause(struct watch *watch, const struct leak_report *report,
		       const struct leak_cause *cause, uint64_t wait_until_ns)
{
	const struct site_verdict *verdict = &report->verdicts.causes[cause->cause].verdict;
	bool lasts = false;
	int err = 0;

	if (!is_leak(watch, verdict->verdict))
		return 0;
	if (watch->alerts)
		err = is_lasting(watch, report, cause, CAUSE_LEAKS, wait_until_ns != 0, &lasts);
	if (!err && lasts)
		err = report_cause(watch, report, cause, wait_until_ns);
	if (err || !watch->limit.is_rate || !grows_too_fast(watch, verdict))
		return err;
	err = is_lasting(watch, report, cause, CAUSE_GROWS, wait_until_ns != 0, &lasts);
	watch->is_exceeded |= lasts;
	return err;
}

/* @wait_until_ns: at the end, what is waited for is waited for until then; before: 0. */
static int judge_causes(struct watch *watch, const struct leak_report *report,
			uint64_t wait_until_ns)
{
	int err = 0;

	cause_memory_begin(watch->memory);
	for (size_t i = 0; i < report->nr_causes && !err; i++)
		err = judge_cause(watch, report, &report->causes[i], wait_until_ns);
	/* New causes come first: few commands run at a time, and these have failed before. */
	if (!err && watch->alerts)
		err = alerts_go_on(watch->alerts, wait_until_ns);
	if (watch->limit.is_set && !watch->limit.is_rate)
		watch->is_exceeded = exceeds_size(watch, report);
	return err;
}

int watch_judge(struct watch *watch, const struct leak_report *report)
{
	return judge_causes(watch, report, 0);
}

int watch_finish(struct watch *watch, const struct leak_report *report)
{
	uint64_t until_ns = clock_now_ns() + LEAK_COMMAND_MAX_RUN_NS;
	int err = judge_causes(watch, report, until_ns);

	if (!err && watch->alerts)
		err = alerts_finish(watch->alerts, until_ns);
	if (err)
		diag_error("cannot watch for leaks: %s", strerror(-err));
	if (watch->nr_unreported)
		diag_warn("--on-leak: not started for %" PRIu64 " cause%s: those before take too "
			  "long",
			  watch->nr_unreported, quantity_plural(watch->nr_unreported));
	return err;
}

int watch_tick(void *context)
{
	struct watch *watch = context;
	struct leak_report report;
	int err = leak_report_init(&report, watch->analysis, watch->leaks);

	if (!err && watch->draws)
		err = watch_draw(watch, &report);
	if (!err)
		err = judge_causes(watch, &report, 0);
	leak_report_deinit(&report);
	return err ? err : watch->is_exceeded;
}

/* --- The screen --- */

/* Each line is cleared when it is written: a cleared screen would flicker. */
static void redraw(const char *text)
{
	fputs(TOP_LEFT, stdout);
	for (; *text; text++) {
		if (*text == '\n')
			fputs(CLEAR_TO_RIGHT, stdout);
		fputc(*text, stdout);
	}
	fputs(CLEAR_BELOW, stdout);
}

int watch_draw(struct watch *watch, const struct leak_report *report)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int err;

	if (!out)
		return -ENOMEM;
	err = summary_report_write(out, report, &watch->style);
	if (fclose(out) || err)
		return err ? err : -ENOMEM;
	if (watch->draws && terminal_can_redraw(STDOUT_FILENO)) {
		redraw(text);
	} else {
		fputs(watch->has_drawn ? "\n---\n" : "", stdout);
		fputs(text, stdout);
	}
	watch->has_drawn = true;
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	return errno ? -errno : -EIO;
}
