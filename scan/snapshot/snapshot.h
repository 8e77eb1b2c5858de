/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process at one moment: its memory, its threads' registers, and what the kernel keeps for it.
 * live_snapshot.h and scan/core take one. All of it is hostile input.
 */
#ifndef LEAKTOOLS_SCAN_SNAPSHOT_H
#define LEAKTOOLS_SCAN_SNAPSHOT_H

#include "scan/snapshot/thread_registers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#define SCAN_PAGE_SIZE 4096u

/* Pages that were copied: [start, end). */
struct page_run {
	uint64_t start, end;
};

enum copy_source {
	COPY_MEMORY, /* the process's memory, even what it may not read itself */
	COPY_PAGES,  /* the same, but nothing that is not RAM: to read a device may have effects */
	COPY_FILE,   /* shared_memory.h */
};

/* A mapping of the process. */
struct scan_region {
	uint64_t start, end;
	uint8_t *bytes;	       /* of @start and what follows; NULL: nothing was copied */
	size_t buffer_bytes;   /* of @bytes; it may be larger than the region */
	struct page_run *runs; /* what was copied; the rest of @bytes is zeros */
	size_t nr_runs;
	bool is_readable, is_writable, is_executable, is_shared;
	bool has_code; /* shared memory that some mapping of it may execute */
	enum copy_source source;
	uint64_t file_offset;
	bool has_file; /* its inode may be 0 */
	bool may_wait; /* a program that serves the file may never give a page of it */
	uint64_t device, inode;
	char *path; /* "" if it has none, "[heap]" */
};

/* A pointer that the kernel keeps for the process and hands back one day. */
enum kernel_pointer_kind {
	KERNEL_POINTER_EPOLL, /* the data of epoll_ctl() */
	KERNEL_POINTER_TIMER, /* the value of timer_create() */
};

struct kernel_pointer {
	enum kernel_pointer_kind kind;
	int id; /* the epoll descriptor, or the timer */
	uint64_t value;
};

struct scan_thread {
	pid_t tid;
	struct thread_registers registers;
};

/* What may hold pointers, and was not read. */
struct unread_memory {
	uint64_t bytes;
	uint64_t address; /* of the first that was found */
	bool is_late;	  /* there was no time */
};

/* unseen_places.h */
struct unseen_places {
	size_t nr_pipes, nr_sockets, nr_io_urings, nr_fuse, nr_displays, nr_usb;
	/* What could not be looked at: */
	bool pipes_and_sockets; /* not all of them */
	bool own_descriptors;	/* of threads; most have none */
	bool timers;		/* the kernel does not show them */
};

struct snapshot {
	pid_t pid; /* 0: not known */
	char name[64];
	bool is_core;
	struct scan_region *regions; /* by start; they do not overlap */
	size_t nr_regions;
	struct scan_thread *threads;
	size_t nr_threads;
	struct kernel_pointer *kernel_pointers;
	size_t nr_kernel_pointers;
	const char *unread_pointers; /* which of these were not read; NULL: all were */
	int mem_fd;		     /* for pages of files, which were not copied; or -1 */

	struct unread_memory unread;
	struct unseen_places unseen;
	bool has_other_users; /* a process that was not stopped uses the memory, too */
	uint64_t copied_bytes;
	uint64_t pause_ns;     /* 0: it slept, and was not stopped */
	uint64_t max_pause_ns; /* of this snapshot and those that were taken for it before */
	uint64_t taken_ns;     /* CLOCK_MONOTONIC; the end of the pause */
	uint64_t taken_s;      /* since 1970; 0: unknown */
	uint64_t start_ticks;  /* struct process_stat; 0: unknown */
	uint64_t anon_bytes, file_bytes, shared_bytes, swap_bytes; /* of RAM and swap; 0: unknown */
};

void snapshot_init(struct snapshot *ret);
void snapshot_deinit(struct snapshot *snapshot);

/* Index of the region that holds @address, or of the next one; nr_regions: none. */
size_t snapshot_region_index(const struct snapshot *snapshot, uint64_t address);

/* The region that holds @address, or NULL. */
const struct scan_region *snapshot_region(const struct snapshot *snapshot, uint64_t address);

/*
 * The copy of [address, address + size), which lies in one region; NULL: it was not copied. Pages
 * that the process never touched are zeros.
 */
const uint8_t *snapshot_bytes(const struct snapshot *snapshot, uint64_t address, uint64_t size);

/*
 * Copies memory, also pages of files that the process did not change; but of shared memory, such as
 * that of a device, and of files of FUSE, only what was copied before. Returns false if there is
 * none.
 */
bool snapshot_read(const struct snapshot *snapshot, uint64_t address, void *to, size_t size);

/*
 * The next part of [*@address, @end) that was copied, [*@address, *@ret_end); false: the rest was
 * not, and is zeros.
 */
bool snapshot_next_copied(const struct snapshot *snapshot, uint64_t *address, uint64_t end,
			  uint64_t *ret_end);

static inline bool snapshot_word(const struct snapshot *snapshot, uint64_t address, uint64_t *ret)
{
	return snapshot_read(snapshot, address, ret, sizeof(*ret));
}

static inline uint64_t load_word(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

void unread_memory_add(struct unread_memory *unread, uint64_t address, uint64_t bytes);

void scan_regions_free(struct scan_region *regions, size_t nr);

/* Reserves memory for the copy; it costs nothing until it is written. Returns 0 or -errno. */
int scan_region_reserve(struct scan_region *region, size_t buffer_bytes);

/* Appends pages to the runs of @region, in ascending order. Returns 0 or -ENOMEM. */
int scan_region_add_run(struct scan_region *region, uint64_t start, uint64_t end);

#endif
