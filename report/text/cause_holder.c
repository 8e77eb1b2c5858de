/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/cause_holder.h"

#include "common/diag.h"
#include "common/scope.h"

#include <inttypes.h>

struct holder_count {
	double *bytes_of; /* by holder */
	double known;	  /* of all that the scan has looked for */
	uint32_t most;	  /* the holder of most, of those with names */
};

/*
 * Adds the bytes of each holder of the site's listed blocks. Holders are as many as a scan has
 * named: only those of these blocks are looked at, because this is done for each stack.
 */
static void count_site(const struct leak_report *report, const struct leak_site *site,
		       struct holder_count *count)
{
	const struct site_verdict *verdict = &report->verdicts.sites[site->site];
	double *bytes_of = count->bytes_of;

	for (size_t i = 0; i < verdict->held_blocks; i++) {
		uint32_t index = report->verdicts.order[verdict->first + i];
		uint32_t holder = report->holders[index];
		double bytes = (double)report->held[index].size_bytes;

		if (report->choices[index] != LEAK_LISTED || holder < HOLDER_WITHOUT_NAME)
			continue;
		count->known += bytes;
		bytes_of[holder] += bytes;
		if (holder >= HOLDER_FIRST && bytes_of[holder] > bytes_of[count->most])
			count->most = holder;
	}
}

struct cause_holder cause_holder_find(const struct leak_report *report,
				      const struct leak_site *sites, size_t nr)
{
	const struct reach *reach = report->analysis->reach;
	uint32_t nr_holders = report->holders ? reach_nr_holders(reach) : 0;
	_cleanup_free_ double *bytes_of = NULL;
	struct holder_count count = {.most = HOLDER_FIRST};

	if (nr_holders > HOLDER_FIRST)
		bytes_of = calloc(nr_holders, sizeof(*bytes_of));
	if (!bytes_of)
		return (struct cause_holder){0};
	count.bytes_of = bytes_of;
	for (size_t i = 0; i < nr; i++)
		count_site(report, &sites[i], &count);
	if (count.known <= 0 || bytes_of[count.most] < count.known / 4)
		return (struct cause_holder){0};
	return (struct cause_holder){count.most, reach_holder_name(reach, count.most),
				     bytes_of[count.most] < 0.9 * count.known};
}

struct cause_holder cause_holder_of_most(const struct leak_report *report,
					 const struct leak_site *sites, size_t nr)
{
	uint64_t bytes = 0, reachable = 0;

	for (size_t i = 0; i < nr; i++) {
		bytes += sites[i].bytes - sites[i].reach.bytes[REACH_GROUP_GONE];
		reachable += sites[i].reach.bytes[REACH_GROUP_REACHABLE] +
			     sites[i].reach.bytes[REACH_GROUP_POINTED];
	}
	return reachable > bytes / 2 ? cause_holder_find(report, sites, nr)
				     : (struct cause_holder){0};
}

void cause_holder_define(FILE *out, const struct leak_report *report)
{
	const struct reach *reach = report->analysis->reach;
	uint32_t nr = reach_nr_holders(reach);

	if (nr > HOLDER_FIRST)
		fputs("# columns: holder NR NAME...\n", out);
	for (uint32_t i = HOLDER_FIRST; i < nr; i++) {
		fprintf(out, "holder %" PRIu32 " ", i - HOLDER_FIRST + 1);
		diag_print_escaped(out, reach_holder_name(reach, i), NULL);
		fputc('\n', out);
	}
}

void cause_holder_write_key(FILE *out, uint32_t holder)
{
	if (holder >= HOLDER_FIRST)
		fprintf(out, " holder=%" PRIu32, holder - HOLDER_FIRST + 1);
}
