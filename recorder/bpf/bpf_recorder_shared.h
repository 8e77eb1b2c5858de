/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that the recording BPF programs (bpf_recorder.bpf.c) and the recorder (bpf_recorder.c)
 * share, as a mapping of the programs' .bss.
 */
#ifndef LEAKTOOLS_RECORDER_BPF_RECORDER_SHARED_H
#define LEAKTOOLS_RECORDER_BPF_RECORDER_SHARED_H

#include "recorder/bpf/backpressure_shared.h"

#define BPF_MAX_SITES	    1024 /* a power of two */
#define BPF_MAX_ARGS	    3
#define BPF_MAX_STACK	    127 /* kernel.perf_event_max_stack's default */

#define BPF_SAVED_REGISTERS 6 /* SINGLE_TRAP_NR_SAVED */
#define BPF_FRAME_WORDS                                                                            \
	16 /* with the return address: SINGLE_TRAP_MAX_FRAME_BYTES; a power of two */

#define BPF_TEXT_BYTES 64 /* of a mark, with its NUL: PROBE_TEXT_BYTES */

/* The events of a site. */
enum bpf_event_kind {
	BPF_EVENT_ENTRY,  /* a function's entry, or a store in it */
	BPF_EVENT_RETURN, /* its return */
	BPF_EVENT_CALL,	  /* both in one, at the return or at a point inside (points.bpf.h) */
	BPF_NR_EVENTS,
};

/* An event, as its samples name it; type 0: there is none. */
struct bpf_event {
	unsigned long long id; /* PERF_SAMPLE_IDENTIFIER */
	unsigned int type;     /* common_type, perf_event_attr.config */
	unsigned int has_stack;
};

enum bpf_site_kind {
	BPF_SITE_FUNCTION,     /* arguments at the entry, a return value */
	BPF_SITE_INT_FUNCTION, /* the same; the return value is an int */
	BPF_SITE_RELEASE,      /* arguments at the entry only */
	BPF_SITE_STORE,	       /* two registers */
	BPF_SITE_MARK,	       /* the text that the first argument points to */
	BPF_SITE_RESOURCE,     /* a function of --pair or --ref (exits.bpf.h) */
	BPF_SITE_POINT, /* inside of malloc and others, where registers have size, block or both */
};

/*
 * Where a value is at a function's entry (bpf_site.reads). 0: nowhere. Otherwise the low byte is
 * the offset of a register in struct pt_regs. The register holds the value (BPF_READ_REGISTER), or
 * points to it (both).
 */
#define BPF_READ_REGISTER 0x100
#define BPF_READ_POINTED  0x200

/* One site in the code of a file. Its index is in the cookie of its links and events. */
struct bpf_site {
	struct bpf_event events[BPF_NR_EVENTS];
	unsigned int kind; /* enum bpf_site_kind */
	unsigned int nr_args;
	unsigned int
		first_arg; /* of the function's arguments; 1: as of mi_heap_malloc(heap, size) */
	unsigned int registers[2]; /* BPF_SITE_STORE: offsets in struct pt_regs of address, value */
	/* The arguments with size, count and block; -1: none (probe_schema.h). */
	int size_arg, count_arg, block_arg;
	/* With --size: the word before a block holds its size, as glibc's allocator has it. */
	unsigned int has_size_word;
	/* BPF_SITE_RESOURCE: the handle, or where it will be stored, and the size. */
	unsigned int reads[2];
	unsigned int stores;	 /* what is stored there is recorded at the return */
	unsigned int has_caller; /* BPF_SITE_RESOURCE: the sample has the return address */
	unsigned int has_exits;	 /* its returns are seen at the function's exits (exits.bpf.h) */
	/* The file was mapped while recording (dlopen_watch.h): every process that uses it hits
	 * this site, recorded or not. */
	unsigned int is_late;
	/*
	 * An allocator in a late file may call this function. The outer entry must come first in
	 * the recording, so that entry and return are two events here, not a BPF_EVENT_CALL.
	 */
	unsigned int may_be_inner;
	/* BPF_SITE_POINT (probes/sites/single_trap_points.h): the numbers, plus 1, of the registers
	 * that hold size and block; 0: none does. */
	unsigned int size_register, block_register;
	unsigned int
		has_block; /* 0: the size is noted for a later point, and nothing is recorded */
	unsigned int frame_words; /* of the stack up to the return address, without it */
	unsigned int distance;	  /* of this point from the function's entry probe, in bytes */
	/* At a call (probes/calls/): its size, and the distances to its target and to the pointer
	 * that it goes through; 0: there is none. */
	unsigned int call_bytes;
	long long target_distance, pointer_distance;
	/* The number, plus 1, of the frame's word that holds the caller's register; 0: unchanged.
	 */
	unsigned char saved[BPF_SAVED_REGISTERS];
};

