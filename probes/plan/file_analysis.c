/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/plan/file_analysis.h"

#include "probes/elf/analysis_limit.h"
#include "probes/elf/debug_symbols.h"
#include "probes/plan/file_sandbox.h"
#include "probes/plan/plan_message.h"
#include "probes/plan/probe_plan.h"
#include "probes/plan/usdt_plan.h"
#include "probes/sites/probe_arch.h"
#include "probes/tracefs/tracefs_uprobes.h"

#include "common/schema/probe_events.h"
#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* What is to be done with files; the arrays have an element for each. */
struct analysis {
	const struct mapped_file *files;
	bool plans, with_operators;
	uint64_t cpu_limit_ns;			 /* for each file */
	const struct debug_symbols_files *debug; /* of the only file; or NULL */
	/* If not probes are to be planned; or NULL. */
	const struct file_question *questions;
	struct file_answer *answers;
	struct file_findings *findings;
	struct probe_set *set; /* of the process that waits; or NULL */
};

/* In the process without privileges. */

/* Plans the probes of a file that is @image. Returns 0 or a negative errno, reported. */
static int plan(const struct analysis *analysis, const struct mapped_file *file,
		struct elf_image *image, struct file_findings *findings, struct probe_set *set)
{
	struct allocator allocator;
	int err = allocator_init(&allocator, image, analysis->with_operators);

	findings->is_allocator = !err && allocator.nr > 0;
	findings->is_libc = findings->is_allocator && allocator.is_libc;
	if (err)
		diag_error("cannot look for allocators in %s: %s", file->display, strerror(-err));
	if (findings->is_allocator && analysis->plans && analysis->with_operators &&
	    allocator.shares_code)
		diag_note("%s: some of malloc, free and C++'s operators are one function there; "
			  "mismatches between them are not found",
			  file->display);
	if (!err && analysis->plans && (findings->is_allocator || usdt_plan_has_probes(image))) {
		const struct probe_source source = {file->fd, image, &file->stat, file->path,
						    file->display};

		err = probe_plan_file(set, &source, &allocator);
	}
	allocator_deinit(&allocator);
	return err;
}

static void name_function(const struct allocator *allocator, const struct uprobe *probe,
			  char ret[FILE_MAX_FUNCTION])
{
	const struct allocator_function *function = allocator_find_code(allocator, probe->offset);
	const struct probe_schema *schema;
	enum probe_point point;

	ret[0] = '\0';
	/* An exit may be in code that several functions share: the event names the one meant. */
	if (function && probe_schema_parse_event(probe->event, &schema, &point) == 0 &&
	    point == PROBE_EXIT && schema != function->schema)
		function = NULL;
	if (function)
		snprintf(ret, FILE_MAX_FUNCTION, "%s+0x%" PRIx64, function->symbol,
			 probe->offset - function->code.offset);
}

/* Writes the answer on a file. Returns 0 or a negative errno. */
static int answer(const struct file_question *question, const struct elf_image *image, FILE *to)
{
	struct file_answer answer = {.places = calloc(question->nr + 1, sizeof(*answer.places))};
	struct allocator allocator = {0};
	int err = 0;

	if (!answer.places)
		return -ENOMEM;
	answer.has_build_hash = elf_image_build_hash(image, &answer.build_hash) == 0;
	if (question->nr)
		err = allocator_init(&allocator, image, true);
	snprintf(answer.allocator, sizeof(answer.allocator), "%s",
		 allocator.nr ? allocator.name : "");
	for (size_t i = 0; i < question->nr; i++) {
		struct place_answer *place = &answer.places[i];

		probe_arch_describe_at(image, question->probes[i].offset, &place->instruction);
		name_function(&allocator, &question->probes[i], place->function);
	}
	findings_message_put_answer(to, question, &answer);
	allocator_deinit(&allocator);
	file_answers_deinit(&answer, 1);
	return err;
}

static void find_interpreter(const struct elf_image *image, struct file_findings *ret)
{
	_cleanup_free_ char *interpreter = elf_image_interpreter(image);

	if (interpreter && strlen(interpreter) < sizeof(ret->interpreter))
		snprintf(ret->interpreter, sizeof(ret->interpreter), "%s", interpreter);
}

