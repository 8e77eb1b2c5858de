/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The uprobes on one or more allocator files: what leakprobe adds, lists and deletes, and what
 * leakrec records. A probe_set is planned (from a process or an ELF file), and then registered in
 * tracefs, or found there.
 *
 * Names. A file's probes form one tracefs group, which says whose they are and which file they
 * watch, so that no state is kept elsewhere: leakprobe_<file>_<i>_<b>               made by
 * leakprobe; stay until `leakprobe del` leakrec<pid>_<starttime>_<file>_<i>_<b>  made by one
 * leakrec for itself; once that process is gone, the next leakrec or leakprobe removes them <file>
 * is the file's base name with anything but [A-Za-z0-9] as '_' (cut to fit), <i> eight hex digits
 * over (device, inode), <b> the first eight of the build-id (of a hash of its code where it has
 * none), <starttime> field 22 of /proc/PID/stat in hex.
 */
#ifndef LEAKTOOLS_PROBES_PROBE_SET_H
#define LEAKTOOLS_PROBES_PROBE_SET_H

#include "probes/sites/single_trap_points.h"
#include "probes/x86/placement.h"

#include "common/schema/probe_schema.h"
#include "common/schema/probe_symbols.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define PROBE_NAME_MAX 64 /* MAX_EVENT_NAME_LEN in the kernel's kernel/trace/trace.h */

/*
 * One uprobe or uretprobe. As a rule that is one tracefs event; the exits of a function are one
 * event together, and stand one after the other.
 */
struct probe {
	const struct probe_schema *schema;
	int first_arg; /* the schema's first argument is so many behind the function's first */
	enum probe_point point;
	char symbol[PROBE_SYMBOL_MAX]; /* the function's ELF symbol */
	char event[PROBE_NAME_MAX];
	uint64_t function_offset;		  /* in the file */
	uint64_t offset;			  /* of the probe, in the file: placement.h */
	struct placement_instruction instruction; /* there */
	char *fetch_args;			  /* what the event records: "bytes=%di:u64 ..." */
	char *definition;			  /* the line for uprobe_events */
	/* Of an allocation's return: where one probe could stand for entry and return, or NULL. */
	struct single_trap_point *points;
	size_t nr_points;
	int64_t tracefs_id;   /* perf_event_attr.config; -1 until registered */
	bool registered_here; /* by probe_set_register(), so probe_set_unregister() removes it */
};

/* The probes on one file. */
struct probe_file {
	int fd;	    /* the file that was looked at: probes are placed through it, never by a path */
	char *path; /* what readers of tracefs see; whoever owns the file may make it lead elsewhere
		     */
	uid_t owner;
	char *display;	 /* as its process sees it */
	char *allocator; /* which it is, for the user; "resources" where it is none */
	char group[PROBE_NAME_MAX];
	bool has_size_word; /* glibc's allocator: the word before a block tells its size */
	bool has_resources; /* its probes are resource_plan.h's, on a file that may have others */
	struct probe *probes;
	size_t nr_probes;
};

/* The path of this process's descriptor, by which the kernel finds that very file. */
#define PROBE_FD_PATH_MAX 32

static inline void probe_fd_path(int fd, char ret[static PROBE_FD_PATH_MAX])
{
	snprintf(ret, PROBE_FD_PATH_MAX, "/proc/self/fd/%d", fd);
}

struct probe_set {
	struct probe_file *files;
	size_t nr_files;
	uint64_t limit_ns;   /* for planning one file; 0: ANALYSIS_LIMIT_NS */
	bool with_operators; /* C++'s are planned also where they call malloc: for mismatches */
};

/*
 * Plans the probes for the allocators that process @pid has mapped (its libc; its executable when
 * it is statically linked). Returns 0; -ESRCH, -EACCES, -ENOENT (no allocator found) and others
 * after reporting why. Release with probe_set_deinit().
 */
int probe_set_plan_pid(struct probe_set *ret, pid_t pid);
int probe_set_plan_pid_with(struct probe_set *ret, pid_t pid, bool operators);

/*
 * True if process @pid has mapped an allocator; silent. *@ret_has_libc: that of a C library, after
 * which programs map no other as they start.
 */
bool probe_set_pid_has_allocator(pid_t pid, bool *ret_has_libc);

/* probe_set_plan_pid() for the ELF file at @path. */
int probe_set_plan_file(struct probe_set *ret, const char *path, bool operators);

/*
 * Renames the set's groups as probes that this process makes for itself (leakrec...). Call it
 * between plan and register.
 */
int probe_set_make_own(struct probe_set *set);

/*
 * Looks the planned probes up in tracefs: those that leakprobe registered before get their
 * tracefs_id, and the offset at which they are, which another version may have chosen. Returns how
 * many of the set's probes are there, or a negative errno.
 */
int probe_set_find(struct probe_set *set);

/*
 * Registers what is not there yet and fills in every tracefs_id. On failure it reports the kernel's
 * reason (error_log), removes what it added and returns a negative errno. -EINTR, not reported: a
 * signal is waiting (interrupted.h), and the caller is to remove what was added.
 */
int probe_set_register(struct probe_set *set);

/* Removes the probes that probe_set_register() added. Returns 0 or the first error, reported. */
int probe_set_unregister(struct probe_set *set);

/* Frees the memory; registered probes stay. */
void probe_set_deinit(struct probe_set *set);

/*
 * Moves all files of @from into @to, except those whose group @to already has (the same file seen
 * through two processes). @from is left empty. Returns 0 or -ENOMEM.
 */
int probe_set_merge(struct probe_set *to, struct probe_set *from);

/*
 * Removes the probes of leakrecs that are gone. Probes still in use stay. Returns the number
 * removed, or a negative errno.
 */
int probe_registry_reap(void);

/*
 * Finds tracefs, mounts it at /sys/kernel/tracing when nobody has and the caller may. Returns its
 * path (static), or NULL after saying how to mount it.
 */
const char *probe_tracefs_dir(void);

#endif
