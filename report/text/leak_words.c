/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/text/leak_words.h"

#include "common/scope.h"

#include <inttypes.h>

/* Three digits that count. */
static void write_number(FILE *out, double number)
{
	fprintf(out, "%.*f", number < 9.995 ? 2 : number < 99.95 ? 1 : 0, number);
}

void leak_words_bytes(FILE *out, double bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
	size_t i = 0;

	if (bytes < 1023.5) {
		fprintf(out, "%.0f byte%s", bytes, bytes >= 0.5 && bytes < 1.5 ? "" : "s");
		return;
	}
	for (bytes /= 1024; bytes >= 1023.5 && i < ARRAY_SIZE(units) - 1; i++)
		bytes /= 1024;
	write_number(out, bytes);
	fprintf(out, " %s", units[i]);
}

void leak_words_duration(FILE *out, double seconds)
{
	static const struct {
		double length_s;
		const char *name;
	} units[] = {{86400, "days"}, {3600, "h"},  {60, "min"},
		     {1, "s"},	      {1e-3, "ms"}, {1e-6, "us"}};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		/* "90 s" says more than "1.5 min" */
		if (seconds < units[i].length_s * (units[i].length_s > 1 ? 2 : 1))
			continue;
		write_number(out, seconds / units[i].length_s);
		fprintf(out, " %s", units[i].name);
		return;
	}
	fprintf(out, "%.0f ns", seconds * 1e9);
}

void leak_words_moment(FILE *out, const struct analysis *analysis)
{
	if (analysis->until_sequence) {
		fputs("at the peak", out);
	} else if (analysis->until_ns) {
		fputs("after ", out);
		leak_words_duration(out, (double)analysis->until_ns / 1e9);
	} else {
		fputs("at the end", out);
	}
}

void leak_words_certainty(FILE *out, unsigned int doubts)
{
	char separator = ':';

	fputs(doubts ? "doubtful" : "firm", out);
	for (unsigned int i = 0; i < DOUBT_NR; i++) {
		if (!(doubts & 1u << i))
			continue;
		fprintf(out, "%c%s", separator, doubt_name(i));
		separator = ',';
	}
}

const char *leak_words_meaning(enum verdict verdict)
{
	static const char *const meanings[VERDICT_NR] = {
		[VERDICT_GROWTH] = "keep coming, and stay",
		[VERDICT_OVERDUE] = "held far longer than blocks of their kind live",
		[VERDICT_BURST] = "came all at once, and stayed",
		[VERDICT_UNCLEAR] = "too few, or too young, to tell",
		[VERDICT_PLATEAU] = "came for a while, and stayed: a pool or cache that filled",
		[VERDICT_STARTUP] = "came at the start, and stayed",
		[VERDICT_AT_EXIT] = "gone with their process, which exited early",
		[VERDICT_NOT_YET] = "no older than blocks of their kind become",
	};

	return meanings[verdict];
}

static const char *unit_of(const struct resource_kind *kind)
{
	if (!kind)
		return "block";
	if (kind->names_one)
		return kind->name;
	return kind->counts_refs ? "object" : "handle";
}

void leak_words_held(FILE *out, const struct resource_kind *kind, uint64_t blocks, uint64_t bytes)
{
	bool has_name = kind && !kind->names_one;

	fprintf(out, "%" PRIu64 " %s%s%s%s", blocks, has_name ? kind->name : "",
		has_name ? " " : "", unit_of(kind), blocks == 1 ? "" : "s");
	if (kind && !bytes)
		return;
	fputs(", ", out);
	leak_words_bytes(out, (double)bytes);
}

void leak_words_rate(FILE *out, const struct resource_kind *kind, const struct growth_rate *rate)
{
	fputc('+', out);
	write_number(out, rate->blocks_per_s);
	fputs(" +-", out);
	write_number(out, rate->blocks_error);
	fprintf(out, " %ss/s", unit_of(kind));
	if (kind && rate->bytes_per_s <= 0)
		return;
	fputs(", +", out);
	leak_words_bytes(out, rate->bytes_per_s);
	fputs("/s +-", out);
	leak_words_bytes(out, rate->bytes_error);
	fputs("/s", out);
}

void leak_words_lifetimes(FILE *out, const struct resource_kind *kind,
			  const struct site_verdict *verdict)
{
	const struct site *site = verdict->site;
	const char *freed = kind ? "given back" : "freed";

	if (site->frees) {
		fprintf(out, "%" PRIu64 " of %" PRIu64 " %s, half within ", site->frees,
			site->allocations, freed);
		leak_words_duration(out, verdict->median_s);
		fputs(", 99 % within ", out);
		leak_words_duration(out, verdict->p99_s);
	} else {
		fprintf(out, "none of %" PRIu64 " %s", site->allocations, freed);
	}
	fputs("; the oldest is ", out);
	leak_words_duration(out, verdict->oldest_s);
	fputs(" old", out);
	if (verdict->exited)
		fputs(" (its process has exited)", out);
}
