/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The key of a resource in the heap of its process. It tells the kinds apart: the handle 3 of one
 * kind is neither the handle 3 of another nor a block at address 3.
 */
#ifndef LEAKTOOLS_PARSER_RESOURCE_KEY_H
#define LEAKTOOLS_PARSER_RESOURCE_KEY_H

#include "common/schema/resource_schema.h"

/* User space ends below 2^57 on all machines; descriptors are small numbers. */
static inline uint64_t resource_key(const struct resource_kind *kind, uint64_t handle)
{
	return handle ^ (uint64_t)kind->number << 57;
}

/* The address or handle of a block of @schema with the key @key. */
static inline uint64_t resource_handle(const struct probe_schema *schema, uint64_t key)
{
	const struct resource_call *call = resource_call_of(schema);

	return call ? resource_key(call->kind, key) : key;
}

#endif