/* Analyses one file. If that needs a debug file that is not there, only this is replied. */
static void analyse(void *context, size_t nr, FILE *reply)
{
	const struct analysis *analysis = context;
	const struct mapped_file *file = &analysis->files[nr];
	struct probe_set set = {0};
	struct file_findings findings = {0};
	struct debug_symbols_id wanted;
	struct elf_image image;
	_cleanup_free_ char *answered = NULL;
	size_t answer_size = 0;
	FILE *to = open_memstream(&answered, &answer_size);
	bool is_wanted = false;
	int err;

	analysis_limit_begin(analysis->cpu_limit_ns);
	if (elf_image_init(&image, file->fd) == 0) {
		findings.is_elf = true;
		findings.is_native = image.is_native;
		findings.is_static = elf_image_is_static(&image);
		find_interpreter(&image, &findings);
		if (analysis->debug)
			debug_symbols_try(&image, analysis->debug);
		else
			is_wanted = debug_symbols_are_wanted(&image, &wanted);
		if (is_wanted)
			err = 0;
		else if (analysis->questions)
			err = to ? answer(&analysis->questions[nr], &image, to) : -ENOMEM;
		else
			err = plan(analysis, file, &image, &findings, &set);
		elf_image_deinit(&image);
	} else {
		err = 0;
	}
	/* The memory that the analysis may take is limited, too. */
	if (analysis_limit_end() || err == -ENOMEM || (to && fclose(to)))
		err = -ETIME;
	findings_message_put(reply, err, &findings);
	findings_message_put_wish(reply, is_wanted, &wanted);
	if (!err && analysis->questions)
		fwrite(answered, 1, answer_size, reply);
	else if (!err)
		plan_message_put(reply, &set);
	probe_set_deinit(&set);
}

/* In the process that waits. */

static int run(const struct analysis *analysis, size_t nr);

static void leave_out(void *context, size_t nr)
{
	const struct analysis *analysis = context;

	if (analysis->answers) {
		file_answers_deinit(&analysis->answers[nr], 1);
		analysis->answers[nr].is_left_out = true;
	}
	file_sandbox_tell_left_out(&analysis->files[nr],
				   analysis->answers ? "what is at its probes is not known"
						     : "it is not probed");
}

/* Analyses file @nr again, with what may be its debug file. */
static int run_with_debug_file(const struct analysis *analysis, size_t nr,
			       const struct debug_symbols_id *wanted)
{
	const struct mapped_file *file = &analysis->files[nr];
	struct analysis again = *analysis;
	struct debug_symbols_files debug;
	int err;

	debug_symbols_open(wanted, file->fd, file->path, file->display, &debug);
	again.files = file;
	again.findings += nr;
	again.debug = &debug;
	if (analysis->questions) {
		again.questions += nr;
		again.answers += nr;
	}
	err = run(&again, 1);
	debug_symbols_files_deinit(&debug);
	return err;
}

/* Takes what the reply says of file @nr. Returns 0 or a negative errno, reported. */
static int take(void *context, size_t nr, struct message_reader *reader)
{
	const struct analysis *analysis = context;
	struct file_findings *findings = &analysis->findings[nr];
	struct file_answer *answer_there = analysis->answers ? &analysis->answers[nr] : NULL;
	struct debug_symbols_id wanted;
	int err = findings_message_get(reader, findings);
	bool is_wanted = findings_message_get_wish(reader, &wanted);

	if (!err && !reader->is_bad && is_wanted && !analysis->debug)
		return run_with_debug_file(analysis, nr, &wanted);
	if (!err && answer_there && findings->is_elf)
		err = findings_message_get_answer(reader, &analysis->questions[nr], answer_there);
	if (!err && analysis->set)
		err = plan_message_get(reader, &analysis->files[nr], NULL, analysis->set);
	if (err == -ETIME || reader->is_bad) {
		leave_out(context, nr);
		*findings = (struct file_findings){0};
		return 0;
	}
	if (answer_there)
		answer_there->is_elf = findings->is_elf;
	return err;
}

static int run(const struct analysis *analysis, size_t nr)
{
	const struct file_sandbox sandbox = {
		.files = analysis->files,
		.nr = nr,
		.debug = analysis->debug,
		.cpu_limit_ns = analysis->cpu_limit_ns,
		.analyse = analyse,
		.take = take,
		.leave_out = leave_out,
		.context = (void *)analysis,
	};

	return file_sandbox_run(&sandbox);
}

int file_analysis_run(const struct mapped_file *files, size_t nr, struct probe_set *set,
		      struct file_findings *ret)
{
	const struct analysis analysis = {
		.files = files,
		.findings = ret,
		.set = set,
		.plans = set != NULL,
		.with_operators = set && set->with_operators,
		.cpu_limit_ns = set && set->limit_ns ? set->limit_ns : ANALYSIS_LIMIT_NS,
	};

	memset(ret, 0, nr * sizeof(*ret));
	return run(&analysis, nr);
}

int file_analysis_answer(const struct mapped_file *files, const struct file_question *questions,
			 size_t nr, struct file_answer *ret)
{
	_cleanup_free_ struct file_findings *findings = calloc(nr + 1, sizeof(*findings));
	const struct analysis analysis = {
		.files = files,
		.findings = findings,
		.cpu_limit_ns = ANALYSIS_LIMIT_NS,
		.questions = questions,
		.answers = ret,
	};

	memset(ret, 0, nr * sizeof(*ret));
	if (!findings) {
		diag_error("cannot describe probes: out of memory");
		return -ENOMEM;
	}
	return run(&analysis, nr);
}
