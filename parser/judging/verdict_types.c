/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/judging/verdict_types.h"

const char *verdict_name(enum verdict verdict)
{
	static const char *const names[VERDICT_NR] = {
		[VERDICT_GROWTH] = "growth",   [VERDICT_OVERDUE] = "overdue",
		[VERDICT_BURST] = "burst",     [VERDICT_UNCLEAR] = "unclear",
		[VERDICT_PLATEAU] = "plateau", [VERDICT_STARTUP] = "start-up",
		[VERDICT_NOT_YET] = "not-yet", [VERDICT_AT_EXIT] = "at-exit",
	};

	return names[verdict];
}

bool verdict_is_leak(enum verdict verdict)
{
	return verdict == VERDICT_GROWTH || verdict == VERDICT_OVERDUE || verdict == VERDICT_BURST;
}

const char *doubt_name(unsigned int index)
{
	static const char *const names[DOUBT_NR] = {"lost", "truncated", "unpaired", "unseen-free",
						    "unobserved"};

	return names[index];
}
