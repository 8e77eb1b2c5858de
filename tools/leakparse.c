/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakparse: finds in a recording the blocks that were never released, and unexpected operations.
 */
#include "common/colour.h"
#include "common/diag.h"
#include "common/elf/own_mounts.h"
#include "common/options.h"
#include "common/pager.h"
#include "common/quantity.h"
#include "common/scope.h"
#include "report/text/diff_report.h"
#include "parser/processes/heap_space.h"
#include "report/text/input_advice.h"
#include "report/text/leak_words.h"
#include "tools/leakparse_options.h"
#include "tools/recording_services.h"
#include "tools/recording_warnings.h"
#include "tools/separation.h"
#include "parser/analysis/peak.h"
#include "report/call_sites/call_sites_text.h"
#include "report/text/resource_report.h"
#include "report/trees/diff_tree.h"
#include "report/live/live_state.h"
#include "report/watch/watch.h"
#include "report/formats/held_history.h"
#include "report/formats/mark_changes.h"

#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>

#define EXIT_LEAKS 3 /* --fail-on-leak */

/* So often --diff looks whether it can still write, in the time of the recording. */
#define LOOK_EVERY_NS UINT64_C(100000000)

#define IN_WINDOWS                                                                                 \
	"listed blocks are those that were looked at, and amounts are of these; --summary "        \
	"estimates all"
#define COUNTS_IN_WINDOWS "counts are of the calls in these windows"

/* " of 3072 bytes", or "" without --size. NULL: out of memory. */
static char *size_phrase(const struct leaks_options *options)
{
	_cleanup_free_ char *phrase = NULL;
	size_t len;
	FILE *out = open_memstream(&phrase, &len);

	if (!out)
		return NULL;
	if (options->size) {
		fputs(" of ", out);
		size_range_write(out, options->size);
		fputs(" bytes", out);
	}
	if (fclose(out) != 0)
		return NULL;
	return steal_ptr(phrase);
}

/* Prints what is held besides memory. */
static void print_resources(const struct leak_report *report)
{
	const struct resource_counts *counts = heap_tracker_resources(report->analysis->heaps);

	for (size_t i = 0; i < RESOURCE_MAX_KINDS; i++)
		if (counts[i].kind && leak_report_wants_kind(report, counts[i].kind))
			diag_note("%s: %" PRIu64 " given, %" PRIu64 " taken, %" PRIu64
				  " still held",
				  counts[i].kind->name, counts[i].gives, counts[i].takes,
				  report->resources[i].blocks);
}

/* If nothing is held, says whether that means that nothing leaked. */
static void explain_no_leaks(const struct leak_report *report, bool says_why_empty)
{
	const struct heap_tracker_stats *stats = heap_tracker_stats(report->analysis->heaps);

	if (leak_report_has_held(report))
		return;
	if (!report->nr_held && !stats->allocations && stats->entries_without_return)
		diag_warn(
			"no allocation was recorded completely, so leaks cannot be found: record "
			"the returns of the allocator's functions, too (*_ret), and not in a group "
			"with :S");
	else if (!says_why_empty)
		diag_note("%s", leak_words_nothing(report));
}

static void print_advice(const struct leak_report *report)
{
	struct input_advice advice;

	input_advice_find(report, &advice);
	recording_warnings_of_advice(&advice);
}