/*
 * Flags in a cookie, beside the index of the site: the program runs at an exit, or at a return. At
 * an exit it ignores the index: notes tell whose call ends (exits.bpf.h).
 */
#define BPF_AT_EXIT   (2 * BPF_MAX_SITES)
#define BPF_AT_RETURN (4 * BPF_MAX_SITES)

/* A mapped file, as the kernel identifies it. */
struct bpf_file {
	unsigned long long device, inode; /* the device as in include/linux/kdev_t.h */
};

/* Tells a new file from a removed one that had its inode number, and from what it was before. */
struct bpf_file_version {
	unsigned long long size_bytes, changed_ns;
};

#define BPF_MAX_SYSCALLS 512 /* a power of two: SYSCALL_MAX_NUMBER and below */

/* A system call, by its number (common/schema/syscall_schema.h). */
struct bpf_syscall {
	unsigned int pair_arg; /* the argument (from 1) that two descriptors go to; 0: none */
	struct bpf_event enter, exit; /* of type 0: it is not recorded */
	/*
	 * With --size: argument @size_arg decides; -1: the call is recorded. It is recorded, too,
	 * if argument @replaces_arg has @replaces_bit (mmap: MAP_FIXED).
	 */
	int size_arg, replaces_arg;
	unsigned long long replaces_bit;
	unsigned int is_brk; /* the current break is recorded after the argument */
};

/* One CPU, a cache line. */
struct bpf_cpu {
	unsigned long long lost;  /* samples that found no room, not in a LOST record yet */
	unsigned long long woken; /* 1: leakrec was woken, and has not drained the ring since */
	unsigned long long step;  /* of the ring, in which the last sample begins (targets.bpf.h) */
	/* In windows: hits of probes, recorded or not; those among them that the kernel stepped. */
	unsigned long long hits, stepped_hits;
	unsigned long long transfers; /* of recorded processes, while they are counted */
	unsigned long long pad[2];
};

/* Whether programs record, in windows (windows.bpf.h). */
enum bpf_window_state {
	BPF_WINDOW_SHUT,    /* not at all */
	BPF_WINDOW_OPEN,    /* everything */
	BPF_WINDOW_CLOSING, /* only the ends of calls whose beginning was recorded */
};

#define BPF_HITS_STEP 32 /* a CPU adds its hits to those of the window in such steps */

struct bpf_window {
	unsigned int state;	      /* enum bpf_window_state */
	unsigned int nr;	      /* counts windows; set before the probes are placed */
	unsigned long long closed_ns; /* CLOCK_MONOTONIC; 0: no program has closed it */
	unsigned long long hits;      /* since it was opened */
	unsigned long long max_hits;  /* after so many, a program closes it */
};

/* Functions whose calls are counted, also between windows: a power of two. */
#define BPF_MAX_COUNTED	 32
#define BPF_CALLS_STEP	 1024  /* after so many calls of one, the recorder looks at it */
#define BPF_CALL_STEPPED 0x100 /* in the cookie, beside the number: the kernel steps the entry */

struct bpf_counted_calls {
	unsigned long long all;
	unsigned long long observed; /* those while a window was open */
};

#endif
