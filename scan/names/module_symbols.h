/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of variables: module and symbol of an address in a file's data. The files are opened while
 * there are rights to do so, and read later without. Names are untrusted.
 */
#ifndef LEAKTOOLS_SCAN_MODULE_SYMBOLS_H
#define LEAKTOOLS_SCAN_MODULE_SYMBOLS_H

#include "common/proc/mapped_files.h"
#include "scan/snapshot/snapshot.h"

struct module_file;

struct module_symbols {
	struct mapped_files files;
	struct module_file *modules; /* by the files' order */
	/* What all files have cost so far. */
	size_t nr_symbols, name_bytes;
	uint64_t cpu_ns;
};

/* Opens the files that a living process maps as code. Reports nothing: names may be missing. */
void module_symbols_open(struct module_symbols *ret, pid_t pid);
void module_symbols_deinit(struct module_symbols *symbols);

/* A variable, or as much of its name as is known. */
struct module_place {
	const char *module; /* the file's name without its directory; NULL: in no file's data */
	const char *symbol; /* NULL: not known */
	uint64_t offset;    /* from the symbol; without one, from the module's first byte */
};

void module_symbols_find(struct module_symbols *symbols, const struct snapshot *snapshot,
			 uint64_t address, struct module_place *ret);

#endif
