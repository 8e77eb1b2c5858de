/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recognises functions that only pass memory on, by their names: allocators, the programs' usual
 * wrappers of them, the libraries of C++ and Rust. See user_frame.h. A row of wrapper_tables.c is
 * all that another library needs.
 */
#ifndef LEAKTOOLS_COMMON_WRAPPER_NAMES_H
#define LEAKTOOLS_COMMON_WRAPPER_NAMES_H

#include "common/schema/wrapper_tables.h"

/*
 * What @symbol is, a function's name as a demangler or a map of generated code writes it: with or
 * without a return type and parameters. @module is a path, or NULL: unknown.
 */
enum wrapper_kind wrapper_names_find(const char *symbol, const char *module);

#endif
