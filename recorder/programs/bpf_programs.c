/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/programs/bpf_programs.h"

#include "common/scope.h"
#include "probes/tracefs/tracefs_uprobes.h"
#include "recorder/loading/backup_programs.h"
#include "recorder/loading/bpf_setup.h"
#include "recorder/loading/private_stack.h"
#include "recorder/events/event_attr.h"
#include "recorder/programs/bpf_ring.h"
#include "recorder/programs/bpf_sites.h"
#include "recorder/programs/bpf_syscalls.h"
#include "recorder/programs/preemption.h"
/* After what they use. */
#include "bpf_recorder.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define MIN_CHUNK_BYTES 32	   /* glibc's MINSIZE */
#define MAX_HELD_BLOCKS (4U << 20) /* with a filter, of allocators without a size word */

/* glibc's chunk size for a request: malloc/malloc.c, request2size(). */
static uint64_t size_word(uint64_t bytes)
{
	uint64_t chunk = (bytes + 8 + 15) & ~15ULL;

	return chunk < MIN_CHUNK_BYTES ? MIN_CHUNK_BYTES : chunk;
}

static bool has_tracepoint(const char *name)
{
	const char *tracefs = probe_tracefs_dir();
	char path[PATH_MAX];

	return tracefs &&
	       snprintf(path, sizeof(path), "%s/events/%s", tracefs, name) < (int)sizeof(path) &&
	       access(path, F_OK) == 0;
}

static bool kernel_has(const char *function)
{
	return libbpf_find_vmlinux_btf_id(function, BPF_TRACE_FENTRY) > 0;
}

/*
 * Tells libbpf how large the rings are. It has no inner map to change before it loads the object
 * (libbpf 1.5: bpf_map__set_value_size() crashes), but takes one like it. *@ret_ring_fd: the caller
 * closes it when the object is loaded.
 */
static int set_ring_size(struct bpf_map *rings, uint32_t ring_bytes, int *ret_ring_fd)
{
	*ret_ring_fd = bpf_ring_create_map(ring_bytes);
	if (*ret_ring_fd < 0)
		return *ret_ring_fd;
	return bpf_map__set_inner_map_fd(rings, *ret_ring_fd)
		       ?: bpf_map__set_max_entries(rings, (uint32_t)libbpf_num_possible_cpus());
}

/* Says which programs are loaded, and how they are attached. */
static void configure_way(struct bpf_recorder_bpf *bpf, enum record_by by)
{
	const bool with_sessions = by == RECORD_BY_SESSION;
	const bool waits = !bpf->rodata->everywhere && !bpf->rodata->in_windows;

	bpf->rodata->by_events = by == RECORD_BY_SINGLE;
	bpf->rodata->can_cast = by != RECORD_BY_SINGLE || kernel_has("bpf_rdonly_cast");
	bpf->rodata->can_signal_tasks = with_sessions || kernel_has("bpf_send_signal_task");
	/* Where children wait for no events, none has to be stopped. */
	bpf_program__set_autoload(bpf->progs.child_is_made, waits && bpf->rodata->can_signal_tasks);
	bpf_program__set_autoload(bpf->progs.child_begins, waits && !bpf->rodata->can_signal_tasks);
	bpf_program__set_autoload(bpf->progs.linked_call, with_sessions);
	bpf_program__set_autoload(bpf->progs.carrier_ends,
				  by == RECORD_BY_SINGLE && !bpf->rodata->can_signal_tasks);
	bpf_program__set_autoload(bpf->progs.followed_site, by != RECORD_BY_SINGLE);
	bpf_program__set_expected_attach_type(bpf->progs.linked_call, ATTACH_UPROBE_SESSION);
	if (by == RECORD_BY_SINGLE)
		return;
	bpf_program__set_expected_attach_type(bpf->progs.linked_site, ATTACH_UPROBE_MULTI);
	bpf_program__set_expected_attach_type(bpf->progs.count_call, ATTACH_UPROBE_MULTI);
}

/*
 * These programs stop processes until dlopen_watch_serve() is called, so they are loaded only if it
 * will be. On a kernel that has neither, files that are mapped later are not recorded.
 */
static void configure_watch(struct bpf_recorder_bpf *bpf, bool is_wanted)
{
	bool at_maps = is_wanted && has_tracepoint("filemap/mm_filemap_map_pages");
	bool at_faults = is_wanted && has_tracepoint("filemap/mm_filemap_fault");

	bpf_program__set_autoload(bpf->progs.after_map_pages, at_maps);
	bpf_program__set_autoload(bpf->progs.after_file_fault, at_faults);
	bpf_program__set_autoload(bpf->progs.map_pages_begins,
				  is_wanted && !at_maps && kernel_has("filemap_map_pages"));
	bpf_program__set_autoload(bpf->progs.file_fault_begins,
				  is_wanted && !at_faults && kernel_has("filemap_fault"));
}

