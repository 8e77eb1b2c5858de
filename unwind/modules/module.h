/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Modules: the files that processes map, each known by its path and its recorded build-id.
 *
 * A module's file is looked for when it is first needed, and taken only if it is the file that was
 * recorded: when a build-id is known the file's own must be equal. What was found is remembered by
 * device, inode, size and time of change, so that a file replaced meanwhile is never read in its
 * place.
 */
#ifndef LEAKTOOLS_UNWIND_MODULE_H
#define LEAKTOOLS_UNWIND_MODULE_H

#include "common/hash.h"
#include "unwind/modules/stack_mapping.h"

#include <elf.h>
#include <sys/stat.h>

#define MODULE_NONE	0u
#define MODULE_MAX_PIDS 8

enum module_state {
	MODULE_UNTRIED,
	MODULE_FOUND,
	MODULE_MISSING, /* no file, or not the one that was recorded */
};

/* A PT_LOAD segment. */
struct module_segment {
	uint64_t file_offset, file_size;
	uint64_t vaddr, memory_size;
	uint32_t flags; /* PF_* */
};

struct module {
	uint32_t id; /* dense, from 1 */
	const char *path;
	uint8_t build_id[BUILD_ID_MAX];
	uint8_t build_id_size; /* 0: none recorded */
	bool has_file;	       /* false: "[vdso]" and the like, named by the kernel */
	pid_t jit_pid;	       /* not 0: the code that this process has made itself */

	/* Processes that mapped it, through whom it may be found. */
	struct module_user {
		pid_t pid;	     /* 0: free */
		uint64_t start, end; /* where */
	} users[MODULE_MAX_PIDS];
	unsigned next_user;

	/* Its first piece of code, where it was mapped as one; the length is 0 where it was not. */
	uint64_t code_offset, code_len;

	enum module_state state;
	char *file_path;       /* where it was found */
	const char *file_root; /* below which, and no link leads out; NULL: "/" */
	struct stat file_stat;
	struct module_segment *segments;
	size_t nr_segments;
	uint16_t machine;  /* EM_* */
	uint8_t elf_class; /* ELFCLASS* */

	char *key; /* path, NUL, build-id */
	UT_hash_handle hh;
};

struct known_build_id;

struct module_table {
	const char *symfs; /* NULL: none */
	struct module *by_key;
	struct module **by_id; /* [id - 1] */
	size_t nr, capacity;
	struct known_build_id *known_build_ids; /* by path, from the recording's header */
};

void module_table_init(struct module_table *table, const char *symfs);
void module_table_deinit(struct module_table *table);

/*
 * The module of a mapping of code, made if it is new. Code that no file backs ("//anon", "[heap]",
 * "/memfd:..." and such) is one module for each process; *@ret is NULL if that is not known.
 * Returns 0 or -ENOMEM.
 */
int module_table_get(struct module_table *table, const struct stack_mapping *mapping,
		     struct module **ret);

/* The module with that id, or NULL for MODULE_NONE. */
struct module *module_table_by_id(const struct module_table *table, uint32_t id);

/* Gives @build_id to all modules of @path that have none, present and future. 0 or -ENOMEM. */
int module_table_set_build_id(struct module_table *table, const char *path, const uint8_t *build_id,
			      uint8_t size);

/*
 * Finds the module's file, the first time, and fills file_path, segments and machine. Returns 0 or
 * -ENOENT; a build-id that differs is warned of once.
 */
int module_find_file(const struct module_table *table, struct module *module);

/*
 * Whether the module's file is found, without looking further than at the recorded path, and only
 * where the build-id tells that it is the file. Warns of nothing; what is not found may be later.
 */
bool module_is_at_its_path(const struct module_table *table, struct module *module);

/* Opens the file found. Returns a descriptor that the caller closes, or -ENOENT, -ESTALE. */
int module_open_file(const struct module_table *table, struct module *module);

/*
 * Takes the segments from the module's separate debug file, open at @fd, where its own is missing.
 * Such a file has the segments' addresses, but not what offset they had in the module's: that is
 * known where there is one segment of code, mapped whole. Returns 0 or -ENOENT.
 */
int module_use_debug_file(struct module *module, int fd);

/*
 * The ELF virtual address of the byte at @file_offset, once the file is found. Returns false where
 * no segment holds it.
 */
bool module_vaddr(const struct module *module, uint64_t file_offset, uint64_t *ret);

/*
 * The bias (address in the process less ELF virtual address) of a mapping of the module's code,
 * which begins at @start with the file's byte @file_offset. Returns false if it begins no code
 * segment.
 */
bool module_code_bias(const struct module *module, uint64_t start, uint64_t file_offset,
		      uint64_t *ret);

/* How many bytes of address space the segments cover, gaps included. */
uint64_t module_span(const struct module *module);

#endif
