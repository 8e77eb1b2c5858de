/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads ELF files that others own, and plans their probes. A process without privileges does it
 * (common/sandbox/sandbox.h): what a file makes it do costs the probes of the same owner's files.
 */
#ifndef LEAKTOOLS_PROBES_FILE_ANALYSIS_H
#define LEAKTOOLS_PROBES_FILE_ANALYSIS_H

#include "probes/allocators/allocator.h"
#include "probes/plan/probe_set.h"

#include "common/proc/mapped_files.h"

#define FILE_MAX_INTERPRETER 256
#define FILE_MAX_FUNCTION    (PROBE_SYMBOL_MAX + 20)

/* What a file is. */
struct file_findings {
	bool is_elf;	   /* if not, the rest is false, too */
	bool is_native;	   /* of this machine's architecture: probes can be placed in it */
	bool is_static;	   /* elf_image_is_static() */
	bool is_allocator; /* it defines malloc and free, or others like them */
	bool is_libc;
	char interpreter[FILE_MAX_INTERPRETER]; /* the loader that it asks for, or "" */
};

/* Probes that are registered on a file. */
struct file_question {
	const struct uprobe *probes;
	size_t nr;
};

struct place_answer {
	char function[FILE_MAX_FUNCTION]; /* "malloc+0x1b"; "" if the file does not tell */
	struct placement_instruction instruction;
};

struct file_answer {
	bool is_left_out; /* its analysis failed; the rest is as of no ELF file */
	bool is_elf;
	bool has_build_hash;
	uint32_t build_hash;		    /* elf_image_build_hash() */
	char allocator[ALLOCATOR_NAME_MAX]; /* its name, or "" */
	struct place_answer *places;	    /* of each probe; NULL if the file could not be read */
};

/*
 * Says what is at registered probes: fills @ret for each of @nr files. A file that cannot be read
 * is reported. Returns as file_analysis_run(). Release @ret with file_answers_deinit() in any case.
 */
int file_analysis_answer(const struct mapped_file *files, const struct file_question *questions,
			 size_t nr, struct file_answer *ret);
void file_answers_deinit(struct file_answer *answers, size_t nr);

/*
 * Analyses @nr files, fills @ret of each, and appends the probes of allocators and those for USDT
 * probes to @set; NULL: nothing is planned. A file that cannot be analysed is reported and left
 * out. Returns 0 or a negative errno, reported; -EINTR, not reported: a signal is pending that ends
 * this process.
 */
int file_analysis_run(const struct mapped_file *files, size_t nr, struct probe_set *set,
		      struct file_findings *ret);

#endif
