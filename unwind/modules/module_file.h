/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds a module's file when it is first needed. The file is used only if it is the recorded one: a
 * recorded build-id must match, or the recorded inode, if a process has led to it. Device, inode,
 * size and time of change are remembered, so that a file that replaces it is not read. Its owner
 * can set that time, and so may have changed any byte since.
 */
#ifndef LEAKTOOLS_UNWIND_MODULE_FILE_H
#define LEAKTOOLS_UNWIND_MODULE_FILE_H

#include "unwind/modules/module.h"

/*
 * Finds the module's file, once, and fills file_path, segments and machine. Returns 0 or -ENOENT.
 * Warns once of a different build-id.
 */
int module_find_file(const struct module_table *table, struct module *module);

/*
 * Looks for the module's file at the recorded path only. Returns true if its build-id proves that
 * it is the file. Warns of nothing; a later search may still find the file.
 */
bool module_is_at_its_path(const struct module_table *table, struct module *module);

/*
 * Opens the file that was found. Returns a descriptor that the caller closes, or -ENOENT, -ESTALE.
 */
int module_open_file(const struct module_table *table, struct module *module);

#endif
