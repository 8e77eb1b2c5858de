/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/programs/bpf_windows.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/interrupted.h"
#include "common/proc/living_thread.h"
#include "bpf_recorder.skel.h"
#include "probes/plan/probe_file.h"
#include "recorder/events/record_group.h"
#include "recorder/processes/apart.h"
#include "recorder/processes/realtime.h"
#include "recorder/programs/uprobe_link.h"
#include "recorder/target_table/target_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ENOTSUPP       524 /* include/linux/errno.h: no probe can be where one is wanted */
#define FIRST_WINDOW   1
#define MIN_PLACING_NS 100000000ULL
#define MAX_FAILED     1000 /* windows in a row: some minutes */
#define MAX_REFUSED    8    /* processes of a window, each of which is unlinked again */

/* What linking all processes has come to. */
struct linking {
	uint64_t begin_ns, max_hits;
	int nr, nr_rest; /* processes, with links and without; the ended ones are neither */
	int nr_refused;	 /* for lack of memory */
	bool lacks_room; /* for more links: the rest has none for that reason */
	int err;	 /* the last one that is not a process's end; 0: none */
	const struct probe_file *file; /* that could not be linked */
};

static struct bpf_window *window_of(const struct bpf_recorder *recorder)
{
	return &recorder->bpf->bss->window;
}

/*
 * False if the first thread of the process has ended: a link puts no breakpoints into it then
 * (first_thread.bpf.h). If the others live on, says so, once.
 */
static bool has_first_thread(struct bpf_recorder *recorder, pid_t pid)
{
	pid_t living = living_thread(pid);

	if (living == pid)
		return true;
	if (living_thread_has_memory(living) && !recorder->has_headless)
		diag_warn("process %d is not recorded any more: its first thread has ended; "
			  "without --budget it is",
			  (int)pid);
	recorder->has_headless |= living_thread_has_memory(living);
	return false;
}

static bool is_to_record(const struct target *target)
{
	return target->role != TARGET_LEFT_OUT && target_is_process(target->tgid);
}

/*
 * True if @err says that @file cannot be linked, at any process: it is left out from now on. At the
 * start, such a file is refused instead.
 */
static bool leave_out_file(struct bpf_recorder *recorder, const struct probe_file *file, int err)
{
	if (window_of(recorder)->nr == FIRST_WINDOW ||
	    (err != -ENOTSUPP && err != -ENOEXEC && err != -EINVAL))
		return false;
	for (size_t i = 0; i < recorder->sites.nr_watched; i++)
		if (recorder->sites.watched[i].file == file)
			recorder->sites.watched[i].left_out = true;
	bpf_recorder_unlink(recorder, 0, file);
	recorder->has_left_out_file = true;
	record_group_warn_left_out(file, 1, err);
	return true;
}

/* Says, once, that a process is left out of this window. */
static void leave_out_process(struct bpf_recorder *recorder, pid_t pid,
			      const struct linking *linking)
{
	if (!recorder->has_left_out)
		diag_warn("process %d, and maybe others, are not recorded in some windows: cannot "
			  "attach to %s: %s",
			  (int)pid, linking->file ? linking->file->display : "a file",
			  probe_file_attach_error(-linking->err));
	recorder->has_left_out = true;
}

static unsigned long long tgid_of(const struct target *target)
{
	return __atomic_load_n(&target->tgid, __ATOMIC_SEQ_CST);
}

/* Links a process, unless it has ended or is left out. Returns false if no window can be opened. */
static bool link_target(struct bpf_recorder *recorder, struct target *target,
			struct linking *linking)
{
	unsigned long long tgid = tgid_of(target);
	pid_t pid = (pid_t)tgid;
	size_t nr_before;
	int err;

	/* First: what happens to the process from now on undoes it. */
	target_set_linked(target, true);
	if (!target_is_process(tgid) || !has_first_thread(recorder, pid))
		return true;
	do {
		nr_before = recorder->nr_links;
		err = bpf_recorder_try_link(recorder, pid, &linking->file);
		/* It ended: another process may have its id, and the links; or its entry. */
		if (tgid_of(target) != tgid) {
			target_set_linked(target, false);
			err = -ESRCH;
		}
		if (err)
			bpf_recorder_unlink(recorder, nr_before, NULL);
	} while (err && leave_out_file(recorder, linking->file, err));
	linking->nr += !err;
	if (!err || err == -ESRCH)
		return true;
	linking->err = err;
	if (window_of(recorder)->nr == FIRST_WINDOW || (err == -EINTR && is_interrupted()))
		return false;
	target_set_linked(target, false);
	leave_out_process(recorder, pid, linking);
	linking->nr_refused += err == -ENOMEM;
	/* The next window begins with this process, which may be the only one without memory. */
	linking->lacks_room =
		err == -EMFILE || err == -ENFILE ||
		(err == -ENOMEM && (linking->nr || linking->nr_refused == MAX_REFUSED));
	return true;
}

