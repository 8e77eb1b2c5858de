/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Limits the CPU time that is spent on the files of one user. They may be made to take long, and
 * whoever unwinds while it records does nothing else meanwhile. Root's files have no limit, but a
 * user can have any files looked for and opened, again and again: that has a limit of its own.
 */
#ifndef LEAKTOOLS_UNWIND_OWNER_TIME_H
#define LEAKTOOLS_UNWIND_OWNER_TIME_H

#include "unwind/modules/module.h"

#include <stdbool.h>
#include <stdint.h>

#define OWNER_TIME_NS	      1500000000ULL /* for a user's files, in each window */
#define OWNER_TIME_ALL_NS     3000000000ULL /* for those of all users: one may have many numbers */
#define OWNER_TIME_OPENING_NS 1500000000ULL /* besides that, whoever's files they are */
#define OWNER_TIME_WINDOW_NS  10000000000ULL
#define OWNER_TIME_USERS      16

/* Zeroed, nothing is limited. It must not be moved. */
struct owner_time {
	bool is_limited;
	bool has_warned_of_user, has_warned_of_all, has_warned_of_opening;
	uint64_t *spent;   /* the time that is being spent; NULL: it is not measured */
	uint64_t begin_ns; /* thread's CPU time */
	uint64_t window_ns;
	uint64_t all_ns, opening_ns;
	struct {
		uid_t uid;
		uint64_t ns;
	} users[OWNER_TIME_USERS]; /* more of them share the first one */
	size_t nr;
};

/*
 * Call one of these before work on a file, and owner_time_end() after it:
 * owner_time_begin_opening() to look for a module's file or to open it for libdwfl,
 * owner_time_begin() to read one that was looked for. They return false if there is no time until
 * the next window. Work that was begun before ends with them, except that a user's goes on with
 * owner_time_begin_search(), which is for a debug file: root's module may have one of others.
 */
bool owner_time_begin_opening(struct owner_time *time);
bool owner_time_begin_search(struct owner_time *time);
bool owner_time_begin(struct owner_time *time, const struct module *module);
void owner_time_end(struct owner_time *time);

/* The number of the window, which is another one when there is time again. */
uint64_t owner_time_window(struct owner_time *time);

#endif
