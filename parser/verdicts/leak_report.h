/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The results of a finished analysis, filtered by the options: the held blocks with their verdicts,
 * apart from filtered and suppressed ones. All reports and formats (report/) print from it, so that
 * they show the same blocks.
 */
#ifndef LEAKTOOLS_PARSER_LEAK_REPORT_H
#define LEAKTOOLS_PARSER_LEAK_REPORT_H

#include "common/size_range.h"
#include "parser/analysis/analysis.h"
#include "parser/statistics/own_wrappers.h"
#include "parser/verdicts/suppressions.h"
#include "parser/verdicts/verdicts.h"

#include <regex.h>

enum leak_order {
	LEAK_ORDER_VERDICT, /* grouped by stack: lost bytes, if scanned, then the worst first */
	LEAK_ORDER_TIME,    /* block by block, by allocation */
	LEAK_ORDER_SIZE,    /* grouped by stack, the largest first */
};

/* Filters. Zeroed, they let everything pass. */
struct leaks_options {
	bool list_unknown; /* list frees of unknown blocks, too; they are always counted */
	const struct size_range *size; /* of blocks and unexpected operations; NULL: all sizes */
	uint64_t min_age_ns;
	uint64_t max_age_ns;	 /* 0: no limit */
	regex_t *stack;		 /* function, file or module of any frame; NULL: all stacks */
	pid_t pid;		 /* the process; 0: all */
	const char *thread;	 /* by number or name; NULL: all threads */
	const char *function;	 /* the allocating function; NULL: all */
	const char *kind;	 /* a resource's, or HEAP_KIND_MEMORY; NULL: all */
	unsigned int verdicts;	 /* 1 << enum verdict for each wanted; 0: all */
	unsigned int reach;	 /* the same with enum reach_class */
	size_t limit;		 /* the number of stacks; 0: all */
	bool limit_is_of_causes; /* @limit counts causes: the writer applies it */
	enum leak_order order;
	struct suppressions *suppressions; /* NULL: none; they count what they hide */
};

enum leak_choice {
	LEAK_LISTED,
	LEAK_FILTERED,	 /* by the options, also by @limit if it counts stacks */
	LEAK_SUPPRESSED, /* by a suppression */
};

/* Blocks by what a scan has said of them: enum reach_group. */
struct leak_reach {
	uint64_t blocks[REACH_NR_GROUPS], bytes[REACH_NR_GROUPS];
};

/*
 * What the program holds, estimated from the blocks that leakrec looked at. Where all time was
 * observed, it is what is listed. The errors are one standard deviation.
 */
struct leak_estimate {
	double blocks, bytes;
	double blocks_variance, bytes_variance;
	/* Private: the window of the last block, and that window's part. */
	size_t window;
	double window_blocks, window_bytes;
};

/*
 * The shown blocks of a site. A block is shown if no filter and no suppression hides it, also
 * beyond options.limit.
 */
struct leak_site {
	uint32_t site; /* index into verdicts.sites */
	uint64_t blocks, bytes;
	uint64_t firm_blocks; /* at least so many of @blocks are certainly held */
	struct leak_estimate estimate;
	struct leak_reach reach;
};

/* A cause with shown blocks (verdict_types.h). */
struct leak_cause {
	uint32_t cause;	  /* index into verdicts.causes */
	size_t first, nr; /* sites: leak_report.sites_by_cause[first] ..., the worst first */
	uint64_t blocks, bytes;
	struct leak_estimate estimate;
	struct leak_reach reach;
};

/* The shown blocks of a kind of resource other than memory. */
struct leak_resource {
	uint64_t blocks, bytes, sites;
};

struct leak_report {
	struct analysis *analysis;
	const struct leaks_options *options;
	const struct heap_block *held; /* in time order */
	size_t nr_held;
	struct verdicts verdicts;
	struct own_wrappers wrappers; /* the program's own: they do not name a stack */
	uint8_t *choices;	      /* enum leak_choice of each of @held */
	uint8_t *reach;		 /* enum reach_class of each of @held; NULL: nothing was scanned */
	enum reach_group worst;	 /* of blocks that nothing leads to: reach_worst_group() */
	uint32_t *holders;	 /* what leads to each of @held (reach.h); NULL if @reach is */
	struct leak_site *sites; /* memory's and other resources', in the wanted order */
	size_t nr_sites;
	size_t nr_listed_sites;		  /* the first ones; the others are beyond options.limit */
	struct leak_site *sites_by_cause; /* @sites, grouped by cause */
	struct leak_cause *causes;	  /* in the wanted order */
	size_t nr_causes;
	struct leak_resource resources[RESOURCE_MAX_KINDS]; /* by the kind's number, which
							       begins at 1, minus 1 */
	/* By the block's verdict, resources included; and of all verdicts that are leaks. */
	struct leak_estimate estimate_of_all[VERDICT_NR], estimate_leaked;
	/* What suppressions hide of what the filters let pass, other resources included. */
	uint64_t suppressed_blocks, suppressed_bytes;
	/* The rest is about shown blocks of memory only. */
	uint64_t held_blocks, held_bytes;
	bool in_windows; /* held blocks are a sample of those that the program holds: */
	struct leak_estimate estimate, estimate_of[VERDICT_NR];
	uint64_t exited_blocks; /* of these: held by a process until it exited */
	uint64_t memory_sites;
	/* By the block's verdict: a site that leaks may also hold young blocks, which do not. */
	uint64_t blocks_of[VERDICT_NR], bytes_of[VERDICT_NR];
	struct leak_reach reach_of[VERDICT_NR];
	uint64_t sites_of[VERDICT_NR]; /* by the site's verdict */
	uint64_t firm_blocks;	       /* sum of the sites' */
	/* Those that the options select. Suppressions hide none. */
	uint64_t anomalies[ANOMALY_NR_KINDS];
};

/* @analysis and @options must outlive it. Returns 0 or a negative errno (not reported); then,
 * too, the caller calls leak_report_deinit(). */
int leak_report_init(struct leak_report *report, struct analysis *analysis,
		     const struct leaks_options *options);
void leak_report_deinit(struct leak_report *report);

/* True if an unexpected operation on @block is wanted. */
bool leak_report_wants(const struct leak_report *report, const struct heap_block *block,
		       const struct heap_op *op);

/* True if resources of that kind (NULL: memory) are wanted. */
bool leak_report_wants_kind(const struct leak_report *report, const struct resource_kind *kind);

/* The kind of the site's blocks; NULL: memory. */
const struct resource_kind *leak_report_kind_of(const struct leak_report *report,
						const struct leak_site *site);

/*
 * A number for the functions of a stack: other processes' stacks with the same functions have it,
 * too. It is of this run of the tool. Returns 0 or -ENOMEM.
 */
int leak_report_stack_identity(const struct leak_report *report, uint32_t stack_id, uint64_t *ret);

/* What a scan has said of held[@index]. */
enum reach_group leak_report_group_of(const struct leak_report *report, size_t index);

/* True if anything wanted and not suppressed is held. */
bool leak_report_has_held(const struct leak_report *report);

/* The bytes of everything listed: of memory, and of resources that have a size. */
uint64_t leak_report_all_bytes(const struct leak_report *report);

/* True if an option other than --size filters the list. */
bool leak_report_is_narrowed(const struct leak_report *report);

/* The block's age in nanoseconds at the end of the recording or of its process. */
uint64_t leak_report_age_ns(const struct leak_report *report, const struct heap_block *block);

#endif
