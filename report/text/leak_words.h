/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verdicts and moments in words. All functions write to @out; the caller checks it. */
#ifndef LEAKTOOLS_REPORT_LEAK_WORDS_H
#define LEAKTOOLS_REPORT_LEAK_WORDS_H

#include "common/colour.h"
#include "parser/verdicts/leak_report.h"

#include <stdio.h>

/* The time that the report is about: "at the end", "after 3.1 s", "at the peak". */
void leak_words_moment(FILE *out, const struct analysis *analysis);

/*
 * Whether anything may be said about how many of the held blocks are certainly held: not if
 * something contradicts that the recording is whole and in order.
 */
bool leak_words_know_certain(const struct leak_report *report);

/*
 * How many are: ", certainly not freed", ", 3 of them certainly not freed". Nothing if that is not
 * known.
 */
void leak_words_certain(FILE *out, const struct leak_report *report);

/* If there are no events: why. */
const char *leak_words_unrecorded(const struct analysis *analysis);

/* If nothing is held: what that means. Only a recording without doubts shows that all is freed. */
const char *leak_words_nothing(const struct leak_report *report);

/* "firm", or "doubtful:lost,truncated" */
void leak_words_certainty(FILE *out, unsigned int doubts);

#define LEAK_WORDS_PACE 200

/* Of a recording in windows: how its estimates depend on the program's pace in these; or "". */
void leak_words_pace(const struct leak_report *report, char words[LEAK_WORDS_PACE]);

/* "sort (4242)"; @tid is one of its threads. */
void leak_words_process(FILE *out, const struct leak_report *report, pid_t pid, pid_t tid);

/* Certain leaks stand out; blocks that are no leak are dim. */
enum colour leak_words_colour(enum verdict verdict);

/* What a verdict says about the blocks: "keep accumulating". */
const char *leak_words_meaning(enum verdict verdict);

/*
 * "3 blocks" of memory (@kind is NULL); "3 file handles", "3 fds" or, with reference counts, "1
 * widget object" of another resource.
 */
void leak_words_number(FILE *out, const struct resource_kind *kind, uint64_t nr);

/* "3 blocks, 3.2 MiB"; of another resource than memory, the bytes only if it has any. */
void leak_words_held(FILE *out, const struct resource_kind *kind, uint64_t blocks, uint64_t bytes);

/*
 * The same for a recording in windows: "about 12300 +-900 blocks, 3.2 MiB"; "about 1 block, 32
 * bytes" if the error is less than half a block. The other one leaves out the bytes.
 */
void leak_words_estimate(FILE *out, const struct resource_kind *kind,
			 const struct leak_estimate *estimate);
void leak_words_estimated(FILE *out, const struct resource_kind *kind,
			  const struct leak_estimate *estimate);

/*
 * "+30.1 +-2.5 blocks/s, +90.3 KiB/s +-7.6 KiB/s"; "+30.1 +-2.5 handles/s". What would have no
 * digits in a second is said for a minute, an hour or a day: "+6.0 +-1.1 blocks/h". An error below
 * the last digit is not said.
 */
void leak_words_rate(FILE *out, const struct resource_kind *kind, const struct growth_rate *rate);

/*
 * "577 of 720 freed, half within 21 us, 99 % within 60 us; the oldest is 3.9 s old". In windows:
 * "720 seen, about 0.1 % stay, half of the others within 21 us, ...".
 */
void leak_words_lifetimes(FILE *out, const struct resource_kind *kind,
			  const struct site_verdict *verdict);

/*
 * If the rate is from calls that were counted all the time: "; all calls of forget_reply counted".
 * Not every function has a name that is short enough: "; all calls of a function counted".
 */
void leak_words_counted(FILE *out, const struct leak_report *report,
			const struct site_verdict *verdict);

/*
 * If there was a scan: "; 50 of 54 proven lost, 4 not scanned". After the recording, it proves
 * less: "; 50 of 54 lost now (146 KiB), 4 gone (11.7 KiB)".
 */
void leak_words_reach(FILE *out, const struct leak_report *report, const struct leak_reach *reach,
		      uint64_t blocks);

/* " lost_blocks=3 lost_bytes=96 reached_blocks=0" and so on, as in `leaks`; nothing without a scan.
 */
void leak_words_reach_keys(FILE *out, const struct leak_report *report,
			   const struct leak_reach *reach);

/* "# not seen: 2 pipes with unread bytes of process 123; ..." for each process, in `leaks`. */
void leak_words_unseen(FILE *out, const struct reach *reach);

#endif
