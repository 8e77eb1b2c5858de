/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/plan/file_analysis.h"

#include "probes/elf/analysis_limit.h"
#include "probes/elf/debug_symbols.h"
#include "probes/plan/plan_message.h"
#include "probes/plan/probe_plan.h"
#include "probes/plan/usdt_plan.h"
#include "probes/sites/probe_arch.h"
#include "probes/tracefs/tracefs_uprobes.h"

#include "common/sandbox/sandbox.h"
#include "common/schema/probe_events.h"
#include "common/diag.h"
#include "common/scope.h"

#include <errno.h>
#include <inttypes.h>

/* The parent waits longer than the child's own limit, which names the file better. */
#define GRACE_NS 500000000ull

/* Files of one owner, which are analysed by one process. */
struct analysis {
	const struct mapped_file *files;
	size_t nr;
	bool plans, with_operators;
	uint64_t cpu_limit_ns;			 /* for each file */
	const struct debug_symbols_files *debug; /* of the only file; or NULL */
	/* Of each file, if not its probes are to be planned; or NULL. */
	const struct file_question *questions;
	struct file_answer *answers;
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

/* Decodes the instruction at @offset. */
static void describe_instruction(const struct elf_image *image, uint64_t offset,
				 struct placement_instruction *ret)
{
	uint8_t code[PLACEMENT_MAX_INSTRUCTION_BYTES];
	size_t size_bytes = sizeof(code);

	*ret = (struct placement_instruction){.class = PLACEMENT_UNKNOWN, .text = "?"};
	if (!image->is_native)
		return;
	/* At the end of the file there may be fewer bytes. */
	while (size_bytes > 0 && elf_image_read(image, offset, code, size_bytes))
		size_bytes--;
	probe_arch_describe(probe_arch_native(), code, size_bytes, ret);
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
	struct allocator allocator;
	struct place_answer place;
	uint32_t build_hash = 0;
	bool has_build_hash = elf_image_build_hash(image, &build_hash) == 0;
	int err = question->nr ? allocator_init(&allocator, image, true) : 0;

	if (!question->nr)
		allocator = (struct allocator){0};
	message_put_number(to, has_build_hash);
	message_put_number(to, build_hash);
	message_put_string(to, allocator.nr ? allocator.name : "");
	for (size_t i = 0; i < question->nr; i++) {
		describe_instruction(image, question->probes[i].offset, &place.instruction);
		name_function(&allocator, &question->probes[i], place.function);
		message_put_string(to, place.function);
		message_put_number(to, place.instruction.class);
		message_put_string(to, place.instruction.text);
	}
	allocator_deinit(&allocator);
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

	/* What the parent does meanwhile is not for the child. */
	analysis_limit_set_pause(NULL, NULL);
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

static void leave_out(const struct analysis *analysis, const struct mapped_file *file)
{
	if (analysis->answers) {
		struct file_answer *left = &analysis->answers[file - analysis->files];

		file_answers_deinit(left, 1);
		left->is_left_out = true;
	}
	diag_warn("%s: its symbol tables are damaged, or it takes too long or too much memory to "
		  "analyse; %s",
		  file->display,
		  analysis->answers ? "what is at its probes is not known" : "it is not probed");
}

static int run(const struct analysis *analysis, struct probe_set *set, struct file_findings *ret,
	       size_t *ret_nr);

/* Analyses @file again, with what may be its debug file. */
static int run_with_debug_file(const struct analysis *analysis, const struct mapped_file *file,
			       const struct debug_symbols_id *wanted, struct probe_set *set,
			       struct file_findings *ret)
{
	struct analysis again = *analysis;
	struct debug_symbols_files debug;
	size_t nr;
	int err;

	debug_symbols_open(wanted, file->path, file->display, &debug);
	if (analysis->questions) {
		again.questions += file - analysis->files;
		again.answers += file - analysis->files;
	}
	again.files = file;
	again.nr = 1;
	again.debug = &debug;
	err = run(&again, set, ret, &nr);
	debug_symbols_files_deinit(&debug);
	return err;
}

/* Takes what the reply says of @file. Returns 0 or a negative errno, reported. */
static int take_part(const struct analysis *analysis, const struct mapped_file *file,
		     struct message_reader *reader, struct probe_set *set,
		     struct file_findings *ret)
{
	struct file_answer *answer_there =
		analysis->answers ? &analysis->answers[file - analysis->files] : NULL;
	struct debug_symbols_id wanted;
	int err = findings_message_get(reader, ret);
	bool is_wanted = findings_message_get_wish(reader, &wanted);

