// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Measures how often verdicts are right. In simulated programs with known leaks, the ten stacks
 * listed first must be leaks, and the leaks must be among them. VERDICTS_SEEDS=N tries more
 * programs, VERDICTS_FIRST=N others, VERDICTS_VERBOSE=1 reports each mistake.
 */
#include "test/support/leak_trace_windows.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>

#define TOP	    10
#define NR_TRACES   60
#define NR_WINDOWED 40

struct score {
	size_t flagged, right;				 /* among the first ten */
	size_t leaks, found;				 /* leaks that could be among them */
	size_t verdicts[TRACE_NR_KINDS][VERDICT_NR + 1]; /* the last: holds nothing */
	/* In windows, of leaks: within a quarter of the truth, or within two of their errors. */
	size_t rates, near_rates, likely_rates;
};

/* Of @nr programs, unless the user wants others. */
struct seeds {
	uint64_t first, nr;
};

static struct seeds seeds_of(uint64_t nr)
{
	const char *first = getenv("VERDICTS_FIRST"), *other_nr = getenv("VERDICTS_SEEDS");

	return (struct seeds){
		.first = first ? strtoull(first, NULL, 10) : 0,
		.nr = other_nr ? strtoull(other_nr, NULL, 10) : nr,
	};
}

static bool is_leak_verdict(enum verdict verdict)
{
	return verdict == VERDICT_GROWTH || verdict == VERDICT_OVERDUE || verdict == VERDICT_BURST;
}

static void tell(uint64_t seed, const struct leak_trace *trace, const struct site_verdict *site,
		 size_t rank)
{
	enum trace_kind kind = trace->parts[trace->part_of[site->site->stack_id]].kind;

	if (getenv("VERDICTS_VERBOSE") &&
	    (kind >= TRACE_FIRST_LEAK) != is_leak_verdict(site->verdict))
		printf("seed %d, rank %zu, %s: %s; %d held of %d, %d suspect, oldest %.4g of %.4g s, "
		       "median %.3g, p99 %.3g\n",
		       (int)seed, rank, trace_kind_name(kind), verdict_name(site->verdict),
		       (int)site->held_blocks, (int)site->site->allocations,
		       (int)site->suspect_blocks, site->oldest_s,
		       (double)(trace->end_ns - trace->start_ns) / 1e9, site->median_s,
		       site->p99_s);
}

/* Judges a program. Functions of stacks are not known if it is simple. */
static void init(struct leak_trace *trace, enum trace_set set, struct verdicts *verdicts)
{
	struct verdict_input input;

	input = (struct verdict_input){
		.sites = trace->stats,
		.held = trace->held,
		.nr_held = trace->nr_held,
		.start_ns = trace->start_ns,
		.end_ns = trace->end_ns,
		.process_life = leak_trace_life,
		.context = trace,
		.functions_of = set == TRACE_SIMPLE ? NULL : leak_trace_functions,
		.stacks = trace,
		.observed = trace->windows ? leak_trace_observed(trace) : NULL,
		.followed = leak_trace_followed,
	};
	assert_int_equal(verdicts_init(verdicts, &input), 0);
}

/* Compares the rate with the number of blocks that really stayed. */
static void score_rate(const struct leak_trace *trace, const struct site_verdict *site,
		       struct score *score)
{
	double length_s = (double)(trace->end_ns - trace->start_ns) / 1e9;
	double stayed = trace->parts[trace->part_of[site->site->stack_id]].nr_staying;
	double off = fabs(site->rate.blocks_per_s - stayed / length_s);
	bool is_near = off <= 0.25 * stayed / length_s;

	score->rates++;
	score->near_rates += is_near;
	score->likely_rates += is_near || off <= 2 * site->rate.blocks_error;
}

