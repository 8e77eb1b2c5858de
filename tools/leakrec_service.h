/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leakrec --service NAME: a command line whose options stand in files. */
#ifndef LEAKTOOLS_TOOLS_LEAKREC_SERVICE_H
#define LEAKTOOLS_TOOLS_LEAKREC_SERVICE_H

#include "common/service/options_file.h"

#include <stdbool.h>

/* Of the files, unless --service names another directory. */
#define LEAKREC_SERVICE_DIR "/etc/leaktools"

/* Where --keep and --ring write if the files do not say: below the unit's WorkingDirectory=. */
#define LEAKREC_SERVICE_OUTPUT "recording"

/*
 * Makes the words of the command line: those of @argv, and if they begin with --service, what the
 * files say in its place. Returns 0 or a negative errno, reported. Release *@ret with
 * option_words_deinit(), also after an error.
 */
int leakrec_service_words(int argc, char **argv, struct option_words *ret, bool *ret_is_service);

#endif