/* The short answer on standard error. @says_why_empty: that of the report's format. */
static void print_summary(const struct leak_report *report, bool says_why_empty)
{
	const struct analysis *analysis = report->analysis;
	const struct leaks_options *options = report->options;
	const struct heap_tracker_stats *stats = heap_tracker_stats(analysis->heaps);
	_cleanup_free_ char *of_size = size_phrase(options);
	uint64_t unexpected = 0;

	if (!of_size)
		return;
	/* Operations on blocks from before the recording are normal after attaching. */
	for (size_t i = 0; i < ANOMALY_NR_KINDS; i++)
		if (i != ANOMALY_FREE_UNKNOWN && i != ANOMALY_REALLOC_UNKNOWN)
			unexpected += report->anomalies[i];
	diag_note("%" PRIu64 " event%s, %" PRIu64 " allocation%s, %" PRIu64 " free%s%s: %" PRIu64
		  " block%s%s with %s still held, %" PRIu64 " unexpected operation%s%s, %" PRIu64
		  "%s event%s lost, %" PRIu64 " unwind failure%s",
		  stats->events, quantity_plural(stats->events), stats->allocations,
		  quantity_plural(stats->allocations), stats->frees, quantity_plural(stats->frees),
		  options->size ? " of all sizes" : "", report->held_blocks,
		  quantity_plural(report->held_blocks), of_size,
		  quantity_bytes((double)report->held_bytes).text, unexpected,
		  quantity_plural(unexpected), *of_size ? " on such blocks" : "", analysis->lost,
		  analysis->may_miss ? " or more" : "",
		  quantity_plural(analysis->may_miss ? 0 : analysis->lost),
		  analysis_unwind_failures(analysis),
		  quantity_plural(analysis_unwind_failures(analysis)));
	print_resources(report);
	if (stats->own_mappings)
		diag_note("%" PRIu64 " more mapping%s with %s belong to the allocator, the loader "
			  "or the C library; --own-mappings lists them, too",
			  stats->own_mappings, quantity_plural(stats->own_mappings),
			  quantity_bytes((double)stats->own_mapped_bytes).text);
	if (stats->forgetful_children)
		diag_warn("%" PRIu64
			  " forked process%s changed too many inherited blocks: the table of "
			  "changes is limited to %zu MiB for all of them; their frees of inherited "
			  "blocks count as unknown, and double frees of these are not found; held "
			  "blocks are still exact",
			  stats->forgetful_children,
			  quantity_word(stats->forgetful_children, "", "es"),
			  MAX_COPIED_BYTES >> 20);
	recording_warnings_of_losses(analysis, IN_WINDOWS);
	explain_no_leaks(report, says_why_empty);
	print_advice(report);
}

/* Names suppressions that have no effect, so that they can be removed. */
static void warn_of_unused(const struct suppressions *suppressions)
{
	for (size_t i = 0; i < suppressions->nr; i++)
		if (!suppressions->list[i].used)
			diag_warn("the suppression leak:%s (line %zu) matches no held block",
				  suppressions->list[i].pattern, suppressions->list[i].line);
}

