/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What makes the results of a recording doubtful, as messages on standard error. */
#ifndef LEAKTOOLS_TOOLS_RECORDING_WARNINGS_H
#define LEAKTOOLS_TOOLS_RECORDING_WARNINGS_H

#include "report/text/input_advice.h"

/* Events that are missing. @in_windows: what the tool shows of a recording in windows. */
void recording_warnings_of_losses(const struct analysis *analysis, const char *in_windows);
void recording_warnings_of_advice(const struct input_advice *advice);
/* Both, with the advice on the recording. */
void recording_warnings_print(const struct analysis *analysis, const char *in_windows);

#endif
