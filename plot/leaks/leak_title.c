/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/leaks/leak_title.h"

#include "common/quantity.h"
#include "common/scope.h"

#include <inttypes.h>

#define NAME_BYTES_MAX 40

/* A block that a scan has found lost is a leak, whatever its verdict. */
static bool has_lost(const struct leak_set *set)
{
	return set->nr_of_reach[REACH_GROUP_LOST] || set->nr_of_reach[REACH_GROUP_NO_HOLDER];
}

void leak_title_print_leaks(FILE *out, const struct leak_set *set)
{
	static const enum plot_verdict leaks[] = {PLOT_GROWTH, PLOT_OVERDUE, PLOT_BURST};
	uint64_t nr = 0;

	if (set->verdicts[PLOT_NO_VERDICT].nr_leaks == set->nr_points)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(leaks); i++)
		nr += set->verdicts[leaks[i]].nr_leaks;
	if (nr > 1)
		fprintf(out, ", %s look like leaks", quantity_count(nr).text);
	else if (nr || !has_lost(set))
		fprintf(out, ", %s looks like a leak", nr ? "1" : "none");
}

void leak_title_print_origin(FILE *out, const struct leak_set *set)
{
	for (size_t i = 0; i < set->nr_names; i++)
		fprintf(out, "%s%.*s", i == 0 ? ", in " : ", ", NAME_BYTES_MAX, set->names[i]);
	if (set->more_names)
		fputs(" and others", out);
	if (set->nr_points && !set->several_pids)
		fprintf(out, " (PID %" PRId32 ")", set->pid);
}

void leak_title_print_caveats(FILE *out, const struct leak_set *set, bool has_sizes)
{
	uint64_t lost = set->summary.lost_events;
	const char *separator = lost ? "; " : "";

	if (lost)
		fprintf(out, "%" PRIu64 " event%s lost: some of these blocks may have been freed",
			lost, lost == 1 ? " was" : "s were");
	if (set->summary.is_truncated)
		fprintf(out, "%sthe recording was cut off", separator);
	if (set->summary.is_truncated)
		separator = "; ";
	if (set->summary.observed > 0) {
		fprintf(out, "%sa sample: %.3g %% of the time was observed", separator,
			100 * set->summary.observed);
		separator = "; ";
	}
	if (has_sizes && set->nr_unknown_size)
		fprintf(out, "%s%" PRIu64 " block%s of unknown size not shown", separator,
			set->nr_unknown_size, quantity_plural(set->nr_unknown_size));
}

void leak_title_print_reach(FILE *out, const struct leak_set *set)
{
	const char *separator = "";

	if (set->nr_of_reach[REACH_GROUP_NOT_SCANNED] == set->nr_points)
		return;
	for (enum reach_group group = 0; group < REACH_NR_GROUPS; group++) {
		if (!set->nr_of_reach[group])
			continue;
		fprintf(out, "%s%s %s", separator, quantity_count(set->nr_of_reach[group]).text,
			reach_group_words[group]);
		separator = ", ";
	}
	if (set->summary.has_unseen)
		fputs("; not seen: places in the kernel that may hold pointers", out);
}

char *leak_title_caveats(const struct leak_set *set, bool has_sizes)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	leak_title_print_caveats(out, set, has_sizes);
	return fclose(out) == 0 ? steal_ptr(text) : NULL;
}

void leak_title_print_lost(FILE *out, uint64_t nr_lost, uint64_t nr_without_holder)
{
	if (nr_lost)
		fprintf(out, ", %s %s", quantity_count(nr_lost).text,
			reach_group_words[REACH_GROUP_LOST]);
	if (nr_without_holder)
		fprintf(out, ", %s %s", quantity_count(nr_without_holder).text,
			reach_group_words[REACH_GROUP_NO_HOLDER]);
}

void leak_title_write(const struct plot_script *script, const char *headline, const char *reach,
		      const char *caveats)
{
	const char *const more[] = {reach, caveats};
	FILE *program = script->program;

	fputs("set title ", program);
	plot_output_print_string(script->output, program, headline,
				 plot_output_title_chars(script->output));
	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		if (!*more[i])
			continue;
		fputs(".\"\\n\".", program);
		plot_output_print_string(script->output, program, more[i],
					 plot_output_title_chars(script->output));
	}
	plot_output_end_title(script->output, program);
	fputc('\n', program);
}
