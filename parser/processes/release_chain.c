/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/processes/release_chain.h"

#include <stdbool.h>

/* A function that passes a block on to another one is small. */
#define WRAPPER_BYTES 512

static bool has_seen(const struct release_chain *chain, uint64_t probe)
{
	for (int i = 0; i < chain->nr; i++)
		if (chain->probes[i] == probe)
			return true;
	return false;
}

/* True if the innermost release made the call from @caller. */
static bool is_called_by_innermost(const struct release_chain *chain, uint64_t caller)
{
	uint64_t probe = chain->probes[chain->nr - 1];

	return caller && probe && caller > probe && caller - probe < WRAPPER_BYTES;
}

/*
 * A jump does not change the caller. Without callers, two probes in a row that see the same block
 * see one release. No release passes a probe twice.
 */
static bool is_same_release(const struct release_chain *chain, uint64_t address, uint64_t probe,
			    uint64_t caller)
{
	if (address != chain->address || !probe || !chain->probes[chain->nr - 1] ||
	    chain->nr == RELEASE_CHAIN_MAX || has_seen(chain, probe))
		return false;
	return !caller || !chain->caller || caller == chain->caller ||
	       is_called_by_innermost(chain, caller);
}

enum release_place release_chain_add(struct release_chain *chain, uint64_t address, uint64_t probe,
				     uint64_t caller)
{
	enum release_place place = RELEASE_NEW;

	if (chain->nr > 0 && is_same_release(chain, address, probe, caller))
		place = RELEASE_AGAIN;
	else if (chain->nr > 0 && address != chain->address && !has_seen(chain, probe) &&
		 is_called_by_innermost(chain, caller))
		place = RELEASE_WITHIN;
	if (place != RELEASE_AGAIN)
		release_chain_end(chain);
	chain->address = address;
	chain->probes[chain->nr++] = probe;
	chain->caller = caller;
	return place;
}
