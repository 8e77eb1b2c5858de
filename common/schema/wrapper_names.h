/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recognises functions that only pass memory on, by their names: allocators, the usual wrappers in
 * programs, the libraries of C++ and Rust. user_frame.h uses it. To add a library, add a row to
 * wrapper_tables.c.
 */
#ifndef LEAKTOOLS_COMMON_WRAPPER_NAMES_H
#define LEAKTOOLS_COMMON_WRAPPER_NAMES_H

#include "common/schema/wrapper_tables.h"

/*
 * Classifies @symbol, the name of a function as a demangler or a map of generated code writes it,
 * with or without a return type and parameters. @module is a path, or NULL: unknown.
 */
enum wrapper_kind wrapper_names_find(const char *symbol, const char *module);

#endif
