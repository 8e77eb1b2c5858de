/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts per site. A site is a stack that allocates blocks. Sites outlive their blocks, so memory
 * grows with the number of different stacks, not with events: about 100 bytes for a site that
 * allocated once, about 2 KiB for others.
 *
 * The counts follow the heap model: a block that turns out to belong to another call is withdrawn,
 * and the release by a failed realloc() is undone. If a forked child releases blocks that it
 * inherited, that does not count here.
 *
 * Times are the recording's. Counts over time are kept in SITE_PERIODS periods of equal length,
 * which doubles as the recording grows. They bound the lifetimes that blocks can have had.
 */
#ifndef LEAKTOOLS_PARSER_SITE_STATS_H
#define LEAKTOOLS_PARSER_SITE_STATS_H

#include "parser/statistics/lifetime_sketch.h"

#include <stdbool.h>

#define SITE_PERIODS 64
/*
 * Classes of ages, each twice as old as the one before: the first one ends at SITE_LATE_NS, and the
 * last one begins at 134 ms.
 */
#define SITE_LATE_CLASSES 11
#define SITE_LATE_NS	  (UINT64_C(1) << 18)

struct site_period {
	uint64_t allocated;  /* blocks; periods grow long: 300,000 a second are 2^32 in 4 hours */
	uint64_t ended;	     /* released, given up, or their process exited */
	int64_t added_bytes; /* allocated minus ended */
};

/* Blocks that outlived the window in which they were allocated (parser/windows). */
struct site_windows {
	/* How old those without a look were when their window closed: later they are unknown. */
	struct lifetime_sketch unobserved;
	/*
	 * Blocks that were freed after their window had closed: how old they were at the close, and
	 * by class of that age, how old when the free was proved.
	 */
	struct lifetime_sketch late_at_close, late[SITE_LATE_CLASSES];
	/* All of them, and those that leakrec looked at, by the period of their allocation. */
	uint32_t outlived[SITE_PERIODS], followed[SITE_PERIODS];
};

struct site_history {
	struct lifetime_sketch lifetimes; /* of freed blocks */
	uint8_t shift; /* a period is 2^shift ns; the first one begins at site_stats_origin() */
	struct site_period periods[SITE_PERIODS];
	struct site_windows *windows; /* NULL: no block outlived its window */
};

struct site {
	uint32_t stack_id;
	uint32_t peak_nr;  /* the last peak before the last change; private to site_stats */
	uint32_t vanished; /* blocks whose free was missed: their address was allocated again */
	uint64_t allocations, frees;
	uint64_t dropped;    /* blocks that ended when their process executed another program */
	uint64_t unobserved; /* blocks that are unknown from the end of their window on */
	uint64_t exited, exited_bytes; /* held blocks whose process has exited */
	uint64_t temporaries;	       /* frees before the thread's next allocation */
	uint64_t allocated_bytes;      /* blocks of unknown size count as 0 */
	uint64_t held_bytes, peak_bytes;
	uint64_t peak_blocks;			/* the most held at any time by living processes */
	uint64_t first_ns, last_ns;		/* of the allocations */
	uint64_t at_peak_bytes, at_peak_blocks; /* private: see site_at_peak() */
	struct site_history *history;		/* NULL: at most one allocation, and no free */
};

/* The first @nr classes are of blocks that are younger than that when their window closes. */
static inline uint64_t site_late_ns(unsigned int nr)
{
	return nr ? SITE_LATE_NS << (nr - 1) : 0;
}

/* The held blocks of @site. */
static inline uint64_t site_held_blocks(const struct site *site)
{
	return site->allocations - site->frees - site->vanished - site->dropped - site->unobserved;
}

/* Those of living processes. */
static inline uint64_t site_present_blocks(const struct site *site)
{
	return site_held_blocks(site) - site->exited;
}

static inline uint64_t site_present_bytes(const struct site *site)
{
	return site->held_bytes - site->exited_bytes;
}

struct site_stats;