/*
 * True if the hits so far have cost enough: the first processes hit their probes until the last one
 * is linked. A few processes are always linked as a whole.
 */
static bool is_enough(const struct bpf_recorder *recorder, const struct linking *linking)
{
	return clock_now_ns() >= linking->begin_ns + MIN_PLACING_NS &&
	       bpf_window_hits(recorder).hits >= linking->max_hits;
}

static void warn_of_rest(struct bpf_recorder *recorder, const struct linking *linking)
{
	/* That there is no room was said. */
	if (!linking->nr_rest || linking->lacks_room)
		return;
	if (!recorder->has_rest)
		diag_warn("too many busy processes to probe at once: a window has %d of them, and "
			  "the others follow in turn; amounts allow for that",
			  linking->nr);
	recorder->has_rest = true;
}

/*
 * Links processes until there are enough, or all; the next window begins where this one ends.
 * Returns how many, or a negative errno, reported.
 */
static int link_targets(struct bpf_recorder *recorder, uint64_t max_hits)
{
	struct target_table *table = bpf_recorder_target_table(recorder);
	struct linking linking = {
		.begin_ns = clock_now_ns(),
		.max_hits = bpf_window_hits(recorder).hits + max_hits,
	};
	size_t first = recorder->next_target;
	bool goes_on = true;

	for (size_t i = 0; goes_on && i < TARGET_TABLE_SIZE; i++) {
		struct target *target = &table->targets[(first + i) % TARGET_TABLE_SIZE];

		if (!is_to_record(target))
			continue;
		if (!linking.nr_rest && !is_enough(recorder, &linking)) {
			goes_on = link_target(recorder, target, &linking);
			/* To try the others would take long, as each failed one has to be unlinked.
			 */
			if (!linking.lacks_room)
				continue;
		}
		target_set_linked(target, false);
		if (!linking.nr_rest++)
			recorder->next_target = (size_t)(target - table->targets);
	}
	recorder->part = linking.nr ? (double)linking.nr / (linking.nr + linking.nr_rest) : 1;
	warn_of_rest(recorder, &linking);
	if (linking.nr || !linking.err)
		recorder->nr_failed = 0;
	else if (++recorder->nr_failed == MAX_FAILED)
		goes_on = false;
	/* All files may be given up. */
	if (goes_on)
		return recorder->nr_links ? linking.nr : 0;
	if (!(linking.err == -EINTR && is_interrupted()))
		diag_error("cannot attach to %s: %s",
			   linking.file ? linking.file->display : "a process",
			   probe_file_attach_error(-linking.err));
	return linking.err;
}

int bpf_window_open(struct bpf_recorder *recorder, uint64_t max_hits, uint64_t *ret_opened_ns)
{
	struct bpf_window *window = window_of(recorder);
	struct realtime before;
	int nr;

	/* What calls note from now on belongs to this window. */
	__atomic_fetch_add(&window->nr, 1, __ATOMIC_SEQ_CST);
	recorder->has_new_file = false;
	before = realtime_begin();
	nr = link_targets(recorder, max_hits);
	realtime_end(&before);
	__atomic_store_n(&window->hits, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&window->max_hits, max_hits, __ATOMIC_SEQ_CST);
	__atomic_store_n(&window->closed_ns, 0, __ATOMIC_SEQ_CST);
	*ret_opened_ns = clock_now_ns();
	if (nr > 0)
		__atomic_store_n(&window->state, BPF_WINDOW_OPEN, __ATOMIC_SEQ_CST);
	return nr;
}

double bpf_window_part(const struct bpf_recorder *recorder)
{
	return recorder->part;
}

bool bpf_window_has_new(const struct bpf_recorder *recorder)
{
	struct target_table *table = bpf_recorder_target_table(recorder);
	bool has_new = recorder->has_new_file;

	for (struct target *target = NULL; !has_new && (target = target_table_next(table, target));)
		has_new = is_to_record(target) && !target->linked;
	return has_new;
}

void bpf_window_extend(struct bpf_recorder *recorder, uint64_t max_hits)
{
	__atomic_store_n(&window_of(recorder)->max_hits,
			 __atomic_load_n(&window_of(recorder)->hits, __ATOMIC_RELAXED) + max_hits,
			 __ATOMIC_SEQ_CST);
}

