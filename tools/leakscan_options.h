/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakscan's command line. */
#ifndef LEAKTOOLS_TOOLS_LEAKSCAN_OPTIONS_H
#define LEAKTOOLS_TOOLS_LEAKSCAN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum leakscan_format {
	LEAKSCAN_SCREEN,
	LEAKSCAN_JSON,
};

/* The pointers lead into argv. */
struct leakscan_options {
	pid_t pid;	  /* 0: a core file */
	const char *core; /* NULL: a process */
	uint64_t pause_limit_ns;
	bool stop;	   /* also if it sleeps */
	bool once;	   /* one snapshot, so no block is called lost */
	bool blocks;	   /* a line for each block */
	bool without_held; /* of these, only blocks that are not held */
	uint64_t traced;   /* the descriptor of leakrec's list of blocks; 0: none */
	bool all;	   /* every row of the screen */
	bool has_why;
	uint64_t why; /* --why: an address */
	enum leakscan_format format;
	const char *diff;      /* NULL: no comparison */
	const char *recording; /* NULL: none */
	bool other_process;    /* compares with another process, too */
	const char *output;    /* NULL: standard output */
};

/*
 * Returns 0, 1 if --help or --version was answered, or a negative errno, reported (-EINVAL: bad
 * usage).
 */
int leakscan_options_parse(int argc, char **argv, struct leakscan_options *options);

#endif