static int configure(struct bpf_recorder_bpf *bpf, const struct record_config *config,
		     enum record_by by, int *ret_ring_fd)
{
	uint32_t ring_bytes = config->ring_pages * (uint32_t)getpagesize();
	const struct size_range *sizes = &config->sizes;
	uint64_t secret;
	int err;

	bpf->rodata->dump_bytes =
		config->call_graph == CALL_GRAPH_DWARF ? record_config_dump_bytes(config, true) : 0;
	/* perf expects dumps of exactly the size that the event asks for. */
	bpf->rodata->dumps_fit = record_config_unwinds(config);
	bpf->rodata->entries_have_stacks = config->free_stacks;
	/* A reader that wakes up well before the limit makes backpressure (backpressure.c) rare. */
	bpf->rodata->wakeup_bytes = ring_bytes / 8;
	bpf->rodata->ring_mask = ring_bytes - 1;
	bpf->rodata->lost_id = BPF_FIRST_ID;
	/* At calls, only blocks of these calls count: most releases are of others. */
	bpf->rodata->at_calls = config->at_calls;
	bpf->rodata->has_filter = config->has_sizes || config->at_calls;
	bpf->rodata->filter_min = sizes->min_bytes;
	bpf->rodata->filter_max = config->has_sizes ? sizes->max_bytes : UINT64_MAX;
	bpf->rodata->size_word_min = size_word(sizes->min_bytes);
	/* A remainder too small for a chunk of its own stays with the block. */
	bpf->rodata->size_word_max =
		config->has_sizes ? size_word(sizes->max_bytes) + MIN_CHUNK_BYTES : UINT64_MAX;
	bpf->rodata->in_windows = config->in_windows;
	bpf->rodata->everywhere = config->scope != RECORD_PROCESSES;
	bpf->rodata->in_cgroup = config->scope == RECORD_CGROUP;
	if (getrandom(&secret, sizeof(secret), 0) != sizeof(secret))
		return -EIO;
	bpf->rodata->ring_secret = secret;
	err = set_ring_size(bpf->maps.rings, ring_bytes, ret_ring_fd);
	if (err)
		return err;
	if (bpf->rodata->has_filter)
		bpf_map__set_max_entries(bpf->maps.held_blocks, MAX_HELD_BLOCKS);
	configure_way(bpf, by);
	/* These programs slow down every system call of every process: load them only if needed. */
	bpf_program__set_autoload(bpf->progs.syscall_enter, config->syscalls != 0);
	bpf_program__set_autoload(bpf->progs.syscall_exit, config->syscalls != 0);
	bpf_program__set_autoload(bpf->progs.count_transfer, config->in_windows);
	bpf_program__set_autoattach(bpf->progs.count_transfer, false);
	bpf_program__set_autoload(bpf->progs.count_call, config->in_windows);
	bpf_syscalls_mark_transfers((bool *)bpf->rodata->are_transfers);
	configure_watch(bpf, !config->no_heap);
	/* Kernels with sessions of this kind (6.13 to 6.19) have no need of them at tracepoints. */
	backup_programs_choose(bpf->obj, by != RECORD_BY_SESSION && tracepoints_are_preemptible(),
			       kernel_is_preemptible());
	return 0;
}

/*
 * Hides from libbpf that the programs know bpf_session_cookie(). From Linux 7.0 on the function
 * takes the context, and libbpf rejects a declaration that differs, even a weak one that no program
 * uses. Of a function that does not exist it takes a weak declaration.
 */
static void hide_session_cookie(char *elf, size_t size_bytes)
{
	static const char name[] = "bpf_session_cookie";
	char *at = elf;

	/* In the names of symbols and of types. */
	while ((at = memmem(at, size_bytes - (size_t)(at - elf), name, sizeof(name))))
		*at = '_';
}

/* Opens the object with the programs. *@ret_elf: its bytes; free them when it is loaded. */
static struct bpf_recorder_bpf *open_object(bool with_sessions, void **ret_elf)
{
	struct bpf_recorder_bpf *bpf = calloc(1, sizeof(*bpf));
	int err;

	if (!bpf || bpf_recorder_bpf__create_skeleton(bpf)) {
		free(bpf);
		return NULL;
	}
	*ret_elf = malloc(bpf->skeleton->data_sz);
	err = *ret_elf ? 0 : -ENOMEM;
	if (!err) {
		memcpy(*ret_elf, bpf->skeleton->data, bpf->skeleton->data_sz);
		if (!with_sessions)
			hide_session_cookie(*ret_elf, bpf->skeleton->data_sz);
		bpf->skeleton->data = *ret_elf;
		err = bpf_object__open_skeleton(bpf->skeleton, NULL);
	}
	if (!err)
		return bpf;
	bpf_recorder_bpf__destroy(bpf);
	return NULL;
}

