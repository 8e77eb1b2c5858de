/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recording BPF programs (bpf_recorder.bpf.c), from user space: loading them, linking them to
 * processes, their rings.
 *
 * A link (uprobe_multi, Linux 6.6; sessions, Linux 6.13) covers all threads of a process, present
 * and future, also after exec, and all probes of one kind in a file. It needs no event in tracefs,
 * and the kernel removes it with the recorder. It does not cover children: see fork_follow.h.
 */
#ifndef LEAKTOOLS_RECORDER_BPF_RECORDER_H
#define LEAKTOOLS_RECORDER_BPF_RECORDER_H

#include "recorder/loading/backup_programs.h"
#include "recorder/programs/bpf_ring.h"
#include "recorder/programs/bpf_sites.h"
#include "recorder/target_table/target_table_shared.h"

/* Programs that are linked to a file's sites. */
struct bpf_file_link {
	int fd;
	const struct probe_file *file;
};

/*
 * Without links: how a process is watched by perf events (fork_follow.h), or all of them if @pid is
 * 0. Returns 0 or a negative errno, not reported.
 */
typedef int bpf_recorder_opener(void *context, const struct probe_file *file, pid_t pid);

struct bpf_recorder {
	struct bpf_recorder_bpf *bpf;
	enum record_by by; /* not BEST or PERF */
	struct watched_sites sites;
	bool left_out_late;	/* there was no room for a file that was mapped later */
	struct bpf_ring *rings; /* by CPU number; those of absent CPUs are empty */
	size_t nr_rings;
	struct ring_buffer *wakeups;
	struct bpf_file_link *links;
	size_t nr_links;
	bpf_recorder_opener *open_events; /* RECORD_BY_SINGLE; set before anything is linked */
	void *open_context;
	size_t nr_unlinked;			   /* files that bpf_recorder_link_all() left out */
	uint64_t nr_skipped_before[NR_SKIP_COSTS]; /* before the recording began */
	bool may_have_skipped;		 /* it was said that a process or a file may be missing */
	bool in_windows;		 /* links are for one window each (bpf_windows.h) */
	bool has_new_file;		 /* that the open window has no links for */
	size_t next_target;		 /* where in the table the next window begins to link */
	double part;			 /* of the processes, in the latest window */
	bool has_rest;			 /* it was said that a window lacks processes */
	unsigned int nr_failed;		 /* windows in a row for which nothing could be linked */
	bool has_left_out;		 /* it was said that some windows lack a process */
	bool has_left_out_file;		 /* it was said that all later windows lack a file */
	bool has_headless;		 /* a process was left out: its first thread has ended */
	struct apart_closing *unlinking; /* links of the last window, or of a file; NULL: gone */
	struct bpf_link *counter;	 /* of transfers; NULL: they are not counted now */
};

/*
 * Loads the programs that @config->by names, or the best. Returns 0; -EOPNOTSUPP if the kernel
 * lacks what they need or does not permit them; -EPROTONOSUPPORT if the kernel could crash when it
 * preempts them (private_stack.h); other errors reported. The first two are not reported: perf
 * events can record instead. Release with bpf_recorder_destroy(). @ret_objections: see
 * bpf_programs.h.
 */
int bpf_recorder_create(const struct record_config *config,
			const char *ret_objections[RECORD_NR_WAYS], struct bpf_recorder **ret);

/* Ends all links; NULL is fine. */
void bpf_recorder_destroy(struct bpf_recorder *recorder);

/*
 * Plans the sites for the probes of the sets, which must outlive @recorder, and adds their events
 * to @events. Returns 0 or a negative errno, reported.
 */
int bpf_recorder_plan(struct bpf_recorder *recorder, const struct probe_set *const *sets,
		      size_t nr_sets, const struct record_config *config,
		      struct record_events *events);

/*
 * Watches @file, which was mapped while recording, in all recorded processes. It must outlive
 * @recorder. Returns how many of its functions are watched, or a negative errno, reported.
 */
int bpf_recorder_add_late(struct bpf_recorder *recorder, const struct probe_file *file);

/*
 * Ends all links but the first @nr_kept: those to @file or, if that is NULL, to any. When it
 * returns, the kernel has removed the breakpoints.
 */
void bpf_recorder_unlink(struct bpf_recorder *recorder, size_t nr_kept,
			 const struct probe_file *file);

/* The same, but returns at once; NULL: they are gone. */
struct apart_closing *bpf_recorder_begin_unlink(struct bpf_recorder *recorder, size_t nr_kept,
						const struct probe_file *file);

/* Records the code size of process @pid, in pages; growth means new code. */
void bpf_recorder_know_code(struct bpf_recorder *recorder, pid_t pid, uint64_t pages);

/* The file is inspected; mapping it no longer stops a process. */
void bpf_recorder_know_file(struct bpf_recorder *recorder, const struct bpf_file *file,
			    const struct bpf_file_version *version);

/* Watches process @pid. Returns 0 or a negative errno, reported. */
int bpf_recorder_link(struct bpf_recorder *recorder, pid_t pid);

/* The same, not reported; *@ret_file: the file that could not be linked. */
int bpf_recorder_try_link(struct bpf_recorder *recorder, pid_t pid,
			  const struct probe_file **ret_file);

/* The file's content is changing: it has to be inspected again. */
void bpf_recorder_forget_file(struct bpf_recorder *recorder, const struct bpf_file *file);

/*
 * Watches all processes, present and future. Any user may have mapped a file that the kernel does
 * not take probes in, so such files are left out, with a warning. Returns 0, or a negative errno,
 * reported, if no file is watched.
 */
int bpf_recorder_link_all(struct bpf_recorder *recorder);

/*
 * Runs the program for @site at each hit of the uprobe event that perf event @fd carries and that
 * is at the site's @point. Returns a link or a negative errno, not reported. The link keeps the
 * event open; the caller closes it.
 */
int bpf_recorder_attach(const struct bpf_recorder *recorder, int fd, enum probe_point point,
			size_t site);

/* Events are recorded between these two calls. */
void bpf_recorder_start(struct bpf_recorder *recorder);
void bpf_recorder_stop(struct bpf_recorder *recorder);

/* The target table, in the programs' memory. */
struct target_table *bpf_recorder_target_table(const struct bpf_recorder *recorder);

/* The table of stack_bases.h, to be filled. */
unsigned long long *bpf_recorder_stack_bases(const struct bpf_recorder *recorder);

/* Becomes readable (POLLIN) when a ring fills up or a process waits; consume it after that. */
int bpf_recorder_wakeup_fd(const struct bpf_recorder *recorder);
void bpf_recorder_consume_wakeups(struct bpf_recorder *recorder);

/*
 * Lets CPU @cpu's programs wake the recorder again, with the next sample that takes the ring past
 * the limit. Call it after draining: before that, the samples just being drained would wake it.
 */
void bpf_recorder_rearm(struct bpf_recorder *recorder, size_t cpu);

/* Returns how many samples of CPU @cpu found no room and are in no record, and resets the count. */
uint64_t bpf_recorder_consume_lost(struct bpf_recorder *recorder, size_t cpu);

/*
 * How many events may have gone unseen since the recording began, because the kernel has skipped
 * the programs of that @cost, on behalf of any process (recorder/loading/backup_programs.h). No
 * more have.
 */
uint64_t bpf_recorder_nr_skipped(const struct bpf_recorder *recorder, enum skip_cost cost);

/* Says, once, that a process or a file may be missing for that reason. */
void bpf_recorder_note_skipped(struct bpf_recorder *recorder);

#endif
