/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the process that has analysed a file (common/sandbox/sandbox.h) says of it, besides its plan
 * (plan_message.h): what it is, which debug file it wishes for, and what is at its probes. The
 * file's owner may have made all of it.
 */
#ifndef LEAKTOOLS_PROBES_FINDINGS_MESSAGE_H
#define LEAKTOOLS_PROBES_FINDINGS_MESSAGE_H

#include "probes/allocators/allocator.h"
#include "probes/elf/debug_symbols.h"
#include "probes/plan/probe_file.h"

#include "common/sandbox/message.h"

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

/* @err: of the analysis, 0 or a negative errno. */
void findings_message_put(FILE *to, int err, const struct file_findings *findings);
/* @id is that of the debug file, if it is wanted. */
void findings_message_put_wish(FILE *to, bool is_wanted, const struct debug_symbols_id *id);
/* @answer: to @question, of an ELF file that was not left out. */
void findings_message_put_answer(FILE *to, const struct file_question *question,
				 const struct file_answer *answer);

/* Returns the analysis's error. */
int findings_message_get(struct message_reader *reader, struct file_findings *ret);
/* Returns false if there is no wish. */
bool findings_message_get_wish(struct message_reader *reader, struct debug_symbols_id *ret);
/* Returns 0, also if the message is bad, or -ENOMEM, reported. */
int findings_message_get_answer(struct message_reader *reader, const struct file_question *question,
				struct file_answer *ret);

void file_answers_deinit(struct file_answer *answers, size_t nr);

#endif
