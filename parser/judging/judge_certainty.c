/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parser/judging/judge.h"

#include "common/partition_point.h"
#include "parser/judging/judge_private.h"

/* If more than this share of a site's frees was missed, that was no accident. */
#define UNSEEN_SHARE 0.05

void judge_sum_losses(struct judge *judge)
{
	if (judge->input->loss_windows)
		judge->windows = loss_windows_list(judge->input->loss_windows, &judge->nr_windows);
	for (size_t i = judge->nr_windows; i-- > 0;)
		judge->lost_from[i] = judge->lost_from[i + 1] + judge->windows[i].lost;
}

/* The number of lost events that may belong to a block allocated at @time_ns. */
static uint64_t lost_since(const struct judge *judge, uint64_t time_ns)
{
	size_t first = partition_point(judge->nr_windows, i, judge->windows[i].end_ns < time_ns);

	return judge->lost_from[first] + judge->input->lost_any_time;
}

unsigned int judge_doubts(const struct judge *judge, const struct heap_block *block,
			  const struct site *site)
{
	const struct verdict_input *input = judge->input;
	unsigned int doubts = 0;

	if (input->lost_unknown || lost_since(judge, block->allocated.time_ns))
		doubts |= DOUBT_LOST;
	if (input->truncated)
		doubts |= DOUBT_TRUNCATED;
	if (!block->size_known || (input->unpaired_reallocs &&
				   input->last_unpaired_realloc_ns >= block->allocated.time_ns))
		doubts |= DOUBT_UNPAIRED;
	if (site->vanished || input->partial)
		doubts |= DOUBT_UNSEEN;
	if (input->observed && judge->sure.of[block - input->held].until_ns != UINT64_MAX)
		doubts |= DOUBT_UNOBSERVED;
	return doubts;
}

void judge_certainty_of(const struct judge *judge, struct site_verdict *verdict)
{
	const struct site *site = verdict->site;
	uint64_t doubtful = 0, explained, half_seen = 0;
	unsigned int doubts = 0;

	for (size_t i = 0; i < judge->nr; i++) {
		unsigned int of_block = judge_doubts(judge, block_at(judge, i), site);

		doubtful += of_block != 0;
		doubts |= of_block;
		half_seen += !block_at(judge, i)->size_known;
	}
	explained = lost_since(judge, block_at(judge, 0)->allocated.time_ns) + half_seen;
	if (doubts & DOUBT_UNPAIRED)
		explained += judge->input->unpaired_reallocs;
	explained += site->vanished;
	if ((double)site->vanished > UNSEEN_SHARE * (double)(site->frees + site->vanished) ||
	    judge->input->lost_unknown || judge->input->partial ||
	    (doubts & (DOUBT_TRUNCATED | DOUBT_UNOBSERVED)) || explained > doubtful)
		explained = doubtful;
	verdict->firm_blocks = verdict->held_blocks - explained;
	verdict->doubts = verdict->firm_blocks * 2 >= verdict->held_blocks ? 0 : doubts;
}
