/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What leak-broker does for the live parser (live_process.h), which may not open a file: it opens
 * code for names, replaces what the parser writes, opens what was reported before, and starts the
 * command.
 */
#ifndef LEAKTOOLS_REPORT_LIVE_SERVICES_H
#define LEAKTOOLS_REPORT_LIVE_SERVICES_H

#include <stddef.h>

enum live_file { LIVE_STATE, LIVE_METRICS, LIVE_REPORTED, LIVE_NR_FILES };

/* A file in a directory that is open. */
struct live_output {
	int dir_fd;	  /* -1: there is none */
	const char *path; /* for messages: of the file, or of the directory that --live names */
	const char *name; /* of the file, in the directory */
};

struct live_services {
	struct live_output outputs[LIVE_NR_FILES];
	const char *on_leak; /* a program and its arguments; NULL: none */
};

/* Serves until nobody asks any more. Returns the process's exit status. */
int live_services_run(const struct live_services *services, int socket_fd);

/* Asks that a file gets these contents. Returns 0 or a negative errno, not reported. */
int live_services_replace(enum live_file file, const char *bytes, size_t size);

/* Asks for LIVE_REPORTED. Returns a descriptor, or a negative errno, not reported. */
int live_services_open_reported(void);

#endif
