/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/code/placement_class.h"

const char *placement_class_name(enum placement_class class)
{
	static const char *const names[] = {
		[PLACEMENT_EMULATED] = "emulated",
		[PLACEMENT_STEPPED] = "stepped",
		[PLACEMENT_REFUSED] = "refused",
		[PLACEMENT_UNKNOWN] = "?",
	};

	return names[class];
}
