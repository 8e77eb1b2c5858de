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

uint64_t owner_time_window(struct owner_time *time)
{
	uint64_t now_ns = clock_now_ns();

	if (now_ns - time->window_ns >= OWNER_TIME_WINDOW_NS) {
		time->window_ns = now_ns;
		time->all_ns = time->opening_ns = 0;
		time->nr = 0;
	}
	return time->window_ns;
}

void owner_time_end(struct owner_time *time)
{
	uint64_t ns;

	if (!time->spent)
		return;
	ns = clock_thread_ns() - time->begin_ns;
	*time->spent += ns;
	if (time->spent != &time->opening_ns)
		time->all_ns += ns;
	time->spent = NULL;
}

static void begin(struct owner_time *time, uint64_t *spent)
{
	time->begin_ns = clock_thread_ns();
	time->spent = spent;
}

bool owner_time_begin_opening(struct owner_time *time)
{
	if (!time->is_limited)
		return true;
	owner_time_end(time);
	owner_time_window(time);
	if (time->opening_ns < OWNER_TIME_OPENING_NS) {
		begin(time, &time->opening_ns);
		return true;
	}
	if (!time->has_warned_of_opening)
		diag_warn(
			"looking for mapped files and debug files, and opening them, took more than "
			"1.5 s in 10 s; until there is time again, stacks may end early");
	time->has_warned_of_opening = true;
	return false;
}

bool owner_time_begin_search(struct owner_time *time)
{
	return time->spent || owner_time_begin_opening(time);
}

bool owner_time_begin(struct owner_time *time, const struct module *module)
{
	uint64_t *spent;

	owner_time_end(time);
	if (!time->is_limited || module->state != MODULE_FOUND || module->owner == 0)
		return true;
	owner_time_window(time);
	spent = spent_of(time, module->owner);
	if (*spent >= OWNER_TIME_NS) {
		if (!time->has_warned_of_user)
			diag_warn("%s: its call frame information, and that of other files that "
				  "the same user can change, took more than 1.5 s in 10 s; until "
				  "there is time again, stacks may end there",
				  module->path);
		time->has_warned_of_user = true;
		return false;
	}
	if (time->all_ns >= OWNER_TIME_ALL_NS) {
		if (!time->has_warned_of_all)
			diag_warn("the call frame information of users' files took more than 3 s "
				  "in 10 s; until there is time again, stacks may end in them");
		time->has_warned_of_all = true;
		return false;
	}
	begin(time, spent);
	return true;
}
