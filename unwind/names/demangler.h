/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Demangles C++ and Rust symbol names, with bounds on what a hostile name can cost. */
#ifndef LEAKTOOLS_UNWIND_DEMANGLER_H
#define LEAKTOOLS_UNWIND_DEMANGLER_H

#define DEMANGLE_MAX_MANGLED 4096  /* longer names stay mangled */
#define DEMANGLE_MAX_RESULT  16384 /* so do names with a longer result */

/*
 * Returns the demangled name without its parameters, as perf shows it. The caller frees it. NULL if
 * @name is not mangled or past the bounds, or if memory ran out: show @name then.
 */
char *demangle(const char *name);

#endif