/* The properties of a block that matter here. */
struct site_block {
	uint32_t stack_id;
	uint64_t size_bytes;
	uint64_t time_ns; /* of its allocation */
};

/* NULL: out of memory. */
struct site_stats *site_stats_create(void);
void site_stats_destroy(struct site_stats *stats);

/* The first period begins at @time_ns, unless it has begun; else with the first allocation. */
void site_stats_begin(struct site_stats *stats, uint64_t time_ns);
/* A block is allocated. Returns 0 or -ENOMEM, as the functions below. */
int site_stats_enter(struct site_stats *stats, const struct site_block *block);
/* The block is freed. */
int site_stats_leave(struct site_stats *stats, const struct site_block *block, uint64_t time_ns);
/* The same for a block that leakrec looked at after its window had closed, at @closed_ns. */
int site_stats_leave_late(struct site_stats *stats, const struct site_block *block,
			  uint64_t closed_ns, uint64_t time_ns);
/* Call it, too, if its thread freed it before it allocated anything else. */
void site_stats_note_temporary(struct site_stats *stats, uint32_t stack_id);
/* The block is not held any more at @time_ns; its free was missed. */
int site_stats_vanish(struct site_stats *stats, const struct site_block *block, uint64_t time_ns);
/* The block ended at @time_ns, when its process executed another program. */
int site_stats_drop(struct site_stats *stats, const struct site_block *block, uint64_t time_ns);
/*
 * The block outlives its window, which closed at @closed_ns. It is held as before; what becomes of
 * it then is unknown, unless it is followed.
 */
int site_stats_outlive(struct site_stats *stats, const struct site_block *block,
		       uint64_t closed_ns);
/* leakrec looks at a block that has outlived its window. */
void site_stats_follow(struct site_stats *stats, const struct site_block *block,
		       uint64_t closed_ns);
/* It does not look at it. So the block is held until its window closed only. */
int site_stats_lose_sight(struct site_stats *stats, const struct site_block *block,
			  uint64_t closed_ns);
/*
 * The process that holds the block exited at @time_ns. The block stays held: nothing will release
 * it.
 */
int site_stats_exit(struct site_stats *stats, const struct site_block *block, uint64_t time_ns);
/* Undoes site_stats_exit() at @time_ns: the process lives. */
void site_stats_unexit(struct site_stats *stats, const struct site_block *block, uint64_t time_ns);
/* Undoes site_stats_enter(): this was no allocation of its own. */
void site_stats_withdraw(struct site_stats *stats, const struct site_block *block);
/* Undoes site_stats_leave() at @time_ns: the block was not freed. */
void site_stats_unleave(struct site_stats *stats, const struct site_block *block, uint64_t time_ns);

/* All sites, in the order of their first allocations. Valid until the next event. */
const struct site *site_stats_list(const struct site_stats *stats, size_t *ret_nr);
/* The site of @stack_id, or NULL. */
const struct site *site_stats_find(const struct site_stats *stats, uint32_t stack_id);

/*
 * Adds the counts of @site to those of @sum, which is zeroed at first and not one of the list. Its
 * peaks become the sums of peaks at different times: upper bounds. Returns 0 or -ENOMEM.
 */
int site_stats_sum(const struct site_stats *stats, struct site *sum, const struct site *site);
void site_sum_deinit(struct site *sum);

/* When living processes held the most bytes, and how many. The first such moment. */
struct site_peak {
	uint64_t bytes;
	uint64_t time_ns;
};

/* Zero if no bytes were ever held. */
struct site_peak site_stats_peak(const struct site_stats *stats);
/* What @site, one of the list, held then. */
void site_at_peak(const struct site_stats *stats, const struct site *site, uint64_t *ret_bytes,
		  uint64_t *ret_blocks);

/* The start of the first period. */
uint64_t site_stats_origin(const struct site_stats *stats);

/* How long the program allocated: the time without pauses that are longer than 20 ms. */
uint64_t site_stats_busy_ns(const struct site_stats *stats);

#endif
