/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder/events/record_config.h"

#include <unistd.h>

#define DEFAULT_DUMP_BYTES 8192 /* the same as perf record's */
/* If dumps end with the stack, a ring has room for this many of the largest size. */
#define RING_PART 32

uint32_t record_config_dump_bytes(const struct record_config *config, bool by_programs)
{
	uint64_t part = (uint64_t)config->ring_pages * (uint64_t)getpagesize() / RING_PART;

	if (config->dump_bytes)
		return config->dump_bytes;
	if (!by_programs || !record_config_unwinds(config))
		return DEFAULT_DUMP_BYTES;
	return part < RECORD_MAX_DUMP_BYTES ? (uint32_t)part : RECORD_MAX_DUMP_BYTES;
}
