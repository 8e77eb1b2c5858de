/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tells of targets that leakrec does not continue after a stop of its own, because another process
 * has stopped them, too, or because SIGCONT is not permitted. On Linux 7.x, the program that would
 * notice that another process has continued them may have been skipped (backup_programs.h): only a
 * person can know then.
 */
#ifndef LEAKTOOLS_RECORDER_KEPT_STOPS_H
#define LEAKTOOLS_RECORDER_KEPT_STOPS_H

#include "recorder/programs/bpf_recorder.h"

/* After targets were continued. @recorder: NULL if perf events record. */
void kept_stops_tell(struct target_table *table, const struct bpf_recorder *recorder);

#endif