	if (!err && !reader->is_bad && is_wanted && !analysis->debug)
		return run_with_debug_file(analysis, file, &wanted, set, ret);
	if (!err && answer_there && ret->is_elf)
		err = findings_message_get_answer(
			reader, &analysis->questions[file - analysis->files], answer_there);
	if (!err && set)
		err = plan_message_get(reader, file, set);
	if (err == -ETIME || reader->is_bad) {
		leave_out(analysis, file);
		*ret = (struct file_findings){0};
		return 0;
	}
	if (answer_there)
		answer_there->is_elf = ret->is_elf;
	return err;
}

/* Starts the process, and waits for it. */
static int wait_for_reply(const struct analysis *analysis, struct sandbox_reply *ret)
{
	size_t nr_debug = analysis->debug ? analysis->debug->nr : 0;
	_cleanup_free_ int *fds = calloc(analysis->nr + nr_debug + 1, sizeof(*fds));
	struct sandbox_task task = {
		.run = analyse,
		.context = (void *)analysis,
		.nr_parts = analysis->nr,
		.fds = fds,
		.nr_fds = analysis->nr + nr_debug,
		.cpu_ns = analysis->cpu_limit_ns + GRACE_NS,
		.elapsed_ns = analysis_limit_elapsed_ns(analysis->cpu_limit_ns) + GRACE_NS,
		.meanwhile = analysis_limit_pause,
	};
	int err;

	*ret = (struct sandbox_reply){0};
	if (!fds)
		return -ENOMEM;
	for (size_t i = 0; i < analysis->nr; i++)
		fds[i] = analysis->files[i].fd;
	for (size_t i = 0; i < nr_debug; i++)
		fds[analysis->nr + i] = analysis->debug->fds[i];
	err = sandbox_run(&task, ret);
	analysis_limit_count(ret->cpu_ns);
	return err;
}

/*
 * Analyses files by one process. *@ret_nr: how many of them were dealt with; it may have ended
 * before the last one. Returns 0 or a negative errno, reported.
 */
static int run(const struct analysis *analysis, struct probe_set *set, struct file_findings *ret,
	       size_t *ret_nr)
{
	struct sandbox_reply reply;
	size_t from = 0;
	int err = wait_for_reply(analysis, &reply);

	*ret_nr = 0;
	if (err && err != -EINTR)
		diag_error("cannot analyse files: %s", strerror(-err));
	if (!err)
		sandbox_reply_print(&reply);
	for (size_t i = 0; i < reply.nr_parts && !err; i++) {
		struct message_reader reader = {reply.bytes + from,
						reply.bytes + reply.part_ends[i], false};

		err = take_part(analysis, &analysis->files[i], &reader, set, &ret[i]);
		from = reply.part_ends[i];
		*ret_nr = i + 1;
	}
	if (!err && *ret_nr < analysis->nr) {
		leave_out(analysis, &analysis->files[*ret_nr]);
		++*ret_nr;
	}
	sandbox_reply_deinit(&reply);
	return err;
}

/* Runs @analysis for @nr files, those of one owner at a time. */
static int run_all(struct analysis analysis, const struct mapped_file *files, size_t nr,
		   struct probe_set *set, struct file_findings *ret)
{
	int err = 0;

	memset(ret, 0, nr * sizeof(*ret));
	for (size_t from = 0, done; from < nr && !err; from += done) {
		analysis.files = &files[from];
		analysis.nr = 1;
		while (from + analysis.nr < nr &&
		       files[from + analysis.nr].stat.st_uid == files[from].stat.st_uid)
			analysis.nr++;
		err = run(&analysis, set, &ret[from], &done);
		if (analysis.questions) {
			analysis.questions += done;
			analysis.answers += done;
		}
	}
	return err;
}

int file_analysis_run(const struct mapped_file *files, size_t nr, struct probe_set *set,
		      struct file_findings *ret)
{
	const struct analysis analysis = {
		.plans = set != NULL,
		.with_operators = set && set->with_operators,
		.cpu_limit_ns = set && set->limit_ns ? set->limit_ns : ANALYSIS_LIMIT_NS,
	};

	return run_all(analysis, files, nr, set, ret);
}

int file_analysis_answer(const struct mapped_file *files, const struct file_question *questions,
			 size_t nr, struct file_answer *ret)
{
	_cleanup_free_ struct file_findings *findings = calloc(nr + 1, sizeof(*findings));
	const struct analysis analysis = {
		.cpu_limit_ns = ANALYSIS_LIMIT_NS,
		.questions = questions,
		.answers = ret,
	};

	memset(ret, 0, nr * sizeof(*ret));
	if (!findings) {
		diag_error("cannot describe probes: out of memory");
		return -ENOMEM;
	}
	return run_all(analysis, files, nr, NULL, findings);
}