/* Loads the programs. Returns what bpf_recorder_create() returns. */
static int load(const struct record_config *config, enum record_by by,
		struct bpf_recorder_bpf **ret)
{
	_cleanup_close_ int ring_fd = -1;
	_cleanup_free_ void *elf = NULL;
	struct bpf_recorder_bpf *bpf = open_object(by == RECORD_BY_SESSION, &elf);
	int err = 0;

	if (!bpf || configure(bpf, config, by, &ring_fd) || bpf_recorder_bpf__load(bpf) ||
	    (config->scope == RECORD_CGROUP &&
	     bpf_setup_set_cgroup(bpf_map__fd(bpf->maps.recorded_cgroup), config->cgroup_fd)))
		err = -EOPNOTSUPP;
	else if (!uprobe_programs_are_safe(bpf->obj))
		err = -EPROTONOSUPPORT;
	if (err)
		bpf_recorder_bpf__destroy(bpf);
	else
		*ret = bpf;
	return err;
}

/*
 * True if no program at a uprobe's perf event is skipped. Before Linux 6.0, trace_call_bpf()
 * (kernel/trace/bpf_trace.c) runs none on a CPU whose bpf_prog_active is not 0. On a preemptible
 * kernel, that holds while a task is preempted inside of bpf(2), which changes or reads a map:
 * bpf_disable_instrumentation() (include/linux/bpf.h). Nothing counts it before 6.7, not even
 * the event. The change that ended it permits programs that sleep (8c7dcb84e3b7, "bpf: implement
 * sleepable uprobes by chaining gps").
 */
static bool runs_all_single(void)
{
	static const struct bpf_insn return_0[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .prog_flags = BPF_F_SLEEPABLE);
	_cleanup_close_ int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", return_0,
					       ARRAY_SIZE(return_0), &options);

	return fd >= 0;
}

/*
 * Why links without sessions are not as good as another way, or NULL. In kernels before 6.12, the
 * events that children inherit may vanish (context_breakers.h), and links may watch other
 * processes, too (46ba0e49b642, "bpf: fix multi-uprobe PID filtering logic", Linux 6.10). With
 * RECORD_BY_SINGLE no child inherits any. The programs at system calls have no backups, because one
 * that runs again would write the sample again; perf events cannot record by size.
 */
static const char *objection_to_multi(const struct record_config *config)
{
	if (event_attr_contexts_swap())
		return "events that children inherit may vanish before Linux 6.12";
	return config->syscalls && !config->has_sizes && tracepoints_are_preemptible()
		       ? "this kernel may skip programs at system calls"
		       : NULL;
}

/* Why programs are not worth a try in this way, or NULL. */
static const char *objection_to(const struct record_config *config, enum record_by by)
{
	if (config->in_windows && by == RECORD_BY_SINGLE)
		return "to place and remove one perf event after the other takes too long for a "
		       "window";
	if (config->by != RECORD_BY_BEST && config->by != by)
		return "the command line names another way";
	if (by == RECORD_BY_SINGLE && !runs_all_single())
		return "this kernel may skip programs on perf events, as before Linux 6.0, or does "
		       "not permit them";
	if (config->by == by || by == RECORD_BY_SESSION)
		return NULL;
	if (by == RECORD_BY_MULTI)
		return objection_to_multi(config);
	if (tracepoints_are_preemptible())
		return "this kernel may skip programs at tracepoints";
	/* Where children cannot be sent a signal, child_begins() has to stop them. */
	return !kernel_has("bpf_send_signal_task") && kernel_is_preemptible()
		       ? "this kernel is preemptible, and may skip the program that stops children"
		       : NULL;
}

int bpf_programs_load(const struct record_config *config, enum record_by *ret_by,
		      const char *ret_objections[RECORD_NR_WAYS], struct bpf_recorder_bpf **ret)
{
	int err = -EOPNOTSUPP;

	for (enum record_by by = RECORD_BY_SESSION; by < RECORD_BY_PERF && err == -EOPNOTSUPP;
	     by++) {
		*ret_by = by;
		ret_objections[by] = objection_to(config, by);
		if (ret_objections[by])
			continue;
		err = load(config, by, ret);
		if (err == -EOPNOTSUPP)
			ret_objections[by] = "this kernel does not have it, or does not permit it";
		else if (err == -EPROTONOSUPPORT)
			ret_objections[by] = "this kernel may run it on a stack that tasks share";
	}
	return err;
}
