/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The probes on one file: what each records and where, and their names in tracefs. */
#ifndef LEAKTOOLS_PROBES_PROBE_FILE_H
#define LEAKTOOLS_PROBES_PROBE_FILE_H

#include "probes/elf/elf_image.h"
#include "probes/sites/single_trap_points.h"
#include "probes/tracefs/group_name.h"
#include "probes/tracefs/tracefs_uprobes.h"
#include "probes/x86/placement.h"

#include "common/schema/probe_schema.h"
#include "common/schema/probe_symbols.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* A call that is probed in place of the function that it calls (../calls/). Distances in bytes. */
struct probe_call {
	unsigned int size_bytes;  /* of the instruction; 0: the function is probed */
	int64_t distance;	  /* from it to its target; 0: only a pointer tells */
	int64_t pointer_distance; /* to the pointer that it goes through; 0: none */
};

/*
 * One uprobe or uretprobe, which is one tracefs event. The kernel would also take several places in
 * one event, but it frees them while they are in use: see tracefs_uprobes.h. The exits of a
 * function follow each other in the array.
 */
struct probe {
	const struct probe_schema *schema;
	int first_arg; /* index of the schema's first argument among the function's */
	enum probe_point point;
	char symbol[PROBE_SYMBOL_MAX]; /* the function's ELF symbol */
	char event[PROBE_NAME_MAX];
	uint64_t function_offset;		  /* in the file */
	uint64_t offset;			  /* of the probe, in the file; see placement.h */
	struct placement_instruction instruction; /* at @offset */
	char *fetch_args;			  /* what the event records: "bytes=%di:u64 ..." */
	char *definition;			  /* the line for uprobe_events */
	/*
	 * If this is the return of an allocation: where single probes could replace entry and
	 * return, or NULL.
	 */
	struct single_trap_point *points;
	size_t nr_points;
	struct probe_call call; /* then function_offset is its offset, and the exit is behind it */
	int64_t tracefs_id;	/* perf_event_attr.config; -1 until registered */
	bool registered_here;	/* by probe_set_register(); probe_set_unregister() removes it */
	bool fetches_caller_at; /* PROBE_FIELD_CALLER is where the return address is, not itself */
};

/* The probes on one file. */
struct probe_file {
	int fd;	    /* the file that was analysed; probes are placed through it, never by a path */
	char *path; /* shown in tracefs; the file's owner may make it lead elsewhere */
	uid_t owner;
	struct stat stat; /* before it was analysed */
	char *display;	  /* as its process sees it */
	char *allocator;  /* its name for the user; "resources" if it is none */
	char group[PROBE_NAME_MAX];
	bool has_size_word; /* glibc's allocator: the word before a block has its size */
	bool has_resources; /* its probes are on resources; others are another probe_file */
	bool is_on_fuse;    /* a process has to answer when it is read */
	bool is_given_up;   /* it is being overwritten, or was: it is not probed any more */
	struct probe *probes;
	size_t nr_probes;
};

/* The file that probes are planned for. */
struct probe_source {
	int fd;
	const struct elf_image *image; /* NULL: the file was analysed elsewhere */
	const struct stat *stat;
	const char *path;    /* opens the file from here */
	const char *display; /* as its process sees it */
};

/*
 * Sets the descriptor, owner and names of @file; @allocator is its name for the user. Sets
 * *@ret_name to the name of its group, without a build_hash if there is no image. Returns 0 or a
 * negative errno, not reported.
 */
int probe_file_set_source(struct probe_file *file, const struct probe_source *source,
			  const char *allocator, struct group_name *ret_name);

/* Appends a probe with default values. Returns it, or NULL: out of memory. */
struct probe *probe_file_append(struct probe_file *file);

/* Sets the group of the file, and the definitions of its probes. Returns 0 or -ENOMEM. */
int probe_file_set_group(struct probe_file *file, const struct group_name *name);

/* The uprobe to register for @probe. It points into both arguments. */
struct uprobe_spec probe_file_spec(const struct probe_file *file, const struct probe *probe);

/*
 * True if the two, with one inode number, are also otherwise alike. A new file that has the number
 * of a removed one was changed later.
 */
bool probe_stat_is_alike(const struct stat *a, const struct stat *b);

/* True if nobody has changed the file since it was analysed. */
bool probe_file_is_unchanged(const struct probe_file *file);

/* True if the process that serves the file system has to answer when @fd's file is read. */
bool probe_file_is_on_fuse(int fd);

/*
 * Call it just before attaching. Returns 0, or -EREMOTE if a process would have to answer meanwhile
 * (FUSE): while the kernel reads the instructions, every fork on the machine waits.
 */
int probe_file_check_blocking(const struct probe_file *file);

/*
 * The text of @err, an errno value, after an attempt to attach to a file. It also knows EREMOTE
 * from above, EREMOTEIO (it is on FUSE, with --budget), and ENOTSUPP, which strerror() does not:
 * the kernel cannot probe an instruction.
 */
const char *probe_file_attach_error(int err);

void probe_file_deinit(struct probe_file *file);

/* True if both are exits of one function. */
bool probe_is_exit_of_same(const struct probe *a, const struct probe *b);

#endif
