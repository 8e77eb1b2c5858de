/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakrec --narrow: records the calls that allocate and release the blocks of one cause. */
#ifndef LEAKTOOLS_TOOLS_LEAKREC_NARROW_H
#define LEAKTOOLS_TOOLS_LEAKREC_NARROW_H

#include "recorder/session/session_options.h"

/* True for "NR" and "NR:FILE": a cause's number in leakparse --summary, and a recording. */
bool leakrec_narrow_is_valid(const char *text);

/* What does not go with --narrow; NULL: nothing that was given. */
const char *leakrec_narrow_objection(const struct session_options *options);

/*
 * Has the leakparse beside this program list the calls. Returns 0 or a negative errno, reported.
 * Release *@ret with call_list_deinit() in any case.
 */
int leakrec_narrow_read(const char *text, struct call_list *ret);

#endif
