/* SPDX-License-Identifier: GPL-2.0-or-later */
/* C++ and Rust symbol names for people, with bounds on what a hostile name can cost. */
#ifndef LEAKTOOLS_UNWIND_DEMANGLER_H
#define LEAKTOOLS_UNWIND_DEMANGLER_H

#define DEMANGLE_MAX_MANGLED 4096  /* longer names stay as they are */
#define DEMANGLE_MAX_RESULT  16384 /* names that would become longer too */

/*
 * The demangled name without its parameters, as perf shows it, in a string that the caller frees.
 * NULL if @name is not mangled, past the bounds, or memory ran out: then it is shown as it is.
 */
char *demangle(const char *name);

#endif
