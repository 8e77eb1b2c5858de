/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/calls/heap_sink.h"

#include "common/schema/resource_schema.h"

#include <string.h>

void heap_sink_tell_observer(struct heap_sink *sink, bool enters, const struct heap_block *block,
			     const struct heap_op *op, const struct heap_op *release)
{
	const struct heap_observer *observer = &sink->observer;
	const struct resource_call *call = resource_call_of(block->allocated.schema);
	struct heap_change change;

	if (observer->kind &&
	    strcmp(observer->kind, call ? call->kind->name : HEAP_KIND_MEMORY) != 0)
		return;
	change = (struct heap_change){
		.enters = enters,
		.block = *block,
		.op = *op,
		.release = release,
	};
	change.block.provisional = false;
	observer->on_change(observer->context, &change);
}
