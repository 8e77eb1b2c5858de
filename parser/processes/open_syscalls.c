/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/processes/open_syscalls.h"

#include <stdlib.h>

void mapping_call_destroy(struct mapping_call *call)
{
	if (!call)
		return;
	region_cuts_deinit(&call->cuts);
	free(call);
}