static void judge_trace(uint64_t seed, enum trace_view view, struct score *score)
{
	struct leak_trace trace;
	struct verdicts verdicts;
	size_t nr_seen = 0, nr_flagged = 0;
	bool in_windows = view != TRACE_WHOLE;

	if (in_windows)
		leak_trace_init_windows(&trace, seed, view);
	else
		leak_trace_init(&trace, seed, TRACE_SIMPLE);
	init(&trace, TRACE_SIMPLE, &verdicts);
	for (size_t i = 0; i < verdicts.nr_sites; i++) {
		const struct site_verdict *site = &verdicts.sites[i];
		enum trace_kind kind = trace.parts[trace.part_of[site->site->stack_id]].kind;

		score->verdicts[kind][site->verdict]++;
		nr_seen++;
		tell(seed, &trace, site, i);
		assert_int_equal(site->doubts, in_windows ? DOUBT_UNOBSERVED : 0);
		/* Other leaks have no rate, or a rate that changes. */
		if (in_windows && site->has_rate &&
		    (kind == TRACE_PLAIN_LEAK || kind == TRACE_CLUMPED_LEAK))
			score_rate(&trace, site, score);
		if (!is_leak_verdict(site->verdict) || ++nr_flagged > TOP)
			continue;
		score->flagged++;
		score->right += kind >= TRACE_FIRST_LEAK;
		score->found += kind >= TRACE_FIRST_LEAK;
	}
	score->leaks += trace.nr_leaks < TOP ? trace.nr_leaks : TOP;
	assert_true(nr_seen <= trace.nr_stacks);
	verdicts_deinit(&verdicts);
	leak_trace_deinit(&trace);
}

static void check_leaks(enum trace_view view, uint64_t nr_traces, double least_precision,
			double least_recall)
{
	const struct seeds seeds = seeds_of(nr_traces);
	struct score score = {0};
	double precision, recall;

	for (uint64_t i = 0; i < seeds.nr; i++)
		judge_trace(seeds.first + i, view, &score);
	precision = (double)score.right / (double)score.flagged;
	recall = (double)score.found / (double)score.leaks;
	printf("%-30s", "");
	for (enum verdict verdict = 0; verdict < VERDICT_NR; verdict++)
		printf(" %8s", verdict_name(verdict));
	putchar('\n');
	for (enum trace_kind kind = 0; kind < TRACE_NR_KINDS; kind++) {
		printf("%-30s", trace_kind_name(kind));
		for (enum verdict verdict = 0; verdict < VERDICT_NR; verdict++)
			printf(" %8zu", score.verdicts[kind][verdict]);
		putchar('\n');
	}
	printf("%zu leaks in %d programs; of the first ten: precision %.4f, recall %.4f\n",
	       score.leaks, (int)seeds.nr, precision, recall);
	if (view != TRACE_WHOLE)
		printf("of %zu rates, %zu are within a quarter of the truth, %zu within that or two errors\n",
		       score.rates, score.near_rates, score.likely_rates);
	assert_true(precision >= least_precision);
	assert_true(recall >= least_recall);
	if (view == TRACE_WHOLE)
		return;
	assert_true((double)score.likely_rates >= 0.9 * (double)score.rates);
}

static void leaks_come_first(void **state)
{
	check_leaks(TRACE_WHOLE, NR_TRACES, 0.95, 0.95);
}

/* Two per cent of the time is observed. */
static void leaks_come_first_in_windows(void **state)
{
	check_leaks(TRACE_IN_WINDOWS, NR_WINDOWED, 0.9, 0.9);
}

/* Where a block was in flight when its window closed, another part's leak may stay. */
static void leaks_come_first_in_hard_windows(void **state)
{
	check_leaks(TRACE_IN_HARD_WINDOWS, NR_WINDOWED, 0.97, 0.87);
}

/* --- causes --- */

#define TOP_CAUSES 5

struct cause_score {
	size_t flagged, right, leaks, found;
};

/* Finds the part of the program that has most of a cause's bytes; *@ret_share is its share. */
static uint32_t main_part(const struct leak_trace *trace, const struct verdicts *verdicts,
			  const struct cause *cause, double *ret_share)
{
	double *bytes = calloc(trace->nr_parts, sizeof(*bytes)), sum = 0;
	uint32_t most = 0;

	assert_non_null(bytes);
	for (size_t i = cause->first; i < cause->first + cause->nr; i++) {
		const struct site_verdict *site = &verdicts->sites[i];
		uint32_t part = trace->part_of[site->site->stack_id];

		bytes[part] += (double)site->held_bytes;
		sum += (double)site->held_bytes;
		if (bytes[part] > bytes[most])
			most = part;
	}
	*ret_share = bytes[most] / sum;
	free(bytes);
	return most;
}

