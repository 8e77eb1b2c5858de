/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parses lines of perf script's text in place:
 *
 * emacs 4165/4170 [001] 11967.073719: probe_libc:malloc_ret: (7f40 <- 55b7) arg1=0x55b7b0a5f2a0
 *
 * 98930 malloc+0x0 (/usr/lib/x86_64-linux-gnu/libc.so.6)
 *
 * Process and CPU may be missing, and names may hold anything. A line may be malformed.
 */
#ifndef LEAKTOOLS_PARSER_PERF_SCRIPT_LINE_H
#define LEAKTOOLS_PARSER_PERF_SCRIPT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Strings point into the line, which is changed. */
struct perf_script_event {
	const char *comm;
	pid_t pid; /* -1: not in the line */
	pid_t tid;
	uint32_t cpu;
	uint64_t time_ns;

	const char *name; /* a tracepoint's, without its group; NULL: none */
	bool has_address; /* the probe's, in brackets: only probes have it */
	uint64_t address;
	uint64_t return_address; /* 0: none */

	char *rest; /* a tracepoint's fields; otherwise the text after the time */
};

struct perf_script_frame {
	/* In the module's file; in memory without a module, and by some perfs without -F dsoff. */
	uint64_t address;
	bool is_in_file;    /* certainly: by -F dsoff */
	const char *symbol; /* NULL: not known */
	uint64_t symbol_offset;
	const char *module; /* NULL: not known */
	bool inlined;	    /* into the next frame */
};

/* Parse @line, which ends with NUL. Return false if it is not such a line. */
bool perf_script_parse_event(char *line, struct perf_script_event *ret);
bool perf_script_parse_frame(char *line, struct perf_script_frame *ret);

/* Parses the next "name=value" and advances *@fields. Returns false at the end. */
bool perf_script_next_field(char **fields, const char **ret_name, const char **ret_value);

/* Parses "0x1f", "31" or "-1". Returns false for anything else. */
bool perf_script_number(const char *text, uint64_t *ret);

#endif
