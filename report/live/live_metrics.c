/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/live/live_metrics.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/scope.h"
#include "report/text/cause_frames.h"
#include "report/text/stack_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct known_cause {
	char *function, *module; /* as label values */
	/* In this report. */
	double bytes, blocks, bytes_per_s, lost_bytes;
	bool leaks;
};

struct live_metrics {
	char *recording; /* a label value */
	struct known_cause causes[LIVE_METRICS_MAX_CAUSES];
	size_t nr_causes;
	uint64_t nr_unlisted; /* leaks of this report without labels */
};

/*
 * @text as a label's value: escaped as everywhere, so that it is UTF-8 and one line, and then for
 * the format, in which \ and " are \\ and \". NULL: out of memory.
 */
static char *label_value(const char *text, bool is_escaped)
{
	_cleanup_free_ char *escaped = NULL;
	char *value = NULL;
	size_t size;
	FILE *out = open_memstream(&escaped, &size);

	if (!out)
		return NULL;
	if (is_escaped)
		fputs(text, out);
	else
		diag_print_escaped(out, text, NULL);
	if (fclose(out))
		return NULL;
	out = open_memstream(&value, &size);
	if (!out)
		return NULL;
	for (const char *c = escaped; *c; c++) {
		if (*c == '\\' || *c == '"')
			fputc('\\', out);
		fputc(*c, out);
	}
	if (fclose(out) == 0)
		return value;
	free(value);
	return NULL;
}

int live_metrics_create(const char *recording, struct live_metrics **ret)
{
	struct live_metrics *metrics = calloc(1, sizeof(*metrics));

	*ret = metrics;
	if (metrics)
		metrics->recording = label_value(recording, false);
	return metrics && metrics->recording ? 0 : -ENOMEM;
}

/* --- Causes --- */

static bool is_leak(enum verdict verdict)
{
	return verdict == VERDICT_GROWTH || verdict == VERDICT_OVERDUE;
}

/* Loads what the cause is named after. Returns 0 or -ENOMEM. */
static int load_names(const struct leak_report *report, const struct leak_cause *cause,
		      struct cause_frames *frames, char **ret_function, char **ret_module)
{
	const struct leak_site *site = &report->sites_by_cause[cause->first];
	_cleanup_free_ char *name = NULL;
	const char *module = NULL;
	int err = cause_frames_load(frames, report, cause, site);

	if (err)
		return err;
	name = stack_lines_name(&frames->stack, frames->first);
	if (frames->first < frames->stack.nr)
		module = frames->stack.frames[frames->first].module;
	*ret_function = name ? label_value(name, true) : NULL;
	*ret_module = label_value(module ? named_stack_basename(module) : "", false);
	return *ret_function && *ret_module ? 0 : -ENOMEM;
}

static struct known_cause *find_cause(struct live_metrics *metrics, const char *function,
				      const char *module)
{
	for (size_t i = 0; i < metrics->nr_causes; i++)
		if (strcmp(metrics->causes[i].function, function) == 0 &&
		    strcmp(metrics->causes[i].module, module) == 0)
			return &metrics->causes[i];
	return NULL;
}

static void add_amounts(struct known_cause *known, const struct leak_cause *cause,
			const struct site_verdict *verdict)
{
	known->bytes += cause->estimate.bytes;
	known->blocks += cause->estimate.blocks;
	known->lost_bytes += (double)cause->reach.bytes[REACH_GROUP_LOST];
	known->bytes_per_s += verdict->has_rate ? verdict->rate.bytes_per_s : 0;
	known->leaks |= is_leak(verdict->verdict);
}

/* Adds the cause to its series. Returns 0 or -ENOMEM. */
static int add_cause(struct live_metrics *metrics, const struct leak_report *report,
		     const struct leak_cause *cause, struct cause_frames *frames)
{
	const struct site_verdict *verdict = &report->verdicts.causes[cause->cause].verdict;
	_cleanup_free_ char *function = NULL, *module = NULL;
	struct known_cause *known;
	int err;

	/* Names cost time: no cause is looked at that cannot have a series. */
	if (!metrics->nr_causes && !is_leak(verdict->verdict))
		return 0;
	err = load_names(report, cause, frames, &function, &module);
	if (err)
		return err;
	known = find_cause(metrics, function, module);
	if (!known && !is_leak(verdict->verdict))
		return 0;
	if (!known && metrics->nr_causes == LIVE_METRICS_MAX_CAUSES) {
		metrics->nr_unlisted++;
		return 0;
	}
	if (!known) {
		known = &metrics->causes[metrics->nr_causes++];
		known->function = steal_ptr(function);
		known->module = steal_ptr(module);
	}
	add_amounts(known, cause, verdict);
	return 0;
}

static int find_causes(struct live_metrics *metrics, const struct leak_report *report)
{
	struct name_pool *names = name_pool_create();
	struct cause_frames frames = {.stack = {.names = names, .wrappers = &report->wrappers}};
	int err = names ? 0 : -ENOMEM;

	metrics->nr_unlisted = 0;
	for (size_t i = 0; i < metrics->nr_causes; i++)
		metrics->causes[i] = (struct known_cause){
			.function = metrics->causes[i].function,
			.module = metrics->causes[i].module,
		};
	for (size_t i = 0; i < report->nr_causes && !err; i++)
		err = add_cause(metrics, report, &report->causes[i], &frames);
	named_stack_deinit(&frames.stack);
	name_pool_destroy(names);
	return err;
}