/* The bytes that living processes hold of a part. */
static double held_of(const struct leak_trace *trace, uint32_t part)
{
	double bytes = 0;

	for (size_t i = 0; i < trace->nr_held; i++)
		if (trace->part_of[trace->held[i].allocated.stack_id] == part &&
		    !leak_trace_life(trace, trace->held[i].allocated.pid, 0).end_ns)
			bytes += (double)trace->held[i].size_bytes;
	return bytes;
}

/* Checks that each site is in exactly one cause, and that a cause holds the sum of its sites. */
static void check_causes(const struct verdicts *verdicts)
{
	size_t site = 0;

	for (size_t i = 0; i < verdicts->nr_causes; i++) {
		const struct cause *cause = &verdicts->causes[i];
		uint64_t blocks = 0, bytes = 0;

		assert_int_equal(cause->first, site);
		for (size_t k = 0; k < cause->nr; k++, site++) {
			assert_int_equal(verdicts->sites[site].cause, i);
			blocks += verdicts->sites[site].held_blocks;
			bytes += verdicts->sites[site].held_bytes;
		}
		assert_int_equal(cause->verdict.held_blocks, blocks);
		assert_int_equal(cause->verdict.held_bytes, bytes);
	}
	assert_int_equal(site, verdicts->nr_sites);
}

static void judge_causes(uint64_t seed, enum trace_set set, struct cause_score *score)
{
	struct leak_trace trace;
	struct verdicts verdicts;
	size_t nr_flagged = 0;
	bool *is_found;

	leak_trace_init(&trace, seed, set);
	init(&trace, set, &verdicts);
	is_found = calloc(trace.nr_parts, sizeof(*is_found));
	assert_non_null(is_found);
	check_causes(&verdicts);
	for (size_t i = 0; i < verdicts.nr_causes; i++) {
		const struct cause *cause = &verdicts.causes[i];
		double share, of_part;
		uint32_t part = main_part(&trace, &verdicts, cause, &share);
		bool is_right = trace.parts[part].kind >= TRACE_FIRST_LEAK && share >= 0.9;

		if (!is_leak_verdict(cause->verdict.verdict) || ++nr_flagged > TOP_CAUSES)
			continue;
		of_part = (double)cause->verdict.held_bytes / held_of(&trace, part);
		score->flagged++;
		score->right += is_right;
		if (is_right && of_part >= 0.5)
			is_found[part] = true;
		if (getenv("VERDICTS_VERBOSE") && (!is_right || of_part < 0.5))
			printf("seed %d, cause %zu, %s: %s of %zu stacks, %.2f of %s of %s (%d, %d stacks), %.2f of its bytes\n",
			       (int)seed, i, is_right ? "right" : "WRONG",
			       verdict_name(cause->verdict.verdict), cause->nr, share,
			       trace_kind_name(trace.parts[part].kind),
			       trace_actor_name(trace.parts[part].actor), trace.parts[part].spread,
			       trace.parts[part].nr, of_part);
	}
	for (size_t i = 0; i < trace.nr_parts; i++)
		score->found += is_found[i];
	score->leaks += trace.nr_leaks < TOP_CAUSES ? trace.nr_leaks : TOP_CAUSES;
	verdicts_deinit(&verdicts);
	leak_trace_deinit(&trace);
	free(is_found);
}

static void check_programs(enum trace_set set)
{
	const struct seeds seeds = seeds_of(NR_TRACES);
	struct cause_score score = {0};
	double precision, recall;

	for (uint64_t i = 0; i < seeds.nr; i++)
		judge_causes(seeds.first + i, set, &score);
	precision = (double)score.right / (double)score.flagged;
	recall = (double)score.found / (double)score.leaks;
	printf("%zu leaks in %d programs; of the first five causes: precision %.4f, recall %.4f\n",
	       score.leaks, (int)seeds.nr, precision, recall);
	assert_true(precision >= 0.95);
	assert_true(recall >= 0.95);
}

static void causes_come_first(void **state)
{
	check_programs(TRACE_SPREAD);
}

static void causes_in_servers_come_first(void **state)
{
	check_programs(TRACE_SERVERS);
}

static void causes_with_shared_code_come_first(void **state)
{
	check_programs(TRACE_SHARED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaks_come_first),
		cmocka_unit_test(leaks_come_first_in_windows),
		cmocka_unit_test(leaks_come_first_in_hard_windows),
		cmocka_unit_test(causes_come_first),
		cmocka_unit_test(causes_in_servers_come_first),
		cmocka_unit_test(causes_with_shared_code_come_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
