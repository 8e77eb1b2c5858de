/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/live/live_parser.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/output_file.h"
#include "common/scope.h"
#include "report/live/live_metrics.h"
#include "report/live/live_state.h"
#include "report/live/reported_causes.h"
#include "report/watch/watch.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* After a judgement, so many times its time pass before the next. */
#define PAUSE_FACTOR 20

struct live_parser {
	const struct live_parser_options *options;
	struct analysis analysis;
	struct leaks_options leaks;
	struct watch watch;
	struct live_metrics *metrics;
	struct reported_causes *reported; /* with a state and a command */
	uint64_t left_out;		  /* of status->left_out, what @analysis knows */
	uint64_t next_ns;
	bool told[LIVE_NR_FILES]; /* that it cannot be written */
};

/* Writes one file, and says once that it cannot be written. */
static void write_file(struct live_parser *parser, enum live_file file, const char *bytes,
		       size_t size)
{
	int err = live_services_replace(file, bytes, size);

	if (err && !parser->told[file])
		diag_warn("cannot write %s: %s; what is there is older",
			  parser->options->paths[file], strerror(-err));
	parser->told[file] = err != 0;
}

static int write_state(struct live_parser *parser, const struct leak_report *report, bool is_last)
{
	const struct live_state state = {
		.every_ns = parser->options->every_ns,
		.is_last = is_last,
		.left_out = parser->left_out,
	};
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	int err = live_state_text(report, &parser->leaks, &state, &text, &size);

	if (!err)
		write_file(parser, LIVE_STATE, text, size);
	return err;
}

static int write_metrics(struct live_parser *parser, const struct leak_report *report)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	int err = live_metrics_text(parser->metrics, report, parser->options->status, &text, &size);

	if (!err)
		write_file(parser, LIVE_METRICS, text, size);
	return err;
}

static bool was_reported(void *context, const char *name)
{
	const struct live_parser *parser = context;

	return reported_causes_had(parser->reported, name);
}

/* Notes the result of writing that file, and says once that it cannot be written. */
static int told_reported(struct live_parser *parser, int err)
{
	if (err == -ENOMEM)
		return err;
	if (err && !parser->told[LIVE_REPORTED])
		diag_warn("cannot write %s/%s: %s; until it can, a leakrec that is started again "
			  "reports the same causes again",
			  parser->options->paths[LIVE_REPORTED], REPORTED_CAUSES_NAME,
			  strerror(-err));
	parser->told[LIVE_REPORTED] = err != 0;
	return 0;
}

static int note_reported(void *context, char *name)
{
	struct live_parser *parser = context;

	return told_reported(parser, reported_causes_add(parser->reported, name));
}

/*
 * What was left out of the pipe is lost here, at a time that is not known. That more may be missing
 * stands in the recording only when it ends.
 */
static void note_losses(struct live_parser *parser)
{
	const struct live_status *status = parser->options->status;
	uint64_t left_out = live_status_get(&status->left_out);
	uint64_t unguarded = live_status_get(&status->unguarded);

	parser->analysis.lost += left_out - parser->left_out;
	parser->analysis.lost_any_time += left_out - parser->left_out;
	parser->analysis.left_out = parser->left_out = left_out;
	parser->analysis.may_miss |= live_status_get(&status->may_miss) != 0;
	analysis_note_unguarded(&parser->analysis, unguarded);
}

/* Judges what has come so far. Returns 0 or a negative errno. */
static int judge(struct live_parser *parser, bool is_last)
{
	const struct live_parser_options *options = parser->options;
	struct leak_report report;
	int err;

	note_losses(parser);
	err = leak_report_init(&report, &parser->analysis, &parser->leaks);
	if (!err && options->paths[LIVE_STATE])
		err = write_state(parser, &report, is_last);
	if (!err && options->paths[LIVE_METRICS])
		err = write_metrics(parser, &report);
	/* Whoever waits for the state need not wait for commands. */
	if (!err && is_last)
		output_write_all(options->done_fd, "", 1);
	if (!err && parser->reported)
		err = told_reported(parser, reported_causes_write(parser->reported));
	if (!err && options->on_leak)
		err = is_last ? watch_finish(&parser->watch, &report)
			      : watch_judge(&parser->watch, &report);
	leak_report_deinit(&report);
	return err;
}

static int on_tick(void *context)
{
	struct live_parser *parser = context;
	uint64_t begin_ns = clock_now_ns(), end_ns;
	int err;

	if (begin_ns < parser->next_ns)
		return 0;
	err = judge(parser, false);
	end_ns = clock_now_ns();
	parser->next_ns = end_ns + PAUSE_FACTOR * (end_ns - begin_ns);
	return err;
}

static int begin(struct live_parser *parser)
{
	const struct stack_store_options stacks = {.own_vdso = true};
	int err = analysis_init(&parser->analysis, &stacks, NULL);

	if (err)
		return err;
	parser->leaks.limit_is_of_causes = true;
	parser->analysis.ticks = (struct analysis_ticks){
		.every_ns = parser->options->every_ns,
		.on_tick = on_tick,
		.context = parser,
	};
	parser->watch = (struct watch){
		.analysis = &parser->analysis,
		.leaks = &parser->leaks,
		.style.utf8 = true,
		.command_text = parser->options->on_leak,
		.max_commands = 1,
	};
	if (parser->options->paths[LIVE_REPORTED]) {
		parser->watch.history = (struct watch_history){reported_causes_name, was_reported,
							       note_reported, parser};
		err = reported_causes_create(&parser->reported);
	}
	if (!err)
		err = watch_init(&parser->watch);
	if (!err && parser->options->paths[LIVE_METRICS])
		err = live_metrics_create(parser->options->recording, &parser->metrics);
	return err;
}

/* Waits for the first bytes. Returns false if there are none: set-up has failed. */
static bool wait_for_recording(int fd)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};

	while (poll(&pollfd, 1, -1) < 0 && errno == EINTR)
		;
	return pollfd.revents & POLLIN;
}

int live_parser_run(const struct live_parser_options *options)
{
	struct live_parser *parser = calloc(1, sizeof(*parser));
	struct perf_consumer consumer;
	int err = parser ? 0 : -ENOMEM;

	if (!wait_for_recording(options->stream_fd))
		return DIAG_EXIT_OK;
	if (!err) {
		parser->options = options;
		err = begin(parser);
	}
	if (!err) {
		consumer = analysis_consumer(&parser->analysis);
		err = perf_input_read(options->stream_fd, "the recording", &consumer,
				      &parser->analysis.input);
		err = analysis_finish(&parser->analysis, err);
	}
	if (!err)
		err = judge(parser, true);
	if (err)
		diag_error("the live parser ends: %s", strerror(-err));
	/* The process exits now: nothing is freed. */
	return err ? DIAG_EXIT_FAILED : DIAG_EXIT_OK;
}