/* --- The text --- */

static void begin_metric(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP leakrec_%s %s\n# TYPE leakrec_%s %s\n", name, help, name, type);
}

static void write_metric(FILE *out, const struct live_metrics *metrics, const char *name,
			 const char *type, const char *help, double value)
{
	begin_metric(out, name, type, help);
	fprintf(out, "leakrec_%s{recording=\"%s\"} %.15g\n", name, metrics->recording, value);
}

static double lost_bytes(const struct leak_report *report)
{
	double bytes = 0;

	for (int i = 0; i < VERDICT_NR; i++)
		bytes += (double)report->reach_of[i].bytes[REACH_GROUP_LOST];
	return bytes;
}

static void write_amounts(FILE *out, const struct live_metrics *metrics,
			  const struct leak_report *report)
{
	const struct analysis *analysis = report->analysis;
	const struct heap_tracker_stats *stats = heap_tracker_stats(analysis->heaps);

	write_metric(out, metrics, "recorded_seconds_total", "counter",
		     "How long the recording is.",
		     (double)(analysis->end_ns - analysis->start_ns) / 1e9);
	write_metric(out, metrics, "allocations_total", "counter", "Recorded allocations.",
		     (double)stats->allocations);
	write_metric(out, metrics, "frees_total", "counter", "Recorded frees.",
		     (double)stats->frees);
	write_metric(out, metrics, "held_bytes", "gauge",
		     "Bytes allocated while recording and not freed.", report->estimate.bytes);
	write_metric(out, metrics, "held_blocks", "gauge", "The same in blocks.",
		     report->estimate.blocks);
	if (report->reach)
		write_metric(out, metrics, "proven_lost_bytes", "gauge",
			     "Held bytes that nothing pointed to at the last scan.",
			     lost_bytes(report));
}

static void write_costs(FILE *out, const struct live_metrics *metrics,
			const struct leak_report *report, const struct live_status *status)
{
	write_metric(out, metrics, "lost_events_total", "counter",
		     "Events that are missing: some leaks may be false.",
		     (double)report->analysis->lost);
	write_metric(out, metrics, "pauses_total", "counter",
		     "Stops of the recorded processes, so that no event is lost.",
		     (double)live_status_get(&status->pauses));
	write_metric(out, metrics, "paused_seconds_total", "counter", "How long they took.",
		     (double)live_status_get(&status->paused_ns) / 1e9);
	begin_metric(out, "cpu_seconds_total", "counter",
		     "CPU time of leakrec and of its live parser, without that of the probes.");
	fprintf(out, "leakrec_cpu_seconds_total{recording=\"%s\",part=\"recorder\"} %.15g\n",
		metrics->recording, (double)live_status_get(&status->cpu_ns) / 1e9);
	fprintf(out, "leakrec_cpu_seconds_total{recording=\"%s\",part=\"parser\"} %.15g\n",
		metrics->recording, (double)clock_process_ns() / 1e9);
	write_metric(out, metrics, "written_timestamp_seconds", "gauge",
		     "When this was written; if long ago, leakrec has ended.",
		     (double)clock_ns(CLOCK_REALTIME) / 1e9);
}

static void write_causes(FILE *out, const struct live_metrics *metrics, bool is_scanned)
{
	static const struct {
		const char *name, *help;
	} of_cause[] = {
		{"cause_leaks", "1: it is a leak now; 0: it was one before."},
		{"cause_held_bytes", "Bytes that causes of that name hold."},
		{"cause_held_blocks", "The same in blocks."},
		{"cause_growth_bytes_per_second", "How fast they grow; 0: they do not."},
		{"cause_proven_lost_bytes", "Bytes that nothing pointed to at the last scan."},
	};

	for (size_t k = 0; k < ARRAY_SIZE(of_cause) - !is_scanned; k++) {
		if (metrics->nr_causes)
			begin_metric(out, of_cause[k].name, "gauge", of_cause[k].help);
		for (size_t i = 0; i < metrics->nr_causes; i++) {
			const struct known_cause *known = &metrics->causes[i];
			const double values[] = {known->leaks, known->bytes, known->blocks,
						 known->bytes_per_s, known->lost_bytes};

			fprintf(out,
				"leakrec_%s{recording=\"%s\",function=\"%s\",module=\"%s\"} "
				"%.15g\n",
				of_cause[k].name, metrics->recording, known->function,
				known->module, values[k]);
		}
	}
	write_metric(out, metrics, "unlisted_causes", "gauge",
		     "Leaks beyond the first 32 names, which have no series.",
		     (double)metrics->nr_unlisted);
}

int live_metrics_text(struct live_metrics *metrics, const struct leak_report *report,
		      const struct live_status *status, char **ret, size_t *ret_size)
{
	int err = find_causes(metrics, report);
	FILE *out = err ? NULL : open_memstream(ret, ret_size);

	if (!out)
		return -ENOMEM;
	write_amounts(out, metrics, report);
	write_costs(out, metrics, report, status);
	write_causes(out, metrics, report->reach != NULL);
	return fclose(out) ? -ENOMEM : 0;
}
