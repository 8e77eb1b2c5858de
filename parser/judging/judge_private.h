/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What judge.c, judge_certainty.c, judge_fit.c and judge_in_flight.c share. */
#ifndef LEAKTOOLS_PARSER_JUDGE_PRIVATE_H
#define LEAKTOOLS_PARSER_JUDGE_PRIVATE_H

#include "parser/analysis/process_views.h"
#include "parser/judging/growth.h"
#include "parser/judging/verdict_types.h"
#include "parser/statistics/survival.h"
#include "parser/windows/followed_clock.h"

#define NS_PER_S 1e9

/* What has a probability below 1 in 100,000 is no chance. */
#define MAX_LOG_CHANCE	(-11.5)
#define TOO_YOUNG_SHARE 0.05 /* share of the recording */
/*
 * What is not of so many classes (site_late_ns()) is older than 134 ms, and not in flight: a thread
 * waits for its CPU for some milliseconds.
 */
#define MAX_IN_FLIGHT (SITE_LATE_CLASSES - 1)

struct judge {
	const struct verdict_input *input;
	double common_p99_ns; /* of all lifetimes */
	double length_ns;     /* of the recording */
	bool is_too_short;    /* to show a leak */
	uint64_t active_ns;   /* when the program became idle, if that was near the end */
	/* Events lost in the loss windows from [i] on. */
	uint64_t lost_from[LOSS_MAX_WINDOWS + 1];
	const struct loss_window *windows;
	size_t nr_windows;
	struct arrival *arrivals; /* for all blocks */
	struct process_views views;
	uint32_t *nr_of; /* of suspects, for each of views.list */
	struct survival survival;
	/* In windows. */
	struct sure_ages sure;
	unsigned int nr_in_flight;   /* of its ages, so many classes may be in flight; 0: none */
	struct followed_clock clock; /* of the kind that is judged */
	/* The blocks that are judged, and by their ages. */
	const uint32_t *order;
	size_t nr, nr_left;
	uint32_t ages[LIFETIME_BUCKETS];
	float ordinary[LIFETIME_BUCKETS];
};

/* The pattern of suspects, the number of them and the time in which they could arrive. */
struct fit {
	enum growth_pattern pattern;
	size_t nr;
	/* In windows: the moments at which they came; and whether one was surely not in flight. */
	size_t nr_moments;
	bool has_proven;
	double start_s, end_s, last_s;
	double until_s;	   /* @end_s, in windows not by the clock: since the recording's start */
	double life_s;	   /* of the processes, until then */
	double factor;	   /* the mean judge_in_flight_factor() */
	double few_factor; /* blocks that stay, by those that are suspects */
};

static inline const struct heap_block *block_at(const struct judge *judge, size_t i)
{
	return &judge->input->held[judge->order[i]];
}

static inline const struct process_view *view_of(const struct judge *judge,
						 const struct heap_block *block)
{
	return &judge->views.list[judge->views.of[block - judge->input->held]];
}

/* Adds up what was lost from each loss window on. */
void judge_sum_losses(struct judge *judge);
/* Decides how many blocks are certainly held. Each lost event can explain only one block. */
void judge_certainty_of(const struct judge *judge, struct site_verdict *verdict);

/* Decides how old blocks may be in flight when their window closes (judge->nr_in_flight). */
void judge_find_in_flight(struct judge *judge, const struct site *site);
/* The number of young classes; 1 ms at least: most of what ends before a look is as young. */
unsigned int judge_nr_young(const struct judge *judge);
bool judge_is_young(const struct judge *judge, const struct heap_block *block);
/* True if the block is so young that it may be in flight. */
bool judge_is_in_flight(const struct judge *judge, const struct heap_block *block);
/*
 * True if the block was certainly not, whatever the others tell. Those of its kind that are freed
 * live for @longest_ns at most, as a rule; negative: not known.
 */
bool judge_outlived_flight(const struct judge *judge, const struct heap_block *block,
			   double longest_ns);
/* If it was not, it stands for so many: for those that stay and may have been in flight, too. */
double judge_in_flight_factor(const struct judge *judge, const struct heap_block *block);

/* Fits the pattern of the blocks of at least that age: the suspects. Notes them in @verdict. */
void judge_fit(struct judge *judge, double min_age_ns, struct site_verdict *verdict,
	       struct fit *ret);

#endif
