/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libelf maps the files that it reads, and their owner may truncate them at any time. An access to
 * what is gone raises SIGBUS, which would end the process. Between cut_file_begin() and
 * cut_file_end(), the calling thread reads zeros there instead. A SIGBUS at another time does what
 * it did before.
 */
#ifndef LEAKTOOLS_UNWIND_CUT_FILE_H
#define LEAKTOOLS_UNWIND_CUT_FILE_H

/* Installs the program's SIGBUS handler, again if somebody else has installed one since. */
void cut_file_catch(void);

/* Calls may be nested. SIGBUS must not be blocked. */
void cut_file_begin(void);
void cut_file_end(void);

#endif
