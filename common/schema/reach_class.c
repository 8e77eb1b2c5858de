/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/schema/reach_class.h"

#include <string.h>

const char *const reach_class_words[REACH_GONE + 1] = {
	[REACH_LOST] = "lost",		[REACH_CYCLE] = "cycle", [REACH_THROUGH] = "lost-through",
	[REACH_POSSIBLE] = "possible",	[REACH_WEAK] = "weak",	 [REACH_HELD] = "held",
	[REACH_UNKNOWN] = "unknown",	[REACH_GONE] = "gone",	 [REACH_NO_HOLDER] = "no-holder",
	[REACH_POINTED] = "pointed-to",
};

const char *const reach_group_words[REACH_NR_GROUPS] = {
	[REACH_GROUP_LOST] = "proven lost",
	[REACH_GROUP_NO_HOLDER] = "no holder found",
	[REACH_GROUP_REACHABLE] = "still reachable",
	[REACH_GROUP_POINTED] = "pointed to",
	[REACH_GROUP_UNDECIDED] = "not decided",
	[REACH_GROUP_NOT_SCANNED] = "not scanned",
	[REACH_GROUP_GONE] = "gone",
};

/* Behind a word they fit in 80 columns. */
const char *const reach_group_meanings[REACH_NR_GROUPS] = {
	[REACH_GROUP_LOST] = "the program cannot get to them any more",
	[REACH_GROUP_NO_HOLDER] = "nothing points to them; not proven, with this allocator",
	[REACH_GROUP_REACHABLE] = "something still points to them",
	[REACH_GROUP_POINTED] = "by a pointer that may be old: free memory, the allocator's own",
	[REACH_GROUP_UNDECIDED] =
		"mostly allocated or lost between the scan's looks, a second apart",
	[REACH_GROUP_NOT_SCANNED] =
		"newer than the scan, of another process, or outside the scanned heap",
};

enum reach_class reach_class_parse(const char *word, size_t len)
{
	for (enum reach_class class = 0; class < REACH_NR_CLASSES; class ++)
		if (reach_class_words[class] && strlen(reach_class_words[class]) == len &&
		    memcmp(reach_class_words[class], word, len) == 0)
			return class;
	return REACH_NOT_SCANNED;
}
