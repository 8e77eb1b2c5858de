/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What each allocation stack did, counted as it happens: a site is a stack that blocks were
 * allocated from. Sites outlive their blocks, so memory grows with the number of distinct stacks,
 * not with events: 104 bytes for a site that allocated once, about 1.5 KiB for one that goes on.
 *
 * The counts follow the heap model: a block that turns out to be another call's is withdrawn, a
 * failed realloc's release is taken back. Releases of blocks that a forked child inherited are the
 * child's own and don't count here.
 *
 * Times are the recording's. What was held when, and how long blocks can have lived at most, is
 * known by SITE_PERIODS periods of equal length, which double as the recording grows.
 */
#ifndef LEAKTOOLS_PARSER_SITE_STATS_H
#define LEAKTOOLS_PARSER_SITE_STATS_H

#include "parser/statistics/lifetime_sketch.h"

#include <stdbool.h>

#define SITE_PERIODS 64

struct site_period {
	uint32_t allocated;  /* blocks */
	uint32_t ended;	     /* released, or given up */
	int64_t added_bytes; /* allocated less ended */
};

struct site_history {
	struct lifetime_sketch lifetimes; /* of the blocks that were freed */
	uint8_t shift;			  /* a period is 2^shift ns long, the first begins with the
						 recording (site_stats_origin()) */
	struct site_period periods[SITE_PERIODS];
};

struct site {
	uint32_t stack_id;
	uint32_t vanished; /* blocks whose end was not seen: their address was allocated anew */
	uint64_t allocations, frees;
	uint64_t dropped;     /* when their process executed another program */
	uint64_t temporaries; /* of the frees, those before the thread allocated anything else */
	uint64_t allocated_bytes; /* blocks of unknown size count as 0 */
	uint64_t held_bytes, peak_bytes;
	uint64_t peak_blocks;	      /* the most held at a time */
	uint64_t first_ns, last_ns;   /* allocations */
	struct site_history *history; /* NULL: one allocation at most, and no free */
};

/* The blocks of @site that are held. */
static inline uint64_t site_held_blocks(const struct site *site)
{
	return site->allocations - site->frees - site->vanished - site->dropped;
}

struct site_stats;

/* A block, as far as it matters here. */
struct site_block {
	uint32_t stack_id;
	uint64_t size_bytes;
	uint64_t time_ns; /* of its allocation */
};

/* NULL: out of memory. */
struct site_stats *site_stats_create(void);
void site_stats_destroy(struct site_stats *stats);

/* A block begins to be held. Return 0 or -ENOMEM, as those below. */
int site_stats_enter(struct site_stats *stats, const struct site_block *block);
/* It is freed. */
int site_stats_leave(struct site_stats *stats, const struct site_block *block, uint64_t time_ns);
/* It was freed by its thread before that allocated anything else; to be told besides. */
void site_stats_note_temporary(struct site_stats *stats, uint32_t stack_id);
/* It is held no more at @time_ns, but when it was freed has not been seen. */
int site_stats_vanish(struct site_stats *stats, const struct site_block *block, uint64_t time_ns);
/* It went at @time_ns, when its process executed another program. */
int site_stats_drop(struct site_stats *stats, const struct site_block *block, uint64_t time_ns);
/* It was never there. */
void site_stats_withdraw(struct site_stats *stats, const struct site_block *block);
/* It was not freed at @time_ns. */
void site_stats_unleave(struct site_stats *stats, const struct site_block *block, uint64_t time_ns);

/* All sites, in the order of their first allocation; valid until the next event. */
const struct site *site_stats_list(const struct site_stats *stats, size_t *ret_nr);
/* The site of @stack_id, or NULL. */
const struct site *site_stats_find(const struct site_stats *stats, uint32_t stack_id);

/* When the periods begin. */
uint64_t site_stats_origin(const struct site_stats *stats);

#endif
