/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Judges the held blocks. For each block it decides whether it is certainly held (firm) or what
 * else could explain it (doubtful). For each site, that is, stack, it decides what its held blocks
 * are: a leak that grows, blocks overdue by the lifetimes of their own kind, a cache filled at the
 * start, and so on. Sites that leak together are one cause. Verdicts and bytes give the order, real
 * leaks first. docs/verdicts.md has the method.
 *
 * Everything that a report needs can be reached from here: a site_verdict leads to the site's
 * counts, lifetimes and history (site_stats.h), and to its held blocks.
 */
#ifndef LEAKTOOLS_PARSER_VERDICT_TYPES_H
#define LEAKTOOLS_PARSER_VERDICT_TYPES_H

#include "parser/judging/growth.h"
#include "parser/calls/heap_tracker.h"
#include "parser/analysis/loss_windows.h"
#include "parser/statistics/site_stats.h"
#include "parser/statistics/stack_functions.h"
#include "parser/windows/sure_ages.h"

struct call_counts;
struct observed_time;

/* In the order of display. */
enum verdict {
	VERDICT_GROWTH,	 /* blocks keep coming and stay */
	VERDICT_OVERDUE, /* held longer than blocks of their kind live */
	VERDICT_BURST,	 /* came at once, after the start, and stayed */
	VERDICT_UNCLEAR, /* too few blocks, or not old enough, to tell */
	VERDICT_PLATEAU, /* came and stayed for a while, then no more */
	VERDICT_STARTUP, /* came at the start, and stayed */
	VERDICT_NOT_YET, /* as old as blocks of their kind may be */
	VERDICT_AT_EXIT, /* their process has exited, and lived for only a part of the recording */
	VERDICT_NR,
};

/* "growth", "not-yet" */
const char *verdict_name(enum verdict verdict);
/* True if blocks with that verdict have leaked, as far as that can be told. */
bool verdict_is_leak(enum verdict verdict);

/* What could explain that a block seems held. A bit set. */
enum doubt {
	DOUBT_LOST = 1 << 0,	  /* events were lost later; its free may be among them */
	DOUBT_TRUNCATED = 1 << 1, /* the recording was cut off */
	DOUBT_UNPAIRED = 1 << 2,  /* its call, or a later realloc(), lacks its entry or return */
	DOUBT_UNSEEN = 1 << 3, /* frees of its site were missed: addresses were allocated again */
	DOUBT_UNOBSERVED = 1 << 4, /* its window has closed; looks do not prove that it is held */
	DOUBT_NR = 5,
};

/* The name of bit @index: "lost", "truncated". */
const char *doubt_name(unsigned int index);

struct block_verdict {
	uint32_t site;	  /* index into verdicts.sites */
	float ordinary;	  /* the probability that it will be freed as others are; -1: not known */
	float stands_for; /* so many blocks of the program; 1, unless the recording is in windows */
	uint8_t verdict, doubts;
};

struct site_verdict {
	const struct site *site;
	enum verdict verdict;
	unsigned int doubts; /* that most of its blocks have; 0: firm */
	uint64_t held_blocks, held_bytes;
	uint64_t firm_blocks;			/* a lower bound of the blocks certainly held */
	uint64_t suspect_blocks, suspect_bytes; /* the ones of the verdict */
	bool exited;				/* all processes that held them have exited */
	bool in_windows;			/* only a part of the time was observed */
	double stands_for;	/* a suspect, on average: block_verdict.stands_for */
	double oldest_s;	/* age of the oldest block */
	double median_s, p99_s; /* lifetimes of freed blocks; -1: there are none */
	double stays;  /* in windows: the estimated share of its blocks that stays; -1: not known */
	bool has_rate; /* VERDICT_GROWTH */
	struct growth_rate rate; /* times are since the recording's start */
	/*
	 * In windows, for a rate from counted calls (counted_rates.h): the share of its allocations
	 * that is suspect (-1: not known), and by how much more than independent ones its arrivals
	 * vary. The call that was counted, if the rate is such a one (stack_store_has_call()).
	 */
	double kept, dispersion;
	uint32_t counted_call; /* STACK_NONE: it is not */
	/* its blocks by time: blocks[order[first]] ..., held_blocks of them */
	size_t first;
	uint32_t cause; /* index into verdicts.causes */
	/*
	 * The outermost frames of its stack, to the function that all of its cause has in common:
	 * their nearest caller, or the function that leaks for different callers. 0: it is alone.
	 */
	uint32_t nr_shared;
};

