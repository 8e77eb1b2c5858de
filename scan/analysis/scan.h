/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All that a snapshot says about the blocks of a heap: who holds each, or that nobody does. */
#ifndef LEAKTOOLS_SCAN_ANALYSIS_SCAN_H
#define LEAKTOOLS_SCAN_ANALYSIS_SCAN_H

#include "common/schema/reach_class.h"
#include "scan/heaps/heap_read.h"
#include "scan/marking/lost_graph.h"

/* A block that had no holder in an earlier snapshot. */
struct lost_before {
	uint64_t address, size_bytes;
};

struct lost_list {
	struct lost_before *blocks; /* by address */
	size_t nr;
};

struct scan_class_total {
	uint64_t nr, bytes;
};

struct scan {
	const struct snapshot *snapshot;
	struct heap heap;
	struct roots roots;
	struct marking marking;
	struct lost_graph lost;
	/*
	 * False: blocks without a holder are REACH_UNKNOWN, for the reason in @why_not. True, where
	 * only recorded blocks are known: they are REACH_NO_HOLDER.
	 */
	bool may_say_lost;
	char why_not[192];
	/* "2 pipes with unread bytes": where the only pointer to a lost block may be; or "". */
	char unseen[256];
	struct scan_class_total totals[REACH_NR_CLASSES];
	uint64_t nr_hidden; /* blocks whose address is stored in another form only */
};

/*
 * Analyses @snapshot. @traced: where recorded blocks are (heap_read.h). @before: what had no holder
 * in a snapshot before this one; NULL: this is the only one so far. Returns 0 or a negative errno.
 * Reports nothing. Release with scan_deinit() in either case.
 */
int scan_init(struct scan *ret, const struct snapshot *snapshot, const struct traced_source *traced,
	      const struct lost_list *before);
void scan_deinit(struct scan *scan);

/* The class of a block; *@ret_lost is its entry if it is lost, else NULL. */
enum reach_class scan_class_of(const struct scan *scan, uint32_t block,
			       const struct lost_block **ret_lost);

#endif
