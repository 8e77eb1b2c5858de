/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What to think of the held blocks: for each block whether it is certain that it is held (firm) or
 * what else could explain it (doubtful), and for each stack, or site, what its held blocks are: a
 * leak that grows, blocks overdue by the lifetimes of their own kind, a cache filled at the start,
 * ... and with that an order, real leaks first. docs/verdicts.md has the method.
 *
 * Everything that reports on a finished recording is to be found from here: a site_verdict leads to
 * the site's counts, lifetimes and history over time (site_stats.h), and to its held blocks.
 */
#ifndef LEAKTOOLS_PARSER_VERDICTS_H
#define LEAKTOOLS_PARSER_VERDICTS_H

#include "parser/verdicts/growth.h"
#include "parser/calls/heap_tracker.h"
#include "parser/analysis/loss_windows.h"
#include "parser/statistics/site_stats.h"

/* In the order in which they are shown. */
enum verdict {
	VERDICT_GROWTH,	 /* blocks keep coming that stay */
	VERDICT_OVERDUE, /* held for longer than blocks of their kind live */
	VERDICT_BURST,	 /* came at once, after the start, and stayed */
	VERDICT_UNCLEAR, /* too few blocks, or not old enough, to tell */
	VERDICT_PLATEAU, /* kept coming and staying for a while, and no more */
	VERDICT_STARTUP, /* came at the start, and stayed */
	VERDICT_NOT_YET, /* not older than blocks of their kind become */
	VERDICT_AT_EXIT, /* their process is gone, and was there for a part of the recording only */
	VERDICT_NR,
};

/* "growth", "not-yet" */
const char *verdict_name(enum verdict verdict);

/* What could explain that a block seems held. A set. */
enum doubt {
	DOUBT_LOST = 1 << 0,	  /* events were lost later; its free may be among them */
	DOUBT_TRUNCATED = 1 << 1, /* the recording was cut off */
	DOUBT_UNPAIRED =
		1 << 2, /* the call that made it, or a later realloc(), has half its events */
	DOUBT_UNSEEN =
		1 << 3, /* frees of its site's were not seen: addresses were allocated anew */
	DOUBT_NR = 4,
};

/* "lost", "truncated": of bit number @index. */
const char *doubt_name(unsigned int index);

struct block_verdict {
	uint32_t site;	/* index into verdicts.sites */
	float ordinary; /* the chance that it is still to be freed as others are; -1: not known */
	uint8_t verdict, doubts;
};

struct site_verdict {
	const struct site *site;
	enum verdict verdict;
	unsigned int doubts; /* that remain for most of its blocks; 0: firm */
	uint64_t held_blocks, held_bytes;
	uint64_t firm_blocks;			/* at least so many are held for certain */
	uint64_t suspect_blocks, suspect_bytes; /* those that the verdict is about */
	bool exited;				/* all processes that held them are gone */
	double oldest_s;			/* age of the oldest block */
	double median_s, p99_s;			/* lifetimes of freed blocks; -1: there are none */
	bool has_rate;				/* VERDICT_GROWTH */
	struct growth_rate rate;		/* times are since the recording's start */
	/* blocks[order[first]] ... in order of time, held_blocks of them */
	size_t first;
};

struct verdict_input {
	const struct site_stats *sites;
	const struct heap_block *held; /* in time order */
	size_t nr_held;
	uint64_t start_ns, end_ns; /* of the recording */
	/* The life of the process that had @pid at @time_ns. NULL: all live all the time. */
	struct process_life (*process_life)(const void *context, pid_t pid, uint64_t time_ns);
	const void *context;
	/* What makes doubts. */
	const struct loss_windows *loss_windows; /* may be NULL */
	uint64_t lost_any_time;
	bool lost_unknown; /* some may be lost, and their number is not known */
	bool truncated;
	uint64_t unpaired_reallocs, last_unpaired_realloc_ns; /* returns without their entries */
};

/* The arrays are its own. */
struct verdicts {
	struct site_verdict *sites; /* those that hold blocks, the worst first */
	size_t nr_sites;
	struct block_verdict *blocks; /* one for each of input.held */
	uint32_t *order;	      /* input.held's indices, by site, then by time */
	size_t nr_blocks;
	uint64_t blocks_of[VERDICT_NR], bytes_of[VERDICT_NR]; /* by block */
	uint64_t firm_blocks;				      /* sum of the sites' */
};

/* Judges all that is held. Returns 0 or -ENOMEM (or -E2BIG: more than 2^32 blocks). */
int verdicts_init(struct verdicts *verdicts, const struct verdict_input *input);
void verdicts_deinit(struct verdicts *verdicts);

#endif
