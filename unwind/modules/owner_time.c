/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/modules/owner_time.h"

#include "common/clock.h"
#include "common/diag.h"

static uint64_t *spent_of(struct owner_time *time, uid_t uid)
{
	for (size_t i = 0; i < time->nr; i++)
		if (time->users[i].uid == uid)
			return &time->users[i].ns;
	if (time->nr == OWNER_TIME_USERS)
		return &time->users[0].ns;
	time->users[time->nr].uid = uid;
	time->users[time->nr].ns = 0;
	return &time->users[time->nr++].ns;
}

static bool is_left(struct owner_time *time, uid_t uid)
{
	uint64_t now_ns = clock_now_ns();

	if (now_ns - time->window_ns >= OWNER_TIME_WINDOW_NS) {
		time->window_ns = now_ns;
		time->all_ns = 0;
		time->nr = 0;
	}
	return time->all_ns < OWNER_TIME_ALL_NS && *spent_of(time, uid) < OWNER_TIME_NS;
}

static void warn(struct owner_time *time, const struct module *module)
{
	if (!time->has_warned)
		diag_warn(
			"%s: its call frame information, and that of other files of its owner, took "
			"more than 1.5 s in 10 s; until there is time again, stacks may end there",
			module->path);
	time->has_warned = true;
}

bool owner_time_begin(struct owner_time *time, const struct module *module)
{
	time->begin_ns = 0;
	if (!time->is_limited || module->state == MODULE_MISSING ||
	    (module->state == MODULE_FOUND && module->owner == 0))
		return true;
	if (module->state == MODULE_FOUND && !is_left(time, module->owner)) {
		warn(time, module);
		return false;
	}
	time->begin_ns = clock_thread_ns();
	return true;
}

void owner_time_end(struct owner_time *time, const struct module *module)
{
	uint64_t ns;

	if (!time->begin_ns || module->state != MODULE_FOUND || module->owner == 0)
		return;
	ns = clock_thread_ns() - time->begin_ns;
	time->all_ns += ns;
	*spent_of(time, module->owner) += ns;
}
