/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakrec's command line. */
#ifndef LEAKTOOLS_TOOLS_LEAKREC_OPTIONS_H
#define LEAKTOOLS_TOOLS_LEAKREC_OPTIONS_H

#include "common/service/options_file.h"
#include "recorder/processes/followed.h"
#include "recorder/session/session.h"
#include "report/live/live_process.h"

/* What the command line says to the tool, beside the session's options. */
struct leakrec_options {
	struct live_options live;
	struct followed followed;  /* what the processes to record belong to, if it is given */
	struct option_words words; /* with --service: the command line with the files' options */
	pid_t *pids;
	const char *narrow; /* the cause to which the recording is narrowed; NULL: to none */
};

static inline bool leakrec_options_follow(const struct leakrec_options *options)
{
	return options->followed.unit || options->followed.program;
}

/*
 * Parses @argv into *@session, which has the defaults, and *@ret. They then point into argv and to
 * each other. Returns what options_parse() does. Release *@ret with leakrec_options_deinit(), also
 * after an error.
 */
int leakrec_options_parse(int argc, char **argv, struct session_options *session,
			  struct leakrec_options *ret);
void leakrec_options_deinit(struct leakrec_options *options);

/* Checks what is only known when the processes are. Returns 0, or -EINVAL, reported. */
int leakrec_options_check_processes(const struct session_options *session);

#endif
