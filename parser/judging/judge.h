/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Judges blocks of one kind together: those of a site, or of several sites that are one cause
 * (causes.h). docs/verdicts.md has the method.
 */
#ifndef LEAKTOOLS_PARSER_JUDGE_H
#define LEAKTOOLS_PARSER_JUDGE_H

#include "parser/judging/verdict_types.h"

struct judge;

/* What was decided by age. Valid until the next call of judge_blocks(). */
struct judged_ages {
	double suspect_ns;     /* blocks of that age or older are suspect; negative: none are */
	const float *ordinary; /* block_verdict.ordinary by lifetime_bucket(); NULL: not known */
};

/* @input must outlive it. Returns 0 or -ENOMEM. */
int judge_create(const struct verdict_input *input, struct judge **ret);
void judge_destroy(struct judge *judge);

/*
 * Judges the blocks @order[0] ... of input.held, verdict->held_blocks of them in time order, all
 * present or all left behind. verdict->site has the counts of their kind. Fills the rest of
 * @verdict but its place in the order. @nr_left blocks of the same kind follow them in @order,
 * which other processes left behind: they show how it goes on in the lives of processes.
 */
void judge_blocks(struct judge *judge, const uint32_t *order, size_t nr_left,
		  struct site_verdict *verdict, struct judged_ages *ret);

/* True if no leak can be told from what a program loads when it starts. */
bool judge_is_too_short(const struct judge *judge);

/*
 * True if the block was left behind: its process has exited, and lived for only a part of the
 * recording, so that its end was not that of the program under observation.
 */
bool judge_is_left_behind(const struct judge *judge, const struct heap_block *block);

/* The block's age at the end of the recording or of its process. */
uint64_t judge_age_ns(const struct judge *judge, const struct heap_block *block);

/*
 * For how many of the program's blocks @block stands: 1, unless the recording is in windows. Its
 * kind is the one that was judged last.
 */
double judge_stands_for(const struct judge *judge, const struct heap_block *block);

/*
 * Makes judge_stands_for() count by the share of @site's blocks that is in the sample. What was in
 * flight stays as it was judged last.
 */
void judge_use_sample_of(struct judge *judge, const struct site *site);

/* What could explain that the block seems held: bits of enum doubt. */
unsigned int judge_doubts(const struct judge *judge, const struct heap_block *block,
			  const struct site *site);

#endif
