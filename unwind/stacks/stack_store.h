/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks: from callchains, or registers and dumped stack bytes, to interned ids, and from ids to
 * function, file:line and module.
 *
 * Feed it the processes' mapping events in time order; a stack is placed (each address resolved to
 * module + offset) against the mappings of its own instant, when it is interned. Names are looked
 * up only when asked for, each address once.
 *
 * Everything it is fed is hostile input: addresses, sizes and names may be anything.
 */
#ifndef LEAKTOOLS_UNWIND_STACK_STORE_H
#define LEAKTOOLS_UNWIND_STACK_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define STACK_NONE	  0u /* the id of the empty stack */
#define STACK_MAX_FRAMES  1024
#define STACK_MAX_INLINED 64 /* functions, in one frame; what is inlined deeper is left out */
#define BUILD_ID_MAX	  20

struct stack_store;

/* A mapping of file content into a process (PERF_RECORD_MMAP, MMAP2). */
struct stack_mapping {
	pid_t pid;
	uint64_t start; /* addresses [start, start + len) */
	uint64_t len;
	uint64_t file_offset;
	const char *path;
	uint8_t build_id[BUILD_ID_MAX]; /* the kernel's, or the recorder's */
	uint8_t build_id_size;		/* 0: not known */
};

/* User registers and the stack's top as PERF_SAMPLE_REGS_USER and _STACK_USER give them. */
struct stack_dump {
	uint64_t regs_abi;    /* PERF_SAMPLE_REGS_ABI_*; 0: no registers */
	uint64_t regs_mask;   /* attr.sample_regs_user */
	const uint64_t *regs; /* one for each bit of @regs_mask, lowest first */
	const uint8_t *bytes; /* from the stack pointer up */
	uint64_t nr_bytes;    /* the sample's dyn_size */

	/*
	 * A return probe's sample: the address of the function that returned, which goes on top of
	 * the stack; the instruction pointer is then a return address, as those below it are. 0: no
	 * such sample.
	 */
	uint64_t returned_from;
	bool is_returning; /* it is at its last instruction: that is on top, and goes */

	/*
	 * Where the thread's probed calls that have yet to return will return to, innermost first:
	 * their return addresses on the stack are replaced by the kernel's trampoline. NULL: not
	 * known; the stack ends at the first.
	 */
	const uint64_t *pending_returns;
	size_t nr_pending_returns;
};

/* One frame, named. Strings live as long as the store. */
struct stack_frame {
	uint64_t address;	/* as it was in the process */
	uint64_t module_offset; /* ELF virtual address in the module; meaningless without @module */
	const char *module;	/* path; NULL: mapped by no file known */
	const char *function;	/* demangled; NULL: no symbol (then print module+offset) */
	uint64_t function_offset; /* from the symbol; inlined: from the beginning of its code */
	bool inlined;		  /* into the function of the next frame */
	const char *file;	  /* source; NULL: not known */
	int line;
};

/*
 * Where files are looked for: a module's at SYMFS/path, at its path, and at its path in the root of
 * the processes that mapped it; with a build-id recorded, only a file with that build-id is taken.
 */
struct stack_store_options {
	const char *symfs;     /* prefix to every module's path; NULL: none */
	const char *debug_dir; /* of separate debug files, before /usr/lib/debug; NULL: none */
	bool ask_servers;      /* for names, where DEBUGINFOD_URLS is set: may take minutes */
	bool expect_names;     /* stacks will be named: stack_store_begin_naming() is worth while */
	bool own_vdso; /* the processes run on this machine, as this one does: "[vdso]" is ours */
};

/* What became of the dumps. Those not truncated and not lost are whole. */
struct stack_unwind_stats {
	uint64_t dumps;	    /* unwound, or tried */
	uint64_t frames;    /* found in them */
	uint64_t by_dwfl;   /* left to libdwfl's unwinder, which is slow */
	uint64_t truncated; /* the dump ended before the stack did */
	uint64_t lost;	    /* ended for any other reason: no file, no CFI, no frame pointer */
};

int stack_store_create(const struct stack_store_options *options, struct stack_store **ret);
void stack_store_destroy(struct stack_store *store);

/*
 * The processes' address spaces, in time order. @pid is the process (thread group). A fork whose
 * child is its parent, which is a new thread, changes nothing. A mapping that no file backs
 * ("//anon", "[heap]") only takes the place of what was there. After its exit a process's mappings
 * are kept for a while, as its last threads may outlive the first. Return 0 or -ENOMEM.
 */
int stack_store_map(struct stack_store *store, const struct stack_mapping *mapping);
int stack_store_fork(struct stack_store *store, pid_t child, pid_t parent);
void stack_store_exec(struct stack_store *store, pid_t pid); /* forgets its mappings */
void stack_store_exit(struct stack_store *store, pid_t pid);

/* Build-ids from the file's BUILD_ID feature: for modules whose mapping came without one. */
int stack_store_set_build_id(struct stack_store *store, const char *path, const uint8_t *build_id,
			     uint8_t size);

