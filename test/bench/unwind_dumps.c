/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwinds the stack dumps of a recording:
 *
 *	unwind_dumps compare FILE    by rules and by libdwfl; prints and counts differences
 *	unwind_dumps time FILE       by rules, each batch of dumps several times
 *	unwind_dumps once FILE       by rules, once, as a reader of the file does
 *	unwind_dumps addresses FILE  by rules; prints addresses like `perf script -F ip --no-inline`
 *	unwind_dumps cores FILE DIR NUMBER...  writes these dumps for gdb (dump_core.h)
 *
 * compare exits with 1 if any stack differs. How unwinding ended does not count.
 */
#include "common/diag.h"
#include "common/scope.h"
#include "parser/perfdata/perf_input.h"
#include "test/bench/dump_core.h"
#include "unwind/frames/dump_unwinder.h"
#include "common/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH_DUMPS    1000
#define BATCH_BYTES    (BATCH_DUMPS * (8u << 10))
#define NR_ROUNDS      20
#define MAX_SHOWN      20
#define STDOUT_BYTES   ((size_t)64 << 10)
#define MAX_DUMP_BYTES (64u << 10)
#define NR_LINES       4096 /* a power of two */
#define LINE_BYTES     18   /* "\t%16x\n" */

enum mode { COMPARE, TIME, ONCE, ADDRESSES, CORES };

/* A dump kept for the batch that it is timed in. */
struct kept_dump {
	pid_t pid;
	struct stack_dump dump;
	uint64_t regs[64];
};

/* A line that was printed for an address, in one state of an address space. */
struct printed_line {
	uint64_t address;
	uint64_t generation; /* 0: free */
	char text[LINE_BYTES];
};

struct bench {
	enum mode mode;
	const char *dir; /* CORES */
	char **wanted;	 /* dumps' numbers, from 1; the last is NULL */
	struct debuginfo debuginfo;
	struct module_table modules;
	struct address_spaces spaces;
	struct dump_unwinder unwinder;
	struct dwfl_unwinder reference;
	struct unwound_stack stack, expected;

	struct kept_dump *batch; /* BATCH_DUMPS */
	size_t nr_batch;
	uint8_t *bytes; /* BATCH_BYTES */
	size_t nr_bytes;

	struct printed_line lines[NR_LINES]; /* ADDRESSES */
	char text[STACK_MAX_FRAMES * LINE_BYTES + 2];

