/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lists inconsistencies of a recording and their effects on the result: calls with only an entry or
 * only a return, clocks that differ between CPUs, and so on.
 */
#ifndef LEAKTOOLS_PARSER_PAIRING_AUDIT_H
#define LEAKTOOLS_PARSER_PAIRING_AUDIT_H

#include "parser/analysis/analysis.h"

enum audit_kind {
	AUDIT_ENTRY_THREAD_ENDED,
	AUDIT_ENTRY_EXECED,
	AUDIT_ENTRY_JUMPED_OVER,
	AUDIT_ENTRY_PUSHED_OUT,
	AUDIT_ENTRY_RECORDING_ENDED,
	AUDIT_ENTRY_WINDOW_CLOSED,
	AUDIT_RETURN_AT_START,
	AUDIT_RETURN_LATER,
	AUDIT_UNSEEN_FREES,
	AUDIT_UNLOCATED,
	AUDIT_CLOCK_STEPS,
	AUDIT_OUT_OF_ORDER,
	AUDIT_REPEATED,
	AUDIT_UNDECODABLE,
	AUDIT_NR_KINDS,
};

struct audit_finding {
	uint64_t count;	    /* 0: none found */
	const char *key;    /* for programs: "entry-jumped-over" */
	const char *what;   /* "calls that were open when an outer call returned: longjmp() ..." */
	const char *effect; /* its effect on the result */
};

/* True if threads and processes that were created meanwhile were not recorded. */
bool pairing_audit_misses_tasks(const struct analysis *analysis);

/*
 * True if events were in another order than the recording's, or tasks were not recorded. That may
 * concern any block.
 */
bool pairing_audit_spoils_all(const struct analysis *analysis);
/* True if nothing contradicts that the recording is whole and in order. */
bool pairing_audit_is_clean(const struct analysis *analysis);

/* Fills @ret with all kinds, found or not. */
void pairing_audit(const struct analysis *analysis, struct audit_finding ret[AUDIT_NR_KINDS]);

#endif