/*
 * In the place of a stack's last address: it was not unwound to its outermost frame, because less
 * of it was recorded, or because nothing says how to go on. Such a mark is a frame like others.
 */
#define STACK_TRUNCATED	 0ULL
#define STACK_INCOMPLETE 1ULL

/*
 * This bit of an address in a chain, which no user address has: it is where code was interrupted,
 * by a signal for instance, and no return address, though another frame is inside it.
 */
#define STACK_INTERRUPTED (1ULL << 63)

/*
 * What the recording calls the byte at @file_offset of the file at @path (as that is mapped without
 * a build-id), @function_offset behind the beginning of @function: for where we find no name.
 * Returns 0 or -ENOMEM.
 */
int stack_store_name_place(struct stack_store *store, const char *path, uint64_t file_offset,
			   const char *function, uint64_t function_offset);

/* Whether a file, as far as is known, is mapped where a call would have to be that returns there.
 */
bool stack_store_is_code(struct stack_store *store, pid_t pid, uint64_t return_address);

/*
 * Interns a callchain of user addresses, innermost first. The first is an instruction's address,
 * the others are return addresses, unless they are STACK_INTERRUPTED, the last perhaps a mark.
 * What is beyond STACK_MAX_FRAMES is dropped, and marked. Returns 0 or -ENOMEM.
 */
int stack_store_add_callchain(struct stack_store *store, pid_t pid, const uint64_t *addresses,
			      size_t nr, uint32_t *ret_id);

/*
 * Unwinds a dump by the modules' CFI and interns the result. A stack that can't be unwound to its
 * end is interned as far as it went, with a mark, and counted (stack_store_unwind_failures()).
 * Returns 0 or -ENOMEM.
 */
int stack_store_add_dump(struct stack_store *store, pid_t pid, const struct stack_dump *dump,
			 uint32_t *ret_id);

/* How far a dump could be unwound. Not whole and not truncated: lost. */
struct stack_end {
	bool is_whole;
	bool is_truncated;     /* the dump ended before the stack did */
	size_t nr_interrupted; /* addresses that are STACK_INTERRUPTED */
	/*
	 * An address. Truncated: the dump should have gone at least so far. Else: what was needed
	 * of the stack lies below. 0: not known.
	 */
	uint64_t top;
};

/*
 * Unwinds a dump without interning it, for those who write callchains: *@ret_addresses are at most
 * STACK_MAX_FRAMES addresses, innermost first (dump->returned_from in front, where it is set), as
 * stack_store_add_callchain() takes them, until the next dump. Counts as stack_store_add_dump()
 * does. Returns 0 or -ENOMEM.
 */
int stack_store_unwind_dump(struct stack_store *store, pid_t pid, const struct stack_dump *dump,
			    const uint64_t **ret_addresses, size_t *ret_nr,
			    struct stack_end *ret_end);

/*
 * Reads the 8 bytes at @address of the process out of a dump. Returns 0, or -EFAULT if the dump
 * does not hold them.
 */
int stack_dump_read_u64(const struct stack_dump *dump, uint64_t address, uint64_t *ret);

/*
 * Begins to read, in a thread, what names the stacks interned so far, if names are expected. What
 * is named next waits for the file that is being read then. Returns 0 or -ENOMEM.
 */
int stack_store_begin_naming(struct stack_store *store);

size_t stack_store_nr_frames(const struct stack_store *store, uint32_t id);
/*
 * Names frame @index (0: innermost) of stack @id: as several frames, innermost first, where
 * functions were inlined; only the last is not marked so. *@ret is valid until the next call.
 * Returns 0, -ENOMEM, or -EINVAL: there is no such frame.
 */
int stack_store_frames(struct stack_store *store, uint32_t id, size_t index,
		       const struct stack_frame **ret, size_t *ret_nr);
/* The last of these: the function that the code is, whatever was inlined into it. */
int stack_store_frame(struct stack_store *store, uint32_t id, size_t index,
		      struct stack_frame *ret);

/*
 * Prints one frame, inlined or not, escaped (diag_print_escaped()) and without a newline, in
 * columns two spaces apart:
 *
 *   function+0x1a  file.c:12  (/path/of/module)   the second column is missing where not known
 *   function+0x1a  file.c:12  (/path/of/module)  inlined
 *   module+0x1234  (/path/of/module)              no symbol: the ELF address, as addr2line takes it
 *   0x7f0012345678  (unknown)                     no module
 *   (truncated: ...)  or  (incomplete: ...)       a mark
 *
 * Returns 0, or -EIO if the stream failed.
 */
int stack_frame_print(const struct stack_frame *frame, FILE *out);

/* The dumps that were not unwound to their stack's end: truncated or lost. */
uint64_t stack_store_unwind_failures(const struct stack_store *store);
/* Valid as long as the store. */
const struct stack_unwind_stats *stack_store_unwind_stats(const struct stack_store *store);

#endif