	uint64_t nr_samples, nr_stacks, nr_frames, time_ns; /* stacks and frames in that time */
	uint64_t nr_equal, nr_different, nr_differently_ended;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int unwind_batch(struct bench *bench)
{
	for (size_t i = 0; i < bench->nr_batch; i++) {
		const struct kept_dump *kept = &bench->batch[i];
		int err = dump_unwinder_unwind(&bench->unwinder,
					       address_spaces_find(&bench->spaces, kept->pid),
					       &kept->dump, &bench->stack);

		if (err)
			return err;
		bench->nr_stacks++;
		bench->nr_frames += bench->stack.nr;
	}
	return 0;
}

/* Times the batch; the rules have been read when the clock starts. */
static int time_batch(struct bench *bench)
{
	uint64_t nr_stacks = bench->nr_stacks, nr_frames = bench->nr_frames, start_ns;
	int err = unwind_batch(bench);

	bench->nr_stacks = nr_stacks;
	bench->nr_frames = nr_frames;
	start_ns = now_ns();
	for (int round = 0; !err && round < NR_ROUNDS; round++)
		err = unwind_batch(bench);
	bench->time_ns += now_ns() - start_ns;
	bench->nr_batch = bench->nr_bytes = 0;
	return err;
}

static int keep_dump(struct bench *bench, pid_t pid, const struct stack_dump *dump)
{
	struct kept_dump *kept;
	int err = 0;

	if (dump->nr_bytes > MAX_DUMP_BYTES)
		return 0;
	if (bench->nr_batch == BATCH_DUMPS || bench->nr_bytes + dump->nr_bytes > BATCH_BYTES)
		err = time_batch(bench);
	kept = &bench->batch[bench->nr_batch++];
	*kept = (struct kept_dump){.pid = pid, .dump = *dump};
	memcpy(kept->regs, dump->regs,
	       (size_t)__builtin_popcountll(dump->regs_mask) * sizeof(*dump->regs));
	memcpy(bench->bytes + bench->nr_bytes, dump->bytes, dump->nr_bytes);
	kept->dump.regs = kept->regs;
	kept->dump.bytes = bench->bytes + bench->nr_bytes;
	bench->nr_bytes += dump->nr_bytes;
	return err;
}

static void print_address(const struct bench *bench, const struct address_space *space,
			  const struct unwound_stack *stack, size_t i)
{
	uint64_t address = i < stack->nr ? stack->addresses[i] : 0;
	const struct mapping *mapping = address_space_find(space, address);

	printf(" %16" PRIx64 " %-40s", address, mapping ? mapping->module->path : "");
}

static void show_difference(const struct bench *bench, const struct address_space *space)
{
	const struct unwound_stack *stack = &bench->stack, *expected = &bench->expected;
	size_t nr = stack->nr > expected->nr ? stack->nr : expected->nr;

	printf("dump %" PRIu64 ": rules %s, libdwfl %s\n", bench->nr_samples,
	       stack->complete	  ? "whole"
	       : stack->truncated ? "truncated"
				  : "lost",
	       expected->complete    ? "whole"
	       : expected->truncated ? "truncated"
				     : "lost");
	for (size_t i = 0; i < nr; i++) {
		bool differs = i >= stack->nr || i >= expected->nr ||
			       stack->addresses[i] != expected->addresses[i] ||
			       stack->is_call[i] != expected->is_call[i];

		print_address(bench, space, stack, i);
		print_address(bench, space, expected, i);
		puts(differs ? " <" : "");
	}
}

static int compare(struct bench *bench, const struct address_space *space,
		   const struct stack_dump *dump)
{
	const struct unwound_stack *stack = &bench->stack, *expected = &bench->expected;
	int err = dump_unwinder_unwind(&bench->unwinder, space, dump, &bench->stack);
	uint64_t start_ns = now_ns();

	if (!err)
		err = dwfl_unwinder_ops.unwind(&bench->reference, space, dump, &bench->expected);
	if (err)
		return err;
	bench->time_ns += now_ns() - start_ns;
	bench->nr_stacks++;
	bench->nr_frames += stack->nr;

	bool same = stack->nr == expected->nr &&
		    !memcmp(stack->addresses, expected->addresses,
			    stack->nr * sizeof(*stack->addresses)) &&
		    !memcmp(stack->is_call, expected->is_call, stack->nr * sizeof(*stack->is_call));
	bool same_end = stack->complete == expected->complete;
	bench->nr_equal += same && same_end;
	bench->nr_different += !same;
	bench->nr_differently_ended += same && !same_end;
	if (!same && bench->nr_different <= MAX_SHOWN)
		show_difference(bench, space);
	return 0;
}

/* As perf 6.1: the place in the mapped file. */
static void format_line(const struct address_space *space, uint64_t address, char *text)
{
	const struct mapping *mapping = address_space_find(space, address);
	char *digit = text + LINE_BYTES - 1;

	if (mapping)
		address += mapping->file_offset - mapping->start;
	memset(text, ' ', LINE_BYTES);
	text[0] = '\t';
	*digit = '\n';
	do {
		*--digit = "0123456789abcdef"[address & 15];
		address >>= 4;
	} while (address);
}

/* Stacks consist of the same addresses over and over. */
static const char *get_line(struct bench *bench, const struct address_space *space,
			    uint64_t address)
{
	uint64_t generation = space ? space->generation : 0;
	size_t slot = hash_mix(address, 0x9e3779b97f4a7c15 ^ generation) & (NR_LINES - 1);
	struct printed_line *line = &bench->lines[slot];

	if (line->address != address || line->generation != generation || !generation) {
		line->address = address;
		line->generation = generation;
		format_line(space, address, line->text);
	}
	return line->text;
}

/* The address of the call, not of the instruction after it, as perf prints it. */
static void print_as_perf(struct bench *bench, const struct address_space *space)
{
	const struct unwound_stack *stack = &bench->stack;
	char *to = bench->text;

	*to++ = '\n';
	for (size_t i = 0; i < stack->nr; i++) {
		memcpy(to, get_line(bench, space, stack->addresses[i] - stack->is_call[i]),
		       LINE_BYTES);
		to += LINE_BYTES;
	}
	*to++ = '\n';
	fwrite_unlocked(bench->text, 1, (size_t)(to - bench->text), stdout);
}

static int write_if_wanted(const struct bench *bench, const struct address_space *space,
			   const struct stack_dump *dump)
{
	char path[4000];

	for (char **wanted = bench->wanted; *wanted; wanted++) {
		if (strtoull(*wanted, NULL, 10) != bench->nr_samples)
			continue;
		snprintf(path, sizeof(path), "%s/%s", bench->dir, *wanted);
		return dump_core_write(path, &bench->modules, space, dump, &bench->stack);
	}
	return 0;
}

static int on_sample(void *context, const struct perf_sample *sample)
{
	struct bench *bench = context;
	const struct address_space *space = address_spaces_find(&bench->spaces, sample->origin.pid);
	int err;

	if (!sample->has_dump)
		return 0;
	bench->nr_samples++;
	if (bench->mode == COMPARE)
		return compare(bench, space, &sample->dump);
	if (bench->mode == TIME)
		return keep_dump(bench, sample->origin.pid, &sample->dump);

	err = dump_unwinder_unwind(&bench->unwinder, space, &sample->dump, &bench->stack);
	bench->nr_stacks++;
	bench->nr_frames += bench->stack.nr;
	if (!err && bench->mode == ADDRESSES)
		print_as_perf(bench, space);
	if (!err && bench->mode == CORES)
		err = write_if_wanted(bench, space, &sample->dump);
	return err;
}

static int on_mmap(void *context, const struct perf_mmap_record *record)
{
	struct bench *bench = context;
	struct module *module;
	int err = time_batch(bench);

	if (!err && record->executable)
		err = module_table_get(&bench->modules, &record->mapping, &module);
	if (!err && record->executable)
		err = address_spaces_map(&bench->spaces, &record->mapping, module);
	return err;
}

static int on_fork(void *context, const struct perf_task_record *record)
{
	struct bench *bench = context;
	int err = time_batch(bench);

	if (!err && record->pid != record->ppid)
		err = address_spaces_fork(&bench->spaces, record->pid, record->ppid);
	return err;
}

static int on_comm(void *context, const struct perf_comm_record *record)
{
	struct bench *bench = context;
	int err = time_batch(bench);

	if (record->exec)
		address_spaces_exec(&bench->spaces, record->pid);
	return err;
}

static int on_build_id(void *context, const char *path, const uint8_t *build_id, uint8_t size)
{
	struct bench *bench = context;

	return module_table_set_build_id(&bench->modules, path, build_id, size);
}

static void report(const struct bench *bench)
{
	const struct stack_unwind_stats *stats = &bench->unwinder.stats;
	double stacks = (double)bench->nr_stacks, seconds = (double)bench->time_ns / 1e9;

	fprintf(stderr,
		"%" PRIu64 " dumps, %.1f frames each; of %" PRIu64 " unwindings %" PRIu64
		" truncated, %" PRIu64 " lost, %" PRIu64 " by libdwfl; rules for %zu addresses\n",
		bench->nr_samples, (double)bench->nr_frames / stacks, stats->dumps,
		stats->truncated, stats->lost, stats->by_dwfl,
		bench->unwinder.rules.rules.nr_entries);
	if (bench->mode == TIME)
		fprintf(stderr, "%.0f stacks/s, %.1f ns a frame; %.0f stacks/s of 15 frames\n",
			stacks / seconds, 1e9 * seconds / (double)bench->nr_frames,
			(double)bench->nr_frames / seconds / 15);
	if (bench->mode == COMPARE)
		fprintf(stderr,
			"%" PRIu64 " equal, %" PRIu64 " different, %" PRIu64
			" equal but for how they ended (libdwfl: %.0f stacks/s)\n",
			bench->nr_equal, bench->nr_different, bench->nr_differently_ended,
			stacks / seconds);
}

static int run(struct bench *bench, const char *path)
{
	const struct perf_consumer consumer = {
		.context = bench,
		.on_sample = on_sample,
		.on_mmap = on_mmap,
		.on_fork = on_fork,
		.on_comm = on_comm,
		.on_build_id = on_build_id,
	};
	struct perf_input_stats stats = {0};
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err;

	if (fd < 0) {
		diag_error("cannot read %s: %s", path, strerror(errno));
		return -errno;
	}
	bench->batch = calloc(BATCH_DUMPS, sizeof(*bench->batch));
	bench->bytes = malloc(BATCH_BYTES + MAX_DUMP_BYTES);
	if (!bench->batch || !bench->bytes || debuginfo_init(&bench->debuginfo, NULL))
		return -ENOMEM;
	module_table_init(&bench->modules, NULL);
	address_spaces_init(&bench->spaces);
	err = dump_unwinder_init(&bench->unwinder, &bench->modules, &bench->debuginfo, false);
	if (err)
		return err;
	dwfl_unwinder_init(&bench->reference, &bench->modules, &bench->debuginfo,
			   &bench->unwinder.rules.rules.time);
	err = perf_input_read(fd, path, &consumer, &stats);
	return err ? err : time_batch(bench);
}

static void bench_deinit(struct bench *bench)
{
	if (bench->unwinder.rules.cache) {
		dwfl_unwinder_ops.deinit(&bench->reference);
		dump_unwinder_deinit(&bench->unwinder);
		address_spaces_deinit(&bench->spaces);
		module_table_deinit(&bench->modules);
	}
	debuginfo_deinit(&bench->debuginfo);
	free(bench->batch);
	free(bench->bytes);
}

int main(int argc, char **argv)
{
	static const char *const modes[] = {"compare", "time", "once", "addresses", "cores"};
	struct bench *bench = calloc(1, sizeof(*bench));
	int mode, err;

	diag_begin("unwind_dumps");
	for (mode = 0; argc >= 3 && mode < (int)ARRAY_SIZE(modes); mode++)
		if (strcmp(argv[1], modes[mode]) == 0)
			break;
	setvbuf(stdout, NULL, _IOFBF, STDOUT_BYTES);
	if (!bench || argc < 3 || mode == ARRAY_SIZE(modes) || (argc > 3) != (mode == CORES)) {
		fputs("usage: unwind_dumps compare|time|once|addresses FILE\n"
		      "       unwind_dumps cores FILE DIR NUMBER...\n",
		      stderr);
		free(bench);
		return DIAG_EXIT_USAGE;
	}
	bench->mode = (enum mode)mode;
	if (mode == CORES) {
		bench->dir = argv[3];
		bench->wanted = argv + 4;
	}
	err = run(bench, argv[2]);
	if (!err)
		report(bench);
	err = err || bench->nr_different;
	bench_deinit(bench);
	free(bench);
	return err ? DIAG_EXIT_FAILED : DIAG_EXIT_OK;
}