/* One or more sites that are best judged together. */
struct cause {
	struct site_verdict verdict; /* of all blocks; its @first and @cause mean nothing */
	struct site sum;	     /* verdict.site, if there are several sites */
	size_t first, nr;	     /* verdicts.sites[first] ..., the worst first */
};

/*
 * The number of blocks that exited processes left behind at the same site. Their indices follow
 * those of @site in verdicts.order. Only until the sites are sorted by cause.
 */
static inline size_t verdict_left_behind(const struct site_verdict *site)
{
	return site[1].site == site->site ? site[1].held_blocks : 0;
}

struct verdict_input {
	const struct site_stats *sites;
	const struct heap_block *held; /* in time order */
	size_t nr_held;
	uint64_t start_ns, end_ns; /* of the recording */
	/* The life of the process that had @pid at @time_ns. NULL: all live throughout. */
	struct process_life (*process_life)(const void *context, pid_t pid, uint64_t time_ns);
	const void *context;
	/*
	 * Fills @ret with numbers for the functions of a stack, the outermost first, at most @max.
	 * The same function has the same number. *@ret_nr: how many. Returns 0 or -ENOMEM. NULL:
	 * the stacks are not known, and each site is a cause.
	 */
	int (*functions_of)(void *stacks, uint32_t stack_id, uint64_t *ret, size_t max,
			    size_t *ret_nr);
	/*
	 * As functions_of, but the same code has the same number. It is used for stacks with a
	 * GENERATED_FUNCTION. NULL: nothing is known of generated code.
	 */
	int (*places_of)(void *stacks, uint32_t stack_id, uint64_t *ret, size_t max,
			 size_t *ret_nr);
	/* True if a frame of the stack is that call: one of @calls. NULL: it is not known. */
	bool (*has_call)(void *stacks, uint32_t stack_id, uint32_t call_id);
	void *stacks;
	const struct call_counts *calls; /* with @has_call */
	/*
	 * A recording in windows: the time that was observed, and what is known of a block after
	 * its window (NULL: it has not closed). @observed NULL: all time was observed.
	 */
	const struct observed_time *observed;
	followed_fn *followed; /* with @context */
	uint64_t memory_bytes; /* the most that the processes had; 0: not known */
	const uint8_t *reach;  /* enum reach_class of each of @held; NULL: nothing was scanned */
	/* Causes of doubt. */
	const struct loss_windows *loss_windows; /* may be NULL */
	uint64_t lost_any_time;
	bool lost_unknown; /* an unknown number may be lost */
	bool truncated;
	bool partial; /* only some calls were recorded: others may have released blocks */
	uint64_t unpaired_reallocs, last_unpaired_realloc_ns; /* returns without their entries */
};

/* It owns the arrays. */
struct verdicts {
	/*
	 * Sites that hold blocks, by cause, the worst first. A site is there twice if some of its
	 * blocks were left behind by processes that ended, and others were not.
	 */
	struct site_verdict *sites;
	size_t nr_sites;
	struct cause *causes; /* the worst first */
	size_t nr_causes;
	struct block_verdict *blocks; /* one for each of input.held */
	uint32_t *order;	      /* input.held's indices, by site, then by time */
	size_t nr_blocks;
	uint64_t blocks_of[VERDICT_NR], bytes_of[VERDICT_NR]; /* by the block's verdict */
	uint64_t firm_blocks;				      /* sum of the sites' */
	bool is_too_short;				      /* the recording, to show a leak */
};

#endif
