/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a finished analysis found, as asked for: the held blocks with their verdicts, those that the
 * options leave out and those that are suppressed told apart. The writers (leaks_writer.h,
 * summary_report.h) print it; it decides nothing about text.
 */
#ifndef LEAKTOOLS_PARSER_LEAK_REPORT_H
#define LEAKTOOLS_PARSER_LEAK_REPORT_H

#include "common/size_range.h"
#include "parser/analysis/analysis.h"
#include "parser/verdicts/suppressions.h"
#include "parser/verdicts/verdicts.h"

#include <regex.h>

enum leak_order {
	LEAK_ORDER_VERDICT, /* grouped by stack, real leaks first */
	LEAK_ORDER_TIME,    /* block by block as they were allocated */
	LEAK_ORDER_SIZE,    /* grouped by stack, those that hold most first */
};

/* What is asked for. Zeroed, it is everything. */
struct leaks_options {
	bool list_unknown; /* list frees of unknown blocks too; they are always counted */
	const struct size_range *size; /* of leaks and unexpected operations; NULL: all sizes */
	uint64_t min_age_ns;
	uint64_t max_age_ns;   /* 0: no limit */
	regex_t *stack;	       /* function, file or module of any frame; NULL: all stacks */
	const char *thread;    /* by number or name; NULL: all threads */
	const char *function;  /* of the allocator; NULL: all */
	const char *kind;      /* of resource, or HEAP_KIND_MEMORY; NULL: all */
	unsigned int verdicts; /* a bit for each wanted; 0: all */
	size_t top;	       /* so many stacks; 0: all */
	enum leak_order order;
	struct suppressions *suppressions; /* NULL: none; what they hide is counted in them */
};

enum leak_choice {
	LEAK_LISTED,
	LEAK_FILTERED,	 /* the options leave it out */
	LEAK_SUPPRESSED, /* by a suppression */
};

/* Of a stack, what is listed. */
struct leak_site {
	uint32_t site; /* index into verdicts.sites */
	uint64_t blocks, bytes;
};

/* Of a kind of resource that is no memory, what is wanted and not suppressed. */
struct leak_resource {
	uint64_t held, bytes, sites;
};

struct leak_report {
	struct analysis *analysis;
	const struct leaks_options *options;
	const struct heap_block *held; /* in time order */
	size_t nr_held;
	struct verdicts verdicts;
	uint8_t *choices;	 /* enum leak_choice of each of @held */
	struct leak_site *sites; /* those with listed blocks, in the wanted order */
	size_t nr_sites;
	size_t nr_listed_sites; /* the first of these; the others are beyond options.top */
	struct leak_resource resources[RESOURCE_MAX_KINDS]; /* by the kind's number - 1 */
	/* Of memory, what is wanted and not suppressed, all sites'. */
	uint64_t held_blocks, held_bytes;
	uint64_t memory_sites;
	uint64_t suppressed_blocks, suppressed_bytes;
	uint64_t blocks_of[VERDICT_NR], bytes_of[VERDICT_NR]; /* of these, by the site's verdict */
	uint64_t sites_of[VERDICT_NR];
	uint64_t firm_blocks;
	uint64_t anomalies[ANOMALY_NR_KINDS]; /* of what the options want */
};

/* @analysis and @options must outlive it. Returns 0 or a negative errno, not reported. */
int leak_report_init(struct leak_report *report, struct analysis *analysis,
		     const struct leaks_options *options);
void leak_report_deinit(struct leak_report *report);

/* Whether an unexpected operation on @block is wanted. */
bool leak_report_wants(const struct leak_report *report, const struct heap_block *block,
		       const struct heap_op *op);

/* Whether resources of that kind (NULL: memory) are wanted. */
bool leak_report_wants_kind(const struct leak_report *report, const struct resource_kind *kind);

/* What the site's blocks are; NULL: memory. */
const struct resource_kind *leak_report_kind_of(const struct leak_report *report,
						const struct leak_site *site);

/* Whether anything at all is held, of what is wanted and not suppressed. */
bool leak_report_has_held(const struct leak_report *report);

/* What that has, in bytes: memory and other resources, if they have a size. */
uint64_t leak_report_all_bytes(const struct leak_report *report);

/* Whether options narrow what is listed, other than by size. */
bool leak_report_is_narrowed(const struct leak_report *report);

/* The block's age at the recording's end, or its process's, in nanoseconds. */
uint64_t leak_report_age_ns(const struct leak_report *report, const struct heap_block *block);

#endif
