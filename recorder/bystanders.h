/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whom a recording of all processes must not disturb, lest it disturb itself.
 *
 * Left out are the recorder, its guard, and where the recording goes into a pipe, whoever reads it,
 * and the readers of what these write: what they allocate for an event would be events again, and
 * if they were stopped because the rings are full, nobody would empty these.
 *
 * Recorded, but never stopped, are init and the recorder's ancestors: the shell, what it runs in,
 * how one is logged in.
 */
#ifndef LEAKTOOLS_RECORDER_BYSTANDERS_H
#define LEAKTOOLS_RECORDER_BYSTANDERS_H

#include "recorder/gate.h"

/*
 * Tells @gate of them. @output: where the recording goes, "-" for standard output. Returns 0 or a
 * negative errno, reported.
 */
int bystanders_exempt(struct gate *gate, const char *output);

#endif
