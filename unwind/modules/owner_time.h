/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Limits the CPU time that is spent on the files of one user. They may be made to take long, and
 * whoever unwinds while it records does nothing else meanwhile. Root's files have no limit.
 */
#ifndef LEAKTOOLS_UNWIND_OWNER_TIME_H
#define LEAKTOOLS_UNWIND_OWNER_TIME_H

#include "unwind/modules/module.h"

#include <stdbool.h>
#include <stdint.h>

#define OWNER_TIME_NS	     1500000000ULL /* for a user's files, in each window */
#define OWNER_TIME_ALL_NS    3000000000ULL /* for those of all users: one may have many numbers */
#define OWNER_TIME_WINDOW_NS 10000000000ULL
#define OWNER_TIME_USERS     16

/* Zeroed, nothing is limited. */
struct owner_time {
	bool is_limited;
	bool has_warned;
	uint64_t begin_ns; /* thread's CPU time; 0: it is not measured */
	uint64_t window_ns;
	uint64_t all_ns;
	struct {
		uid_t uid;
		uint64_t ns;
	} users[OWNER_TIME_USERS]; /* more of them share the first one */
	size_t nr;
};

/*
 * Call these before and after working on the module's file; owner_time_end() only if there was
 * time. owner_time_begin() returns false if there is none until the next window. Not to be nested.
 * The file may be found meanwhile.
 */
bool owner_time_begin(struct owner_time *time, const struct module *module);
void owner_time_end(struct owner_time *time, const struct module *module);

#endif
