/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Gives up files that are about to be overwritten: removes their probes, and then lets the writer
 * go on (file_leases.h). With many processes, the kernel needs long for that. So the links of a
 * file end in processes of their own (apart.h), and the recorder asks in each round whether they
 * are gone. Those of a window are not ended alone: the window ends.
 */
#ifndef LEAKTOOLS_RECORDER_GIVEN_UP_H
#define LEAKTOOLS_RECORDER_GIVEN_UP_H

#include "recorder/backpressure/backpressure.h"
#include "recorder/targets/dlopen_watch.h"
#include "recorder/targets/file_leases.h"
#include "recorder/targets/fork_follow.h"

/* Set the parts that there are before use; the others are NULL. */
struct given_up {
	struct file_leases *leases;
	struct record_events *events;
	struct bpf_recorder *recorder;
	struct backpressure *backpressure;
	struct fork_follow *fork_follow;
	struct dlopen_watch *dlopen_watch;
	struct probe_file *file; /* its probes are being removed; NULL: none */
	size_t nr;		 /* files that are not recorded any more */
};

/* How long to wait before the next call of given_up_serve() while a file's probes are removed. */
#define GIVEN_UP_ASK_MS 25

/* True while a file's probes are being removed. Others have to wait for that. */
bool given_up_is_busy(const struct given_up *given_up);

/* Begins to give up the files that somebody waits for, and finishes what was begun before. */
void given_up_serve(struct given_up *given_up);

/*
 * At the end of the recording, before the file is closed: leaves the lease of a file whose links
 * are still being ended to the processes that do that, for as long as they need.
 */
void given_up_leave(struct given_up *given_up);

#endif