void bpf_window_close(struct bpf_recorder *recorder)
{
	uint64_t now_ns = clock_now_ns();
	unsigned int open = BPF_WINDOW_OPEN;

	if (__atomic_compare_exchange_n(&window_of(recorder)->state, &open, BPF_WINDOW_CLOSING,
					false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		__atomic_store_n(&window_of(recorder)->closed_ns, now_ns, __ATOMIC_SEQ_CST);
}

uint64_t bpf_window_closed_ns(const struct bpf_recorder *recorder)
{
	return __atomic_load_n(&window_of(recorder)->closed_ns, __ATOMIC_SEQ_CST);
}

uint64_t bpf_window_nr_hits(const struct bpf_recorder *recorder)
{
	return __atomic_load_n(&window_of(recorder)->hits, __ATOMIC_RELAXED);
}

void bpf_window_begin_unlink(struct bpf_recorder *recorder)
{
	struct realtime before = realtime_begin();

	recorder->unlinking = bpf_recorder_begin_unlink(recorder, 0, NULL);
	realtime_end(&before);
}

bool bpf_window_is_unlinked(struct bpf_recorder *recorder)
{
	if (!apart_close_is_done(recorder->unlinking))
		return false;
	recorder->unlinking = NULL;
	__atomic_store_n(&window_of(recorder)->state, BPF_WINDOW_SHUT, __ATOMIC_SEQ_CST);
	return true;
}

bool bpf_window_is_closing(const struct bpf_recorder *recorder)
{
	return __atomic_load_n(&window_of(recorder)->state, __ATOMIC_SEQ_CST) == BPF_WINDOW_CLOSING;
}

int bpf_window_program_fd(const struct bpf_recorder *recorder)
{
	return bpf_program__fd(recorder->bpf->progs.linked_site);
}

struct bpf_window_hits bpf_window_hits(const struct bpf_recorder *recorder)
{
	struct bpf_window_hits sum = {0};

	for (size_t cpu = 0; cpu < recorder->nr_rings && cpu < BACKPRESSURE_MAX_CPUS; cpu++) {
		const struct bpf_cpu *of = &recorder->bpf->bss->cpus[cpu];

		sum.hits += __atomic_load_n(&of->hits, __ATOMIC_RELAXED);
		sum.stepped += __atomic_load_n(&of->stepped_hits, __ATOMIC_RELAXED);
	}
	return sum;
}

int bpf_window_count_calls(struct bpf_recorder *recorder, const struct bpf_counted_entry *entries,
			   size_t nr)
{
	uint64_t offsets[BPF_MAX_COUNTED], cookies[BPF_MAX_COUNTED];
	struct uprobe_link link = {
		.program_fd = bpf_program__fd(recorder->bpf->progs.count_call),
		.file_fd = entries[0].file_fd,
		.pid = entries[0].pid,
		.offsets = offsets,
		.cookies = cookies,
		.nr = (uint32_t)nr,
	};

	if (nr > BPF_MAX_COUNTED)
		return -E2BIG;
	for (size_t i = 0; i < nr; i++) {
		offsets[i] = entries[i].offset;
		cookies[i] = entries[i].nr | (entries[i].is_stepped ? BPF_CALL_STEPPED : 0);
		recorder->bpf->bss->counted_calls[entries[i].nr] = (struct bpf_counted_calls){0};
	}
	return uprobe_link_create_apart(&link);
}

struct bpf_counted_calls bpf_window_counted_calls(const struct bpf_recorder *recorder, size_t nr)
{
	const struct bpf_counted_calls *calls = &recorder->bpf->bss->counted_calls[nr];

	return (struct bpf_counted_calls){
		.all = __atomic_load_n(&calls->all, __ATOMIC_RELAXED),
		.observed = __atomic_load_n(&calls->observed, __ATOMIC_RELAXED),
	};
}

bool bpf_window_begin_counting(struct bpf_recorder *recorder)
{
	if (!recorder->counter)
		recorder->counter = bpf_program__attach(recorder->bpf->progs.count_transfer);
	return recorder->counter;
}

void bpf_window_end_counting(struct bpf_recorder *recorder)
{
	bpf_link__destroy(recorder->counter);
	recorder->counter = NULL;
}

uint64_t bpf_window_nr_transfers(const struct bpf_recorder *recorder)
{
	uint64_t sum = 0;

	for (size_t cpu = 0; cpu < recorder->nr_rings && cpu < BACKPRESSURE_MAX_CPUS; cpu++)
		sum += __atomic_load_n(&recorder->bpf->bss->cpus[cpu].transfers, __ATOMIC_RELAXED);
	return sum;
}
