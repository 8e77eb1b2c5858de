/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/cause_holder.h"

#include "common/diag.h"
#include "common/scope.h"

#include <inttypes.h>

/* Adds the bytes of each holder of the site's listed blocks. */
static void count_site(const struct leak_report *report, const struct leak_site *site,
		       double *bytes_of)
{
	const struct site_verdict *verdict = &report->verdicts.sites[site->site];

	for (size_t i = 0; i < verdict->held_blocks; i++) {
		uint32_t index = report->verdicts.order[verdict->first + i];

		if (report->choices[index] == LEAK_LISTED)
			bytes_of[report->holders[index]] += (double)report->held[index].size_bytes;
	}
}

struct cause_holder cause_holder_find(const struct leak_report *report,
				      const struct leak_site *sites, size_t nr)
{
	const struct reach *reach = report->analysis->reach;
	uint32_t nr_holders = report->holders ? reach_nr_holders(reach) : 0, most = HOLDER_FIRST;
	_cleanup_free_ double *bytes_of = NULL;
	double known = 0;

	if (nr_holders > HOLDER_FIRST)
		bytes_of = calloc(nr_holders, sizeof(*bytes_of));
	if (!bytes_of)
		return (struct cause_holder){0};
	for (size_t i = 0; i < nr; i++)
		count_site(report, &sites[i], bytes_of);
	for (uint32_t i = HOLDER_WITHOUT_NAME; i < nr_holders; i++) {
		known += bytes_of[i];
		if (i > most && bytes_of[i] > bytes_of[most])
			most = i;
	}
	if (known <= 0 || bytes_of[most] < known / 4)
		return (struct cause_holder){0};
	return (struct cause_holder){most, reach_holder_name(reach, most),
				     bytes_of[most] < 0.9 * known};
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
