/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Modules: the files that processes map. Path and recorded build-id identify a module.
 * module_file.h finds its file, module_segments.h knows the addresses of its bytes.
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
	MODULE_MISSING, /* no file, or not the recorded one */
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
	bool has_file;	       /* false: "[vdso]" and other names that the kernel gives */
	pid_t jit_pid;	       /* not 0: code that this process has generated */

	/* Of the mapped file, if recorded in place of a build-id; 0: not known. */
	dev_t device, other_device;
	ino_t inode;

	/* Processes that mapped it. Their /proc entries may lead to the file. */
	struct module_user {
		pid_t pid;	     /* 0: free */
		uint64_t start, end; /* where */
	} users[MODULE_MAX_PIDS];
	unsigned next_user;

	/* The first mapping of its code; length 0: none. */
	uint64_t code_offset, code_len;

	enum module_state state;
	char *file_path;       /* where it was found */
	const char *file_root; /* confines the path and its links; NULL: "/" */
	struct stat file_stat;
	uid_t owner; /* elf_file_owner(), or module_lend() */
	struct module_segment *segments;
	size_t nr_segments;
	uint16_t machine;  /* EM_* */
	uint8_t elf_class; /* ELFCLASS* */

	char *key; /* path, NUL, build-id or inode */
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
 * Gets the module of a mapping of code, and creates it if necessary. Code without a file ("//anon",
 * "[heap]", "/memfd:...") is one module per process. *@ret is NULL if the process is not known.
 * Returns 0 or -ENOMEM.
 */
int module_table_get(struct module_table *table, const struct stack_mapping *mapping,
		     struct module **ret);

/* The module with that id, or NULL for MODULE_NONE. */
struct module *module_table_by_id(const struct module_table *table, uint32_t id);

/*
 * Root's module is others' from now on: they can change what it is unwound with, a debug file for
 * instance.
 */
void module_lend(struct module *module);

/*
 * Gives @build_id to all modules of @path that have none, present and future. Returns 0 or -ENOMEM.
 */
int module_table_set_build_id(struct module_table *table, const char *path, const uint8_t *build_id,
			      uint8_t size);

#endif