static bool is_utf8(void)
{
	setlocale(LC_CTYPE, "");
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* How the report reaches the user. */
struct reader {
	struct pager pager;
	bool colour;
	struct watch watch;
};

/* What is collected while the recording is read: changes, or what was held over time. */
struct reading {
	struct diff_report diff;      /* --diff */
	struct held_history *history; /* if the format needs it; with it, the changes by mark */
	struct mark_changes changes;
	struct release_counts *releases; /* --call-sites */
	struct heap_observer observer;	 /* feeds what is used of them */
};

/* Returns 0 or a negative errno. After an error, errno is the cause unless it is 0. */
static int write_to(FILE *out, const struct leakparse_options *options, struct reader *reader,
		    const struct leak_report *report, const struct reading *reading)
{
	struct tree_options appearance = options->tree;
	const struct report_input input = {
		.report = report,
		.tree = &appearance,
		.history = reading->history,
		.changes = reading->changes.nr ? &reading->changes : NULL,
	};

	errno = 0;
	if (options->summary)
		return watch_draw(&reader->watch, report);
	if (options->call_sites)
		return call_sites_write(out, report, options->call_sites, reading->releases);
	if (!options->format)
		return leaks_write(out, report);
	appearance.utf8 = is_utf8();
	appearance.colour = reader->colour;
	appearance.columns = reader->watch.style.columns;
	return report_write(out, options->format, &input);
}

/* Redirects standard output to the file of -o; otherwise starts a pager on a terminal. */
static int redirect_output(const struct leakparse_options *options, struct reader *reader)
{
	if (!options->output && options->format && options->format->is_binary &&
	    isatty(STDOUT_FILENO)) {
		diag_error("--format %s is not for a terminal; give -o FILE, or redirect it",
			   options->format->name);
		return -EINVAL;
	}
	if (!options->output) {
		reader->colour = reader->watch.style.colour = colour_is_wanted(STDOUT_FILENO);
		reader->watch.style.columns = terminal_columns(STDOUT_FILENO);
		/* --every prints while the recording comes in: the user must see it at once. */
		if (!options->every_ns)
			separation_start_pager(&reader->pager);
		return 0;
	}
	return separation_redirect(options->output);
}

/* Writes the report, and judges it. */
static int write_report(const struct leakparse_options *options, struct analysis *analysis,
			struct reader *reader, const struct reading *reading)
{
	struct leak_report report;
	int err, watch_err;

	progress_phase(analysis->progress, "judging what is held");
	err = leak_report_init(&report, analysis, &options->leaks);
	if (err) {
		diag_error("cannot classify the leaks: %s", strerror(-err));
	} else if (options->call_sites) {
		progress_end(analysis->progress);
		err = call_sites_has_row(&report, options->call_sites) ? 0 : -ENOENT;
	}
	if (err) {
		leak_report_deinit(&report);
		return err;
	}
	progress_phase(analysis->progress, "writing");
	err = write_to(stdout, options, reader, &report, reading);
	progress_end(analysis->progress);
	if (err && pager_was_left(&reader->pager, errno)) {
		err = 0;
	} else if (err) {
		diag_output_failed("the leaks", errno ? errno : -err);
	} else {
		if (options->call_sites)
			recording_warnings_print(analysis, COUNTS_IN_WINDOWS);
		else if (!options->summary)
			print_summary(&report, options->format && options->format->says_why_empty);
		resource_report_check_kind(analysis->heaps, options->leaks.kind);
		warn_of_unused(&options->suppressions);
		if (options->leaks.reach && !report.reach)
			diag_warn("--reach: the recording has no scan: record with leakrec --scan");
	}
	watch_err = watch_finish(&reader->watch, &report);
	leak_report_deinit(&report);
	return err ? err : watch_err;
}

/* --at peak: the first of two readings finds the peak. */
struct peak_search {
	struct peak peak;
	const struct size_range *size; /* NULL: all */
};

static void on_change_of_peak(void *context, const struct heap_change *change)
{
	struct peak_search *search = context;

	if (!search->size ||
	    (change->block.size_known && size_range_has(search->size, change->block.size_bytes)))
		peak_change(&search->peak, change);
}

static int find_peak(const struct leakparse_options *options, struct progress *progress,
		     uint64_t *ret_sequence)
{
	struct peak_search search = {.size = options->leaks.size};
	const struct heap_observer observer = {
		.context = &search,
		.on_change = on_change_of_peak,
		.kind = options->leaks.kind,
	};
	struct analysis analysis;
	int err;

	if (!options->nr_inputs && lseek(STDIN_FILENO, 0, SEEK_CUR) < 0) {
		diag_error("--at peak reads a recording twice: give a file, not a pipe");
		return -ESPIPE;
	}
	err = analysis_init(&analysis, &options->stacks, &observer);
	analysis.ranks_own_mappings = options->own_mappings;
	analysis.progress = progress;
	if (!err)
		err = analysis_read(&analysis, options->inputs, options->nr_inputs);
	if (!err && analysis_is_in_windows(&analysis)) {
		diag_error(
			"the recording is in windows: when most was held, which --at peak needs, is "
			"not known; --summary estimates what is held for each cause");
		err = -ENODATA;
	}
	if (!options->nr_inputs && lseek(STDIN_FILENO, 0, SEEK_SET) < 0)
		err = -errno;
	analysis_deinit(&analysis);
	*ret_sequence = search.peak.sequence;
	return err;
}

static int begin_diff(struct leakparse_options *options, struct reader *reader,
		      struct diff_report *diff, const struct analysis *analysis)
{
	const struct diff_writer tree = {&options->tree, diff_tree_write};
	int err = redirect_output(options, reader);

	options->tree.utf8 = is_utf8();
	options->tree.colour = reader->colour;
	options->tree.columns = reader->watch.style.columns;
	if (!err)
		err = diff_report_init(diff, analysis, stdout, options->format ? &tree : NULL);
	if (err)
		return err;
	diff->size = options->leaks.size;
	diff->limit = options->leaks.limit;
	if (options->has_range)
		intervals_set_range(diff->intervals, options->from_ns, options->to_ns);
	if (options->every_ns)
		intervals_set_length(diff->intervals, options->every_ns);
	return 0;
}

static int end_diff(const struct leakparse_options *options, const struct reader *reader,
		    struct diff_report *diff)
{
	int err = diff_report_finish(diff);

	if (pager_was_left(&reader->pager, -err))
		return 0;
	if (!err && diff->nr <= 1 && !options->has_range && !options->every_ns)
		diag_note(
			"the recording has no marks: these are the changes in the whole recording");
	recording_warnings_print(diff->analysis, IN_WINDOWS);
	return err;
}

/* A time past the end of the recording means its end, and reports say so. */
static void warn_of_end(const struct leakparse_options *options, struct analysis *analysis)
{
	uint64_t length_ns = analysis->end_ns - analysis->start_ns;
	bool at_end = options->at_ns > length_ns && !analysis->was_enough;
	const char *option = at_end						  ? "--at"
			     : options->has_range && options->from_ns > length_ns ? "--from"
										  : NULL;

	if (at_end)
		analysis->until_ns = 0;
	if (option)
		diag_warn("the recording is %.3f s long: %s is past its end",
			  (double)length_ns / 1e9, option);
}

/* All reports except --diff. */
static int end_report(const struct leakparse_options *options, struct reader *reader,
		      struct analysis *analysis, struct reading *reading)
{
	int err;

	if (options->format && options->format->shows_history && analysis_is_in_windows(analysis)) {
		diag_error(
			"the recording is in windows: what was held over time, which --format %s "
			"shows, is not known; --summary estimates what is held for each cause",
			options->format->name);
		return -ENODATA;
	}
	if (options->call_sites && analysis->input.has_text) {
		diag_error("--call-sites reads no text of perf script, which does not say where in "
			   "their files calls are: give the recording itself");
		return -ENODATA;
	}
	/* A watch has begun to write. */
	err = options->watches ? 0 : redirect_output(options, reader);
	if (!err && reading->changes.intervals &&
	    mark_changes_finish(&reading->changes, analysis->end_ns)) {
		diag_error("cannot count changes: out of memory");
		err = -ENOMEM;
	}
	return err ? err : write_report(options, analysis, reader, reading);
}

static void on_change_of_history(void *context, const struct heap_change *change)
{
	struct reading *reading = context;

	held_history_change(reading->history, change);
	mark_changes_change(&reading->changes, change);
}

static void on_time_of_history(void *context, uint64_t time_ns)
{
	struct reading *reading = context;

	held_history_time(reading->history, time_ns);
}

static int begin_reading(struct leakparse_options *options, struct reader *reader,
			 const struct analysis *analysis, struct reading *reading)
{
	int err;

	reading->observer.kind = options->leaks.kind;
	if (options->diff) {
		reading->observer.context = &reading->diff;
		reading->observer.on_change = diff_report_change;
		return begin_diff(options, reader, &reading->diff, analysis);
	}
	if (options->watches) {
		err = redirect_output(options, reader);
		if (err)
			return err;
	}
	if (options->call_sites) {
		reading->releases = release_counts_create();
		reading->observer.context = reading->releases;
		reading->observer.on_change = call_sites_change;
		if (reading->releases)
			return 0;
		diag_error("cannot count releases: out of memory");
		return -ENOMEM;
	}
	if (!options->format || !options->format->needs_history)
		return 0;
	reading->history = held_history_create(options->leaks.size);
	if (!reading->history || mark_changes_init(&reading->changes, options->leaks.size)) {
		diag_error("cannot keep the history: out of memory");
		return -ENOMEM;
	}
	reading->observer.context = reading;
	reading->observer.on_change = on_change_of_history;
	reading->observer.on_time = on_time_of_history;
	return 0;
}

/* Reads the recording and writes what was asked for. Returns 0 or a negative errno, reported. */
static int read_and_report(struct leakparse_options *options, struct reader *reader,
			   struct analysis *analysis, struct reading *reading)
{
	struct progress progress = {0};
	uint64_t peak_sequence = 0;
	int err = options->at_peak ? find_peak(options, &progress, &peak_sequence) : 0;

	if (!err)
		err = begin_reading(options, reader, analysis, reading);
	if (!err)
		err = analysis_init(analysis, &options->stacks,
				    reading->observer.on_change ? &reading->observer : NULL);
	if (err)
		return err;
	analysis->intervals = options->diff ? reading->diff.intervals : reading->changes.intervals;
	/* No progress while reports are written, perhaps to the same terminal. */
	analysis->progress = options->diff || options->watches ? NULL : &progress;
	analysis->ranks_own_mappings = options->own_mappings;
	analysis->until_ns = options->at_ns;
	analysis->until_sequence = peak_sequence;
	if (options->diff)
		analysis->ticks = (struct analysis_ticks){
			.every_ns = LOOK_EVERY_NS,
			.on_tick = diff_report_tick,
			.context = &reading->diff,
		};
	if (options->watches)
		analysis->ticks = (struct analysis_ticks){
			.every_ns = options->every_ns,
			.on_tick = watch_tick,
			.context = &reader->watch,
		};
	err = analysis_read(analysis, options->inputs, options->nr_inputs);
	if (!err)
		warn_of_end(options, analysis);
	/* A corrupted file is still useful up to its defect. */
	if (!err || (err != -EXDEV && analysis->input.probe_samples)) {
		int write_err = options->diff ? end_diff(options, reader, &reading->diff)
					      : end_report(options, reader, analysis, reading);

		if (write_err)
			err = write_err;
	}
	return !err && analysis->input.truncated ? -ENODATA : err;
}

static int begin_watch(const struct leakparse_options *options, struct analysis *analysis,
		       struct reader *reader)
{
	reader->watch = (struct watch){
		.analysis = analysis,
		.leaks = &options->leaks,
		.limit = options->limit,
		.draws = options->summary && options->watches,
		.style.utf8 = is_utf8(),
		.command_text = options->on_leak,
	};
	return watch_init(&reader->watch);
}

static int add_live_services(const void *context, struct broker_service services[BROKER_NR_OPS])
{
	services[BROKER_OPEN_INPUT] = (struct broker_service){live_state_serve, (void *)context};
	return 0;
}

static int print_live(const struct leakparse_options *options)
{
	const struct separation separation = {
		.output = options->output,
		.add_services = add_live_services,
		.context = options->live_dir,
	};
	struct reader reader = {0};
	int err;

	own_mounts_note();
	err = separation_begin(&separation);
	if (!err)
		err = redirect_output(options, &reader);
	if (!err)
		err = live_state_print(options->live_dir, options->summary, is_utf8(),
				       reader.watch.style.columns);
	separation_finish_pager(&reader.pager);
	separation_end();
	return err ? DIAG_EXIT_FAILED : DIAG_EXIT_OK;
}

/* Returns the tool's exit status. */
static int run(struct leakparse_options *options)
{
	struct analysis analysis = {0};
	struct reading reading = {0};
	struct reader reader = {0};
	const struct recording_services services = {
		.inputs = options->inputs,
		.nr_inputs = options->nr_inputs,
		.symfs = options->stacks.symfs,
		.on_leak = options->on_leak,
	};
	const struct separation separation = {
		.output = options->output,
		.add_services = recording_services_add,
		.context = &services,
	};
	int err;

	own_mounts_note();
	err = separation_begin(&separation);
	if (!err)
		err = begin_watch(options, &analysis, &reader);
	if (!err)
		err = read_and_report(options, &reader, &analysis, &reading);
	separation_finish_pager(&reader.pager);
	analysis_deinit(&analysis);
	diff_report_deinit(&reading.diff);
	held_history_destroy(reading.history);
	mark_changes_deinit(&reading.changes);
	release_counts_destroy(reading.releases);
	watch_deinit(&reader.watch);
	separation_end();
	if (err)
		return DIAG_EXIT_FAILED;
	return reader.watch.is_exceeded ? EXIT_LEAKS : DIAG_EXIT_OK;
}

int main(int argc, char **argv)
{
	struct leakparse_options options;
	int err, status;

	diag_begin("leakparse");
	/* A closed pipe, or a limit on the size of files, is a write error, which is reported. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	err = leakparse_options_parse(argc, argv, &options);
	status = err		    ? options_exit_status(err)
		 : options.live_dir ? print_live(&options)
				    : run(&options);
	leakparse_options_deinit(&options);
	return status;
}
